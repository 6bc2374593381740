"""Small ways to say what a test of the ledger starts from."""

import sqlite3
from dataclasses import replace

from memoryd.ledger import jobs, sessions
from memoryd.ledger.attempts import NO_MODEL, WorkedBy
from memoryd.ledger.jobs import Completion, ConsolidateTiming, ConsolidationCompletion, Lease
from memoryd.ledger.outputs import NewOutput
from memoryd.ledger.sessions import Covered, SessionRow, Sighting
from memoryd.ledger.states import GLOBAL_KEY, JobKind

NOW = 1_700_000_000.0
THREAD = "0194f5a6-89ab-7cde-8123-456789abcdef"
OTHER = "01a226ab-5fe7-707c-80dd-7a6d93907104"
TIMING = ConsolidateTiming(debounce=120.0, min_interval=1800.0)
LEASE_SECONDS = 180.0
RETRY_CAP = 21_600.0
MAX_ATTEMPTS = 3


def a_sighting(
    thread_id: str = THREAD, *, updated_at: int = 1000, record_bytes: int = 50, **changes: object
) -> Sighting:
    base = Sighting(
        thread_id=thread_id,
        agent="codex",
        path=f"/sessions/{thread_id}.jsonl",
        cwd="/home/dev/shop",
        git_branch="main",
        parent_id=None,
        kind="interactive",
        originator="codex_cli_rs",
        started_at=900,
        size=record_bytes,
        mtime_ns=updated_at * 1_000_000_000,
        updated_at=updated_at,
        record_bytes=record_bytes,
    )
    return replace(base, **changes)  # type: ignore[arg-type]  # fields by name


def a_session(conn: sqlite3.Connection, thread_id: str = THREAD, **changes: object) -> SessionRow:
    return sessions.upsert(conn, a_sighting(thread_id, **changes), NOW)  # type: ignore[arg-type]  # fields by name


def enqueue(
    conn: sqlite3.Connection,
    thread_id: str = THREAD,
    *,
    updated_at: int = 1000,
    record_bytes: int = 50,
    now: float = NOW,
    max_attempts: int = MAX_ATTEMPTS,
) -> bool:
    if sessions.get_exact(conn, thread_id) is None:
        a_session(conn, thread_id, updated_at=updated_at, record_bytes=record_bytes)
    return jobs.enqueue_stage1(
        conn,
        thread_id=thread_id,
        updated_at=updated_at,
        record_bytes=record_bytes,
        now=now,
        max_attempts=max_attempts,
    )


def enqueue_global(
    conn: sqlite3.Connection, *, now: float = NOW, timing: ConsolidateTiming = TIMING, watermark: int | None = None
) -> jobs.JobRow:
    jobs.enqueue_consolidation(
        conn, now=now, timing=timing, max_attempts=MAX_ATTEMPTS, reason="session", watermark=watermark
    )
    return the_job(conn, JobKind.CONSOLIDATE)


def claim(
    conn: sqlite3.Connection,
    kind: JobKind = JobKind.STAGE1,
    *,
    now: float = NOW,
    max_running: int = 2,
    held: tuple[str, ...] = (),
    only: str | None = None,
    max_attempts: int = MAX_ATTEMPTS,
    worked_by: WorkedBy = NO_MODEL,
) -> Lease | None:
    return jobs.claim(
        conn,
        kind=kind,
        worker_id="host-1:a",
        now=now,
        lease_seconds=LEASE_SECONDS,
        max_running=max_running,
        max_attempts=max_attempts,
        retry_cap=RETRY_CAP,
        held=held,
        only=only,
        worked_by=worked_by,
    )


def a_lease(conn: sqlite3.Connection, kind: JobKind = JobKind.STAGE1, *, now: float = NOW) -> Lease:
    """Return the lease of a job that is enqueued for it when there is none."""
    if not jobs.find(conn, kind, THREAD if kind is JobKind.STAGE1 else GLOBAL_KEY):
        if kind is JobKind.STAGE1:
            enqueue(conn, now=now)
        else:
            enqueue_global(conn, now=now, timing=ConsolidateTiming(0, 0))
    lease = claim(conn, kind, now=now)
    assert lease is not None
    return lease


def an_output(thread_id: str = THREAD, *, source_updated_at: int = 1000, **changes: object) -> NewOutput:
    base = NewOutput(thread_id, source_updated_at, "raw memory", "rollout summary", "a_slug")
    return replace(base, **changes)  # type: ignore[arg-type]  # fields by name


def complete(
    conn: sqlite3.Connection,
    lease: Lease,
    *,
    now: float = NOW,
    output: NewOutput | None = None,
    covered: Covered | None = None,
) -> Completion:
    return jobs.complete(
        conn, lease, now=now, output=output, covered=covered, consolidate=TIMING, max_attempts=MAX_ATTEMPTS
    )


def complete_global(
    conn: sqlite3.Connection, lease: Lease, *, now: float = NOW, min_interval: float = TIMING.min_interval
) -> ConsolidationCompletion:
    return jobs.complete_consolidation(
        conn, lease, now=now, consumed=(), publication=None, claims=(), min_interval=min_interval
    )


def the_job(conn: sqlite3.Connection, kind: JobKind = JobKind.STAGE1) -> jobs.JobRow:
    job = jobs.find(conn, kind, THREAD if kind is JobKind.STAGE1 else GLOBAL_KEY)
    assert job is not None
    return job


def recorded_every_day(conn: sqlite3.Connection, *, until: float = NOW, days: int = 400) -> None:
    """Let sessions have been recorded on each of the days before an instant."""
    conn.execute(
        "WITH RECURSIVE back(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM back WHERE n + 1 < :days)"
        " INSERT OR IGNORE INTO active_days SELECT :last - n FROM back",
        {"days": days, "last": int(until // 86_400)},
    )
