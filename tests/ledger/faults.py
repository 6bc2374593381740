"""A connection to a real database on which a process can die between any two statements, or lose the answer."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Trouble(StrEnum):
    NONE = "none"
    KILL = "kill"
    """The process dies before the statement `at` of its transaction (0: before BEGIN)."""
    KILL_AFTER_COMMIT = "kill_after_commit"
    ANSWER_LOST = "answer_lost"
    """The transaction is committed, its caller is told that it failed."""
    INTRUDER = "intruder"
    """Before the statement `at` the process is paused, and another one tries to write."""


@dataclass(frozen=True, slots=True)
class Fault:
    trouble: Trouble = Trouble.NONE
    at: int = 0


NO_FAULT = Fault()


class Killed(BaseException):
    """The process is gone; nothing of it runs any more."""


class AnswerLost(Exception):
    """The caller does not know what became of its transaction."""


class FaultyConnection(sqlite3.Connection):
    """Open it with `sqlite3.connect(..., factory=FaultyConnection)`, then `arm` it before each transaction."""

    _fault = NO_FAULT
    _count = 0
    _dead = False
    _intrude: Callable[[], None] | None = None
    committed = False
    statements: list[str] | None = None

    def arm(self, fault: Fault, intrude: Callable[[], None] | None = None) -> None:
        self._fault, self._intrude = fault, intrude
        self._count, self.committed = 0, False

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if self._dead:
            raise Killed
        self._before_statement()
        if self.statements is not None:
            self.statements.append(sql)
        cursor = super().execute(sql, parameters)
        if sql.lstrip().endswith("COMMIT;"):
            self._after_commit()
        return cursor

    def _before_statement(self) -> None:
        here = self._count == self._fault.at
        self._count += 1
        if not here:
            return
        if self._fault.trouble is Trouble.KILL:
            self._dead = True
            raise Killed
        if self._fault.trouble is Trouble.INTRUDER and self._intrude is not None:
            self._intrude()

    def _after_commit(self) -> None:
        self.committed = True
        if self._fault.trouble is Trouble.KILL_AFTER_COMMIT:
            self._dead = True
            raise Killed
        if self._fault.trouble is Trouble.ANSWER_LOST:
            raise AnswerLost
