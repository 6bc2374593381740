"""Functions that wait for their turn to write: whoever waits when one of them has the lock is committed with it.

A commit costs as much as all statements of a job, at synchronous = FULL a wait for the disk, and so does the way to the
ledger's thread and back: what several workers ask for at the same time shares them.
"""

import sqlite3
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from memoryd.ledger import queries

T = TypeVar("T")

_SQL = queries.load("connection")
WRITE = (_SQL["begin_write"], _SQL["commit"])
READ = (_SQL["begin_read"], _SQL["rollback"])

MOST_TOGETHER = 16
"""So many share a transaction, so that nobody's answer waits for a stream of others."""


class Turn(Generic[T]):
    """One function that waits to write, and what became of that."""

    __slots__ = ("answer", "error", "fn")

    answer: T
    """Only where there is no error."""

    def __init__(self, fn: Callable[[sqlite3.Connection], T]) -> None:
        self.fn = fn
        self.error: BaseException | None = None

    def write(self, conn: sqlite3.Connection) -> None:
        """Do it, within a transaction."""
        self.answer = self.fn(conn)

    def write_alone(self, conn: sqlite3.Connection) -> None:
        """Do it in a transaction of its own."""
        try:
            self.answer = transact(conn, WRITE, self.fn)
        except BaseException as error:  # noqa: BLE001 - whoever asked for it hears of it
            self.error = error


class Turns:
    """All that wait, oldest first. They join on one thread, and have their turn on another."""

    def __init__(self) -> None:
        self._waiting: deque[Turn[Any]] = deque()

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def join(self, turn: Turn[Any]) -> None:
        """Wait for the transaction that comes next."""
        self._waiting.append(turn)

    def take(self, conn: sqlite3.Connection) -> list[Turn[Any]]:
        """Let those write who wait, at least the oldest, and return them, each with its answer or its error.

        They are one transaction, also who joins while that goes on. If one of them fails, all is undone and each has a
        transaction of its own, as if there had been no others: a function may run twice, but once in vain. If there is
        no lock to be had, nobody gets one: they waited for it together.
        """
        together: list[Turn[Any]] = []

        def write(conn: sqlite3.Connection) -> None:
            while self._waiting and len(together) < MOST_TOGETHER:
                together.append(self._waiting.popleft())
                together[-1].write(conn)

        try:
            transact(conn, WRITE, write)
        except BaseException as error:  # noqa: BLE001 - they hear of it
            if not together:
                together += (self._waiting.popleft() for _ in range(len(self._waiting)))
                _fail(together, error)
            elif len(together) == 1:
                _fail(together, error)
            else:
                for turn in together:
                    turn.write_alone(conn)
        return together


def _fail(turns: Iterable[Turn[Any]], error: BaseException) -> None:
    for turn in turns:
        turn.error = error


def transact(conn: sqlite3.Connection, frame: tuple[str, str], fn: Callable[[sqlite3.Connection], T]) -> T:
    """Run `fn(conn)` between the two statements of `frame` (WRITE or READ); on any error nothing of it stays."""
    begin, end = frame
    conn.execute(begin)
    try:
        result = fn(conn)
        conn.execute(end)
    except BaseException:
        if conn.in_transaction:
            conn.execute(_SQL["rollback"])
        raise
    return result
