"""Of accounts of long ago: what is summed up, what goes, and what stays as it is."""

import sqlite3
from collections.abc import Callable

from memoryd.ledger import attempts, pruning, spend
from memoryd.ledger.attempts import SHOWN, Beginning, Ending
from memoryd.ledger.pruning import CrowdedJob
from memoryd.ledger.spend import By, Caps, Purpose
from memoryd.ledger.states import GLOBAL_KEY, JobKind, Outcome
from tests.ledger.factories import NOW, OTHER, THREAD

DAY = 86_400
LONG_AGO = NOW - 400 * DAY
BEFORE = pruning.kept_from(NOW)
ROOMY = Caps(10**9, 10**15)


def a_request(
    conn: sqlite3.Connection, at: float, kind: str, key: str, *, model: str = "m", settled: int | None = 70
) -> None:
    """A request; `settled` None: never settled, 0: the server did not say, else the tokens that went in."""
    row = spend.reserve(
        conn,
        now=at,
        purpose=Purpose(kind, key),
        provider="main",
        model=model,
        estimated_tokens=100,
        estimated_cost=0.5,
        caps=ROOMY,
    )
    if settled is not None:
        said = settled or None
        spend.settle(
            conn,
            row,
            now=at,
            outcome="answered" if said else "unreachable",
            tokens_in=said,
            tokens_out=said and 20,
            tokens_cached=said and 10,
            cost=said and 0.25,
            duration_ms=1000,
            tokens_reasoning=said and 5,
        )


def runs(conn: sqlite3.Connection, kind: JobKind, key: str, count: int, *, at: float) -> list[int]:
    """So many runs of a job that ended well, a minute apart, the first at an instant; their numbers."""
    (last,) = conn.execute("SELECT coalesce(max(id), 0) FROM attempts").fetchone()
    numbers = list(range(last + 1, last + 1 + count))
    for place, number in enumerate(numbers):
        run = Beginning(
            id=number,
            kind=kind,
            job_key=key,
            epoch=place + 1,
            worker_id="w",
            input_watermark=1,
            started_at=int(at) + 60 * place,
            provider=None,
            model=None,
            fingerprint=None,
        )
        attempts.begin(conn, run)
        attempts.end(conn, number, Ending(Outcome.DONE), now=at + 60 * place + 30)
    return numbers


def numbers_of(conn: sqlite3.Connection, kind: JobKind, key: str) -> list[int]:
    """The runs of a job that are there, the oldest first."""
    return sorted(run.id for run in attempts.of_job(conn, kind, key, limit=10_000))


def old_requests_become_sums_and_no_other(conn: sqlite3.Connection) -> None:
    """Sessions of a day are one sum, another job keeps its own; what nobody said counts as estimated."""
    for key in (THREAD, OTHER):
        for settled in (70, 0, None):
            a_request(conn, LONG_AGO, JobKind.STAGE1, key, settled=settled)
    a_request(conn, LONG_AGO, JobKind.CONSOLIDATE, GLOBAL_KEY)
    a_request(conn, NOW, JobKind.STAGE1, THREAD)
    before = [spend.usage(conn, by=by, since=0) for by in (By.DAY, By.MODEL)]
    assert [pruning.sum_up_requests(conn, before=BEFORE, limit=limit) for limit in (3, 2, 9, 9)] == [3, 2, 2, 0]
    assert [spend.usage(conn, by=by, since=0) for by in (By.DAY, By.MODEL)] == before
    assert conn.execute("SELECT at FROM requests").fetchall() == [(int(NOW),)]
    assert {row.label: row.requests for row in spend.usage(conn, by=By.JOB, since=0)} == {
        "memory_stage1 (older sessions)": 6,
        "memory_consolidate_global global": 1,
        f"memory_stage1 {THREAD}": 1,
    }


def runs_that_nothing_shows_go_and_no_other(conn: sqlite3.Connection) -> None:
    """What is listed, what is young, what has not ended and what is another job's stays."""
    there = runs(conn, JobKind.STAGE1, THREAD, SHOWN + 4, at=LONG_AGO)
    conn.execute("UPDATE attempts SET outcome = NULL, ended_at = NULL WHERE id = ?", (there[1],))
    conn.execute("UPDATE attempts SET started_at = ? WHERE id = ?", (BEFORE, there[2]))
    others = [(JobKind.STAGE1, OTHER), (JobKind.CONSOLIDATE, THREAD)]
    theirs = [runs(conn, kind, key, 2, at=LONG_AGO) for kind, key in others]
    job = CrowdedJob(JobKind.STAGE1, THREAD, is_gone=False)
    assert [pruning.prune_runs(conn, job, before=BEFORE, limit=limit) for limit in (1, 9, 9)] == [1, 1, 0]
    assert numbers_of(conn, JobKind.STAGE1, THREAD) == [*there[1:3], *there[4:]]
    assert [numbers_of(conn, kind, key) for kind, key in others] == theirs


def the_last_number_is_never_given_twice(conn: sqlite3.Connection) -> None:
    """The next run is numbered after the last row that is there."""
    there = runs(conn, JobKind.STAGE1, THREAD, 3, at=LONG_AGO)
    assert pruning.prune_runs(conn, CrowdedJob(JobKind.STAGE1, THREAD, is_gone=True), before=BEFORE, limit=9) == 2
    assert numbers_of(conn, JobKind.STAGE1, THREAD) == there[-1:]


SCHEDULES: list[Callable[[sqlite3.Connection], None]] = [
    old_requests_become_sums_and_no_other,
    runs_that_nothing_shows_go_and_no_other,
    the_last_number_is_never_given_twice,
]
