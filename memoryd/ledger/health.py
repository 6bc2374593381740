"""Questions that `status` and `doctor` ask about the ledger's file."""

import sqlite3

from memoryd.ledger import queries

_SQL = queries.load("connection")


def database_size(conn: sqlite3.Connection) -> int:
    """Return the bytes that the ledger's pages take, the WAL not counted."""
    (pages,) = conn.execute(_SQL["page_count"]).fetchone()
    (page_size,) = conn.execute(_SQL["page_size"]).fetchone()
    return int(pages) * int(page_size)


def quick_check(conn: sqlite3.Connection) -> tuple[str, ...]:
    """Return what SQLite finds wrong with the file, nothing when it is sound; about 1 s per GB."""
    return tuple(str(message) for (message,) in conn.execute(_SQL["quick_check"]).fetchall() if message != "ok")


def sqlite_version() -> str:
    """Return the version of SQLite's library."""
    return sqlite3.sqlite_version
