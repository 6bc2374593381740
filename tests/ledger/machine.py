"""One machine with several daemons and one ledger file: how each of them runs a transaction, and how it can die in it.

A step runs one transaction through the ledger's own functions, lets the model do the same, and compares all tables;
then the invariants of invariants.py are asked.
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from memoryd.errors import BudgetSpent, LeaseLost
from memoryd.ledger import jobs
from memoryd.ledger.jobs import Lease
from memoryd.ledger.outputs import Snapshot
from memoryd.ledger.sessions import Covered
from memoryd.ledger.states import JobKind
from memoryd.ledger.turns import WRITE, Turn, Turns, transact
from tests.ledger import invariants
from tests.ledger.factories import NOW
from tests.ledger.faults import NO_FAULT, AnswerLost, Fault, FaultyConnection, Killed
from tests.ledger.model import REQUEST_CAP, Lost, Model
from tests.ledger.picture import Picture, differences, look
from tests.ledger.site import Site

T = TypeVar("T")

Act = Callable[[sqlite3.Connection], T]


@dataclass(eq=False)
class Running:
    """What a daemon believes about a run of its own; `renewed_at` is monotonic: a lease later it stops by itself."""

    lease: Lease
    renewed_at: float
    read: Covered | None = None
    selected: list[Snapshot] = field(default_factory=list)
    request: int | None = None


@dataclass
class Daemon:
    name: str
    conn: FaultyConnection
    runs: list[Running] = field(default_factory=list)

    @property
    def held(self) -> frozenset[str]:
        return frozenset(run.lease.token for run in self.runs)


class Unknown:
    """The outcome of a step whose answer was lost, or that never happened."""


UNKNOWN = Unknown()


class Machine:
    """`now` is the wall clock of the machine, `elapsed` its monotonic one."""

    def __init__(self, site: Site, *, daemons: int = 2) -> None:
        site.clear()
        self.site = site
        self.now = NOW
        self.elapsed = 0.0
        self.stepped_at = -1.0
        self.model = Model()
        self.history = invariants.History()
        self.tokens: list[str] = []
        self.repeat_token: int | None = None
        self.answers = 0
        self.past: list[Running] = []
        self.reader = site.reader
        self.version = 0
        self.picture: Picture | None = None
        self.daemons = [Daemon(f"d{number}", site.take()) for number in range(daemons)]

    def close(self) -> None:
        """Leave the site to the next history."""
        for daemon in self.daemons:
            self.site.give_back(daemon.conn)

    def _step(self, daemon: Daemon, act: Act[T], predict: Callable[[], T], fault: Fault = NO_FAULT) -> T | Unknown:
        """Let a daemon do something; when it is committed, the model does it too, and both must agree."""
        conn = daemon.conn
        conn.arm(fault, lambda: self._intrude(daemon))
        answer: T | Unknown = UNKNOWN
        try:
            answer = transact(conn, WRITE, act)
        except LeaseLost:
            self._expect_lost(predict)
        except BudgetSpent:
            assert self.model.requests_today(self.now) >= REQUEST_CAP, "a request was refused below the cap"
        except AnswerLost:
            predict()
        except Killed:
            if conn.committed:
                predict()
            self._die(daemon)
        else:
            expected = predict()
            assert answer == expected, f"the ledger said {answer!r}, not {expected!r}"
        conn.arm(NO_FAULT)
        self.check()
        return answer

    def _step_together(
        self, daemon: Daemon, steps: Sequence[tuple[Act[T], Callable[[], T]]], fault: Fault
    ) -> list[T | Unknown]:
        """Let a daemon do several things at the same time; what one of them is refused costs the others nothing.

        What happens after a commit is the same for one and for several, so that no fault is of that kind here.
        """
        daemon.conn.arm(fault, lambda: self._intrude(daemon))
        turns = Turns()
        waiting = [Turn(act) for act, _ in steps]
        for turn in waiting:
            turns.join(turn)
        while len(turns):
            turns.take(daemon.conn)
        answers: list[T | Unknown] = []
        for turn, (_, predict) in zip(waiting, steps, strict=True):
            answer: T | Unknown = UNKNOWN
            if isinstance(turn.error, LeaseLost):
                self._expect_lost(predict)
            elif isinstance(turn.error, Killed):
                self._die(daemon)
                break
            elif turn.error is not None:
                raise turn.error
            else:
                answer, expected = turn.answer, predict()
                assert answer == expected, f"the ledger said {answer!r}, not {expected!r}"
            answers.append(answer)
        daemon.conn.arm(NO_FAULT)
        self.check()
        return answers

    def _expect_lost(self, predict: Callable[[], object]) -> None:
        try:
            predict()
        except Lost:
            return
        raise AssertionError("a holder was turned away from its own lease")

    def _intrude(self, paused: Daemon) -> None:
        """Another process writes while this one stands inside a transaction: it must wait, and here it gives up."""
        intruder = next(other for other in self.daemons if other is not paused)
        intruder.conn.arm(NO_FAULT)
        if not paused.conn.in_transaction:
            return
        try:
            transact(intruder.conn, WRITE, lambda conn: jobs.mend_waits(conn, kind=JobKind.STAGE1, now=self.now))
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
        else:
            raise AssertionError("two processes were inside a transaction that writes")

    def _die(self, daemon: Daemon) -> None:
        daemon.conn.close()
        daemon.conn = self.site.take()
        for run in list(daemon.runs):
            self._drop(run)

    def check(self) -> None:
        """Compare every table with the model, then ask for the invariants."""
        (version,) = self.reader.execute("PRAGMA data_version").fetchone()
        if self.picture is None or version != self.version:
            self.version, self.picture = version, look(self.reader)
        picture = self.picture
        assert not (found := differences(picture, self.model)), found
        invariants.hold(picture, self.history, now=self.now)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.elapsed += seconds

    def step_clock(self, seconds: float) -> None:
        """The wall clock jumps, the monotonic one does not."""
        self.now = max(self.now + seconds, 1000.0)
        self.stepped_at = self.elapsed

    def kill(self, daemon: Daemon) -> None:
        self._die(daemon)
        self.check()

    def _drop(self, run: Running) -> None:
        for daemon in self.daemons:
            if run in daemon.runs:
                daemon.runs.remove(run)
        if run not in self.past:
            self.past.append(run)
