"""Taking leases back from holders that are gone: those that ran out, and those whose process is known to be dead."""

import sqlite3
from collections.abc import Callable
from typing import NamedTuple

from memoryd.ledger import attempts, policy, queries
from memoryd.ledger.attempts import Ending
from memoryd.ledger.rows import fetch_in_order
from memoryd.ledger.states import JobKind, Outcome

_SQL = queries.load("jobs")


class Leased(NamedTuple):
    """What is to be known of a job that somebody holds; the columns of `list_leased` in their order."""

    kind: str
    job_key: str
    worker_id: str
    token: str
    epoch: int
    started_at: int
    lease_until: int
    lease_seconds: float
    crash_count: int
    attempt_id: int


def leased(conn: sqlite3.Connection, kind: JobKind) -> list[Leased]:
    """Return the jobs of a kind that somebody holds, with a lease that is live or over."""
    return fetch_in_order(conn, _SQL["list_leased"], {"kind": kind.value}, Leased._make)


def is_live(job: Leased, now: float) -> bool:
    """Tell whether a lease still holds; one further in the future than it is long was written by a wrong clock."""
    return policy.lease_is_live(lease_until=job.lease_until, lease_seconds=job.lease_seconds, now=now)


def take_back_from_the_dead(
    conn: sqlite3.Connection, *, is_dead: Callable[[str], bool], now: float, retry_cap: float
) -> int:
    """Take back every lease whose holder is known to be dead, instead of waiting it out; return how many.

    For the start of the process that holds memoryd.lock. Each counts as a crash, as a lease that ran out does.
    """
    dead = [job for kind in JobKind for job in leased(conn, kind) if is_dead(job.worker_id)]
    for job in dead:
        take_back(conn, job, now=now, retry_cap=retry_cap)
    return len(dead)


def revoke(conn: sqlite3.Connection, kind: JobKind, *, now: float) -> int:
    """End the leases of a kind whose ground is taken away: the runs write nothing more, and begin anew at no cost.

    The holder hears of it at its next write. Returns how many there were.
    """
    held = leased(conn, kind)
    for job in held:
        parameters: dict[str, object] = {
            "kind": job.kind,
            "job_key": job.job_key,
            "token": job.token,
            "epoch": job.epoch,
            "finished_at": int(now),
            "ready_at": policy.at_once(now),
        }
        conn.execute(_SQL["release_job"], parameters).fetchall()
        attempts.end(conn, job.attempt_id, Ending(Outcome.RELEASED, error="the memory was changed meanwhile"), now=now)
    return len(held)


def take_back(conn: sqlite3.Connection, job: Leased, *, now: float, retry_cap: float) -> None:
    """Take one lease back: a crash, from the third of which at one watermark on tries are `retry_cap` apart."""
    wait = policy.after_crash(crash_count=job.crash_count + 1, started_at=job.started_at, now=now, retry_cap=retry_cap)
    parameters: dict[str, object] = {
        "finished_at": int(now),
        "kind": job.kind,
        "job_key": job.job_key,
        "token": job.token,
        "epoch": job.epoch,
        "ready_at": wait.ready_at,
        "reason": wait.reason,
    }
    conn.execute(_SQL["record_crash"], parameters).fetchall()
    attempts.end(conn, job.attempt_id, Ending(Outcome.CRASHED, error="the run ended without a word"), now=now)
