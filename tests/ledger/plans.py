"""How SQLite will find the rows of a statement."""

import re
import sqlite3

from memoryd.ledger import queries


def parameters_of(statement: str) -> dict[str, None]:
    """Every named parameter of a statement, without a value."""
    return dict.fromkeys(re.findall(r":([a-z_]+)", statement))


def plan_of(conn: sqlite3.Connection, subject: str, name: str) -> list[str]:
    """The steps of a statement's plan."""
    statement = queries.load(subject)[name]
    rows = conn.execute("EXPLAIN QUERY PLAN " + statement, parameters_of(statement)).fetchall()
    return [row[3] for row in rows]
