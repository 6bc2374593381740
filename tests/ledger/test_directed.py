"""What the written schedules show of the ledger as it is."""

import sqlite3

import pytest

from tests.ledger.directed.every import SCHEDULES


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_ledger_does_as_it_should(conn: sqlite3.Connection, name: str) -> None:
    SCHEDULES[name](conn)
