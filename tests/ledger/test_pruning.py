"""Accounts of long ago become small, and nothing that is shown or counted changes."""

import sqlite3
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from memoryd.ledger import attempts, jobs, meta, outputs, pruning, queries, spend
from memoryd.ledger.attempts import SHOWN
from memoryd.ledger.outputs import NewOutput
from memoryd.ledger.pruning import CrowdedJob, OldRun, needed_runs
from memoryd.ledger.spend import By
from memoryd.ledger.states import GLOBAL_KEY, JobKind
from tests.ledger.directed.pruning import BEFORE, DAY, LONG_AGO, a_request, numbers_of, runs
from tests.ledger.factories import NOW, OTHER, THREAD, a_session, enqueue, enqueue_global


def usage(conn: sqlite3.Connection, by: By, *, since: float = 0) -> list[spend.UsageRow]:
    return spend.usage(conn, by=by, since=since)


A_REQUEST = st.tuples(
    st.integers(0, 500),
    st.sampled_from([("memory_stage1", THREAD), ("memory_stage1", OTHER), ("memory_consolidate_global", "global")]),
    st.sampled_from(["small", "large"]),
    st.sampled_from([None, 0, 70, 90]),
)


@given(requests=st.lists(A_REQUEST, max_size=30), limit=st.integers(1, 7))
def test_usage_says_the_same_after_any_number_of_batches(
    requests: list[tuple[int, tuple[str, str], str, int | None]], limit: int
) -> None:
    """I9: by day and by model, from any day on; by job the sessions of long ago are one row."""
    conn = sqlite3.connect(":memory:", isolation_level=None)
    try:
        conn.executescript(queries.read("schema.sql"))
        for days, (kind, key), model, settled in requests:
            a_request(conn, NOW - days * DAY, kind, key, model=model, settled=settled)
        midnights = [int(NOW) // DAY * DAY - days * DAY for days in (600, 350, 181, 180, 179, 0)]
        before = [usage(conn, by, since=since) for by in (By.DAY, By.MODEL) for since in midnights]
        of_today = spend.today(conn, NOW)
        while pruning.sum_up_requests(conn, before=BEFORE, limit=limit):
            assert [usage(conn, by, since=since) for by in (By.DAY, By.MODEL) for since in midnights] == before
        assert spend.today(conn, NOW) == of_today
        assert conn.execute("SELECT count(*) FROM requests WHERE at < ?", (BEFORE,)).fetchone() == (0,)
        assert sum(row.requests for row in usage(conn, By.JOB)) == len(requests)
    finally:
        conn.close()


def test_a_clock_before_the_last_sum_is_still_found_out(conn: sqlite3.Connection) -> None:
    a_request(conn, LONG_AGO, "memory_stage1", THREAD)
    pruning.sum_up_requests(conn, before=BEFORE, limit=100)
    assert meta.newest_instant(conn) == int(LONG_AGO) // DAY * DAY


def prune(conn: sqlite3.Connection, *, limit: int = 1000) -> int:
    return sum(pruning.prune_runs(conn, job, before=BEFORE, limit=limit) for job in pruning.crowded_jobs(conn))


def test_of_a_job_the_runs_that_are_listed_stay_however_old(conn: sqlite3.Connection) -> None:
    enqueue(conn)
    there = runs(conn, JobKind.STAGE1, THREAD, SHOWN + 7, at=LONG_AGO)
    before = attempts.of_job(conn, JobKind.STAGE1, THREAD)
    assert [prune(conn, limit=4), prune(conn, limit=4), prune(conn, limit=4)] == [4, 3, 0]
    assert attempts.of_job(conn, JobKind.STAGE1, THREAD) == before
    assert numbers_of(conn, JobKind.STAGE1, THREAD) == there[7:]


def test_what_ran_within_half_a_year_stays_whole(conn: sqlite3.Connection) -> None:
    enqueue(conn)
    runs(conn, JobKind.STAGE1, THREAD, SHOWN + 7, at=NOW - 100 * DAY)
    assert prune(conn) == 0


def test_the_consolidation_that_took_in_what_is_remembered_stays(conn: sqlite3.Connection) -> None:
    a_session(conn)
    enqueue_global(conn)
    there = runs(conn, JobKind.CONSOLIDATE, GLOBAL_KEY, SHOWN + 20, at=LONG_AGO)
    lesson = NewOutput(THREAD, 1000, "raw", "summary", None)
    outputs.store(conn, lesson, now=LONG_AGO + 60 * 5 - 10)
    assert prune(conn) == 19
    assert numbers_of(conn, JobKind.CONSOLIDATE, GLOBAL_KEY) == [there[5], *there[20:]]
    assert jobs.find(conn, JobKind.CONSOLIDATE, GLOBAL_KEY) is not None


@given(
    started=st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=12),
    written=st.lists(st.integers(0, 60), max_size=6),
)
def test_needed_is_for_each_output_the_first_good_run_begun_after_it(
    started: Sequence[tuple[int, bool]], written: list[int]
) -> None:
    old = [OldRun(number, at, is_done) for number, (at, is_done) in enumerate(sorted(started))]
    later = [[run for run in old if run.is_done and run.started_at >= at] for at in written]
    assert needed_runs(old, written) == {found[0].id for found in later if found}


def test_it_is_due_once_a_utc_day(conn: sqlite3.Connection) -> None:
    assert pruning.is_due(conn, NOW)
    pruning.finish(conn, NOW)
    assert not pruning.is_due(conn, NOW)
    assert pruning.is_due(conn, NOW + DAY)


def test_jobs_with_few_runs_are_not_looked_at(conn: sqlite3.Connection) -> None:
    enqueue(conn)
    runs(conn, JobKind.STAGE1, THREAD, SHOWN, at=LONG_AGO)
    runs(conn, JobKind.STAGE1, OTHER, 1, at=LONG_AGO)
    assert pruning.crowded_jobs(conn) == [CrowdedJob("memory_stage1", OTHER, is_gone=True)]
