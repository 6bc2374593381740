import sqlite3

import pytest

from memoryd.ledger import discovery, jobs, outputs, sessions
from memoryd.ledger.sessions import SessionRow, UserMode
from memoryd.ledger.states import GLOBAL_KEY, JobKind
from tests.ledger.factories import MAX_ATTEMPTS, NOW, OTHER, THREAD, TIMING, a_lease, a_session, a_sighting, an_output


def nobody(_row: SessionRow) -> str | None:
    return None


def only_shops(row: SessionRow) -> str | None:
    return None if row.cwd == "/home/dev/shop" else "excluded_cwd"


def record(conn: sqlite3.Connection, *threads: str, judge: discovery.Judge = nobody, **changes: object) -> None:
    looks = [a_sighting(thread, **changes) for thread in threads]  # type: ignore[arg-type]  # fields by name
    discovery.record(conn, looks, judge, now=NOW, timing=TIMING, max_attempts=MAX_ATTEMPTS)


def judge_all(conn: sqlite3.Connection, judge: discovery.Judge) -> int:
    return discovery.reconsider_all(conn, judge, now=NOW, timing=TIMING, max_attempts=MAX_ATTEMPTS)


def test_looks_are_recorded_with_what_the_rules_say_of_them(conn: sqlite3.Connection) -> None:
    record(conn, THREAD, OTHER, judge=only_shops)
    record(conn, OTHER, judge=only_shops, cwd="/home/dev/secret")

    kept = {row.thread_id: row.excluded for row in sessions.list_sessions(conn)}
    assert kept == {THREAD: None, OTHER: "excluded_cwd"}


def test_an_exclusion_ends_when_the_rules_no_longer_name_it(conn: sqlite3.Connection) -> None:
    record(conn, THREAD, OTHER, judge=lambda _row: "noninteractive")

    assert judge_all(conn, nobody) == 2
    assert sessions.excluded_counts(conn) == {}
    assert judge_all(conn, nobody) == 0


def test_what_the_person_had_forgotten_stays_so_whatever_the_rules_say(conn: sqlite3.Connection) -> None:
    record(conn, THREAD)
    sessions.set_excluded(conn, THREAD, sessions.FORGOTTEN)

    assert judge_all(conn, lambda _row: "polluted") == 0
    assert sessions.excluded_counts(conn) == {sessions.FORGOTTEN: 1}


@pytest.mark.parametrize(("before", "after"), [("enabled", "disabled"), ("polluted", "enabled")])
def test_a_remembered_session_whose_mode_changes_dirties_consolidation(
    conn: sqlite3.Connection, before: str, after: str
) -> None:
    record(conn, THREAD, memory_mode=before)
    outputs.store(conn, an_output(), now=NOW)

    record(conn, THREAD, memory_mode=after)

    job = jobs.find(conn, JobKind.CONSOLIDATE, GLOBAL_KEY)
    assert job is not None
    assert job.enqueue_reason == "memory_mode"


def test_a_mode_that_stays_or_a_session_without_a_memory_dirties_nothing(conn: sqlite3.Connection) -> None:
    record(conn, THREAD, OTHER)
    outputs.store(conn, an_output(), now=NOW)

    record(conn, THREAD, updated_at=2000)
    record(conn, OTHER, memory_mode="disabled")

    assert jobs.find(conn, JobKind.CONSOLIDATE, GLOBAL_KEY) is None


def test_enqueueing_what_is_due_counts_only_what_is_new(conn: sqlite3.Connection) -> None:
    rows = [a_session(conn, THREAD), a_session(conn, OTHER)]

    assert discovery.enqueue_due(conn, rows, now=NOW, max_attempts=MAX_ATTEMPTS) == 2
    assert discovery.enqueue_due(conn, rows, now=NOW, max_attempts=MAX_ATTEMPTS) == 0


def choose(conn: sqlite3.Connection, mode: UserMode, judge: discovery.Judge = nobody) -> SessionRow:
    return discovery.choose_mode(conn, THREAD, mode, judge, now=NOW, timing=TIMING, max_attempts=MAX_ATTEMPTS)


def reason_of_consolidation(conn: sqlite3.Connection) -> str | None:
    job = jobs.find(conn, JobKind.CONSOLIDATE, GLOBAL_KEY)
    return job.enqueue_reason if job else None


def test_a_rule_that_takes_a_memory_out_or_lets_it_back_dirties_consolidation(conn: sqlite3.Connection) -> None:
    record(conn, THREAD, OTHER, cwd="/home/dev/secret")
    assert judge_all(conn, only_shops) == 2
    assert reason_of_consolidation(conn) is None
    judge_all(conn, nobody)
    outputs.store(conn, an_output(), now=NOW)

    judge_all(conn, only_shops)

    assert reason_of_consolidation(conn) == "exclusion"


def test_a_choice_against_a_session_takes_its_memory_out_and_stops_its_job(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)
    outputs.store(conn, an_output(), now=NOW)

    row = choose(conn, UserMode.DISABLED, lambda _row: "memory_disabled")

    assert row.excluded == "memory_disabled"
    assert reason_of_consolidation(conn) == "memory_mode"
    job = jobs.find(conn, JobKind.STAGE1, lease.job_key)
    assert job is not None
    assert job.cancel_requested


def test_a_choice_for_a_polluted_session_makes_it_due_again_and_brings_its_memory_back(
    conn: sqlite3.Connection,
) -> None:
    lease = a_lease(conn)
    outputs.store(conn, an_output(), now=NOW)
    discovery.leave_out(conn, THREAD, "polluted", None, now=NOW, timing=TIMING, max_attempts=MAX_ATTEMPTS)
    assert reason_of_consolidation(conn) == "memory_mode"
    jobs.skip(conn, lease, now=NOW, covered=None)

    row = choose(conn, UserMode.ENABLED)

    assert (row.excluded, row.polluted_at, row.is_open) == (None, None, True)


def test_the_agents_word_that_reading_found_is_kept_for_the_next_judgement(conn: sqlite3.Connection) -> None:
    record(conn, THREAD)
    discovery.leave_out(conn, THREAD, "memory_disabled", "disabled", now=NOW, timing=TIMING, max_attempts=MAX_ATTEMPTS)

    row = sessions.get_exact(conn, THREAD)
    assert row is not None
    assert (row.memory_mode, row.excluded) == ("disabled", "memory_disabled")
