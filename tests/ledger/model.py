"""What the ledger must hold after each transaction, worked out in plain Python and without any SQL.

Every method repeats one transaction of the ledger and raises `Lost` where a holder must be turned away. `tables()` is
compared with the real tables, row by row, after every step of a history.
"""

import math
from dataclasses import dataclass, field, replace

from memoryd.ledger import policy
from memoryd.ledger.jobs import ConsolidateTiming, Lease
from memoryd.ledger.outputs import Snapshot
from memoryd.ledger.sessions import Covered
from memoryd.ledger.states import GLOBAL_KEY, JobKind, Outcome, Status

LEASE_SECONDS = 180.0
RETRY_CAP = 21_600.0
MAX_ATTEMPTS = 2
MAX_RUNNING = 2
TIMING = ConsolidateTiming(debounce=120, min_interval=600)
REQUEST_CAP = 3
MAX_UNUSED = 1_000_000.0

Key = tuple[str, str]
Row = tuple[object, ...]


class Lost(Exception):
    """The holder has lost its lease: nothing may change."""


@dataclass
class Job:
    """One row of jobs, its fields in the order in which they are compared."""

    kind: str
    job_key: str
    input_watermark: int
    status: str = Status.PENDING
    worker_id: str | None = None
    ownership_token: str | None = None
    epoch: int = 0
    started_at: int | None = None
    finished_at: int | None = None
    lease_until: int | None = None
    lease_seconds: float | None = None
    retry_at: int | None = None
    retry_remaining: int = MAX_ATTEMPTS
    last_error: str | None = None
    last_success_watermark: int | None = None
    last_success_at: int | None = None
    ready_at: int | None = None
    wait_reason: str | None = None
    crash_count: int = 0
    enqueued_at: int | None = None
    cancel_requested: int = 0
    attempt_id: int | None = None
    fingerprint: str | None = None

    @property
    def key(self) -> Key:
        return (self.kind, self.job_key)

    def end(self, now: float, ready_at: int | None, reason: str | None, *, status: str = Status.PENDING) -> None:
        """The lease is gone; a wait with `reason` counts as a retry unless told otherwise."""
        self.status, self.ownership_token, self.lease_until = status, None, None
        self.finished_at, self.cancel_requested = int(now), 0
        self.ready_at, self.wait_reason, self.retry_at = ready_at, reason, None if reason is None else ready_at


@dataclass
class Session:
    seen: Covered
    queued: Covered | None = None
    covered: Covered | None = None
    polluted: bool = False

    @property
    def pairs(self) -> tuple[int | None, ...]:
        """The pairs as columns: seen, queued, covered."""
        found = (self.seen, self.queued, self.covered)
        return tuple(
            number for pair in found for number in ((pair.updated_at, pair.record_bytes) if pair else (None, None))
        )


@dataclass
class Output:
    source_updated_at: int
    text: str
    usage_count: int | None = None
    last_usage: int | None = None
    selected: int | None = None

    @property
    def last_needed(self) -> int:
        return self.source_updated_at if self.last_usage is None else self.last_usage


@dataclass
class Run:
    """One row of attempts, with the sums of its requests."""

    key: Key
    epoch: int
    outcome: str | None = None
    requests: int = 0
    tokens: int = 0


@dataclass
class Claim:
    text: str
    status: str
    valid_from: int
    threads: tuple[str, ...]
    invalidated_at: int | None = None


@dataclass
class Model:
    jobs: dict[Key, Job] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    outputs: dict[str, Output] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)
    requests: dict[int, tuple[int, int, int | None]] = field(default_factory=dict)
    """By number: the run, when, and the tokens once they are known."""
    publications: list[list[str]] = field(default_factory=list)
    citations: set[Key] = field(default_factory=set)
    claims: list[Claim] = field(default_factory=list)

    # --- the holder's side

    def held(self, kind: str, job_key: str, token: str, epoch: int) -> Job:
        job = self.jobs.get((kind, job_key))
        if job is None or (job.ownership_token, job.epoch) != (token, epoch):
            raise Lost
        return job

    def claim(
        self, kind: str, *, worker: str, now: float, held: frozenset[str], token: str, only: str | None = None
    ) -> Job | None:
        leased = [job for job in self.jobs.values() if job.kind == kind and job.status == Status.RUNNING]
        over = [job for job in leased if job.ownership_token not in held and not _is_live(job, now)]
        for job in over:
            self._crash(job, now)
        if len(leased) - len(over) >= MAX_RUNNING:
            return None
        ready = min(self._ready(kind, now, only), default=None)
        if ready is None:
            return None
        job = self.jobs[(kind, ready[1])]
        until = math.ceil(now + LEASE_SECONDS)
        job.status, job.worker_id, job.ownership_token, job.epoch = Status.RUNNING, worker, token, job.epoch + 1
        job.started_at, job.finished_at, job.lease_seconds = int(now), None, LEASE_SECONDS
        job.lease_until = job.ready_at = until
        job.retry_at = job.wait_reason = job.enqueued_at = None
        job.cancel_requested, job.retry_remaining = 0, min(job.retry_remaining, MAX_ATTEMPTS)
        job.fingerprint = token
        job.attempt_id = len(self.runs) + 1
        self.runs[job.attempt_id] = Run(job.key, job.epoch)
        return replace(job)

    def lease(self, job: Job, now: float) -> Lease:
        """What a claim must hand out."""
        assert job.worker_id is not None
        assert job.ownership_token is not None
        assert job.lease_until is not None
        assert job.attempt_id is not None
        return Lease(
            kind=JobKind(job.kind),
            job_key=job.job_key,
            token=job.ownership_token,
            epoch=job.epoch,
            worker_id=job.worker_id,
            input_watermark=job.input_watermark,
            lease_until=job.lease_until,
            lease_seconds=LEASE_SECONDS,
            retry_remaining=job.retry_remaining,
            attempt_id=job.attempt_id,
            claimed_at=now,
            crash_count=job.crash_count,
        )

    def _ready(self, kind: str, now: float, only: str | None) -> list[tuple[int, str]]:
        return [
            (job.ready_at, job.job_key)
            for job in self.jobs.values()
            if (job.kind, job.status) == (kind, Status.PENDING) and only in (None, job.job_key)
            if job.ready_at is not None and job.ready_at <= now
        ]

    def _crash(self, job: Job, now: float) -> None:
        job.crash_count += 1
        ready, reason = math.floor(now), None
        if job.crash_count >= 3:
            assert job.started_at is not None
            spaced = min(job.started_at, now) + RETRY_CAP
            if spaced > now:
                ready, reason = math.ceil(spaced), "crash"
        self._close(job, Outcome.CRASHED)
        job.end(now, ready, reason)

    def _close(self, job: Job, outcome: Outcome) -> None:
        assert job.attempt_id is not None
        run = self.runs[job.attempt_id]
        run.outcome = run.outcome or outcome

    def renew(self, job: Job, now: float) -> bool:
        job.lease_until = job.ready_at = math.ceil(now + LEASE_SECONDS)
        return bool(job.cancel_requested)

    def fail(self, job: Job, *, now: float, covers: int, retry_at: float) -> None:
        self._close(job, Outcome.FAILED)
        newer = job.input_watermark > covers
        job.retry_remaining -= 0 if newer else 1
        job.last_error = "it broke"
        if job.retry_remaining:
            job.end(now, max(math.ceil(retry_at), math.floor(now)), "backoff")
        else:
            job.end(now, None, None, status=Status.ERROR)

    def defer(self, job: Job, *, now: float, until: float) -> None:
        self._close(job, Outcome.DEFERRED)
        job.last_error = None
        job.end(now, max(math.ceil(until), math.floor(now)), "rate_limited")

    def release(self, job: Job, *, now: float) -> None:
        self._close(job, Outcome.RELEASED)
        job.end(now, math.floor(now), None)

    def complete(self, job: Job, *, now: float, covers: int, text: str | None, covered: Covered | None) -> None:
        session = self.sessions[job.job_key]
        met = covered is not None and session.queued == covered
        self._close(job, Outcome.NOTHING if text is None else Outcome.DONE)
        self._succeed(job, now, job.input_watermark if met else covers, policy.Wait(math.floor(now)))
        if covered is not None:
            session.covered = covered
            if session.seen == covered:
                session.queued = covered
            elif job.status is Status.DONE:
                session.queued = None
        if self.keep(job.job_key, covers, text):
            self.enqueue_global(now=now)

    def _succeed(self, job: Job, now: float, covers: int, again: policy.Wait) -> None:
        newer = job.input_watermark > covers
        job.last_success_watermark, job.last_success_at = covers, int(now)
        job.last_error, job.crash_count = None, 0
        job.enqueued_at = job.enqueued_at if newer else None
        if newer:
            job.end(now, again.ready_at, again.reason)
            job.retry_at = None
        else:
            job.end(now, None, None, status=Status.DONE)

    def keep(self, thread: str, source_updated_at: int, text: str | None) -> bool:
        """Store, replace or delete what a session taught; tell whether memory changes."""
        old = self.outputs.get(thread)
        if text is None:
            return self.outputs.pop(thread, None) is not None
        if old is None:
            self.outputs[thread] = Output(source_updated_at, text)
        elif source_updated_at >= old.source_updated_at:
            old.source_updated_at, old.text = source_updated_at, text
        else:
            return False
        return True

    def consolidate(self, job: Job, *, now: float, covers: int, consumed: list[Snapshot], commit: str | None) -> None:
        self._close(job, Outcome.NOTHING if commit is None else Outcome.DONE)
        self._succeed(job, now, covers, policy.Wait(math.ceil(now + TIMING.min_interval), "min_interval"))
        for thread, output in self.outputs.items():
            taken = Snapshot(thread, output.source_updated_at) in consumed
            output.selected = output.source_updated_at if taken else None
        if commit is not None:
            self.publications.append([commit, "decided"])
            self._rewrite_claims({f"learned from {row.thread_id}": row.thread_id for row in consumed}, commit, now)

    def _rewrite_claims(self, wanted: dict[str, str], status: str, now: float) -> None:
        standing = {claim.text: claim for claim in self.claims if claim.invalidated_at is None}
        for text, claim in standing.items():
            if text not in wanted:
                claim.invalidated_at = int(now)
        for text, thread in wanted.items():
            if text in standing:
                standing[text].status = status
            else:
                self.claims.append(Claim(text, status, int(now), (thread,)))

    # --- everybody else's

    def see(self, thread: str, pair: Covered, now: float) -> None:
        """Discovery looks at a session and enqueues whatever is open."""
        self.sessions.setdefault(thread, Session(pair)).seen = pair
        for name, session in self.sessions.items():
            if not session.polluted and session.seen not in (session.covered, session.queued):
                self._enqueue_stage1(name, session, now)

    def _enqueue_stage1(self, thread: str, session: Session, now: float) -> None:
        session.queued = session.seen
        job = self.jobs.get((JobKind.STAGE1, thread))
        watermark = session.seen.updated_at
        if job is not None:
            watermark = max(watermark, job.input_watermark + 1)
        place = policy.Wait(policy.newest_first(now, session.seen.updated_at))
        self._enqueue(job, (JobKind.STAGE1, thread), watermark, now, place, None)

    def enqueue_global(self, *, now: float, watermark: int | None = None) -> None:
        key = (JobKind.CONSOLIDATE, GLOBAL_KEY)
        job = self.jobs.get(key)
        if job is None:
            wait = policy.consolidation_wait(now=now, timing=TIMING, first_enqueued_at=int(now), last_success_at=None)
            self._enqueue(None, key, int(now) if watermark is None else watermark, now, wait, None)
            return
        larger = job.input_watermark + 1
        if watermark is not None and watermark > job.input_watermark:
            larger = watermark
        stands = job.ready_at is not None and (job.retry_at is not None or job.ready_at <= now)
        if stands:
            assert job.ready_at is not None
            wait = policy.Wait(job.ready_at, job.wait_reason)
        else:
            first = int(now) if job.enqueued_at is None else job.enqueued_at
            wait = policy.consolidation_wait(
                now=now, timing=TIMING, first_enqueued_at=first, last_success_at=job.last_success_at
            )
        self._enqueue(job, key, larger, now, wait, job.retry_at if stands else None)

    def _enqueue(
        self, job: Job | None, key: Key, watermark: int, now: float, wait: policy.Wait, retry_at: int | None
    ) -> None:
        if job is None:
            job = self.jobs[key] = Job(*key, watermark)
        job.input_watermark, job.retry_remaining = watermark, max(job.retry_remaining, MAX_ATTEMPTS)
        job.crash_count = 0
        job.enqueued_at = int(now) if job.enqueued_at is None else job.enqueued_at
        if job.status != Status.RUNNING:
            job.status, job.ready_at, job.wait_reason, job.retry_at = (
                Status.PENDING,
                wait.ready_at,
                wait.reason,
                retry_at,
            )

    def expedite(self, kind: str, reasons: tuple[str, ...], now: float) -> int:
        return self._hurry(kind, now, [job for job in self._waiting(kind, now) if job.wait_reason in reasons])

    def mend(self, kind: str, now: float) -> int:
        begun = [(max(job.finished_at or 0, job.enqueued_at or 0), job) for job in self._waiting(kind, now)]
        return self._hurry(kind, now, [job for at, job in begun if at > now + 600])

    def _waiting(self, kind: str, now: float) -> list[Job]:
        return [
            job
            for job in self.jobs.values()
            if (job.kind, job.status) == (kind, Status.PENDING) and job.ready_at is not None and job.ready_at > now
        ]

    def _hurry(self, kind: str, now: float, found: list[Job]) -> int:
        for job in found:
            job.ready_at, job.retry_at, job.wait_reason = math.floor(now), None, None
        return len(found)

    def revive(self, kind: str, now: float, statuses: tuple[str, ...], only: str | None = None) -> int:
        found = [job for job in self.jobs.values() if job.kind == kind and job.status in statuses]
        found = [job for job in found if only in (None, job.job_key)]
        for job in found:
            job.status, job.crash_count = Status.PENDING, 0
            job.retry_remaining = max(job.retry_remaining, MAX_ATTEMPTS)
        return self._hurry(kind, now, found)

    def cancel(self, kind: str, job_key: str) -> bool:
        job = self.jobs.get((kind, job_key))
        if job is None or job.status != Status.RUNNING:
            return False
        job.cancel_requested = 1
        return True

    def cite(self, threads: tuple[str, ...], message: str, now: float) -> int:
        new = [
            thread
            for thread in dict.fromkeys(threads)
            if thread in self.outputs and (thread, message) not in self.citations
        ]
        for thread in new:
            self.citations.add((thread, message))
            output = self.outputs[thread]
            output.usage_count = (output.usage_count or 0) + 1
            output.last_usage = max(output.last_usage or 0, int(now))
        return len(new)

    def requests_today(self, now: float) -> int:
        midnight = int(now) // 86_400 * 86_400
        return sum(at >= midnight for _, at, _ in self.requests.values())

    def reserve(self, attempt_id: int, now: float) -> int:
        assert self.requests_today(now) < REQUEST_CAP, "the cap was passed"
        self.requests[len(self.requests) + 1] = (attempt_id, int(now), None)
        return len(self.requests)

    def settle(self, number: int, tokens: int) -> bool:
        attempt_id, at, known = self.requests[number]
        if known is not None:
            return False
        self.requests[number] = (attempt_id, at, tokens)
        self.runs[attempt_id].requests += 1
        self.runs[attempt_id].tokens += tokens
        return True

    def publish(self, number: int) -> bool:
        """The publication with this number (from 1) is in place."""
        if self.publications[number - 1][1] == "published":
            return False
        self.publications[number - 1][1] = "published"
        return True

    def pollute(self, thread: str) -> bool:
        """Whether memory changes by it: consolidation is then enqueued."""
        session = self.sessions[thread]
        new, session.polluted = not session.polluted, True
        return new and thread in self.outputs and self.outputs[thread].selected is not None

    def enable(self, thread: str) -> bool:
        session = self.sessions[thread]
        new, session.polluted = session.polluted, False
        return new and thread in self.outputs

    def selection(self, now: float) -> list[Snapshot]:
        """What a consolidation must take in now."""
        return [
            Snapshot(thread, output.source_updated_at)
            for thread, output in sorted(self.outputs.items())
            if output.text.strip() and not self.sessions[thread].polluted and output.last_needed >= now - MAX_UNUSED
        ]

    def prune(self, now: float) -> int:
        stale = [
            thread
            for thread, output in self.outputs.items()
            if output.selected is None and output.last_needed < now - MAX_UNUSED
        ]
        for thread in stale:
            del self.outputs[thread]
        return len(stale)


def _is_live(job: Job, now: float) -> bool:
    assert job.lease_until is not None
    assert job.lease_seconds is not None
    return now < job.lease_until <= math.ceil(now + job.lease_seconds) + 1
