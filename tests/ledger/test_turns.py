"""Functions that wait to write are committed together, and one of them that fails costs the others nothing."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memoryd.errors import LeaseLost
from memoryd.ledger import meta, queries
from memoryd.ledger.turns import MOST_TOGETHER, Turn, Turns
from tests.ledger.faults import AnswerLost, Fault, FaultyConnection, Killed, Trouble


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[FaultyConnection]:
    with closing(
        sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None, factory=FaultyConnection)
    ) as connection:
        connection.executescript(queries.read("schema.sql"))
        connection.statements = []
        yield connection


def _putting(key: str) -> Callable[[sqlite3.Connection], str]:
    def put(conn: sqlite3.Connection) -> str:
        meta.put(conn, key, "v")
        return key

    return put


def _failing(conn: sqlite3.Connection) -> str:
    meta.put(conn, "of the one that fails", "v")
    raise LeaseLost("gone")


def _join(turns: Turns, *functions: Callable[[sqlite3.Connection], str]) -> list[Turn[str]]:
    joined = [Turn(function) for function in functions]
    for turn in joined:
        turns.join(turn)
    return joined


def _served(turns: Turns, conn: sqlite3.Connection) -> list[str]:
    """Serve all who wait; return each one's answer, or the name of its error."""
    served = []
    while len(turns):
        served += turns.take(conn)
    return [turn.answer if turn.error is None else type(turn.error).__name__ for turn in served]


def _keys(conn: sqlite3.Connection) -> list[str]:
    return [key for (key,) in conn.execute("SELECT key FROM meta ORDER BY key")]


def _commits(conn: FaultyConnection) -> int:
    assert conn.statements is not None
    return sum(statement.endswith("COMMIT;") for statement in conn.statements)


def test_all_who_wait_are_committed_once(conn: FaultyConnection) -> None:
    turns = Turns()
    _join(turns, _putting("a"), _putting("b"), _putting("c"))

    assert _served(turns, conn) == ["a", "b", "c"]
    assert _commits(conn) == 1
    assert _keys(conn) == ["a", "b", "c"]


def test_who_joins_while_another_writes_is_committed_with_it(conn: FaultyConnection) -> None:
    turns = Turns()
    late = Turn(_putting("late"))

    def early(conn: sqlite3.Connection) -> str:
        turns.join(late)
        return "early"

    _join(turns, early)

    assert _served(turns, conn) == ["early", "late"]
    assert _commits(conn) == 1


def test_no_more_than_so_many_are_committed_together(conn: FaultyConnection) -> None:
    turns = Turns()
    _join(turns, *(_putting(f"{number:02}") for number in range(MOST_TOGETHER + 1)))

    assert _served(turns, conn) == [f"{number:02}" for number in range(MOST_TOGETHER + 1)]
    assert _commits(conn) == 2


@pytest.mark.parametrize("place", range(3))
def test_one_that_fails_is_undone_alone(conn: FaultyConnection, place: int) -> None:
    turns = Turns()
    functions = [_putting("a"), _putting("b")]
    functions.insert(place, _failing)
    _join(turns, *functions)

    expected = ["a", "b"]
    expected.insert(place, "LeaseLost")
    assert _served(turns, conn) == expected
    assert _keys(conn) == ["a", "b"]


def test_one_that_fails_by_itself_is_not_tried_again(conn: FaultyConnection) -> None:
    turns = Turns()
    tries = []

    def failing(conn: sqlite3.Connection) -> str:
        tries.append(1)
        return _failing(conn)

    _join(turns, failing)

    assert _served(turns, conn) == ["LeaseLost"]
    assert tries == [1]


@pytest.mark.parametrize("at", range(4))
def test_a_kill_leaves_nothing_of_any_of_them(conn: FaultyConnection, tmp_path: Path, at: int) -> None:
    turns = Turns()
    _join(turns, _putting("a"), _putting("b"))
    conn.arm(Fault(Trouble.KILL, at))

    assert _served(turns, conn) == [Killed.__name__] * 2
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as reader:
        assert _keys(reader) == []


def test_a_commit_that_goes_wrong_is_tried_again_by_each(conn: FaultyConnection) -> None:
    turns = Turns()
    _join(turns, _putting("a"), _putting("b"))
    conn.arm(Fault(Trouble.ANSWER_LOST))

    assert _served(turns, conn) == [AnswerLost.__name__] * 2
    assert _keys(conn) == ["a", "b"]


def test_a_lock_that_cannot_be_had_fails_all_who_wait_for_it_at_once(conn: FaultyConnection, tmp_path: Path) -> None:
    turns = Turns()
    conn.execute("PRAGMA busy_timeout = 0")
    _join(turns, _putting("a"), _putting("b"))
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        assert _served(turns, conn) == ["OperationalError"] * 2

    _join(turns, _putting("a"))
    assert _served(turns, conn) == ["a"]
    assert _keys(conn) == ["a"]
