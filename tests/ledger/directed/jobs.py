"""Of jobs: who moves them, and how their rows are found."""

import sqlite3
from collections.abc import Callable

from memoryd.ledger import jobs
from memoryd.ledger.attempts import NO_MODEL, WorkedBy
from memoryd.ledger.jobs import Lease
from memoryd.ledger.policy import ConsolidateTiming
from memoryd.ledger.states import MOVES, JobKind, Status, WaitReason
from tests.ledger.factories import LEASE_SECONDS, NOW, OTHER, RETRY_CAP, claim, enqueue, enqueue_global
from tests.ledger.moves import PARAMETERS, insert, outcomes, rows_touched
from tests.ledger.plans import plan_of

HOLDERS_STATEMENTS = (
    "record_crash",
    "renew_lease",
    "find_held",
    "complete_job",
    "complete_and_reopen",
    "defer_job",
    "fail_job",
    "release_job",
)


def sql_moves_a_job_exactly_as_the_table_of_moves_says(conn: sqlite3.Connection) -> None:
    for name, move in MOVES.items():
        if name == "insert_job":
            continue
        for status in Status:
            allowed = move.ends if status in move.starts else frozenset()
            assert outcomes(conn, name, status) == allowed, f"{name} of a job that is {status}"


def what_concerns_one_row_finds_it_by_its_key(conn: sqlite3.Connection) -> None:
    """Token and epoch alone would name the row too, after a walk through all rows of the kind."""
    for name in (
        "find_job",
        "find_standing",
        "record_crash",
        "renew_lease",
        "find_held",
        "request_cancel",
    ):
        assert "(kind=? AND job_key=?)" in _plan(conn, "jobs", name), name
    for name in (
        "find_standing",
        "complete_job",
        "complete_and_reopen",
        "cover_newer",
        "defer_job",
        "fail_job",
        "release_job",
        "reopen_job",
        "raise_watermark",
        "revive_job",
        "raise_waiting",
    ):
        assert "(kind=? AND job_key=?)" in _plan(conn, "jobs", name), name
    assert _plan(conn, "sessions", "record_covered").count("(kind=? AND job_key=?)") == 2


def a_holder_with_another_token_epoch_kind_or_key_moves_nothing(conn: sqlite3.Connection) -> None:
    """Two holders may have drawn the same token (their machine was restored from a snapshot)."""
    others: dict[str, object] = {"token": "x", "epoch": 9, "kind": JobKind.CONSOLIDATE, "job_key": OTHER}
    for name in HOLDERS_STATEMENTS:
        for column, value in others.items():
            conn.execute("DELETE FROM jobs")
            insert(conn, Status.RUNNING, {})
            before = conn.execute("SELECT * FROM jobs").fetchall()
            touched = rows_touched(conn, name, PARAMETERS | {column: value})
            after = conn.execute("SELECT * FROM jobs").fetchall()
            fenced = (column, name) == ("epoch", "record_crash") or (touched, after) == (0, before)
            assert fenced, f"{name} with another {column}"


def what_is_due_next_is_the_first_entry_of_the_partial_index(conn: sqlite3.Connection) -> None:
    plan = _plan(conn, "jobs", "find_next_ready")
    assert "USING INDEX jobs_ready (kind=?)" in plan
    assert "USING COVERING INDEX jobs_published (kind=? AND status=?)" in plan


def the_leases_of_a_kind_are_found_beside_any_number_of_other_jobs(conn: sqlite3.Connection) -> None:
    assert "USING INDEX jobs_published (kind=? AND status=?)" in _plan(conn, "jobs", "list_leased")


def what_waits_is_found_in_the_partial_index(conn: sqlite3.Connection) -> None:
    for name in ("expedite_jobs", "mend_waits"):
        assert "USING INDEX jobs_ready (kind=? AND ready_at>?)" in _plan(conn, "jobs", name), name


def kinds_are_looked_at_and_revived_apart(conn: sqlite3.Connection) -> None:
    enqueue(conn, max_attempts=1)
    _fail_once(conn)
    enqueue_global(conn)

    assert jobs.next_ready_at(conn, JobKind.STAGE1) is None
    assert jobs.retry_all_dead(conn, kind=JobKind.CONSOLIDATE, now=NOW, max_attempts=3) == 0
    assert jobs.retry_all_dead(conn, kind=JobKind.STAGE1, now=NOW, max_attempts=3) == 1


def what_died_of_another_fingerprint_is_tried_anew(conn: sqlite3.Connection) -> None:
    for thread, fingerprint in (("old", "v1"), ("same", "v2")):
        enqueue(conn, thread, max_attempts=1)
        lease = _claim_once(conn, WorkedBy("p", "m", fingerprint))
        jobs.fail(conn, lease, now=NOW, retry_at=NOW, error="it broke", error_class="E")
    enqueue(conn, "waits", max_attempts=1)
    enqueue_global(conn)

    assert jobs.reopen_outdated(conn, kind=JobKind.CONSOLIDATE, fingerprint="v2", now=NOW, max_attempts=3) == 0
    assert jobs.reopen_outdated(conn, kind=JobKind.STAGE1, fingerprint="v2", now=NOW, max_attempts=3) == 1
    statuses = {row.job_key: row.status for row in jobs.list_jobs(conn, kind=JobKind.STAGE1)}
    assert statuses == {"old": Status.PENDING, "same": Status.ERROR, "waits": Status.PENDING}


def a_failure_ends_a_job_only_when_its_last_attempt_is_gone(conn: sqlite3.Connection) -> None:
    enqueue(conn, max_attempts=2)
    statuses = [_fail_once(conn), _fail_once(conn)]

    assert statuses == [Status.PENDING, Status.ERROR]


def a_wait_after_crashes_is_no_wait_that_new_input_passes(conn: sqlite3.Connection) -> None:
    enqueue_global(conn, timing=ConsolidateTiming(0, 0))
    at = NOW
    for _ in range(3):
        assert claim(conn, JobKind.CONSOLIDATE, now=at) is not None
        at += LEASE_SECONDS + 2
    assert claim(conn, JobKind.CONSOLIDATE, now=at) is None
    waits = enqueue_global(conn, now=at, timing=ConsolidateTiming(0, 0))

    assert waits.wait_reason == WaitReason.CRASH
    assert waits.retry_at == waits.ready_at == int(at - LEASE_SECONDS - 2 + RETRY_CAP)


def what_is_forgotten_of_one_job_is_found_by_its_key(conn: sqlite3.Connection) -> None:
    for name in ("delete_idle_job", "delete_job", "clear_job_error", "clear_attempt_errors"):
        assert "(kind=? AND job_key=?)" in _plan(conn, "forgetting", name), name


def _plan(conn: sqlite3.Connection, subject: str, name: str) -> str:
    return "; ".join(plan_of(conn, subject, name))


def _fail_once(conn: sqlite3.Connection) -> Status:
    lease = _claim_once(conn)
    return jobs.fail(conn, lease, now=NOW, retry_at=NOW, error="it broke", error_class="E").status


def _claim_once(conn: sqlite3.Connection, worked_by: WorkedBy = NO_MODEL) -> Lease:
    lease = jobs.claim(
        conn,
        kind=JobKind.STAGE1,
        worker_id="w",
        now=NOW,
        lease_seconds=9,
        max_running=1,
        max_attempts=2,
        retry_cap=9,
        worked_by=worked_by,
    )
    assert lease is not None
    return lease


SCHEDULES: tuple[Callable[[sqlite3.Connection], None], ...] = (
    sql_moves_a_job_exactly_as_the_table_of_moves_says,
    what_concerns_one_row_finds_it_by_its_key,
    a_holder_with_another_token_epoch_kind_or_key_moves_nothing,
    what_is_due_next_is_the_first_entry_of_the_partial_index,
    the_leases_of_a_kind_are_found_beside_any_number_of_other_jobs,
    what_waits_is_found_in_the_partial_index,
    kinds_are_looked_at_and_revived_apart,
    what_died_of_another_fingerprint_is_tried_anew,
    a_failure_ends_a_job_only_when_its_last_attempt_is_gone,
    a_wait_after_crashes_is_no_wait_that_new_input_passes,
    what_is_forgotten_of_one_job_is_found_by_its_key,
)
