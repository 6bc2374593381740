"""Taking leases back from holders that are gone: those that ran out, and those whose process is known to be dead."""

import sqlite3
from collections.abc import Callable

from memoryd.ledger import attempts, policy, queries
from memoryd.ledger.attempts import Ending
from memoryd.ledger.overview import JobRow, fetch_jobs
from memoryd.ledger.states import JobKind, Outcome

_SQL = queries.load("jobs")


def is_live(job: JobRow, now: float) -> bool:
    """Tell whether a lease still holds; one further in the future than it is long was written by a wrong clock."""
    assert job.lease_until is not None
    assert job.lease_seconds is not None
    return policy.lease_is_live(lease_until=job.lease_until, lease_seconds=job.lease_seconds, now=now)


def take_back_from_the_dead(
    conn: sqlite3.Connection, *, is_dead: Callable[[str], bool], now: float, retry_cap: float
) -> int:
    """Take back every lease whose holder is known to be dead, instead of waiting it out; return how many.

    For the start of the process that holds memoryd.lock. Each counts as a crash, as a lease that ran out does.
    """
    leased = [job for kind in JobKind for job in fetch_jobs(conn, _SQL["list_leased"], {"kind": kind})]
    dead = [job for job in leased if job.worker_id is not None and is_dead(job.worker_id)]
    for job in dead:
        take_back(conn, job, now=now, retry_cap=retry_cap)
    return len(dead)


def revoke(conn: sqlite3.Connection, kind: JobKind, *, now: float) -> int:
    """End the leases of a kind whose ground is taken away: the runs write nothing more, and begin anew at no cost.

    The holder hears of it at its next write. Returns how many there were.
    """
    leased = fetch_jobs(conn, _SQL["list_leased"], {"kind": kind.value})
    for job in leased:
        parameters: dict[str, object] = {
            "kind": job.kind,
            "job_key": job.job_key,
            "token": job.ownership_token,
            "epoch": job.epoch,
            "finished_at": int(now),
            "ready_at": policy.at_once(now),
        }
        fetch_jobs(conn, _SQL["release_job"], parameters)
        attempts.end(conn, job.attempt_id, Ending(Outcome.RELEASED, error="the memory was changed meanwhile"), now=now)
    return len(leased)


def take_back(conn: sqlite3.Connection, job: JobRow, *, now: float, retry_cap: float) -> None:
    """Take one lease back: a crash, from the third of which at one watermark on tries are `retry_cap` apart."""
    started_at = job.started_at if job.started_at is not None else int(now)
    wait = policy.after_crash(crash_count=job.crash_count + 1, started_at=started_at, now=now, retry_cap=retry_cap)
    parameters: dict[str, object] = {
        "finished_at": int(now),
        "kind": job.kind,
        "job_key": job.job_key,
        "token": job.ownership_token,
        "epoch": job.epoch,
        "ready_at": wait.ready_at,
        "reason": wait.reason,
    }
    fetch_jobs(conn, _SQL["record_crash"], parameters)
    attempts.end(conn, job.attempt_id, Ending(Outcome.CRASHED, error="the run ended without a word"), now=now)
