"""A ledger of a moment, in memory: for questions about sessions that the real one does not know yet."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from memoryd.ledger.migrations import migrate, shipped


@contextmanager
def scratch() -> Iterator[sqlite3.Connection]:
    """Give an empty ledger that leaves no trace."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
        migrate(conn, Path(":memory:"), version=0, migrations=shipped(), now=0.0)
        yield conn
