"""Written schedules, each for a guard that random histories meet rarely, or that they cannot see: how a row is found.

Each takes an empty ledger and raises AssertionError when the ledger does not do what it should.
"""

import sqlite3
from collections.abc import Callable

from memoryd.ledger import queries
from tests.ledger.directed import forgetting, jobs, memory, pruning, returning, runs, searching, sessions

SCHEDULES: dict[str, Callable[[sqlite3.Connection], None]] = {
    schedule.__name__: schedule
    for subject in (jobs, runs, sessions, memory, returning, forgetting, searching, pruning)
    for schedule in subject.SCHEDULES
}


def schema(conn: sqlite3.Connection) -> None:
    """Make an empty ledger of a new connection."""
    conn.executescript(queries.read("schema.sql"))
    conn.execute("PRAGMA foreign_keys = ON")
