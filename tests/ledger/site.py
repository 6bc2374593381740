"""The file on which histories are played, one after the other, and its open connections."""

import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Self

from memoryd.ledger import queries
from tests.ledger.factories import NOW, recorded_every_day
from tests.ledger.faults import NO_FAULT, FaultyConnection

_TABLES = (
    "jobs",
    "attempts",
    "requests",
    "sessions",
    "other_files",
    "stage1_outputs",
    "usage_events",
    "publications",
    "claim_threads",
    "claims",
)


class Site:
    """A ledger file in WAL mode that no power cut will hit: nothing is synced."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ledger.sqlite3"
        self._spare: list[FaultyConnection] = []
        self.reader = self._connect()
        self.reader.execute("PRAGMA journal_mode = WAL")
        self.reader.executescript(queries.read("schema.sql"))
        recorded_every_day(self.reader, until=2 * NOW, days=2 * int(NOW // 86_400))

    def clear(self) -> None:
        """Begin anew: as quick as a new file would be slow."""
        self.reader.execute("BEGIN IMMEDIATE")
        for table in _TABLES:
            self.reader.execute(f"DELETE FROM {table}")
        self.reader.execute("COMMIT;")

    def take(self) -> FaultyConnection:
        return self._spare.pop() if self._spare else self._connect()

    def give_back(self, conn: FaultyConnection) -> None:
        """Take back a connection whose statements are already prepared; one in the middle of something is closed."""
        if conn.in_transaction:
            conn.close()
        else:
            conn.arm(NO_FAULT)
            self._spare.append(conn)

    def _connect(self) -> FaultyConnection:
        conn = sqlite3.connect(
            self._path, isolation_level=None, factory=FaultyConnection, timeout=0, cached_statements=500
        )
        conn.execute("PRAGMA synchronous = OFF")
        conn.execute("PRAGMA foreign_keys = ON")
        return conn

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for conn in (self.reader, *self._spare):
            conn.close()
