import sqlite3

import pytest

from memoryd.ledger import discovery, jobs, outputs, sessions
from memoryd.ledger.sessions import SessionRow
from memoryd.ledger.states import GLOBAL_KEY, JobKind
from tests.ledger.factories import MAX_ATTEMPTS, NOW, OTHER, THREAD, TIMING, a_session, a_sighting, an_output


def nobody(_row: SessionRow) -> str | None:
    return None


def only_shops(row: SessionRow) -> str | None:
    return None if row.cwd == "/home/dev/shop" else "excluded_cwd"


def record(conn: sqlite3.Connection, *threads: str, judge: discovery.Judge = nobody, **changes: object) -> None:
    looks = [a_sighting(thread, **changes) for thread in threads]  # type: ignore[arg-type]  # fields by name
    discovery.record(conn, looks, judge, now=NOW, timing=TIMING, max_attempts=MAX_ATTEMPTS)


def test_looks_are_recorded_with_what_the_rules_say_of_them(conn: sqlite3.Connection) -> None:
    record(conn, THREAD, OTHER, judge=only_shops)
    record(conn, OTHER, judge=only_shops, cwd="/home/dev/secret")

    kept = {row.thread_id: row.excluded for row in sessions.list_sessions(conn)}
    assert kept == {THREAD: None, OTHER: "excluded_cwd"}


def test_an_exclusion_ends_when_the_rules_no_longer_name_it(conn: sqlite3.Connection) -> None:
    record(conn, THREAD, OTHER, judge=lambda _row: "noninteractive")

    assert discovery.reconsider_all(conn, nobody) == 2
    assert sessions.excluded_counts(conn) == {}
    assert discovery.reconsider_all(conn, nobody) == 0


def test_what_the_person_had_forgotten_stays_so_whatever_the_rules_say(conn: sqlite3.Connection) -> None:
    record(conn, THREAD)
    sessions.set_excluded(conn, THREAD, sessions.FORGOTTEN)

    assert discovery.reconsider_all(conn, lambda _row: "polluted") == 0
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
