"""A job's life as its holder sees it."""

import sqlite3

import pytest

from memoryd.errors import LeaseLost
from memoryd.ledger import attempts, claims, jobs, outputs, publications, sessions
from memoryd.ledger.attempts import WorkedBy
from memoryd.ledger.claims import NewClaim
from memoryd.ledger.jobs import Completion, ConsolidateTiming, ConsolidationCompletion, Lease
from memoryd.ledger.outputs import Snapshot
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.sessions import Covered
from memoryd.ledger.states import JobKind, Outcome, Status
from tests.ledger.factories import (
    LEASE_SECONDS,
    NOW,
    OTHER,
    RETRY_CAP,
    THREAD,
    TIMING,
    a_lease,
    a_session,
    an_output,
    claim,
    complete,
    complete_global,
    enqueue,
    enqueue_global,
    the_job,
)

AFTER_LEASE = NOW + LEASE_SECONDS


def _last_attempt(conn: sqlite3.Connection, kind: JobKind = JobKind.STAGE1) -> attempts.AttemptRow:
    return attempts.of_job(conn, kind, the_job(conn, kind).job_key)[0]


# --- claim


def test_nothing_enqueued_means_nothing_to_claim(conn: sqlite3.Connection) -> None:
    assert claim(conn) is None


def test_a_claim_leases_the_job(conn: sqlite3.Connection) -> None:
    enqueue(conn)

    lease = claim(conn)

    assert lease is not None
    job = the_job(conn)
    assert (job.status, job.ownership_token, job.epoch) == (Status.RUNNING, lease.token, 1)
    assert (job.worker_id, job.started_at, job.lease_until) == ("host-1:a", int(NOW), int(AFTER_LEASE))
    assert (lease.input_watermark, lease.retry_remaining, lease.attempt_id) == (1000, 3, job.attempt_id)


def test_a_lease_of_a_fraction_ends_no_sooner_than_it_says(conn: sqlite3.Connection) -> None:
    enqueue(conn, now=NOW + 0.5)

    lease = claim(conn, now=NOW + 0.5)

    assert lease is not None
    assert lease.lease_until == int(NOW) + 181


def test_a_claim_opens_an_attempt(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)

    attempt = _last_attempt(conn)
    assert (attempt.id, attempt.epoch, attempt.worker_id) == (lease.attempt_id, 1, "host-1:a")
    assert (attempt.started_at, attempt.outcome, attempt.input_watermark) == (int(NOW), None, 1000)


def test_the_job_that_is_ready_longest_is_claimed_first(conn: sqlite3.Connection) -> None:
    enqueue(conn, "b", now=NOW)
    enqueue(conn, "a", now=NOW)
    enqueue(conn, "c", now=NOW - 1)

    order = [lease.job_key for lease in (claim(conn, max_running=9) for _ in range(3)) if lease]

    assert order == ["c", "a", "b"]


def test_only_the_named_job_is_claimed(conn: sqlite3.Connection) -> None:
    enqueue(conn, "a")
    enqueue(conn, "b")

    lease = claim(conn, only="b")

    assert lease is not None
    assert lease.job_key == "b"
    assert claim(conn, only="c") is None


def test_no_more_live_leases_than_allowed(conn: sqlite3.Connection) -> None:
    for key in "abc":
        enqueue(conn, key)
    assert claim(conn, max_running=2)
    assert claim(conn, max_running=2)

    assert claim(conn, max_running=2) is None


def test_leases_of_another_kind_do_not_count(conn: sqlite3.Connection) -> None:
    a_lease(conn, JobKind.CONSOLIDATE)
    enqueue(conn)

    assert claim(conn, max_running=1) is not None


def test_a_job_that_waits_is_not_claimed_before_its_time(conn: sqlite3.Connection) -> None:
    jobs.defer(conn, a_lease(conn), now=NOW, until=NOW + 60, reason="rate_limited", error=None)

    assert claim(conn, now=NOW + 59.9) is None
    assert claim(conn, now=NOW + 60) is not None


def test_a_held_job_is_not_claimed_twice(conn: sqlite3.Connection) -> None:
    a_lease(conn)

    assert claim(conn, now=AFTER_LEASE - 0.1) is None


def test_settings_lowered_meanwhile_take_hold_at_the_claim(conn: sqlite3.Connection) -> None:
    enqueue(conn)

    lease = claim(conn, max_attempts=1)

    assert lease is not None
    assert lease.retry_remaining == 1


# --- expiry and crashes


def test_an_expired_lease_is_taken_over_with_a_larger_epoch_and_another_token(conn: sqlite3.Connection) -> None:
    first = a_lease(conn)

    second = claim(conn, now=AFTER_LEASE)

    assert second is not None
    assert (second.job_key, second.epoch) == (first.job_key, first.epoch + 1)
    assert second.token != first.token


def test_a_lease_too_far_in_the_future_counts_as_expired(conn: sqlite3.Connection) -> None:
    a_lease(conn)

    assert claim(conn, now=NOW - 1) is None  # within the rounding of whole seconds
    assert claim(conn, now=NOW - 3600) is not None


def test_a_take_over_is_recorded_as_a_crash(conn: sqlite3.Connection) -> None:
    a_lease(conn)

    second = claim(conn, now=AFTER_LEASE + 5)

    runs = attempts.of_job(conn, JobKind.STAGE1, THREAD)
    assert [run.outcome for run in runs] == [None, Outcome.CRASHED]
    assert runs[1].ended_at == int(AFTER_LEASE) + 5
    assert second is not None
    assert (second.crash_count, second.retry_remaining) == (1, 3)


def test_an_expired_lease_does_not_count_as_live(conn: sqlite3.Connection) -> None:
    a_lease(conn)
    enqueue(conn, OTHER, now=NOW - 10)

    lease = claim(conn, now=AFTER_LEASE, max_running=1)

    assert lease is not None
    assert lease.job_key == OTHER


def test_a_run_whose_task_lives_here_is_never_taken(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)

    assert claim(conn, now=NOW + 1_000_000, held=(lease.token,)) is None
    assert jobs.holds(conn, lease)


def _crash(conn: sqlite3.Connection, *, now: float) -> Lease:
    lease = claim(conn, now=now)
    assert lease is not None
    return lease


def test_from_the_third_crash_on_tries_are_the_cap_apart_and_the_job_says_so(conn: sqlite3.Connection) -> None:
    enqueue(conn)
    for crash in range(3):
        _crash(conn, now=NOW + crash * LEASE_SECONDS)

    assert claim(conn, now=NOW + 3 * LEASE_SECONDS) is None
    job = the_job(conn)
    third_start = NOW + 2 * LEASE_SECONDS
    assert (job.status, job.crash_count, job.wait_reason) == (Status.PENDING, 3, "crash")
    assert job.ready_at == int(third_start + RETRY_CAP)


def test_crashes_alone_never_end_a_job(conn: sqlite3.Connection) -> None:
    enqueue(conn)
    now = NOW
    for _ in range(20):
        lease = claim(conn, now=now)
        now += RETRY_CAP + LEASE_SECONDS
        assert lease is not None
        assert lease.retry_remaining == 3

    assert the_job(conn).crash_count == 19


def test_new_input_forgets_the_crashes_at_the_old_watermark(conn: sqlite3.Connection) -> None:
    enqueue(conn)
    for crash in range(3):
        _crash(conn, now=NOW + crash * LEASE_SECONDS)
    now = NOW + 3 * LEASE_SECONDS
    assert claim(conn, now=now) is None

    enqueue(conn, updated_at=2000, now=now)

    lease = claim(conn, now=now)
    assert lease is not None
    assert lease.crash_count == 0


# --- heartbeat


def test_a_heartbeat_renews_the_lease(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)

    beat = jobs.heartbeat(conn, lease, now=NOW + 60, lease_seconds=LEASE_SECONDS)

    assert (beat.lease.lease_until, beat.cancel_requested) == (int(NOW) + 240, False)
    assert claim(conn, now=AFTER_LEASE) is None
    assert beat.lease.token == lease.token


def test_a_heartbeat_hears_of_a_cancellation(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)

    assert jobs.request_cancel(conn, kind=JobKind.STAGE1, job_key=THREAD)
    assert jobs.heartbeat(conn, lease, now=NOW, lease_seconds=LEASE_SECONDS).cancel_requested


def test_a_cancellation_concerns_only_the_run_it_was_asked_of(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)
    jobs.request_cancel(conn, kind=JobKind.STAGE1, job_key=THREAD)
    jobs.release(conn, lease, now=NOW)

    assert not jobs.request_cancel(conn, kind=JobKind.STAGE1, job_key=THREAD)
    again = a_lease(conn)
    assert not jobs.heartbeat(conn, again, now=NOW, lease_seconds=LEASE_SECONDS).cancel_requested


def test_a_late_heartbeat_saves_a_lease_that_nobody_took(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)

    jobs.heartbeat(conn, lease, now=AFTER_LEASE + 100, lease_seconds=LEASE_SECONDS)

    assert claim(conn, now=AFTER_LEASE + 100) is None


# --- I2: a holder that lost its lease changes nothing


def _everything(conn: sqlite3.Connection) -> list[str]:
    return list(conn.iterdump())


@pytest.mark.parametrize(
    "ending",
    [
        lambda conn, lease: jobs.heartbeat(conn, lease, now=NOW, lease_seconds=LEASE_SECONDS),
        lambda conn, lease: complete(conn, lease, output=an_output(), covered=Covered(1000, 50)),
        complete,
        lambda conn, lease: jobs.fail(conn, lease, now=NOW, retry_at=NOW, error="e", error_class="E"),
        lambda conn, lease: jobs.defer(conn, lease, now=NOW, until=NOW, reason="rate_limited", error=None),
        lambda conn, lease: jobs.release(conn, lease, now=NOW),
    ],
    ids=["heartbeat", "complete", "nothing", "fail", "defer", "release"],
)
def test_i2_a_holder_that_lost_its_lease_changes_no_row(conn: sqlite3.Connection, ending: object) -> None:
    lost = a_lease(conn)
    assert claim(conn, now=AFTER_LEASE)
    before = _everything(conn)

    with pytest.raises(LeaseLost, match=f"memory_stage1 {THREAD}: the lease is no longer ours"):
        ending(conn, lost)  # type: ignore[operator]  # one of the lambdas above

    assert _everything(conn) == before
    assert not jobs.holds(conn, lost)


def test_i2_a_consolidation_that_lost_its_lease_decides_nothing(conn: sqlite3.Connection) -> None:
    lost = a_lease(conn, JobKind.CONSOLIDATE)
    assert claim(conn, JobKind.CONSOLIDATE, now=AFTER_LEASE)
    before = _everything(conn)

    with pytest.raises(LeaseLost):
        complete_global(conn, lost)

    assert _everything(conn) == before


def test_i2_a_job_that_was_deleted_is_lost_too(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)
    conn.execute("DELETE FROM jobs")

    with pytest.raises(LeaseLost):
        complete(conn, lease, output=an_output())
    assert outputs.get(conn, THREAD) is None


# --- the end of stage 1


def test_completing_stores_the_output_covers_the_session_and_asks_for_consolidation(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)

    completion = complete(conn, lease, now=NOW + 7.5, output=an_output(stem="a-stem"), covered=Covered(1000, 50))

    assert completion == Completion(Status.DONE, stored=True, removed=False)
    assert completion.dirtied
    job, session, output = the_job(conn), sessions.get_exact(conn, THREAD), outputs.get(conn, THREAD)
    assert (job.status, job.last_success_watermark, job.finished_at) == (Status.DONE, 1000, int(NOW) + 7)
    assert (job.ownership_token, job.ready_at, job.last_error) == (None, None, None)
    assert session is not None
    assert (session.covered_updated_at, session.covered_bytes, session.stem) == (1000, 50, "a-stem")
    assert output is not None
    assert (output.raw_memory, output.updated_at, output.generated_at) == ("raw memory", 1000, int(NOW) + 7)
    assert the_job(conn, JobKind.CONSOLIDATE).enqueue_reason == "session"
    assert (_last_attempt(conn).outcome, _last_attempt(conn).duration_ms) == (Outcome.DONE, 7500)


def test_nothing_to_remember_deletes_an_earlier_memory_and_asks_for_consolidation(conn: sqlite3.Connection) -> None:
    complete(conn, a_lease(conn), output=an_output(), covered=Covered(1000, 50))
    complete_global(conn, a_lease(conn, JobKind.CONSOLIDATE, now=NOW + 5000), now=NOW + 5000)
    enqueue(conn, updated_at=2000, now=NOW + 6000)

    completion = complete(conn, a_lease(conn, now=NOW + 6000), now=NOW + 6000, covered=Covered(2000, 50))

    assert completion == Completion(Status.DONE, stored=False, removed=True)
    assert outputs.get(conn, THREAD) is None
    assert the_job(conn, JobKind.CONSOLIDATE).status is Status.PENDING
    assert _last_attempt(conn).outcome is Outcome.NOTHING


def test_nothing_to_remember_and_nothing_remembered_asks_for_nothing(conn: sqlite3.Connection) -> None:
    completion = complete(conn, a_lease(conn), covered=Covered(1000, 50))

    assert completion == Completion(Status.DONE, stored=False, removed=False)
    assert not completion.dirtied
    assert jobs.find(conn, JobKind.CONSOLIDATE, "global") is None


def test_an_output_of_an_earlier_state_does_not_replace_a_later_one(conn: sqlite3.Connection) -> None:
    outputs.store(conn, an_output(source_updated_at=5000, raw_memory="later"), now=NOW)

    completion = complete(conn, a_lease(conn), output=an_output(raw_memory="earlier"))

    stored = outputs.get(conn, THREAD)
    assert completion == Completion(Status.DONE, stored=False, removed=False)
    assert stored is not None
    assert stored.raw_memory == "later"


def test_two_states_of_one_second_are_two_snapshots(conn: sqlite3.Connection) -> None:
    complete(conn, a_lease(conn), output=an_output(), covered=Covered(1000, 50))
    enqueue(conn, updated_at=1000, record_bytes=60)

    complete(conn, a_lease(conn), output=an_output(raw_memory="more"), covered=Covered(1000, 60))

    stored = outputs.get(conn, THREAD)
    assert stored is not None
    assert (stored.raw_memory, stored.source_updated_at) == ("more", 1001)


def test_what_was_enqueued_while_it_ran_makes_it_pending_again(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)
    enqueue(conn, updated_at=2000, record_bytes=80)

    completion = complete(conn, lease, now=NOW + 9, output=an_output(), covered=Covered(1000, 50))

    job = the_job(conn)
    assert completion.status is job.status is Status.PENDING
    assert (job.input_watermark, job.last_success_watermark, job.ready_at) == (2000, 1000, int(NOW) + 9)
    again = claim(conn, now=NOW + 9)
    assert again is not None
    assert again.input_watermark == 2000


def test_what_was_enqueued_while_it_ran_but_was_read_already_costs_no_second_run(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)
    enqueue(conn, updated_at=2000, record_bytes=80)

    completion = complete(conn, lease, output=an_output(source_updated_at=2000), covered=Covered(2000, 80))

    job = the_job(conn)
    assert completion.status is Status.DONE
    assert job.last_success_watermark == job.input_watermark == 2000


def test_a_success_clears_the_traces_of_failures(conn: sqlite3.Connection) -> None:
    jobs.fail(conn, a_lease(conn), now=NOW, retry_at=NOW, error="it broke", error_class="MalformedReply")

    complete(conn, a_lease(conn), output=an_output())

    job = the_job(conn)
    assert (job.last_error, job.retry_at, job.crash_count, job.last_success_at) == (None, None, 0, int(NOW))


# --- the end of a consolidation


def _consolidate(conn: sqlite3.Connection, lease: Lease, **changes: object) -> ConsolidationCompletion:
    arguments: dict[str, object] = {
        "now": NOW,
        "consumed": (),
        "publication": NewPublication("c0ffee", "ba5e"),
        "claims": (),
        "min_interval": TIMING.min_interval,
    }
    return jobs.complete_consolidation(conn, lease, **(arguments | changes))  # type: ignore[arg-type]  # by name


def test_the_decision_marks_exactly_what_was_consumed(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b", "c"):
        outputs.store(conn, an_output(thread, source_updated_at=10), now=NOW)
    outputs.mark_consumed(conn, [Snapshot("c", 10)])
    outputs.store(conn, an_output("b", source_updated_at=11), now=NOW)

    _consolidate(conn, a_lease(conn, JobKind.CONSOLIDATE), consumed=[Snapshot("a", 10), Snapshot("b", 10)])

    assert [(row.thread_id, row.source_updated_at) for row in outputs.previously_selected(conn)] == [("a", 10)]


def test_the_decision_waits_to_be_put_in_place(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn, JobKind.CONSOLIDATE)

    completion = _consolidate(conn, lease)

    decided = publications.pending(conn)
    assert decided is not None
    assert completion == ConsolidationCompletion(Status.DONE, decided.id)
    assert (decided.commit, decided.base, decided.attempt_id) == ("c0ffee", "ba5e", lease.attempt_id)
    assert _last_attempt(conn, JobKind.CONSOLIDATE).outcome is Outcome.DONE


def test_the_decision_replaces_the_claims(conn: sqlite3.Connection) -> None:
    _consolidate(
        conn, a_lease(conn, JobKind.CONSOLIDATE), claims=[NewClaim("use uv", "prefs", "global", "stated", (THREAD,))]
    )

    assert [(claim.text, claim.thread_ids) for claim in claims.valid(conn)] == [("use uv", (THREAD,))]


def test_a_run_that_changed_nothing_leaves_claims_and_publications_alone(conn: sqlite3.Connection) -> None:
    claims.replace_claims(conn, [NewClaim("use uv", "prefs", "global", "stated", (THREAD,))], now=NOW)

    completion = _consolidate(conn, a_lease(conn, JobKind.CONSOLIDATE), publication=None)

    assert completion == ConsolidationCompletion(Status.DONE, None)
    assert publications.latest(conn) is None
    assert len(claims.valid(conn)) == 1
    assert _last_attempt(conn, JobKind.CONSOLIDATE).outcome is Outcome.NOTHING


def test_a_second_decision_is_refused_while_one_is_not_in_place(conn: sqlite3.Connection) -> None:
    _consolidate(conn, a_lease(conn, JobKind.CONSOLIDATE))
    enqueue_global(conn, now=NOW + 9000)
    lease = claim(conn, JobKind.CONSOLIDATE, now=NOW + 20_000)
    assert lease is not None

    with pytest.raises(sqlite3.IntegrityError):
        _consolidate(conn, lease, now=NOW + 20_000)


def test_an_enqueue_during_a_consolidation_is_not_lost(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn, JobKind.CONSOLIDATE)
    enqueue_global(conn)

    completion = _consolidate(conn, lease, now=NOW + 30)

    job = the_job(conn, JobKind.CONSOLIDATE)
    assert completion.status is job.status is Status.PENDING
    assert (job.wait_reason, job.ready_at) == ("min_interval", int(NOW) + 30 + 1800)


def test_an_enqueue_during_a_consolidation_runs_at_once_without_an_interval(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn, JobKind.CONSOLIDATE)
    enqueue_global(conn)

    _consolidate(conn, lease, now=NOW + 30.5, min_interval=0.0)

    job = the_job(conn, JobKind.CONSOLIDATE)
    assert (job.status, job.wait_reason, job.ready_at) == (Status.PENDING, None, int(NOW) + 30)


# --- defer, fail, release


def test_a_deferral_takes_no_attempt_and_keeps_its_reason(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)

    job = jobs.defer(conn, lease, now=NOW + 2, until=NOW + 60.2, reason="rate_limited", error="429")

    assert (job.status, job.retry_remaining, job.wait_reason) == (Status.PENDING, 3, "rate_limited")
    assert job.ready_at == job.retry_at == int(NOW) + 61
    assert job.last_error == "429"
    attempt = _last_attempt(conn)
    assert (attempt.outcome, attempt.error_class, attempt.duration_ms) == (Outcome.DEFERRED, "rate_limited", 2000)


def test_a_deferral_into_the_past_is_claimable_now(conn: sqlite3.Connection) -> None:
    job = jobs.defer(conn, a_lease(conn), now=NOW, until=0.0, reason="cancelled", error=None)

    assert job.ready_at == int(NOW)


def test_a_failure_takes_an_attempt_and_waits(conn: sqlite3.Connection) -> None:
    job = jobs.fail(conn, a_lease(conn), now=NOW + 1, retry_at=NOW + 90, error="no JSON", error_class="MalformedReply")

    assert (job.status, job.retry_remaining, job.wait_reason) == (Status.PENDING, 2, "backoff")
    assert job.ready_at == job.retry_at == int(NOW) + 90
    assert (job.last_error, job.last_success_watermark) == ("no JSON", None)
    attempt = _last_attempt(conn)
    assert (attempt.outcome, attempt.error_class, attempt.error) == (Outcome.FAILED, "MalformedReply", "no JSON")


def _kill(conn: sqlite3.Connection) -> jobs.JobRow:
    enqueue(conn, max_attempts=1)
    lease = claim(conn)
    assert lease is not None
    return jobs.fail(conn, lease, now=NOW, retry_at=NOW + 90, error="no JSON", error_class="MalformedReply")


def test_a_job_without_attempts_left_is_dead_and_says_why(conn: sqlite3.Connection) -> None:
    job = _kill(conn)

    assert (job.status, job.retry_remaining, job.ready_at, job.retry_at) == (Status.ERROR, 0, None, None)
    assert job.last_error == "no JSON"
    assert claim(conn, now=NOW + 1_000_000) is None


def test_a_failure_of_old_input_takes_no_attempt_from_new_input(conn: sqlite3.Connection) -> None:
    enqueue(conn, max_attempts=1)
    lease = claim(conn)
    assert lease is not None
    enqueue(conn, updated_at=2000, max_attempts=1)

    job = jobs.fail(conn, lease, now=NOW, retry_at=NOW + 90, error="no JSON", error_class="MalformedReply")

    assert (job.status, job.retry_remaining, job.wait_reason) == (Status.PENDING, 1, "backoff")


def test_a_failure_keeps_an_earlier_success(conn: sqlite3.Connection) -> None:
    complete(conn, a_lease(conn), output=an_output(), covered=Covered(1000, 50))
    enqueue(conn, updated_at=2000)

    jobs.fail(conn, a_lease(conn), now=NOW, retry_at=NOW, error="e", error_class="E")

    assert the_job(conn).last_success_watermark == 1000
    assert outputs.get(conn, THREAD) is not None


def test_a_released_job_is_claimable_at_once_with_all_its_attempts(conn: sqlite3.Connection) -> None:
    job = jobs.release(conn, a_lease(conn), now=NOW + 0.7)

    assert (job.status, job.retry_remaining, job.wait_reason) == (Status.PENDING, 3, None)
    assert _last_attempt(conn).outcome is Outcome.RELEASED
    assert claim(conn, now=NOW + 0.7) is not None


# --- what a run is made with


def test_a_claim_records_the_model_and_the_fingerprint_of_its_run(conn: sqlite3.Connection) -> None:
    enqueue(conn)

    assert claim(conn, worked_by=WorkedBy("openai", "gpt", "0.1/gpt/abc"))

    attempt = _last_attempt(conn)
    assert (attempt.provider, attempt.model, attempt.fingerprint) == ("openai", "gpt", "0.1/gpt/abc")
    assert the_job(conn).fingerprint == "0.1/gpt/abc"


def test_the_first_outcome_of_a_run_stands(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)
    jobs.release(conn, lease, now=NOW)

    attempts.end(conn, lease.attempt_id, attempts.Ending(Outcome.CRASHED), now=NOW + 5)

    assert _last_attempt(conn).outcome is Outcome.RELEASED


def test_consolidation_is_asked_for_with_the_settings_given(conn: sqlite3.Connection) -> None:
    a_session(conn)
    lease = a_lease(conn)

    jobs.complete(
        conn,
        lease,
        now=NOW,
        output=an_output(),
        covered=None,
        consolidate=ConsolidateTiming(0, 0),
        max_attempts=7,
    )

    job = the_job(conn, JobKind.CONSOLIDATE)
    assert (job.retry_remaining, job.ready_at, job.wait_reason) == (7, int(NOW), None)
