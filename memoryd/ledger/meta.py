"""Small facts about the ledger itself, by key."""

import sqlite3

from memoryd.ledger import queries
from memoryd.ledger.rows import change

_SQL = queries.load("meta")

FIRST_START = "first_start_at"
IMPORTED = "imported:"
"""The beginning of the keys that say what was imported; a reset drops them."""


def get(conn: sqlite3.Connection, key: str) -> str | None:
    """Return the value of a key, None when it was never set."""
    row = conn.execute(_SQL["find_meta"], {"key": key}).fetchone()
    return None if row is None else str(row[0])


def put(conn: sqlite3.Connection, key: str, value: str) -> None:
    """Set the value of a key."""
    change(conn, _SQL["put_meta"], {"key": key, "value": value})


def first_start(conn: sqlite3.Connection, now: float) -> int:
    """Return the instant of the first start, which is `now` if this is it; what was recorded before is history."""
    change(conn, _SQL["put_meta_once"], {"key": FIRST_START, "value": str(int(now))})
    return int(get(conn, FIRST_START) or now)


def newest_instant(conn: sqlite3.Connection) -> int | None:
    """Return the latest instant at which something was recorded, None while nothing was.

    Times that sessions themselves state do not count: those are other programs' clocks.
    """
    (instant,) = conn.execute(_SQL["find_newest_instant"]).fetchone()
    return None if instant is None else int(instant)
