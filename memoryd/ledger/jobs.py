"""The holder's side of a job's life: claim, heartbeat, and the five ways a run ends.

Every function is one step of a transaction: hand it to `Ledger.write`. Every write of a holder carries its token and
epoch and must match exactly one row; otherwise the lease is lost and nothing has been written. What concerns no holder
(enqueueing, overviews) lives in modules of its own and is offered here too.
"""

import secrets
import sqlite3
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from memoryd.errors import LeaseLost
from memoryd.ledger import attempts, outputs, policy, proposals, publications, queries, sessions
from memoryd.ledger.attempts import NO_MODEL, AttemptRow, Beginning, Ending, WorkedBy
from memoryd.ledger.claims import Circumstances, NewClaim, replace_claims
from memoryd.ledger.enqueueing import (
    enqueue_consolidation,
    enqueue_stage1,
    expedite,
    mend_waits,
    reopen_outdated,
    request_cancel,
    retry,
    retry_all_dead,
)
from memoryd.ledger.forgetting import tidied
from memoryd.ledger.outputs import NewOutput, Snapshot
from memoryd.ledger.overview import (
    JobDetail,
    JobRow,
    counts,
    fetch_job,
    find,
    last_success_at,
    list_jobs,
    next_ready_at,
    ready_count,
    running,
    show,
    waiting,
)
from memoryd.ledger.policy import ConsolidateTiming
from memoryd.ledger.proposals import NewProposal
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.rows import change
from memoryd.ledger.sessions import Covered
from memoryd.ledger.states import JobKind, Outcome, Status, WaitReason
from memoryd.ledger.takeover import is_live, leased, take_back, take_back_from_the_dead

__all__ = [
    "AttemptRow",
    "Beat",
    "Completion",
    "ConsolidateTiming",
    "ConsolidationCompletion",
    "Covered",
    "JobDetail",
    "JobRow",
    "Lease",
    "claim",
    "complete",
    "complete_consolidation",
    "counts",
    "defer",
    "enqueue_consolidation",
    "enqueue_stage1",
    "expedite",
    "fail",
    "find",
    "heartbeat",
    "holds",
    "last_success_at",
    "list_jobs",
    "mend_waits",
    "new_token",
    "next_ready_at",
    "ready_count",
    "release",
    "reopen_outdated",
    "request_cancel",
    "retry",
    "retry_all_dead",
    "running",
    "show",
    "skip",
    "take_back_from_the_dead",
    "waiting",
]

_SQL = queries.load("jobs")


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a job: token and epoch prove it, `lease_until` (epoch seconds, wall clock) ends it.

    `input_watermark` is what this run must cover. The holder stops by itself before `lease_seconds` of monotonic time
    have passed since the claim or the last heartbeat.
    """

    kind: JobKind
    job_key: str
    token: str
    epoch: int
    worker_id: str
    input_watermark: int
    lease_until: int
    lease_seconds: float
    retry_remaining: int
    attempt_id: int
    claimed_at: float
    crash_count: int = 0


@dataclass(frozen=True, slots=True)
class Beat:
    """A renewed lease, and whether somebody asked for the run to stop."""

    lease: Lease
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class Completion:
    """What finishing a stage-1 job changed. `status` PENDING: newer input came while it ran."""

    status: Status
    stored: bool
    removed: bool

    @property
    def dirtied(self) -> bool:
        """Tell whether consolidation has something new to do."""
        return self.stored or self.removed


@dataclass(frozen=True, slots=True)
class ConsolidationCompletion:
    """What finishing a consolidation changed. `publication_id` None: nothing to put in place."""

    status: Status
    publication_id: int | None


def new_token() -> str:
    """Return a token that nobody has drawn before."""
    return secrets.token_hex(16)


def claim(  # noqa: PLR0913 - facts that no value would tie together
    conn: sqlite3.Connection,
    *,
    kind: JobKind,
    worker_id: str,
    now: float,
    lease_seconds: float,
    max_running: int,
    max_attempts: int,
    retry_cap: float,
    held: Collection[str] = (),
    only: str | None = None,
    worked_by: WorkedBy = NO_MODEL,
    mint: Callable[[], str] = new_token,
) -> Lease | None:
    """Lease the oldest ready job of the kind, or None when there is none or `max_running` leases are live.

    Leases that are over are taken back first and recorded as crashes; from the third crash at one watermark on, tries
    are `retry_cap` seconds apart. `held` are the tokens of runs whose tasks live in this process: those are never
    taken, whatever the clock says. `only` names the one job that may be taken. `worked_by` is recorded at once, so that
    the history of a run that crashes says what worked on it. `mint` makes the token.
    """
    running_now = leased(conn, kind)
    over = [job for job in running_now if job.token not in held and not is_live(job, now)]
    for job in over:
        take_back(conn, job, now=now, retry_cap=retry_cap)
    if len(running_now) - len(over) >= max_running:
        return None
    parameters = {
        "kind": kind.value,
        "only": only,
        "now": now,
        "worker_id": worker_id,
        "token": mint(),
        "started_at": int(now),
        "lease_until": policy.later(now + lease_seconds),
        "lease_seconds": lease_seconds,
        "max_attempts": max_attempts,
        "fingerprint": worked_by.fingerprint,
    }
    taken = conn.execute(_SQL["claim_job"], parameters).fetchall()
    if not taken:
        return None
    job_key, token, epoch, input_watermark, lease_until, retry_remaining, attempt_id, crash_count = taken[0]
    lease = Lease(
        kind=kind,
        job_key=job_key,
        token=token,
        epoch=epoch,
        worker_id=worker_id,
        input_watermark=input_watermark,
        lease_until=lease_until,
        lease_seconds=lease_seconds,
        retry_remaining=retry_remaining,
        attempt_id=attempt_id,
        claimed_at=now,
        crash_count=crash_count,
    )
    beginning: Beginning = {
        "id": attempt_id,
        "kind": kind.value,
        "job_key": job_key,
        "epoch": epoch,
        "worker_id": worker_id,
        "input_watermark": input_watermark,
        "started_at": int(now),
        "provider": worked_by.provider,
        "model": worked_by.model,
        "fingerprint": worked_by.fingerprint,
    }
    attempts.begin(conn, beginning)
    return lease


def heartbeat(conn: sqlite3.Connection, lease: Lease, *, now: float, lease_seconds: float) -> Beat:
    """Renew the lease; raises LeaseLost when somebody else has the job, or nobody any more."""
    lease_until = policy.later(now + lease_seconds)
    job = _move(conn, "renew_lease", lease, {"lease_until": lease_until, "lease_seconds": lease_seconds})
    renewed = replace(lease, lease_until=lease_until, lease_seconds=lease_seconds)
    return Beat(renewed, cancel_requested=job.cancel_requested)


def holds(conn: sqlite3.Connection, lease: Lease) -> bool:
    """Tell whether the lease still names the job's holder."""
    return fetch_job(conn, _SQL["find_held"], _guard(lease)) is not None


def complete(
    conn: sqlite3.Connection,
    lease: Lease,
    *,
    now: float,
    output: NewOutput | None,
    covered: Covered | None,
    consolidate: ConsolidateTiming,
    max_attempts: int,
) -> Completion:
    """Finish a stage-1 job: the output row, what is covered, and the enqueueing of consolidation, all or nothing.

    `output` None means that there is nothing to remember: an earlier row is deleted. An output older than the stored
    one is not stored. `covered` is what was read; if that is what was enqueued last, newer watermarks are met too.
    The stored row's source_updated_at is at least the watermark, so that two states of one second can be told apart.
    """
    status = _finish_reading(conn, lease, now, covered)
    stored = output is not None and _store(conn, lease, output, now)
    removed = output is None and outputs.remove(conn, lease.job_key)
    if stored or removed:
        enqueue_consolidation(conn, now=now, timing=consolidate, max_attempts=max_attempts, reason="session")
    outcome = Outcome.NOTHING if output is None else Outcome.DONE
    attempts.end(conn, lease.attempt_id, Ending(outcome, lease.claimed_at), now=now)
    return Completion(status, stored=stored, removed=removed)


def skip(conn: sqlite3.Connection, lease: Lease, *, now: float, covered: Covered | None) -> Status:
    """Finish a stage-1 job that asked nobody: whatever is remembered of the session stays as it is.

    `covered` None: nothing was read, so that the session is due again once what keeps it out is lifted.
    """
    status = _finish_reading(conn, lease, now, covered)
    attempts.end(conn, lease.attempt_id, Ending(Outcome.NOTHING, lease.claimed_at), now=now)
    return status


def complete_consolidation(
    conn: sqlite3.Connection,
    lease: Lease,
    *,
    now: float,
    consumed: Sequence[Snapshot] | None,
    publication: NewPublication | NewProposal | None,
    claims: Sequence[NewClaim],
    min_interval: float,
    stood: Collection[tuple[str, str]] | None = None,
) -> ConsolidationCompletion:
    """Decide a consolidation: after this transaction its result stands, whatever happens to the process.

    Exactly the `consumed` snapshots are marked selected; the publication waits to be put in place; claims are
    replaced. `publication` None means that nothing changed, and the claims stay as they are. `stood`: section and text
    of the claims that the run found in the folder. A proposal waits for a person's word, in place of any that waited;
    `consumed` None: the folder stays made of what it was.
    """
    wait = policy.Wait(policy.at_once(now))
    if min_interval > 0:
        wait = policy.Wait(policy.later(now + min_interval), WaitReason.MIN_INTERVAL)
    status = _finish(conn, lease, now, wait)
    publication_id = None
    if consumed is not None:
        outputs.mark_consumed(conn, consumed)
        proposals.supersede(conn, now=now)
    if isinstance(publication, NewProposal):
        proposals.propose(conn, publication, attempt_id=lease.attempt_id, now=now)
    elif publication is not None:
        publication_id = publications.decide(conn, publication, attempt_id=lease.attempt_id, now=now)
        tidied(conn)
        live = {snapshot.thread_id for snapshot in consumed or ()}
        replace_claims(conn, claims, now=now, circumstances=Circumstances(live=live, stood=stood))
    outcome = Outcome.NOTHING if publication is None else Outcome.DONE
    attempts.end(conn, lease.attempt_id, Ending(outcome, lease.claimed_at), now=now)
    return ConsolidationCompletion(status, publication_id)


def defer(
    conn: sqlite3.Connection, lease: Lease, *, now: float, until: float, reason: str, error: str | None
) -> JobRow:
    """Put the job off until an instant for a reason that is not its fault: no attempt is taken."""
    ready_at = max(policy.later(until), policy.at_once(now))
    job = _move(
        conn, "defer_job", lease, {"finished_at": int(now), "ready_at": ready_at, "reason": reason, "error": error}
    )
    ending = Ending(Outcome.DEFERRED, lease.claimed_at, error_class=reason, error=error)
    attempts.end(conn, lease.attempt_id, ending, now=now)
    return job


def fail(
    conn: sqlite3.Connection, lease: Lease, *, now: float, retry_at: float, error: str, error_class: str
) -> JobRow:
    """Record a failed run and take an attempt, not moving what succeeded; without attempts left it is an ERROR."""
    ready_at = max(policy.later(retry_at), policy.at_once(now))
    parameters = {
        "finished_at": int(now),
        "input_watermark": lease.input_watermark,
        "ready_at": ready_at,
        "reason": WaitReason.BACKOFF,
        "error": error,
    }
    job = _move(conn, "fail_job", lease, parameters)
    ending = Ending(Outcome.FAILED, lease.claimed_at, error_class=error_class, error=error)
    attempts.end(conn, lease.attempt_id, ending, now=now)
    return job


def release(conn: sqlite3.Connection, lease: Lease, *, now: float) -> JobRow:
    """Give the job back untouched; it can be claimed at once."""
    job = _move(conn, "release_job", lease, {"finished_at": int(now), "ready_at": policy.at_once(now)})
    attempts.end(conn, lease.attempt_id, Ending(Outcome.RELEASED, lease.claimed_at), now=now)
    return job


def _store(conn: sqlite3.Connection, lease: Lease, output: NewOutput, now: float) -> bool:
    if output.source_updated_at < lease.input_watermark:
        output = replace(output, source_updated_at=lease.input_watermark)
    stored = outputs.store(conn, output, now=now)
    if stored and output.stem is not None:
        sessions.fix_stem(conn, output.thread_id, output.stem)
    return stored


def _guard(lease: Lease) -> dict[str, object]:
    return {"kind": lease.kind.value, "job_key": lease.job_key, "token": lease.token, "epoch": lease.epoch}


def _finish_reading(conn: sqlite3.Connection, lease: Lease, now: float, covered: Covered | None) -> Status:
    """Finish a stage-1 job's row and record what was read; newer watermarks are met if it is what was enqueued last."""
    status = _finish(conn, lease, now, policy.Wait(policy.at_once(now)))
    if covered is None:
        return status
    if status is Status.PENDING and sessions.is_queued(conn, lease.job_key, covered):
        ((now_is,),) = conn.execute(_SQL["cover_newer"], _guard(lease)).fetchall()
        status = Status(now_is)
    sessions.record_covered(conn, lease.job_key, covered)
    return status


def _finish(conn: sqlite3.Connection, lease: Lease, now: float, again: policy.Wait) -> Status:
    """Finish the job's row; it waits for `again` if newer input came while it ran. The answer is how it stands now."""
    parameters = _guard(lease) | {
        "finished_at": int(now),
        "ready_at": again.ready_at,
        "reason": again.reason,
        "covered_watermark": lease.input_watermark,
    }
    if change(conn, _SQL["complete_job"], parameters):
        return Status.DONE
    if change(conn, _SQL["complete_and_reopen"], parameters):
        return Status.PENDING
    return _lost("complete", lease)


def _move(conn: sqlite3.Connection, statement: str, lease: Lease, parameters: dict[str, object]) -> JobRow:
    moved = fetch_job(conn, _SQL[statement], _guard(lease) | parameters)
    return moved or _lost(statement.split("_", maxsplit=1)[0], lease)


def _lost(attempt: str, lease: Lease) -> NoReturn:
    raise LeaseLost(
        f"cannot {attempt} {lease.kind} {lease.job_key}: the lease is no longer ours",
        remedy="nothing was written; whoever holds the job now goes on",
    )
