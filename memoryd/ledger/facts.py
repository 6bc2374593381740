"""What was learned about a model, so that it is learned once."""

import sqlite3
from enum import StrEnum

from memoryd.ledger import queries
from memoryd.ledger.rows import change

_SQL = queries.load("facts")


class Fact(StrEnum):
    """What can be known of a model."""

    BYTES_PER_TOKEN = "bytes_per_token"  # noqa: S105 - a token of text, not of access
    STRUCTURE = "structure"


def put(conn: sqlite3.Connection, provider: str, model: str, key: Fact, value: str, *, now: float) -> None:
    """Record a fact; the latest stands."""
    parameters = {"provider": provider, "model": model, "key": key, "value": value, "now": int(now)}
    change(conn, _SQL["put_fact"], parameters)


def get(conn: sqlite3.Connection, provider: str, model: str, key: Fact) -> str | None:
    """Return a fact, None when it is not known."""
    row = conn.execute(_SQL["find_fact"], {"provider": provider, "model": model, "key": key}).fetchone()
    return None if row is None else str(row[0])


def put_bytes_per_token(conn: sqlite3.Connection, provider: str, model: str, ratio: float, *, now: float) -> None:
    """Record how many bytes of our input make a token of this model."""
    put(conn, provider, model, Fact.BYTES_PER_TOKEN, repr(ratio), now=now)


def bytes_per_token(conn: sqlite3.Connection, provider: str, model: str) -> float | None:
    """Return the learned ratio, None when it is not known."""
    value = get(conn, provider, model, Fact.BYTES_PER_TOKEN)
    return None if value is None else float(value)
