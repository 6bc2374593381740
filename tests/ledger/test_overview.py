"""Reading the jobs table."""

import sqlite3

from memoryd.ledger import jobs
from memoryd.ledger.states import JobKind, Outcome, Status
from tests.ledger.factories import (
    LEASE_SECONDS,
    NOW,
    THREAD,
    a_lease,
    an_output,
    claim,
    complete,
    complete_global,
    enqueue,
    enqueue_global,
    the_job,
)

STAGE1, GLOBAL = JobKind.STAGE1, JobKind.CONSOLIDATE


def test_an_empty_ledger_waits_for_nothing(conn: sqlite3.Connection) -> None:
    assert jobs.next_ready_at(conn, STAGE1) is None
    assert jobs.last_success_at(conn, STAGE1) is None
    assert jobs.waiting(conn, NOW) == jobs.running(conn) == jobs.list_jobs(conn) == []
    assert jobs.counts(conn) == {kind: dict.fromkeys(Status, 0) for kind in JobKind}


def test_the_next_instant_is_that_of_the_earliest_wait_or_lease(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)
    assert jobs.next_ready_at(conn, STAGE1) == NOW + LEASE_SECONDS

    jobs.defer(conn, lease, now=NOW, until=NOW + 60, reason="budget", error=None)
    assert jobs.next_ready_at(conn, STAGE1) == NOW + 60
    assert jobs.next_ready_at(conn, GLOBAL) is None


def test_what_is_done_waits_for_nothing(conn: sqlite3.Connection) -> None:
    complete(conn, a_lease(conn))

    assert jobs.next_ready_at(conn, STAGE1) is None
    assert jobs.last_success_at(conn, STAGE1) == int(NOW)


def test_ready_jobs_are_counted_without_those_that_run_or_wait(conn: sqlite3.Connection) -> None:
    for key in "abcd":
        enqueue(conn, key)
    claim(conn)
    waiting = claim(conn)
    assert waiting is not None
    jobs.defer(conn, waiting, now=NOW, until=NOW + 60, reason="budget", error=None)

    assert jobs.ready_count(conn, STAGE1, NOW) == 2
    assert jobs.ready_count(conn, STAGE1, NOW + LEASE_SECONDS) == 3


def test_a_success_is_remembered_while_new_input_waits(conn: sqlite3.Connection) -> None:
    complete_global(conn, a_lease(conn, GLOBAL))
    enqueue_global(conn, now=NOW + 5)

    assert jobs.last_success_at(conn, GLOBAL) == int(NOW)


def test_i5_what_waits_says_why_and_until_when(conn: sqlite3.Connection) -> None:
    jobs.defer(conn, a_lease(conn), now=NOW, until=NOW + 60, reason="rate_limited", error="429")
    enqueue_global(conn)
    enqueue(conn, "ready")

    assert [(job.job_key, job.wait_reason, job.ready_at) for job in jobs.waiting(conn, NOW)] == [
        (THREAD, "rate_limited", int(NOW) + 60),
        ("global", "debounce", int(NOW) + 120),
    ]


def test_running_jobs_are_listed_oldest_first(conn: sqlite3.Connection) -> None:
    enqueue(conn, "b", now=NOW)
    enqueue(conn, "a", now=NOW + 1)
    claim(conn, now=NOW + 5)
    claim(conn, now=NOW + 6)

    assert [job.job_key for job in jobs.running(conn)] == ["b", "a"]


def test_jobs_are_listed_by_what_needs_attention(conn: sqlite3.Connection) -> None:
    complete(conn, a_lease(conn))
    enqueue(conn, "dead", max_attempts=1)
    dead = claim(conn)
    assert dead is not None
    jobs.fail(conn, dead, now=NOW, retry_at=NOW, error="e", error_class="E")
    enqueue(conn, "running")
    claim(conn)
    enqueue(conn, "pending")

    assert [job.job_key for job in jobs.list_jobs(conn)] == ["dead", "running", "pending", THREAD]
    assert [job.job_key for job in jobs.list_jobs(conn, status=Status.ERROR)] == ["dead"]
    assert jobs.list_jobs(conn, kind=GLOBAL) == []
    assert len(jobs.list_jobs(conn, limit=2)) == 2
    assert jobs.counts(conn)[STAGE1] == dict.fromkeys(Status, 1)


def test_a_job_is_shown_with_its_runs_newest_first(conn: sqlite3.Connection) -> None:
    jobs.fail(conn, a_lease(conn), now=NOW, retry_at=NOW, error="no JSON", error_class="MalformedReply")
    complete(conn, a_lease(conn), output=an_output())

    detail = jobs.show(conn, STAGE1, THREAD)

    assert detail is not None
    assert detail.job == the_job(conn)
    assert [(run.epoch, run.outcome, run.error) for run in detail.attempts] == [
        (2, Outcome.DONE, None),
        (1, Outcome.FAILED, "no JSON"),
    ]


def test_a_job_that_is_not_there_is_not_shown(conn: sqlite3.Connection) -> None:
    assert jobs.show(conn, STAGE1, THREAD) is None


def test_a_kind_of_a_later_program_is_listed_but_not_counted(conn: sqlite3.Connection) -> None:
    enqueue(conn)
    conn.execute("UPDATE jobs SET kind = 'memory_later'")

    assert jobs.counts(conn)[STAGE1][Status.PENDING] == 0
    assert [job.kind for job in jobs.list_jobs(conn)] == ["memory_later"]
