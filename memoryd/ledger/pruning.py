"""The accounts of long ago, so that a ledger of years stays small: requests become sums, runs that nothing shows go.

Nothing that is shown or counted changes: `memoryd usage` adds the sums of a day to what has its own row, a job keeps
the runs that are listed, and what is remembered the run that took it in. Every function is one transaction.
"""

import json
import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from memoryd.ledger import meta, queries
from memoryd.ledger.attempts import SHOWN
from memoryd.ledger.rows import change, fetch_all
from memoryd.ledger.states import JobKind

_SQL = queries.load("pruning")

KEPT_SECONDS: Final = 180 * 86_400
"""For half a year every request and every run has its own row."""
PRUNED_ON: Final = "accounts_pruned_on"
"""The key under which stands the UTC day (since 1970) on which all of it was done last."""


class CrowdedJob(NamedTuple):
    """A job of whose runs some may go. `is_gone`: the job itself is no more, and nothing lists its runs."""

    kind: str
    job_key: str
    is_gone: bool


@dataclass(frozen=True, slots=True)
class OldRun:
    """A run that has ended and that nothing lists any more."""

    id: int
    started_at: int
    is_done: bool


def kept_from(now: float) -> int:
    """Return the beginning of the first UTC day of which every row stays."""
    return (int(now) - KEPT_SECONDS) // 86_400 * 86_400


def is_due(conn: sqlite3.Connection, now: float) -> bool:
    """Tell whether it was not done yet on the UTC day of `now`."""
    return meta.get(conn, PRUNED_ON) != str(int(now) // 86_400)


def finish(conn: sqlite3.Connection, now: float) -> None:
    """Record that all of it is done for the UTC day of `now`."""
    meta.put(conn, PRUNED_ON, str(int(now) // 86_400))


def sum_up_requests(conn: sqlite3.Connection, *, before: int, limit: int) -> int:
    """Add the oldest requests to the sums of their days and delete their rows; return how many went."""
    bounds = {"before": before, "limit": limit}
    change(conn, _SQL["sum_up_requests"], bounds)
    return change(conn, _SQL["delete_summed"], bounds)


def crowded_jobs(conn: sqlite3.Connection) -> list[CrowdedJob]:
    """Return the jobs that may have runs to prune."""
    return fetch_all(conn, _SQL["list_crowded_jobs"], {"kept": SHOWN}, _make_crowded)


def prune_runs(conn: sqlite3.Connection, job: CrowdedJob, *, before: int, limit: int) -> int:
    """Delete the oldest runs of a job that began before an instant and that nothing shows; return how many went."""
    written_at = _written_at(conn) if job.kind == JobKind.CONSOLIDATE else []
    parameters = {
        "kind": job.kind,
        "job_key": job.job_key,
        "before": before,
        "kept": 0 if job.is_gone else SHOWN,
        "limit": limit + len(written_at),  # of those no more are needed than outputs are there
    }
    runs = fetch_all(conn, _SQL["list_old_runs"], parameters, OldRun)
    needed = needed_runs(runs, written_at)
    ids = [run.id for run in runs if run.id not in needed][:limit]
    return change(conn, _SQL["delete_runs"], {"ids": json.dumps(ids)}) if ids else 0


def needed_runs(runs: Sequence[OldRun], written_at: Iterable[int]) -> frozenset[int]:
    """Return the consolidations that tell when an output came into the memory: the first done one begun after it."""
    done = sorted((run.started_at, run.id) for run in runs if run.is_done)
    firsts = (bisect_left(done, (instant, 0)) for instant in written_at)
    return frozenset(done[place][1] for place in firsts if place < len(done))


def _written_at(conn: sqlite3.Connection) -> list[int]:
    return [int(instant) for (instant,) in conn.execute(_SQL["list_written_at"]).fetchall()]


def _make_crowded(kind: str, job_key: str, is_gone: int) -> CrowdedJob:
    return CrowdedJob(kind, job_key, bool(is_gone))
