"""From SQLite's rows to our values: column names become keyword arguments of a constructor."""

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

Parameters = Mapping[str, object]


def fetch_all(conn: sqlite3.Connection, sql: str, parameters: Parameters, make: Callable[..., T]) -> list[T]:
    """Run one statement and return `make(**columns)` for every row; all rows are fetched, so no cursor stays open."""
    cursor = conn.execute(sql, parameters)
    names = [column[0] for column in cursor.description or ()]
    return [make(**dict(zip(names, row, strict=True))) for row in cursor.fetchall()]


def fetch_one(conn: sqlite3.Connection, sql: str, parameters: Parameters, make: Callable[..., T]) -> T | None:
    """Run one statement and return `make(**columns)` for its first row, or None."""
    found = fetch_all(conn, sql, parameters, make)
    return found[0] if found else None


def fetch_in_order(
    conn: sqlite3.Connection, sql: str, parameters: Parameters, make: Callable[[tuple[Any, ...]], T]
) -> list[T]:
    """Run one statement and return `make(row)` for every row: for rows that are read often, a third of the time."""
    return [make(row) for row in conn.execute(sql, parameters).fetchall()]


def change(conn: sqlite3.Connection, sql: str, parameters: Parameters) -> int:
    """Run one statement that returns no rows; the answer is the number of rows it touched."""
    return conn.execute(sql, parameters).rowcount
