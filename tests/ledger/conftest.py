"""A ledger in memory for functions of a connection, a ledger on disk for the adapter."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memoryd.ledger import queries
from memoryd.ledger.database import Ledger
from tests.support.clock import FakeClock


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(queries.read("schema.sql"))
        connection.execute("PRAGMA foreign_keys = ON")
        yield connection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
async def ledger(path: Path) -> AsyncIterator[Ledger]:
    async with await Ledger.open(path, clock=FakeClock()) as opened:
        yield opened
