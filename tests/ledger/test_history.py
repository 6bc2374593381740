"""Histories that hypothesis finds and makes short: two daemons, kills, clock jumps, and leases that are long lost.

The same world as that of the seeded simulation, with the same model and the same invariants after each step.
"""

import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memoryd.errors import LeaseLost
from memoryd.ledger import queries
from memoryd.ledger.sessions import Covered
from memoryd.ledger.states import GLOBAL_KEY, JobKind
from tests.ledger.factories import NOW
from tests.ledger.faults import NO_FAULT, Fault, Trouble
from tests.ledger.guards import copy_without, find_guards
from tests.ledger.machine import Running
from tests.ledger.model import Lost
from tests.ledger.site import Site
from tests.ledger.world import World

THREADS = st.sampled_from(("a", "b", GLOBAL_KEY))
KINDS = st.sampled_from(JobKind)
DAEMONS = st.integers(0, 1)
PASSING = st.sampled_from((0.0, 0.4, 1.0, 59.0, 180.0, 200.5, 700.0, 22_000.0))
JUMPS = st.sampled_from((-10_800.0, -90.0, 200.0, 172_800.0))
ACTS = st.sampled_from(("beat", "complete", "nothing", "fail", "defer", "release", "ask", "settle", "look_up"))
ENDINGS = st.sampled_from(("complete", "nothing", "fail", "defer", "release", "beat"))
FAULTS = st.just(NO_FAULT) | st.builds(Fault, st.sampled_from(Trouble), st.integers(0, 8))

WENT_WRONG = (AssertionError, Lost, LeaseLost, sqlite3.Error)


class Histories(RuleBasedStateMachine):
    """`runs` are all runs that any daemon ever believed in; most of them have lost their lease."""

    runs = Bundle("runs")

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.site = Site(Path(self.folder.name))
        self.world = World(self.site)
        self.jumped = 0

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.close()
            self.site.close()
            self.folder.cleanup()

    @rule(seconds=PASSING)
    def let_time_pass(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @precondition(lambda self: self.jumped < 3)
    @rule(seconds=JUMPS)
    def let_the_clock_jump(self, seconds: float) -> None:
        self.jumped += 1
        self.world.step_clock(seconds)

    @rule(daemon=DAEMONS)
    def kill(self, daemon: int) -> None:
        self.world.kill(self.world.daemons[daemon])

    @rule(daemon=DAEMONS, thread=THREADS, second=st.integers(0, 3), size=st.integers(1, 2), fault=FAULTS)
    def find_a_session(self, daemon: int, thread: str, second: int, size: int, fault: Fault) -> None:
        self.world.discover(self.world.daemons[daemon], thread, Covered(int(NOW) + second, size), fault)

    @rule(daemon=DAEMONS, fault=FAULTS)
    def change_the_folder(self, daemon: int, fault: Fault) -> None:
        self.world.dirty(self.world.daemons[daemon], None, fault)

    @rule(target=runs, daemon=DAEMONS, kind=KINDS, only=st.none() | THREADS, repeat=st.none() | st.integers(0, 3))
    def claim(self, daemon: int, kind: JobKind, only: str | None, repeat: int | None) -> object:
        self.world.repeat_token = repeat
        run = self.world.claim(self.world.daemons[daemon], kind, only=only)
        return multiple() if run is None else run

    @rule(daemon=DAEMONS, kind=KINDS, fault=FAULTS)
    def claim_in_trouble(self, daemon: int, kind: JobKind, fault: Fault) -> None:
        self.world.repeat_token = None
        self.world.claim(self.world.daemons[daemon], kind, fault=fault)

    @rule(daemon=DAEMONS, run=runs, act=ACTS, delay=PASSING, fault=FAULTS)
    def go_on(self, daemon: int, run: Running, act: str, delay: float, fault: Fault) -> None:
        """Let whoever believes in a run do something with it."""
        world, holder = self.world, self.world.daemons[daemon]
        match act:
            case "complete" | "nothing":
                world.complete(holder, run, empty=act == "nothing", fault=fault)
            case "fail":
                world.fail(holder, run, delay, fault)
            case "defer":
                world.defer(holder, run, delay, fault)
            case "release":
                world.release(holder, run, fault)
            case "beat":
                world.beat(holder, run, fault)
            case "ask":
                world.ask(holder, run, fault)
            case "settle":
                world.settle(holder, run, fault)
            case _:
                world.look_up(run)

    @rule(run=runs, act=ENDINGS)
    def come_to_an_end(self, run: Running, act: str) -> None:
        self.go_on(0, run, act, 1.0, NO_FAULT)

    @rule(target=runs, run=runs, act=ENDINGS)
    def come_to_an_end_too_late(self, run: Running, act: str) -> object:
        """The holder sleeps past its lease, somebody else takes the job, then the holder wakes up."""
        self.world.pass_time(200.0)
        self.world.repeat_token = None
        self.world.kill(self.world.daemons[0])
        other = self.world.claim(self.world.daemons[1], run.lease.kind, only=run.lease.job_key)
        self.go_on(0, run, act, 1.0, NO_FAULT)
        return multiple() if other is None else other

    @rule(daemon=DAEMONS, thread=THREADS, message=st.sampled_from(("m1", "m2")), fault=FAULTS)
    def cite(self, daemon: int, thread: str, message: str, fault: Fault) -> None:
        self.world.cite(self.world.daemons[daemon], (thread, "a"), message, fault)

    @rule(daemon=DAEMONS, thread=THREADS, polluted=st.booleans(), fault=FAULTS)
    def change_the_mode(self, daemon: int, thread: str, *, polluted: bool, fault: Fault) -> None:
        self.world.set_polluted(self.world.daemons[daemon], thread, polluted=polluted, fault=fault)

    @rule(daemon=DAEMONS, kind=KINDS, thread=THREADS, fault=FAULTS)
    def step_in(self, daemon: int, kind: JobKind, thread: str, fault: Fault) -> None:
        """A person wants no waiting, revives what is dead, and stops what runs."""
        person = self.world.daemons[daemon]
        self.world.expedite(person, kind, ("debounce", "min_interval"), fault)
        self.world.retry(person, kind, thread)
        self.world.retry_all(person, kind)
        self.world.cancel(person, kind, thread)

    @rule(daemon=DAEMONS, kind=KINDS, fault=FAULTS)
    def look_after(self, daemon: int, kind: JobKind, fault: Fault) -> None:
        """What a tick does beside claiming."""
        self.world.mend(self.world.daemons[daemon], kind, fault)
        self.world.publish(self.world.daemons[daemon], 1)
        self.world.prune(self.world.daemons[daemon])


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize(
    "name",
    [
        "jobs.claim_job: ready_at <= :now (removed)",
        "jobs.renew_lease: ownership_token = :token (removed)",
        "jobs.complete_job: ownership_token = :token (removed)",
        "jobs.fail_job: ownership_token = :token (removed)",
    ],
)
def test_without_a_guard_hypothesis_finds_a_history_that_goes_wrong(name: str, tmp_path: Path) -> None:
    guard = next(guard for guard in find_guards() if str(guard) == name)
    quick = settings(
        max_examples=300,
        report_multiple_bugs=False,
        stateful_step_count=40,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
    )

    with queries.reading_from(copy_without(guard, tmp_path / "sql")), pytest.raises(WENT_WRONG):
        run_state_machine_as_test(Histories, settings=quick)
