"""Of sessions: what is known of them, and what is due."""

import sqlite3
from collections.abc import Callable

from memoryd.ledger import outputs, sessions
from memoryd.ledger.outputs import Snapshot
from memoryd.ledger.sessions import Covered, UserMode
from tests.ledger.factories import (
    NOW,
    THREAD,
    a_lease,
    a_session,
    a_sighting,
    an_output,
    complete,
    enqueue,
)


def a_session_that_is_again_what_it_was_when_it_was_enqueued_is_due(conn: sqlite3.Connection) -> None:
    """It was another when it was read: nobody has read what it is now, though that had been enqueued."""
    enqueue(conn, updated_at=10, record_bytes=9)
    complete(conn, a_lease(conn), covered=Covered(11, 12))

    assert _session(conn, THREAD).is_open


def a_forgotten_session_stays_forgotten_and_others_are_left_alone(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        a_session(conn, thread)
    sessions.set_excluded(conn, "a", sessions.FORGOTTEN)
    sessions.set_excluded(conn, "a", None)
    assert [_session(conn, thread).excluded for thread in ("a", "b")] == [sessions.FORGOTTEN, None]
    sessions.set_excluded(conn, "b", "subagent")
    sessions.mark_polluted(conn, "b", NOW)
    sessions.set_user_mode(conn, "b", UserMode.DISABLED)
    kept = _session(conn, "b")
    assert (kept.excluded, kept.polluted_at) == ("subagent", int(NOW))
    sessions.set_user_mode(conn, "b", UserMode.ENABLED)
    lifted = _session(conn, "b")

    assert (lifted.excluded, lifted.polluted_at, _session(conn, "a").user_mode) == (None, None, None)
    assert _session(conn, "a").polluted_at is None


def a_rule_that_is_lifted_leaves_the_session_due_again(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        enqueue(conn, thread)
    sessions.set_excluded(conn, "a", "subagent")
    assert _session(conn, "a").queued_bytes == 50
    sessions.set_excluded(conn, "a", None)

    assert [_session(conn, thread).is_open for thread in ("a", "b")] == [True, False]


def a_finding_holds_for_the_state_that_was_read(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        a_session(conn, thread, updated_at=10, record_bytes=9)
    sessions.set_finding(conn, "a", Covered(9, 9), "no_items")
    assert _session(conn, "a").finding is None
    sessions.set_finding(conn, "a", Covered(10, 9), "no_items")
    a_session(conn, "a", updated_at=10, record_bytes=9)
    assert [_session(conn, thread).finding for thread in ("a", "b")] == ["no_items", None]
    a_session(conn, "a", updated_at=10, record_bytes=10)

    assert _session(conn, "a").finding is None


def the_agents_word_is_of_one_session(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        a_session(conn, thread)
    sessions.set_memory_mode(conn, "a", "disabled")

    assert [_session(conn, thread).memory_mode for thread in ("a", "b")] == ["disabled", "enabled"]


def a_file_that_is_back_makes_its_own_session_due_again(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        enqueue(conn, thread)
        sessions.set_finding(conn, thread, Covered(1000, 50), sessions.VANISHED)
    assert len(sessions.vanished_paths(conn)) == 2
    sessions.forget_finding(conn, "a")

    assert sessions.vanished_paths(conn) == ["/sessions/b.jsonl"]
    assert [_session(conn, thread).is_open for thread in ("a", "b")] == [True, False]


def a_stem_is_of_one_session(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        a_session(conn, thread)
    sessions.fix_stem(conn, "a", "stem-a")

    assert sessions.fix_stem(conn, "b", "stem-b") == "stem-b"


def memory_changes_by_a_mode_only_where_there_is_memory_of_the_session(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        a_session(conn, thread)
    outputs.store(conn, an_output("a", source_updated_at=5), now=NOW)
    outputs.mark_consumed(conn, [Snapshot("a", 5)])

    assert not sessions.mark_polluted(conn, "b", NOW)
    assert sessions.mark_polluted(conn, "a", NOW)


def another_file_of_a_session_takes_over_only_when_it_reaches_as_far(conn: sqlite3.Connection) -> None:
    twin = "/archived/a.jsonl"
    a_session(conn, "a", updated_at=10, record_bytes=9)
    a_session(conn, "b", updated_at=10, record_bytes=9)
    less = sessions.upsert(conn, a_sighting("a", updated_at=9, record_bytes=9, path=twin), NOW)
    assert (less.path, less.updated_at) == ("/sessions/a.jsonl", 10)
    assert _others(conn) == {twin: "a"}
    assert set(sessions.known_files(conn)) == {"/sessions/a.jsonl", "/sessions/b.jsonl", twin}
    more = sessions.upsert(conn, a_sighting("a", updated_at=10, record_bytes=10, path=twin), NOW)
    assert (more.path, more.record_bytes) == (twin, 10)
    assert _others(conn) == {"/sessions/a.jsonl": "a"}
    before = conn.total_changes
    sessions.upsert(conn, a_sighting("a", updated_at=12, record_bytes=10, path=twin), NOW)

    assert conn.total_changes - before == 1
    assert _others(conn) == {"/sessions/a.jsonl": "a"}
    shorter = sessions.upsert(conn, a_sighting("a", updated_at=3, record_bytes=1, path=twin), NOW)
    assert (shorter.path, shorter.updated_at) == (twin, 3)


def only_open_idle_and_young_sessions_are_due(conn: sqlite3.Connection) -> None:
    for thread, updated_at in (("old", 5), ("due", 10), ("fresh", 20)):
        a_session(conn, thread, updated_at=updated_at)
    found = sessions.due(conn, idle_before=15, newest_from=8)

    assert [row.thread_id for row in found] == ["due"]


def what_was_extracted_and_is_enqueued_are_told_apart_for_each_session(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        enqueue(conn, thread, updated_at=10, record_bytes=9)
    sessions.record_covered(conn, "a", Covered(11, 9))
    kept = _session(conn, "a")
    assert (kept.covered_updated_at, kept.queued_updated_at) == (11, 10)
    sessions.upsert(conn, a_sighting("a", updated_at=11, record_bytes=9), NOW)
    sessions.record_covered(conn, "a", Covered(11, 9))

    assert _session(conn, "a").queued_updated_at == 11
    assert _session(conn, "b").covered_updated_at is None


def of_a_forgotten_session_no_words_come_back_until_it_is_wanted_again(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        a_session(conn, thread, cwd="/old", read_error="one line")
    sessions.set_excluded(conn, "a", sessions.FORGOTTEN)
    for thread in ("a", "b"):
        a_session(conn, thread, cwd="/new", read_error="two lines")
    for thread, words in (("a", (None,) * 4), ("b", ("/new", "main", "codex_cli_rs", "two lines"))):
        row = _session(conn, thread)
        assert (row.cwd, row.git_branch, row.originator, row.read_error) == words
    for thread in ("a", "b"):
        sessions.set_user_mode(conn, thread, UserMode.ENABLED)

    assert [_session(conn, thread).finding for thread in ("a", "b")] == [sessions.VANISHED, None]


def _session(conn: sqlite3.Connection, thread: str) -> sessions.SessionRow:
    row = sessions.get_exact(conn, thread)
    assert row is not None
    return row


def _others(conn: sqlite3.Connection) -> dict[str, str]:
    return dict(conn.execute("SELECT path, thread_id FROM other_files").fetchall())


SCHEDULES: tuple[Callable[[sqlite3.Connection], None], ...] = (
    a_session_that_is_again_what_it_was_when_it_was_enqueued_is_due,
    a_forgotten_session_stays_forgotten_and_others_are_left_alone,
    a_rule_that_is_lifted_leaves_the_session_due_again,
    a_finding_holds_for_the_state_that_was_read,
    the_agents_word_is_of_one_session,
    a_file_that_is_back_makes_its_own_session_due_again,
    a_stem_is_of_one_session,
    memory_changes_by_a_mode_only_where_there_is_memory_of_the_session,
    another_file_of_a_session_takes_over_only_when_it_reaches_as_far,
    only_open_idle_and_young_sessions_are_due,
    what_was_extracted_and_is_enqueued_are_told_apart_for_each_session,
    of_a_forgotten_session_no_words_come_back_until_it_is_wanted_again,
)
