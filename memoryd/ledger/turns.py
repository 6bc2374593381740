"""Functions that wait for their turn to write: whoever waits when one of them has the lock is committed with it.

A commit costs as much as all statements of a job, at synchronous = FULL a wait for the disk, and so does the way to the
ledger's thread and back: what several workers ask for at the same time shares them.
"""

import sqlite3
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from memoryd.ledger import queries

T = TypeVar("T")

_SQL = queries.load("connection")
WRITE = (_SQL["begin_write"], _SQL["commit"])
READ = (_SQL["begin_read"], _SQL["rollback"])

MOST_TOGETHER = 16
"""So many share a transaction, so that nobody's answer waits for a stream of others."""


class Turn(Generic[T]):
    """One function that waits to write, and what became of that in the company of others."""

    __slots__ = ("answers", "fn", "is_alone")

    def __init__(self, fn: Callable[[sqlite3.Connection], T]) -> None:
        self.fn = fn
        self.answers: list[T] = []
        """One, once it is committed."""
        self.is_alone = False
        """Something went wrong with those with which it was to be committed."""

    def write(self, conn: sqlite3.Connection) -> None:
        """Do it, within a transaction."""
        self.answers.append(self.fn(conn))

    def leave(self) -> None:
        """It was undone."""
        self.answers.clear()
        self.is_alone = True


class Turns:
    """All that wait, oldest first. They join on one thread, and have their turn on another."""

    def __init__(self) -> None:
        self._waiting: deque[Turn[Any]] = deque()

    def join(self, turn: Turn[Any]) -> None:
        """Wait for the transaction that comes next."""
        self._waiting.append(turn)

    def take(self, conn: sqlite3.Connection, turn: Turn[T]) -> T:
        """Let `turn` write, unless it had its turn with an earlier one, and return its answer or raise its error.

        All who wait are one transaction with it, also who joins while that goes on; nobody hears of it before it is
        committed. If anything goes wrong, all is undone and each has a transaction of its own, as if there had been no
        others: a function may run twice, but once in vain. Call it for each turn, in the order in which they joined.
        """
        if not turn.answers and not turn.is_alone:
            self._take_together(conn)
        if turn.is_alone:
            return transact(conn, WRITE, turn.fn)
        return turn.answers[0]

    def _take_together(self, conn: sqlite3.Connection) -> None:
        together = [self._waiting.popleft()]

        def write(conn: sqlite3.Connection) -> None:
            together[0].write(conn)
            while self._waiting and len(together) < MOST_TOGETHER:
                together.append(self._waiting.popleft())
                together[-1].write(conn)

        try:
            transact(conn, WRITE, write)
        except BaseException:
            if len(together) == 1:
                raise
            for turn in together:
                turn.leave()


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
