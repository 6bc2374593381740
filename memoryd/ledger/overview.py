"""Reading the jobs table: what is due next, what waits and why, what runs, what is dead."""

import sqlite3
from dataclasses import dataclass
from typing import Any, NamedTuple

from memoryd.ledger import attempts, queries
from memoryd.ledger.rows import Parameters, fetch_in_order
from memoryd.ledger.states import JobKind, Status

_SQL = queries.load("jobs")


class JobRow(NamedTuple):
    """One row of `jobs`; instants are epoch seconds. A tuple, since every write of a job reads some of them."""

    kind: str
    job_key: str
    status: Status
    worker_id: str | None
    ownership_token: str | None
    started_at: int | None
    finished_at: int | None
    lease_until: int | None
    retry_at: int | None
    retry_remaining: int
    last_error: str | None
    input_watermark: int
    last_success_watermark: int | None
    ready_at: int | None
    wait_reason: str | None
    epoch: int
    lease_seconds: float | None
    crash_count: int
    enqueued_at: int | None
    enqueue_reason: str | None
    cancel_requested: bool
    attempt_id: int | None
    last_success_at: int | None
    fingerprint: str | None


_STATUS = JobRow._fields.index("status")
_CANCEL_REQUESTED = JobRow._fields.index("cancel_requested")


@dataclass(frozen=True, slots=True)
class JobDetail:
    """One job with its runs, newest first."""

    job: JobRow
    attempts: tuple[attempts.AttemptRow, ...]


def fetch_jobs(conn: sqlite3.Connection, sql: str, parameters: Parameters) -> list[JobRow]:
    """Run a statement that gives whole rows of `jobs`, whose columns stand in the order of JobRow's fields."""
    return fetch_in_order(conn, sql, parameters, _make_job)


def fetch_job(conn: sqlite3.Connection, sql: str, parameters: Parameters) -> JobRow | None:
    """Run a statement that gives at most one row of `jobs`."""
    found = fetch_jobs(conn, sql, parameters)
    return found[0] if found else None


def _make_job(row: tuple[Any, ...]) -> JobRow:
    columns = list(row)
    columns[_STATUS] = Status(columns[_STATUS])
    columns[_CANCEL_REQUESTED] = columns[_CANCEL_REQUESTED] == 1
    return JobRow._make(columns)


def find(conn: sqlite3.Connection, kind: str, job_key: str) -> JobRow | None:
    """Return one job."""
    return fetch_job(conn, _SQL["find_job"], {"kind": str(kind), "job_key": job_key})


def next_ready_at(conn: sqlite3.Connection, kind: JobKind) -> float | None:
    """Return the earliest instant at which a job of the kind may be claimable: a wait's end or a lease's end.

    None: there is nothing to wait for. A past instant means claimable now, or held back by max_running.
    """
    (ready_at,) = conn.execute(_SQL["find_next_ready"], {"kind": kind}).fetchone()
    return None if ready_at is None else float(ready_at)


def ready_count(conn: sqlite3.Connection, kind: JobKind, now: float) -> int:
    """Return how many pending jobs of the kind could be claimed at `now`, were enough leases free."""
    (number,) = conn.execute(_SQL["count_ready"], {"kind": kind, "now": now}).fetchone()
    return int(number)


def last_success_at(conn: sqlite3.Connection, kind: JobKind) -> int | None:
    """Return when a job of the kind succeeded last."""
    (instant,) = conn.execute(_SQL["find_last_success"], {"kind": kind}).fetchone()
    return None if instant is None else int(instant)


def counts(conn: sqlite3.Connection) -> dict[JobKind, dict[Status, int]]:
    """Return the number of jobs by kind and status; every kind and status is present."""
    table = {kind: dict.fromkeys(Status, 0) for kind in JobKind}
    for kind, status, number in conn.execute(_SQL["count_jobs"]).fetchall():
        if kind in table:
            table[JobKind(kind)][Status(status)] = number
    return table


def waiting(conn: sqlite3.Connection, now: float, *, limit: int = 1000) -> list[JobRow]:
    """Return pending jobs that wait for a time after `now`, soonest first; each has its wait_reason."""
    return fetch_jobs(conn, _SQL["list_waiting"], {"now": now, "limit": limit})


def running(conn: sqlite3.Connection) -> list[JobRow]:
    """Return leased jobs, oldest first."""
    return fetch_jobs(conn, _SQL["list_running"], {})


def list_jobs(
    conn: sqlite3.Connection, *, kind: JobKind | None = None, status: Status | None = None, limit: int = 1000
) -> list[JobRow]:
    """Return jobs of a kind and status (None: any), what needs attention first."""
    return fetch_jobs(conn, _SQL["list_jobs"], {"kind": kind, "status": status, "limit": limit})


def show(conn: sqlite3.Connection, kind: JobKind, job_key: str) -> JobDetail | None:
    """Return one job with its runs, newest first."""
    job = find(conn, kind, job_key)
    if job is None:
        return None
    return JobDetail(job, tuple(attempts.of_job(conn, kind, job_key)))
