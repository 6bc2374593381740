"""New input becomes work: enqueue, ask again, try what died again, stop what runs."""

import json
import sqlite3
from collections.abc import Collection
from typing import NamedTuple

from memoryd.errors import StorageError
from memoryd.ledger import policy, queries, sessions
from memoryd.ledger.overview import fetch_job, fetch_jobs
from memoryd.ledger.policy import ConsolidateTiming
from memoryd.ledger.rows import change
from memoryd.ledger.states import GLOBAL_KEY, JobKind, Status

_SQL = queries.load("jobs")

CLOCK_SLACK = 600
"""Seconds by which a wait may have begun in the future before the clock is thought to have been set back."""


class _Standing(NamedTuple):
    """How a job stands; the columns of `find_standing` in their order."""

    status: str
    ready_at: int | None
    retry_at: int | None
    wait_reason: str | None
    input_watermark: int
    enqueued_at: int | None
    last_success_at: int | None


def enqueue_stage1(
    conn: sqlite3.Connection,
    *,
    thread_id: str,
    updated_at: int,
    record_bytes: int,
    now: float,
    max_attempts: int,
    ready_at: int | None = None,
) -> bool:
    """Ask for the extraction of a session whose records end at `updated_at` and are `record_bytes` long.

    The same pair again changes nothing: no retry is passed, no attempt given back. Any other pair, also an older one,
    raises the watermark to max(updated_at, old + 1), fills the attempts up and passes a wait. `ready_at` gives the job
    its place among those that are ready (None: the last). The answer tells whether something changed. Raises
    StorageError when the ledger knows no such session.
    """
    pair = sessions.Covered(updated_at, record_bytes)
    session = sessions.get_exact(conn, thread_id)
    if session is None:
        raise StorageError(f"cannot enqueue {thread_id}: no such session is known", remedy="let discovery see it first")
    job = _find(conn, JobKind.STAGE1, thread_id)
    if job is not None and (session.queued_updated_at, session.queued_bytes) == (updated_at, record_bytes):
        return False
    sessions.record_queued(conn, thread_id, pair)
    watermark = updated_at if job is None else max(updated_at, job.input_watermark + 1)
    parameters = {
        "kind": JobKind.STAGE1.value,
        "job_key": thread_id,
        "watermark": watermark,
        "max_attempts": max(max_attempts, 1),
        "ready_at": policy.at_once(now) if ready_at is None else ready_at,
        "retry_at": None,
        "reason": None,
        "enqueued_at": int(now),
        "enqueue_reason": "session",
    }
    _apply(conn, job, parameters)
    return True


def enqueue_consolidation(
    conn: sqlite3.Connection,
    *,
    now: float,
    timing: ConsolidateTiming,
    max_attempts: int,
    reason: str,
    watermark: int | None = None,
) -> None:
    """Ask for a consolidation because of `reason`.

    The watermark grows to `watermark` if that is larger, else by one, so that an enqueue during a run is not lost.
    The wait is debounce and min_interval; a wait after a failure, a deferral or a crash stands, and what is ready
    already is not postponed.
    """
    job = _find(conn, JobKind.CONSOLIDATE, GLOBAL_KEY)
    wait, retry_at = _wait_for_quiet(job, now=now, timing=timing)
    parameters = {
        "kind": JobKind.CONSOLIDATE.value,
        "job_key": GLOBAL_KEY,
        "watermark": _larger(job, int(now) if watermark is None else watermark, given=watermark is not None),
        "max_attempts": max(max_attempts, 1),
        "ready_at": wait.ready_at,
        "retry_at": retry_at,
        "reason": wait.reason,
        "enqueued_at": int(now),
        "enqueue_reason": reason,
    }
    _apply(conn, job, parameters)


def expedite(conn: sqlite3.Connection, *, kind: JobKind, reasons: Collection[str], now: float) -> int:
    """Let pending jobs that wait for one of these reasons be claimed now; the answer is their number."""
    parameters = {
        "kind": kind,
        "reasons": json.dumps(sorted(reasons)),
        "now": now,
        "ready_at": policy.at_once(now),
    }
    return len(fetch_jobs(conn, _SQL["expedite_jobs"], parameters))


def mend_waits(conn: sqlite3.Connection, *, kind: JobKind, now: float) -> int:
    """Drop waits that were set in what is now the future, after a clock that was ahead has been set back.

    For the start and for whoever notices the clock's jump; steps of up to CLOCK_SLACK seconds only delay.
    """
    parameters = {"kind": kind, "now": now, "ready_at": policy.at_once(now), "begun_after": now + CLOCK_SLACK}
    return len(fetch_jobs(conn, _SQL["mend_waits"], parameters))


def retry(conn: sqlite3.Connection, *, kind: JobKind, job_key: str, now: float, max_attempts: int) -> bool:
    """Let a job that is dead or waits be tried now with full attempts; False when there is no such job."""
    parameters = _revival(kind, now, max_attempts) | {"job_key": job_key}
    return fetch_job(conn, _SQL["revive_job"], parameters) is not None


def reopen_outdated(conn: sqlite3.Connection, *, kind: JobKind, fingerprint: str, now: float, max_attempts: int) -> int:
    """Let the dead jobs of the kind be tried anew that died under another `fingerprint` (program, model, prompt)."""
    parameters = _revival(kind, now, max_attempts) | {"fingerprint": fingerprint}
    return len(fetch_jobs(conn, _SQL["revive_outdated_jobs"], parameters))


def retry_all_dead(conn: sqlite3.Connection, *, kind: JobKind, now: float, max_attempts: int) -> int:
    """Let every dead job of the kind be tried now with full attempts; the answer is their number."""
    return len(fetch_jobs(conn, _SQL["revive_dead_jobs"], _revival(kind, now, max_attempts)))


def request_cancel(conn: sqlite3.Connection, *, kind: JobKind, job_key: str) -> bool:
    """Ask the holder to stop, which it hears at its next heartbeat; False when nobody holds the job."""
    return fetch_job(conn, _SQL["request_cancel"], {"kind": kind, "job_key": job_key}) is not None


def _find(conn: sqlite3.Connection, kind: JobKind, job_key: str) -> _Standing | None:
    row = conn.execute(_SQL["find_standing"], {"kind": kind.value, "job_key": job_key}).fetchone()
    return None if row is None else _Standing._make(row)


def _apply(conn: sqlite3.Connection, job: _Standing | None, parameters: dict[str, object]) -> None:
    touched = change(conn, _SQL[_statement_for(job, parameters)], parameters)
    assert touched == 1  # read in the same transaction


def _statement_for(job: _Standing | None, parameters: dict[str, object]) -> str:
    if job is None:
        return "insert_job"
    if job.status == Status.RUNNING:
        return "raise_watermark"
    wait = (parameters["ready_at"], parameters["retry_at"], parameters["reason"])
    if job.status == Status.PENDING and wait == (job.ready_at, job.retry_at, job.wait_reason):
        return "raise_waiting"
    return "reopen_job"


def _larger(job: _Standing | None, watermark: int, *, given: bool) -> int:
    if job is None:
        return watermark
    if given and watermark > job.input_watermark:
        return watermark
    return job.input_watermark + 1


def _wait_for_quiet(job: _Standing | None, *, now: float, timing: ConsolidateTiming) -> tuple[policy.Wait, int | None]:
    """Return the wait of the reopened row and its retry_at (None: it does not wait for a retry)."""
    if job is None:
        return policy.consolidation_wait(now=now, timing=timing, first_enqueued_at=int(now), last_success_at=None), None
    if job.ready_at is not None and (job.retry_at is not None or job.ready_at <= now):
        return policy.Wait(job.ready_at, job.wait_reason), job.retry_at
    wait = policy.consolidation_wait(
        now=now,
        timing=timing,
        first_enqueued_at=int(now) if job.enqueued_at is None else job.enqueued_at,
        last_success_at=job.last_success_at,
    )
    return wait, None


def _revival(kind: JobKind, now: float, max_attempts: int) -> dict[str, object]:
    return {"kind": kind, "ready_at": policy.at_once(now), "max_attempts": max(max_attempts, 1)}
