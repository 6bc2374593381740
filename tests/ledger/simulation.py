"""Histories of several daemons over one ledger, each drawn from one integer.

    python -m tests.ledger.simulation --schedules 100000 --seed 0

runs as many as wanted and prints the seed of the first that fails; `--schedules 1 --seed N` runs that one again, and
`--verbose` prints its steps. The tests run some thousands.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from memoryd.ledger import jobs
from memoryd.ledger.sessions import Covered
from memoryd.ledger.states import GLOBAL_KEY, JobKind, Status
from tests.ledger.factories import NOW
from tests.ledger.faults import NO_FAULT, Fault, Trouble
from tests.ledger.machine import Daemon, Running
from tests.ledger.model import LEASE_SECONDS, MAX_UNUSED, RETRY_CAP, Row
from tests.ledger.picture import look
from tests.ledger.site import Site
from tests.ledger.world import World

THREADS = ("a", "b", "global")
"""One thread has the key of the consolidation job: kinds must not be mixed up."""
STEPS = 26
WAITS = (0.0, 0.4, 1.0, 59.0, 130.0, 181.0, 700.0, 22_000.0)
CLOCK_STEPS = (-10_800.0, -700.0, -90.0, 90.0, 200.0, 172_800.0)
LONGEST_WAIT = RETRY_CAP + max(WAITS) + LEASE_SECONDS + 700
"""No job waits longer than this once faults have stopped and the waits of a wrong clock are mended."""

_CHOICES: dict[str, int] = {
    "discover": 14,
    "claim": 26,
    "finish": 16,
    "go_on": 12,
    "fail": 9,
    "defer": 3,
    "release": 3,
    "beat": 8,
    "ask": 4,
    "settle": 4,
    "dirty": 5,
    "cite": 5,
    "take_in": 4,
    "look_up": 3,
    "pollute": 2,
    "publish": 2,
    "prune": 1,
    "expedite": 3,
    "retry": 2,
    "retry_all": 2,
    "cancel": 2,
    "mend": 2,
    "wait": 16,
    "clock": 4,
    "kill": 3,
}
_TROUBLES = (Trouble.KILL, Trouble.KILL, Trouble.KILL_AFTER_COMMIT, Trouble.ANSWER_LOST, Trouble.INTRUDER)


class Schedule:
    """One history: everything that happens is drawn from the seed."""

    def __init__(self, seed: int, site: Site, *, log: Callable[[str], None] | None = None) -> None:
        self.rng = random.Random(seed)
        self.world = World(site, daemons=self.rng.choice((2, 2, 3)))
        self.faults = self.rng.choice((0.0, 0.1, 0.25))
        self.clock_jumps = self.rng.random() < 0.4
        self.snapshots = self.rng.random() < 0.3
        self.log = log

    def run(self) -> None:
        """Live through it, then let the faults stop and see everything end."""
        try:
            names, weights = tuple(_CHOICES), tuple(_CHOICES.values())
            for name in ("discover", "discover", "claim"):
                self._do(name)
            for name in self.rng.choices(names, weights, k=STEPS):
                self._do(name)
            self._come_to_rest()
        finally:
            self.world.close()

    def tables(self) -> dict[str, list[Row]]:
        """All that the ledger holds at the end."""
        return look(self.world.reader).tables

    def _do(self, name: str) -> None:
        daemon = self.rng.choice(self.world.daemons)
        fault = self._fault()
        if self.log is not None:
            self.log(f"{self.world.now - NOW:+.1f} s {daemon.name}: {name} {fault.trouble} at {fault.at}")
        getattr(self, f"_{name}")(daemon, fault)

    def _fault(self) -> Fault:
        if self.rng.random() >= self.faults:
            return NO_FAULT
        return Fault(self.rng.choice(_TROUBLES), self.rng.randrange(9))

    def _kind(self) -> JobKind:
        return self.rng.choice((JobKind.STAGE1, JobKind.STAGE1, JobKind.CONSOLIDATE))

    def _key(self, kind: JobKind) -> str:
        return GLOBAL_KEY if kind is JobKind.CONSOLIDATE else self.rng.choice(THREADS)

    def _run(self, daemon: Daemon) -> Running | None:
        """Mostly a run of the daemon's own, sometimes one that it should have forgotten."""
        past = self.world.past
        if past and (not daemon.runs or self.rng.random() < 0.2):
            return self.rng.choice(past)
        return self.rng.choice(daemon.runs) if daemon.runs else None

    # --- the choices

    def _discover(self, daemon: Daemon, fault: Fault) -> None:
        age = self.rng.choice((0, 0, 0, int(MAX_UNUSED) - 15_000))
        pair = Covered(int(NOW) - age + self.rng.randrange(3), self.rng.randrange(1, 3))
        self.world.discover(daemon, self.rng.choice(THREADS), pair, fault)

    def _claim(self, daemon: Daemon, fault: Fault) -> None:
        kind = self._kind()
        only = self._key(kind) if self.rng.random() < 0.15 else None
        self.world.repeat_token = self.rng.randrange(9) if self.snapshots and self.rng.random() < 0.5 else None
        self.world.claim(daemon, kind, only=only, fault=fault)

    def _finish(self, daemon: Daemon, fault: Fault) -> None:
        if (run := self._run(daemon)) is not None:
            self.world.complete(daemon, run, empty=self.rng.random() < 0.25, fault=fault)

    def _go_on(self, daemon: Daemon, fault: Fault) -> None:
        runs = [run for run in (self._run(daemon), self._run(daemon)) if run is not None]
        stage1 = [run for run in dict.fromkeys(runs) if run.lease.kind is JobKind.STAGE1]
        before_commit = fault.trouble in {Trouble.KILL, Trouble.INTRUDER}
        wider = Fault(fault.trouble, self.rng.randrange(40)) if before_commit else NO_FAULT
        if stage1:
            self.world.go_on(daemon, stage1, wider)

    def _fail(self, daemon: Daemon, fault: Fault) -> None:
        if (run := self._run(daemon)) is not None:
            self.world.fail(daemon, run, self.rng.choice(WAITS), fault)

    def _defer(self, daemon: Daemon, fault: Fault) -> None:
        if (run := self._run(daemon)) is not None:
            self.world.defer(daemon, run, self.rng.choice(WAITS), fault)

    def _release(self, daemon: Daemon, fault: Fault) -> None:
        if (run := self._run(daemon)) is not None:
            self.world.release(daemon, run, fault)

    def _beat(self, daemon: Daemon, fault: Fault) -> None:
        if (run := self._run(daemon)) is not None:
            self.world.beat(daemon, run, fault)

    def _ask(self, daemon: Daemon, fault: Fault) -> None:
        if (run := self._run(daemon)) is not None:
            self.world.ask(daemon, run, fault)

    def _settle(self, daemon: Daemon, fault: Fault) -> None:
        if (run := self._run(daemon)) is not None:
            self.world.settle(daemon, run, fault)

    def _dirty(self, daemon: Daemon, fault: Fault) -> None:
        watermark = self.rng.choice((None, int(NOW) + 5, int(NOW) - 5))
        self.world.dirty(daemon, watermark, fault)

    def _cite(self, daemon: Daemon, fault: Fault) -> None:
        threads = tuple(self.rng.sample(THREADS, 2))
        self.world.cite(daemon, threads, self.rng.choice(("m1", "m2")), fault)

    def _pollute(self, daemon: Daemon, fault: Fault) -> None:
        self.world.set_polluted(daemon, self.rng.choice(THREADS), polluted=self.rng.random() < 0.5, fault=fault)

    def _publish(self, daemon: Daemon, fault: Fault) -> None:
        self.world.publish(daemon, self.rng.randrange(1, 3), fault)

    def _take_in(self, daemon: Daemon, fault: Fault) -> None:
        at = int(NOW) + self.rng.choice((-int(MAX_UNUSED) + 15_000, 1, 99))
        self.world.take_in(daemon, self.rng.choice(THREADS), at, self.rng.choice(("", "imported")), fault)

    def _look_up(self, daemon: Daemon, fault: Fault) -> None:
        if (run := self._run(daemon)) is not None:
            self.world.look_up(run)

    def _prune(self, daemon: Daemon, fault: Fault) -> None:
        self.world.prune(daemon, fault)

    def _expedite(self, daemon: Daemon, fault: Fault) -> None:
        reasons = self.rng.choice((("debounce", "min_interval"), ("rate_limited",)))
        self.world.expedite(daemon, self._kind(), reasons, fault)

    def _retry(self, daemon: Daemon, fault: Fault) -> None:
        kind = self._kind()
        self.world.retry(daemon, kind, self._key(kind), fault)

    def _retry_all(self, daemon: Daemon, fault: Fault) -> None:
        self.world.retry_all(daemon, self._kind(), fault)

    def _cancel(self, daemon: Daemon, fault: Fault) -> None:
        kind = self._kind()
        self.world.cancel(daemon, kind, self._key(kind), fault)

    def _mend(self, daemon: Daemon, fault: Fault) -> None:
        self.world.mend(daemon, self._kind(), fault)

    def _wait(self, daemon: Daemon, fault: Fault) -> None:
        self.world.pass_time(self.rng.choice(WAITS))

    def _clock(self, daemon: Daemon, fault: Fault) -> None:
        if self.clock_jumps:
            self.world.step_clock(self.rng.choice(CLOCK_STEPS))

    def _kill(self, daemon: Daemon, fault: Fault) -> None:
        self.world.kill(daemon)

    # --- the end

    def _come_to_rest(self) -> None:
        """Faults stop, everybody starts anew: within a few rounds all jobs are done, or dead with their reason."""
        world = self.world
        world.repeat_token = None
        for daemon in world.daemons:
            world.kill(daemon)
        daemon = world.daemons[0]
        for kind in JobKind:
            world.mend(daemon, kind)
        for _ in range(40):
            claimed = [run for kind in JobKind if (run := world.claim(daemon, kind)) is not None]
            for run in claimed:
                world.complete(daemon, run)
            if not claimed and not self._wait_for_work():
                break
        else:
            raise AssertionError("the jobs do not come to rest")
        self._is_at_rest()

    def _wait_for_work(self) -> bool:
        rows = jobs.list_jobs(self.world.reader)
        instants = [job.ready_at for job in rows if job.ready_at is not None and job.ready_at > self.world.now]
        if not instants:
            return False
        ready = min(instants)
        assert ready - self.world.now <= LONGEST_WAIT, "a job waits longer than any wait there is"
        self.world.pass_time(ready - self.world.now)
        return True

    def _is_at_rest(self) -> None:
        statuses = {job.status for job in jobs.list_jobs(self.world.reader)}
        assert statuses <= {Status.DONE, Status.ERROR}, statuses
        for kind in JobKind:
            assert self.world.claim(self.world.daemons[0], kind) is None


def run_schedule(seed: int, site: Site, *, log: Callable[[str], None] | None = None) -> None:
    """Run the history of one seed; raises AssertionError (or what SQLite says) naming the seed when it goes wrong."""
    try:
        Schedule(seed, site, log=log).run()
    except Exception as error:
        error.add_note(f"seed {seed}: python -m tests.ledger.simulation --schedules 1 --seed {seed} --verbose")
        raise


def main() -> int:
    parser = argparse.ArgumentParser(description="random histories of several daemons over one ledger")
    parser.add_argument("--schedules", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder, Site(Path(folder)) as site:
        for seed in range(options.seed, options.seed + options.schedules):
            try:
                run_schedule(seed, site, log=print if options.verbose else None)
            except Exception:
                print(f"seed {seed} fails")
                raise
    print(f"{options.schedules} schedules from seed {options.seed}: all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
