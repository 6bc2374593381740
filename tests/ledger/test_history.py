"""Random histories of workers that finish, fail, stall and die: what DESIGN says of every row holds after each step."""

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from memoryd.errors import LeaseLost
from memoryd.ledger import jobs, outputs, queries, sessions
from memoryd.ledger.attempts import AttemptRow, of_job
from memoryd.ledger.jobs import ConsolidateTiming, JobRow, Lease
from memoryd.ledger.outputs import NewOutput
from memoryd.ledger.policy import later
from memoryd.ledger.sessions import Covered
from memoryd.ledger.states import GLOBAL_KEY, JobKind, Outcome, Status
from tests.ledger.factories import LEASE_SECONDS, MAX_ATTEMPTS, NOW, RETRY_CAP, a_sighting

T = TypeVar("T")

THREADS = ("a", "b", "c")
MAX_RUNNING = 2
TIMING = ConsolidateTiming(debounce=120, min_interval=600)

KINDS = st.sampled_from(JobKind)
READS = st.sampled_from(("enqueued", "grown", "nothing"))
ACTS = ("beat", "complete", "complete", "nothing", "fail", "defer", "release")
PASSING = st.sampled_from((0.0, 0.4, 1.0, 59.0, 180.0, 200.5, 700.0, 22_000.0))


class Histories(RuleBasedStateMachine):
    """`leases` holds every lease that any worker ever believed in; most of them are lost."""

    leases = Bundle("leases")

    @initialize()
    def open(self) -> None:
        self.conn = sqlite3.connect(":memory:", isolation_level=None)
        self.conn.executescript(queries.read("schema.sql"))
        self.now = NOW
        self.holders: dict[tuple[str, str], str] = {}
        self.epochs: dict[tuple[str, str], int] = {}
        self.successes: dict[tuple[str, str], int] = {}
        for thread in THREADS:
            self._record(thread, 1, 1)

    def teardown(self) -> None:
        if hasattr(self, "conn"):
            self.conn.close()

    def _transact(self, fn: Callable[[], T]) -> T:
        self.conn.execute("BEGIN IMMEDIATE")
        try:
            result = fn()
        except BaseException:
            self.conn.execute("ROLLBACK")
            raise
        self.conn.execute("COMMIT")
        return result

    def _as_holder(self, lease: Lease, fn: Callable[[], T]) -> T | None:
        """Do something as the holder of a lease: it works exactly for whom the model knows as the holder."""
        holds = self.holders.get((lease.kind, lease.job_key)) == lease.token
        before = self.conn.total_changes
        try:
            result = self._transact(fn)
        except LeaseLost:
            assert not holds
            assert self.conn.total_changes == before
            return None
        assert holds
        return result

    def _end(self, lease: Lease, fn: Callable[[], object], *, succeeded: bool = False) -> None:
        key = (lease.kind, lease.job_key)
        if self._as_holder(lease, fn) is None:
            return
        del self.holders[key]
        success = self._job(*key).last_success_watermark
        if succeeded:
            assert success is not None
            assert success >= lease.input_watermark
            self.successes[key] = success
        else:
            assert success == self.successes.get(key)

    def _job(self, kind: str, job_key: str) -> JobRow:
        job = jobs.find(self.conn, kind, job_key)
        assert job is not None
        return job

    @rule(seconds=PASSING)
    def let_time_pass(self, seconds: float) -> None:
        self.now += seconds

    @rule(thread=st.sampled_from(THREADS), updated_at=st.integers(1, 4), size=st.integers(1, 2))
    def find_a_session(self, thread: str, updated_at: int, size: int) -> None:
        self._record(thread, updated_at, size)

    def _record(self, thread: str, updated_at: int, size: int) -> None:
        sighting = a_sighting(thread, updated_at=updated_at, record_bytes=size)

        def see_and_enqueue() -> None:
            sessions.upsert(self.conn, sighting, self.now)
            for row in sessions.due(self.conn, idle_before=self.now, newest_from=None, limit=9):
                assert jobs.enqueue_stage1(
                    self.conn,
                    thread_id=row.thread_id,
                    updated_at=row.updated_at,
                    record_bytes=row.record_bytes,
                    now=self.now,
                    max_attempts=MAX_ATTEMPTS,
                )
            assert sessions.due(self.conn, idle_before=self.now, newest_from=None, limit=9) == []

        self._transact(see_and_enqueue)

    @rule()
    def change_the_folder(self) -> None:
        before = jobs.find(self.conn, JobKind.CONSOLIDATE, GLOBAL_KEY)
        job = self._transact(
            lambda: jobs.enqueue_consolidation(
                self.conn, now=self.now, timing=TIMING, max_attempts=MAX_ATTEMPTS, reason="person"
            )
        )
        if before is not None and before.retry_at is not None:
            assert job.retry_at == before.retry_at

    @rule(target=leases, kind=KINDS)
    def claim(self, kind: JobKind) -> object:
        lease = self._transact(
            lambda: jobs.claim(
                self.conn,
                kind=kind,
                worker_id="w",
                now=self.now,
                lease_seconds=LEASE_SECONDS,
                max_running=MAX_RUNNING,
                max_attempts=MAX_ATTEMPTS,
                retry_cap=RETRY_CAP,
            )
        )
        self.holders = {
            (job.kind, job.job_key): job.ownership_token
            for job in jobs.running(self.conn)
            if job.ownership_token is not None
        }
        if lease is None:
            assert jobs.ready_count(self.conn, kind, self.now) == 0 or self._running(kind) >= MAX_RUNNING
            return multiple()
        key = (lease.kind, lease.job_key)
        assert lease.epoch > self.epochs.get(key, 0)
        self.epochs[key] = lease.epoch
        return lease

    @rule(lease=leases, what=st.sampled_from(ACTS), delay=PASSING, read=READS)
    def act(self, lease: Lease, what: str, delay: float, read: str) -> None:
        """Let whoever believes in a lease do something with it."""
        match what:
            case "beat":
                self._as_holder(
                    lease, lambda: jobs.heartbeat(self.conn, lease, now=self.now, lease_seconds=LEASE_SECONDS)
                )
            case "fail":
                self._end(lease, lambda: self._fail(lease, delay))
            case "defer":
                self._end(lease, lambda: self._defer(lease, delay))
            case "release":
                self._end(lease, lambda: jobs.release(self.conn, lease, now=self.now))
            case _ if lease.kind is JobKind.CONSOLIDATE:
                self._end(lease, lambda: self._consolidate(lease), succeeded=True)
            case _:
                self._end(lease, lambda: self._complete(lease, read, empty=what == "nothing"), succeeded=True)

    def _fail(self, lease: Lease, delay: float) -> object:
        retry_at = self.now + delay
        return jobs.fail(self.conn, lease, now=self.now, retry_at=retry_at, error="e", error_class="MalformedReply")

    def _defer(self, lease: Lease, delay: float) -> object:
        until = self.now + delay
        return jobs.defer(self.conn, lease, now=self.now, until=until, reason="rate_limited", error=None)

    def _complete(self, lease: Lease, read: str, *, empty: bool) -> object:
        session = sessions.get_exact(self.conn, lease.job_key)
        assert session is not None
        covered = {
            "enqueued": Covered(session.updated_at, session.record_bytes),
            "grown": Covered(session.updated_at + 3, session.record_bytes + 3),
            "nothing": None,
        }[read]
        return jobs.complete(
            self.conn,
            lease,
            now=self.now,
            output=None if empty else NewOutput(lease.job_key, lease.input_watermark, "raw", "summary", None),
            covered=covered,
            consolidate=TIMING,
            max_attempts=MAX_ATTEMPTS,
        )

    def _consolidate(self, lease: Lease) -> object:
        selected = outputs.select_for_consolidation(self.conn, now=self.now, max_raw_memories=9, max_unused=self.now)
        return jobs.complete_consolidation(
            self.conn,
            lease,
            now=self.now,
            consumed=[row.snapshot for row in selected],
            publication=None,
            claims=(),
            min_interval=TIMING.min_interval,
        )

    @rule(kind=KINDS, hurry=st.booleans())
    def step_in(self, kind: JobKind, *, hurry: bool) -> None:
        """A person revives what is dead, or wants no waiting."""
        if hurry:
            reasons = ("debounce", "min_interval")
            self._transact(lambda: jobs.expedite(self.conn, kind=kind, reasons=reasons, now=self.now))
        else:
            self._transact(lambda: jobs.retry_all_dead(self.conn, kind=kind, now=self.now, max_attempts=MAX_ATTEMPTS))
            assert jobs.counts(self.conn)[kind][Status.ERROR] == 0

    def _running(self, kind: JobKind) -> int:
        return sum(job.kind == kind for job in jobs.running(self.conn))

    def _jobs(self) -> list[JobRow]:
        return jobs.list_jobs(self.conn) if hasattr(self, "conn") else []

    @invariant()
    def every_row_is_done_claimable_leased_waiting_or_dead_with_a_reason(self) -> None:
        for job in self._jobs():
            if job.status is Status.PENDING:
                assert job.ready_at is not None
                assert job.ready_at <= self.now or job.wait_reason is not None
                assert job.retry_remaining > 0
            elif job.status is Status.RUNNING:
                assert job.lease_until == job.ready_at
                assert job.lease_until is not None
                assert job.lease_until <= later(self.now + LEASE_SECONDS)
            elif job.status is Status.DONE:
                assert job.last_success_watermark == job.input_watermark
            else:
                assert job.last_error
                assert job.retry_remaining == 0

    @invariant()
    def what_is_not_finished_has_an_instant_at_which_somebody_looks(self) -> None:
        for kind in JobKind if hasattr(self, "conn") else ():
            waits = [job.ready_at for job in self._jobs() if job.kind == kind and job.ready_at is not None]
            assert jobs.next_ready_at(self.conn, kind) == (min(waits) if waits else None)

    @invariant()
    def no_more_leases_than_allowed(self) -> None:
        for kind in JobKind if hasattr(self, "conn") else ():
            assert self._running(kind) <= MAX_RUNNING

    @invariant()
    def success_never_exceeds_the_input_nor_goes_back(self) -> None:
        for job in self._jobs():
            success = job.last_success_watermark
            assert success == self.successes.get((job.kind, job.job_key))
            assert success is None or success <= job.input_watermark

    @invariant()
    def only_the_present_run_of_a_job_has_no_outcome(self) -> None:
        for job in self._jobs():
            runs: list[AttemptRow] = of_job(self.conn, job.kind, job.job_key)
            open_runs = [run.id for run in runs if run.outcome is None]
            assert open_runs == ([job.attempt_id] if job.status is Status.RUNNING else [])
            assert all(run.outcome is not Outcome.CRASHED or run.duration_ms is None for run in runs)


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=80, stateful_step_count=50, deadline=None)
