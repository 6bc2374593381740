"""New input becomes work, and the same input never twice."""

import sqlite3

import pytest

from memoryd.errors import StorageError
from memoryd.ledger import jobs, outputs, sessions
from memoryd.ledger.jobs import ConsolidateTiming
from memoryd.ledger.sessions import Covered
from memoryd.ledger.states import GLOBAL_KEY, JobKind, Status
from tests.ledger.factories import (
    LEASE_SECONDS,
    MAX_ATTEMPTS,
    NOW,
    OTHER,
    RETRY_CAP,
    THREAD,
    TIMING,
    a_lease,
    an_output,
    claim,
    complete,
    complete_global,
    enqueue,
    enqueue_global,
    the_job,
)

GLOBAL = JobKind.CONSOLIDATE


def _retry(conn: sqlite3.Connection, job_key: str = THREAD, *, now: float = NOW) -> bool:
    return jobs.retry(conn, kind=JobKind.STAGE1, job_key=job_key, now=now, max_attempts=MAX_ATTEMPTS)


def _kill(conn: sqlite3.Connection, thread_id: str = THREAD) -> None:
    enqueue(conn, thread_id, max_attempts=1)
    lease = claim(conn, only=thread_id)
    assert lease is not None
    jobs.fail(conn, lease, now=NOW, retry_at=NOW + 60, error="it broke", error_class="MalformedReply")


# --- stage 1


def test_a_new_session_becomes_a_job_that_is_ready(conn: sqlite3.Connection) -> None:
    assert enqueue(conn, now=NOW + 0.6)

    job = the_job(conn)
    assert (job.status, job.input_watermark, job.retry_remaining) == (Status.PENDING, 1000, 3)
    assert (job.ready_at, job.wait_reason, job.last_success_watermark) == (int(NOW), None, None)


def test_a_session_that_nobody_has_seen_cannot_be_enqueued(conn: sqlite3.Connection) -> None:
    with pytest.raises(StorageError, match="no such session"):
        jobs.enqueue_stage1(conn, thread_id="?", updated_at=1, record_bytes=1, now=NOW, max_attempts=3)


def test_i4_the_same_state_again_changes_nothing_whatever_the_status(conn: sqlite3.Connection) -> None:
    enqueue(conn)
    for end in ("pending", "running", "waiting", "done"):
        if end == "running":
            claim(conn)
        elif end == "waiting":
            jobs.fail(conn, _held(conn), now=NOW, retry_at=NOW + 60, error="e", error_class="E")
        elif end == "done":
            lease = claim(conn, now=NOW + 60)
            assert lease is not None
            complete(conn, lease, output=an_output(), covered=Covered(1000, 50))
        before = list(conn.iterdump())

        assert not enqueue(conn, now=NOW + 99)
        assert list(conn.iterdump()) == before


def _held(conn: sqlite3.Connection) -> jobs.Lease:
    job = the_job(conn)
    assert job.ownership_token is not None
    assert job.attempt_id is not None
    return jobs.Lease(
        kind=JobKind.STAGE1,
        job_key=THREAD,
        token=job.ownership_token,
        epoch=job.epoch,
        worker_id="host-1:a",
        input_watermark=job.input_watermark,
        lease_until=0,
        lease_seconds=LEASE_SECONDS,
        retry_remaining=3,
        attempt_id=job.attempt_id,
        claimed_at=NOW,
    )


def test_a_dead_job_stays_dead_at_the_same_state(conn: sqlite3.Connection) -> None:
    _kill(conn)

    assert not enqueue(conn)
    assert the_job(conn).status is Status.ERROR


def test_newer_records_fill_attempts_up_and_pass_a_retry(conn: sqlite3.Connection) -> None:
    jobs.fail(conn, a_lease(conn), now=NOW, retry_at=NOW + 9000, error="e", error_class="E")

    assert enqueue(conn, updated_at=2000, now=NOW + 5)

    job = the_job(conn)
    assert (job.input_watermark, job.retry_remaining, job.retry_at, job.wait_reason) == (2000, 3, None, None)
    assert claim(conn, now=NOW + 5) is not None


def test_newer_records_revive_a_dead_job(conn: sqlite3.Connection) -> None:
    _kill(conn)

    assert enqueue(conn, updated_at=2000)
    assert the_job(conn).status is Status.PENDING


def test_an_older_state_is_new_input_too(conn: sqlite3.Connection) -> None:
    complete(conn, a_lease(conn), output=an_output(), covered=Covered(1000, 50))

    assert enqueue(conn, updated_at=400, record_bytes=20)

    job = the_job(conn)
    assert (job.status, job.input_watermark, job.last_success_watermark) == (Status.PENDING, 1001, 1000)
    complete(conn, a_lease(conn), output=an_output(source_updated_at=400, raw_memory="less"))
    stored = outputs.get(conn, THREAD)
    assert stored is not None
    assert stored.raw_memory == "less"


def test_more_bytes_in_the_same_second_are_new_input(conn: sqlite3.Connection) -> None:
    enqueue(conn)

    assert enqueue(conn, record_bytes=51)
    assert the_job(conn).input_watermark == 1001


def test_an_enqueue_while_it_runs_leaves_the_lease_alone(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)

    assert enqueue(conn, updated_at=2000)

    job = the_job(conn)
    assert (job.status, job.input_watermark, job.ownership_token) == (Status.RUNNING, 2000, lease.token)


def test_a_forgotten_job_can_be_enqueued_anew_at_the_same_state(conn: sqlite3.Connection) -> None:
    enqueue(conn)
    conn.execute("DELETE FROM jobs")

    assert enqueue(conn)
    assert the_job(conn).status is Status.PENDING


# --- consolidation


def test_consolidation_waits_for_quiet_and_says_so(conn: sqlite3.Connection) -> None:
    job = enqueue_global(conn)

    assert (job.status, job.ready_at, job.wait_reason) == (Status.PENDING, int(NOW) + 120, "debounce")
    assert (job.enqueue_reason, job.input_watermark) == ("session", int(NOW))


def test_more_input_postpones_consolidation_but_not_for_ever(conn: sqlite3.Connection) -> None:
    ready = [enqueue_global(conn, now=NOW + seconds).ready_at for seconds in (0, 100, 200, 300, 400, 500, 519)]

    assert [(at or 0) - int(NOW) for at in ready] == [120, 220, 320, 420, 520, 600, 600]


def test_what_is_ready_is_not_postponed(conn: sqlite3.Connection) -> None:
    enqueue_global(conn)

    job = enqueue_global(conn, now=NOW + 121)

    assert job.ready_at == int(NOW) + 120


def test_consolidation_keeps_its_distance_from_the_last_success(conn: sqlite3.Connection) -> None:
    complete_global(conn, a_lease(conn, GLOBAL))

    job = enqueue_global(conn, now=NOW + 10)

    assert (job.ready_at, job.wait_reason) == (int(NOW) + 1800, "min_interval")


def test_every_enqueue_raises_the_watermark(conn: sqlite3.Connection) -> None:
    enqueue_global(conn, watermark=10)
    marks = [enqueue_global(conn, watermark=mark).input_watermark for mark in (50, 50, 7, None)]

    assert marks == [50, 51, 52, 53]


def test_an_enqueue_does_not_clear_the_retry_of_a_failed_run(conn: sqlite3.Connection) -> None:
    jobs.fail(conn, a_lease(conn, GLOBAL), now=NOW, retry_at=NOW + 9000, error="rejected", error_class="ResultRejected")

    job = enqueue_global(conn, now=NOW + 10)

    assert (job.retry_at, job.ready_at, job.wait_reason) == (int(NOW) + 9000, int(NOW) + 9000, "backoff")
    assert job.retry_remaining == 3


def test_a_deferral_is_not_cleared_either(conn: sqlite3.Connection) -> None:
    jobs.defer(conn, a_lease(conn, GLOBAL), now=NOW, until=NOW + 9000, reason="budget", error=None)

    assert enqueue_global(conn, now=NOW + 10).wait_reason == "budget"


def test_new_input_revives_a_dead_consolidation(conn: sqlite3.Connection) -> None:
    for attempt in range(3):
        now = NOW + attempt
        jobs.fail(conn, a_lease(conn, GLOBAL, now=now), now=now, retry_at=now, error="no", error_class="ResultRejected")
    assert the_job(conn, GLOBAL).status is Status.ERROR

    job = enqueue_global(conn, now=NOW + 10)

    assert (job.status, job.retry_remaining, job.wait_reason) == (Status.PENDING, 3, "debounce")


def test_an_enqueue_while_it_runs_is_remembered_with_its_instant(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn, GLOBAL)
    enqueue_global(conn, now=NOW + 5)
    enqueue_global(conn, now=NOW + 9)

    job = the_job(conn, GLOBAL)
    assert (job.status, job.enqueued_at, job.epoch) == (Status.RUNNING, int(NOW) + 5, lease.epoch)


def test_without_waits_consolidation_is_ready_at_once(conn: sqlite3.Connection) -> None:
    job = enqueue_global(conn, now=NOW + 0.4, timing=ConsolidateTiming(0, 0))

    assert (job.ready_at, job.wait_reason) == (int(NOW), None)


# --- expedite, retry


def test_expediting_passes_only_the_named_reasons(conn: sqlite3.Connection) -> None:
    enqueue_global(conn)

    assert jobs.expedite(conn, kind=GLOBAL, reasons=["min_interval"], now=NOW) == 0
    assert claim(conn, GLOBAL) is None
    assert jobs.expedite(conn, kind=GLOBAL, reasons={"debounce", "min_interval"}, now=NOW) == 1
    assert claim(conn, GLOBAL) is not None


def test_expediting_can_pass_a_deferral(conn: sqlite3.Connection) -> None:
    jobs.defer(conn, a_lease(conn), now=NOW, until=NOW + 9000, reason="unreachable", error=None)

    assert jobs.expedite(conn, kind=JobKind.STAGE1, reasons=["unreachable"], now=NOW) == 1
    assert the_job(conn).retry_at is None


def test_a_dead_job_can_be_revived(conn: sqlite3.Connection) -> None:
    _kill(conn)

    assert _retry(conn)

    job = the_job(conn)
    assert (job.status, job.retry_remaining, job.last_error) == (Status.PENDING, 3, "it broke")
    assert claim(conn) is not None


def test_a_waiting_job_can_be_tried_now(conn: sqlite3.Connection) -> None:
    enqueue(conn)
    for crash in range(3):
        claim(conn, now=NOW + crash * LEASE_SECONDS)
    now = NOW + 3 * LEASE_SECONDS
    assert claim(conn, now=now) is None

    assert _retry(conn, now=now)

    lease = claim(conn, now=now)
    assert lease is not None
    assert lease.crash_count == 0


@pytest.mark.parametrize("status", ["absent", "running", "done"])
def test_there_is_nothing_to_retry_about_other_jobs(conn: sqlite3.Connection, status: str) -> None:
    if status != "absent":
        lease = a_lease(conn)
        if status == "done":
            complete(conn, lease, output=an_output())

    assert not _retry(conn)


def test_all_dead_jobs_can_be_revived_at_once(conn: sqlite3.Connection) -> None:
    _kill(conn)
    _kill(conn, OTHER)
    enqueue(conn, "alive")
    jobs.defer(conn, a_lease_of(conn, "alive"), now=NOW, until=NOW + 60, reason="budget", error=None)

    assert jobs.retry_all_dead(conn, kind=JobKind.STAGE1, now=NOW, max_attempts=3) == 2
    assert jobs.counts(conn)[JobKind.STAGE1] == {
        Status.PENDING: 3,
        Status.RUNNING: 0,
        Status.DONE: 0,
        Status.ERROR: 0,
    }
    assert [job.job_key for job in jobs.waiting(conn, NOW)] == ["alive"]


def a_lease_of(conn: sqlite3.Connection, job_key: str) -> jobs.Lease:
    lease = claim(conn, only=job_key)
    assert lease is not None
    return lease


def test_the_global_job_has_one_key(conn: sqlite3.Connection) -> None:
    assert enqueue_global(conn).job_key == GLOBAL_KEY


def test_a_session_enqueued_is_known_as_enqueued(conn: sqlite3.Connection) -> None:
    enqueue(conn)

    assert sessions.is_queued(conn, THREAD, Covered(1000, 50))
    assert not sessions.is_queued(conn, THREAD, Covered(1000, 51))
    assert not sessions.is_queued(conn, OTHER, Covered(1000, 50))


def test_a_crash_wait_is_not_cleared_by_an_enqueue_of_consolidation(conn: sqlite3.Connection) -> None:
    enqueue_global(conn, timing=ConsolidateTiming(0, 0))
    for crash in range(3):
        assert claim(conn, GLOBAL, now=NOW + crash * LEASE_SECONDS)
    now = NOW + 3 * LEASE_SECONDS
    assert claim(conn, GLOBAL, now=now) is None

    job = enqueue_global(conn, now=now, timing=TIMING)

    assert (job.wait_reason, job.ready_at) == ("crash", int(NOW + 2 * LEASE_SECONDS + RETRY_CAP))


# --- a clock that was ahead


def _mend(conn: sqlite3.Connection, *, now: float, kind: JobKind = JobKind.STAGE1) -> int:
    return jobs.mend_waits(conn, kind=kind, now=now)


def test_i5_what_was_enqueued_by_a_clock_ahead_can_run_once_it_is_set_back(conn: sqlite3.Connection) -> None:
    enqueue(conn)
    back = NOW - 5 * 365 * 86_400
    assert claim(conn, now=back) is None

    assert _mend(conn, now=back) == 1
    assert claim(conn, now=back) is not None


def test_a_wait_set_by_a_clock_ahead_is_dropped(conn: sqlite3.Connection) -> None:
    jobs.defer(conn, a_lease(conn, GLOBAL), now=NOW, until=NOW + 60, reason="budget", error=None)

    assert _mend(conn, now=NOW - 86_400) == 0
    assert _mend(conn, now=NOW - 86_400, kind=GLOBAL) == 1
    assert the_job(conn, GLOBAL).wait_reason is None


def test_a_wait_that_began_in_the_past_or_just_now_stands(conn: sqlite3.Connection) -> None:
    jobs.defer(conn, a_lease(conn), now=NOW, until=NOW + 7 * 86_400, reason="rate_limited", error=None)

    assert _mend(conn, now=NOW + 60) == 0
    assert _mend(conn, now=NOW - 300) == 0
    assert the_job(conn).wait_reason == "rate_limited"
