"""What discovery knows, who may be remembered, and what is due."""

import sqlite3

import pytest

from memoryd.errors import UsageError
from memoryd.ledger import lineage, outputs, sessions
from memoryd.ledger.outputs import Snapshot
from memoryd.ledger.sessions import FORGOTTEN, Covered, SessionRow, UserMode
from tests.ledger.factories import (
    NOW,
    OTHER,
    THREAD,
    a_lease,
    a_session,
    a_sighting,
    an_output,
    complete,
    enqueue,
)


def _due(conn: sqlite3.Connection, *, idle_before: float = 5000, newest_from: float | None = None) -> list[str]:
    rows = sessions.due(conn, idle_before=idle_before, newest_from=newest_from, limit=100)
    return [row.thread_id for row in rows]


def _row(conn: sqlite3.Connection, thread_id: str = THREAD) -> SessionRow:
    row = sessions.get_exact(conn, thread_id)
    assert row is not None
    return row


# --- sightings and files


def test_a_first_look_makes_a_row(conn: sqlite3.Connection) -> None:
    row = a_session(conn)

    assert (row.thread_id, row.agent, row.cwd, row.updated_at) == (THREAD, "codex", "/home/dev/shop", 1000)
    assert (row.first_seen_at, row.excluded, row.user_mode, row.stem) == (int(NOW), None, None, None)
    assert row.remembers
    assert row.is_open


def test_a_second_look_refreshes_what_the_file_says_and_keeps_the_rest(conn: sqlite3.Connection) -> None:
    a_session(conn)
    sessions.fix_stem(conn, THREAD, "stem")
    sessions.set_excluded(conn, THREAD, "subagent")

    sessions.upsert(conn, a_sighting(updated_at=900, memory_mode="disabled", read_error="torn"), NOW + 50)

    row = _row(conn)
    assert (row.updated_at, row.memory_mode, row.read_error) == (900, "disabled", "torn")
    assert (row.first_seen_at, row.stem, row.excluded) == (int(NOW), "stem", "subagent")


def test_every_file_that_was_looked_at_is_known_by_size_and_time(conn: sqlite3.Connection) -> None:
    a_session(conn)
    sessions.remember_file(conn, path="/sessions/garbage", size=3, mtime_ns=7, now=NOW, problem="not a session")

    assert sessions.known_files(conn) == {
        f"/sessions/{THREAD}.jsonl": (50, 1000 * 10**9),
        "/sessions/garbage": (3, 7),
    }


def test_what_could_not_be_read_is_listed_with_its_problem(conn: sqlite3.Connection) -> None:
    sessions.remember_file(conn, path="/a", size=3, mtime_ns=7, now=NOW, problem="denied")
    sessions.remember_file(conn, path="/a", size=3, mtime_ns=8, now=NOW, problem="not a session")
    sessions.remember_file(conn, path="/b", size=3, mtime_ns=8, now=NOW, problem="copy")

    assert sessions.problem_files(conn) == [("/a", "not a session")]


def test_a_file_that_becomes_readable_is_a_problem_no_more(conn: sqlite3.Connection) -> None:
    path = a_sighting().path
    sessions.remember_file(conn, path=path, size=3, mtime_ns=7, now=NOW, problem="denied")

    a_session(conn)

    assert sessions.problem_files(conn) == []
    assert list(sessions.known_files(conn)) == [path]


def test_a_moved_file_takes_over_and_the_old_one_becomes_a_known_copy(conn: sqlite3.Connection) -> None:
    a_session(conn)

    a_session(conn, path="/archived/x.jsonl")

    assert _row(conn).path == "/archived/x.jsonl"
    assert set(sessions.known_files(conn)) == {"/archived/x.jsonl", f"/sessions/{THREAD}.jsonl"}
    assert sessions.problem_files(conn) == []


def test_a_copy_that_reaches_less_far_changes_nothing_but_is_known(conn: sqlite3.Connection) -> None:
    a_session(conn)

    row = a_session(conn, path="/copies/x.jsonl", updated_at=500)

    assert (row.path, row.updated_at) == (f"/sessions/{THREAD}.jsonl", 1000)
    assert "/copies/x.jsonl" in sessions.known_files(conn)


def test_two_equal_copies_do_not_take_turns(conn: sqlite3.Connection) -> None:
    a_session(conn)
    a_session(conn, path="/copies/x.jsonl")
    known = sessions.known_files(conn)

    assert known["/copies/x.jsonl"] == known[f"/sessions/{THREAD}.jsonl"] == (50, 1000 * 10**9)


def test_a_session_is_found_by_each_of_its_files(conn: sqlite3.Connection) -> None:
    a_session(conn)
    a_session(conn, path="/archived/x.jsonl")
    a_session(conn, OTHER)

    found = [sessions.by_path(conn, path) for path in ("/archived/x.jsonl", f"/sessions/{THREAD}.jsonl", "/none")]

    assert [row.thread_id if row else None for row in found] == [THREAD, THREAD, None]


# --- finding


@pytest.mark.parametrize("asked", [THREAD, THREAD[:6], "abc-1", "gemini:abc-1", "abc"])
def test_a_person_may_shorten_an_id_and_leave_the_agent_out(conn: sqlite3.Connection, asked: str) -> None:
    a_session(conn)
    a_session(conn, "gemini:abc-1", agent="gemini")

    row = sessions.get(conn, asked)

    assert row is not None
    assert row.thread_id == (THREAD if asked[0] == "0" else "gemini:abc-1")


@pytest.mark.parametrize("asked", ["", "zzz", "%", "_"])
def test_an_id_that_fits_nothing_finds_nothing(conn: sqlite3.Connection, asked: str) -> None:
    a_session(conn)

    assert sessions.get(conn, asked) is None


def test_an_id_that_fits_several_sessions_is_refused_naming_them(conn: sqlite3.Connection) -> None:
    a_session(conn, "aa-1")
    a_session(conn, "aa-2")

    with pytest.raises(UsageError, match="aa fits several sessions: aa-1, aa-2"):
        sessions.get(conn, "aa")


def test_sessions_are_listed_newest_first(conn: sqlite3.Connection) -> None:
    a_session(conn, "a", updated_at=10)
    a_session(conn, "b", updated_at=20)

    assert [row.thread_id for row in sessions.list_sessions(conn)] == ["b", "a"]


# --- due


def test_idle_sessions_are_due_newest_first(conn: sqlite3.Connection) -> None:
    for thread, updated_at in (("a", 100), ("b", 300), ("c", 200), ("fresh", 900)):
        a_session(conn, thread, updated_at=updated_at)

    assert _due(conn, idle_before=500) == ["b", "c", "a"]
    assert _due(conn, idle_before=500, newest_from=200) == ["b", "c"]


def test_the_limit_keeps_the_newest(conn: sqlite3.Connection) -> None:
    for number in range(5):
        a_session(conn, f"t{number}", updated_at=number)

    assert [row.thread_id for row in sessions.due(conn, idle_before=10, newest_from=None, limit=2)] == ["t4", "t3"]


def test_i4_what_is_enqueued_dead_or_covered_is_not_due(conn: sqlite3.Connection) -> None:
    a_session(conn)
    assert _due(conn) == [THREAD]
    lease = a_lease(conn)
    assert _due(conn) == []
    complete(conn, lease, output=an_output(), covered=Covered(1000, 50))
    assert _due(conn) == []


@pytest.mark.parametrize("change", [{"updated_at": 1001}, {"record_bytes": 51}, {"updated_at": 999}])
def test_any_other_state_is_due_again(conn: sqlite3.Connection, change: dict[str, int]) -> None:
    complete(conn, a_lease(conn), output=an_output(), covered=Covered(1000, 50))

    a_session(conn, THREAD, **change)

    assert _due(conn) == [THREAD]


def test_a_touched_file_is_not_due(conn: sqlite3.Connection) -> None:
    complete(conn, a_lease(conn), output=an_output(), covered=Covered(1000, 50))

    a_session(conn, mtime_ns=9, size=77)

    assert _due(conn) == []


def test_a_session_that_grew_before_it_was_read_is_not_due_when_the_scan_catches_up(conn: sqlite3.Connection) -> None:
    complete(conn, a_lease(conn), output=an_output(), covered=Covered(1200, 60))

    a_session(conn, updated_at=1200, record_bytes=60)

    assert _due(conn) == []


def test_a_session_that_was_another_only_while_it_was_read_is_due(conn: sqlite3.Connection) -> None:
    """No scan ever saw the other state: what is known is what was enqueued, and nobody has read that."""
    complete(conn, a_lease(conn), output=an_output(), covered=Covered(1200, 60))

    assert _due(conn) == [THREAD]
    assert enqueue(conn)
    assert _due(conn) == []
    complete(conn, a_lease(conn), output=an_output(), covered=Covered(1000, 50))
    assert _due(conn) == []


def test_a_session_that_grew_after_it_was_read_is_due(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)
    a_session(conn, updated_at=1300, record_bytes=70)
    complete(conn, lease, output=an_output(), covered=Covered(1200, 60))

    assert _due(conn) == [THREAD]


def test_a_session_that_returns_to_an_earlier_state_is_due(conn: sqlite3.Connection) -> None:
    complete(conn, a_lease(conn), output=an_output(), covered=Covered(1000, 50))
    a_session(conn, updated_at=2000, record_bytes=90)
    enqueue(conn, updated_at=2000, record_bytes=90)
    complete(conn, a_lease(conn), output=an_output(), covered=Covered(2000, 90))

    a_session(conn, updated_at=1000, record_bytes=50)

    assert _due(conn) == [THREAD]


def test_a_session_that_returns_to_the_state_in_which_it_was_enqueued_is_due(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)
    a_session(conn, updated_at=1200, record_bytes=60)
    complete(conn, lease, output=an_output(), covered=Covered(1200, 60))

    a_session(conn, updated_at=1000, record_bytes=50)

    assert _due(conn) == [THREAD]


@pytest.mark.parametrize(
    ("memory_mode", "user_mode", "polluted", "due"),
    [
        ("enabled", None, False, True),
        ("disabled", None, False, False),
        ("polluted", None, False, False),
        ("enabled", None, True, False),
        ("disabled", UserMode.ENABLED, False, True),
        ("enabled", UserMode.DISABLED, False, False),
        ("enabled", UserMode.NO_RECALL, False, True),
        ("disabled", UserMode.NO_RECALL, False, False),
    ],
)
def test_the_persons_choice_wins_over_the_agents(
    conn: sqlite3.Connection, memory_mode: str, user_mode: UserMode | None, *, polluted: bool, due: bool
) -> None:
    a_session(conn, memory_mode=memory_mode)
    if polluted:
        sessions.mark_polluted(conn, THREAD, NOW)
    if user_mode:
        sessions.set_user_mode(conn, THREAD, user_mode)

    assert _row(conn).remembers == due
    assert (_due(conn) == [THREAD]) == due


# --- exclusion and modes


def test_an_excluded_session_is_not_due_and_is_counted(conn: sqlite3.Connection) -> None:
    a_session(conn)
    a_session(conn, OTHER)
    sessions.set_excluded(conn, THREAD, "subagent")

    assert _due(conn) == [OTHER]
    assert sessions.excluded_counts(conn) == {"subagent": 1}

    sessions.set_excluded(conn, THREAD, None)
    assert sessions.excluded_counts(conn) == {}


def test_what_was_forgotten_stays_so_until_the_person_enables_it(conn: sqlite3.Connection) -> None:
    a_session(conn)
    sessions.set_excluded(conn, THREAD, FORGOTTEN)
    sessions.set_excluded(conn, THREAD, None)
    assert _row(conn).excluded == FORGOTTEN

    sessions.set_user_mode(conn, THREAD, UserMode.ENABLED)
    assert _row(conn).excluded is None


def test_pollution_keeps_its_first_instant_and_is_cleared_by_enabling(conn: sqlite3.Connection) -> None:
    a_session(conn)
    sessions.mark_polluted(conn, THREAD, NOW)
    sessions.mark_polluted(conn, THREAD, NOW + 9)
    assert _row(conn).polluted_at == int(NOW)

    sessions.set_user_mode(conn, THREAD, UserMode.ENABLED)
    assert _row(conn).polluted_at is None


def test_a_choice_can_be_taken_back(conn: sqlite3.Connection) -> None:
    a_session(conn)
    sessions.set_user_mode(conn, THREAD, UserMode.DISABLED)
    sessions.set_user_mode(conn, THREAD, None)

    assert _row(conn).user_mode is None
    assert _row(conn).remembers


def test_a_look_does_not_clear_our_own_finding(conn: sqlite3.Connection) -> None:
    a_session(conn)
    sessions.mark_polluted(conn, THREAD, NOW)

    a_session(conn, updated_at=2000)

    assert not _row(conn).remembers


@pytest.mark.parametrize(
    ("stored", "selected", "dirties"), [(False, False, False), (True, False, False), (True, True, True)]
)
def test_leaving_the_memory_asks_for_consolidation_when_it_was_part_of_it(
    conn: sqlite3.Connection, *, stored: bool, selected: bool, dirties: bool
) -> None:
    a_session(conn)
    if stored:
        outputs.store(conn, an_output(), now=NOW)
    if selected:
        outputs.mark_consumed(conn, [Snapshot(THREAD, 1000)])

    assert sessions.mark_polluted(conn, THREAD, NOW) == dirties
    assert not sessions.set_user_mode(conn, THREAD, UserMode.DISABLED)


def test_coming_back_asks_for_consolidation_when_there_is_something_to_remember(conn: sqlite3.Connection) -> None:
    a_session(conn)
    outputs.store(conn, an_output(), now=NOW)
    sessions.set_user_mode(conn, THREAD, UserMode.DISABLED)

    assert sessions.set_user_mode(conn, THREAD, UserMode.ENABLED)
    assert not sessions.set_user_mode(conn, THREAD, UserMode.ENABLED)


def test_the_mode_of_an_unknown_session_cannot_be_changed(conn: sqlite3.Connection) -> None:
    with pytest.raises(UsageError, match="no such session"):
        sessions.set_user_mode(conn, "?", UserMode.ENABLED)


# --- stems


def test_a_stem_is_fixed_once(conn: sqlite3.Connection) -> None:
    a_session(conn)

    assert sessions.fix_stem(conn, THREAD, "first") == "first"
    assert sessions.fix_stem(conn, THREAD, "second") == "first"
    assert _row(conn).stem == "first"


def test_the_stem_of_an_unknown_session_is_what_was_asked(conn: sqlite3.Connection) -> None:
    assert sessions.fix_stem(conn, "?", "stem") == "stem"


def test_the_older_sessions_of_a_lineage_are_its_relatives_in_an_order_that_stays(conn: sqlite3.Connection) -> None:
    for thread, started_at in (("late", 30), ("first", 10), ("middle", 20)):
        a_session(conn, thread, started_at=started_at, lineage="row-1")
    a_session(conn, "stranger", started_at=1, lineage="row-2")
    a_session(conn, "elsewhere", started_at=1, lineage="row-1", agent="claude")
    assert _relatives(conn, "late") == ["first", "middle"]
    a_session(conn, "first", started_at=99, updated_at=5000, lineage="row-1")

    assert _relatives(conn, "late") == ["first", "middle"]
    assert _relatives(conn, "first") == []


def test_of_two_that_began_alike_the_one_that_ended_earlier_when_first_seen_is_older(conn: sqlite3.Connection) -> None:
    a_session(conn, "fork", updated_at=1200, lineage="row-1")
    a_session(conn, "origin", updated_at=1100, lineage="row-1")

    assert _relatives(conn, "fork") == ["origin"]
    assert _relatives(conn, "origin") == []


def test_a_named_parent_is_older_whatever_the_times_say(conn: sqlite3.Connection) -> None:
    a_session(conn, "child", started_at=10, parent_id="parent", lineage="row-1")
    a_session(conn, "parent", started_at=20, lineage="row-1", parent_id="child-of-nobody")
    a_session(conn, "grandchild", started_at=5, parent_id="child", lineage="row-1")

    assert _relatives(conn, "grandchild") == ["parent", "child"]
    assert _relatives(conn, "child") == ["parent"]
    assert _relatives(conn, "parent") == []


def test_parents_in_a_circle_are_put_in_some_order(conn: sqlite3.Connection) -> None:
    a_session(conn, "a", started_at=1, parent_id="b", lineage="row-1")
    a_session(conn, "b", started_at=2, parent_id="a", lineage="row-1")

    assert sorted([len(_relatives(conn, "a")), len(_relatives(conn, "b"))]) == [0, 1]


def test_a_sub_agent_owns_no_rows_and_a_session_without_lineage_has_no_relatives(conn: sqlite3.Connection) -> None:
    a_session(conn, "helper", started_at=1, kind="subagent", lineage="row-1")
    a_session(conn, "person", started_at=2, lineage="row-1")
    a_session(conn, "alone", started_at=3, parent_id="person")

    assert _relatives(conn, "person") == []
    assert _relatives(conn, "alone") == []


def test_one_id_in_two_agents_is_one_session_whose_other_file_is_known_with_its_agent(
    conn: sqlite3.Connection,
) -> None:
    a_session(conn)
    a_session(conn, agent="claude", path="/claude/x.jsonl", updated_at=2000)

    row = sessions.get_exact(conn, THREAD)
    assert row is not None
    assert (row.agent, row.path) == ("claude", "/claude/x.jsonl")
    assert sessions.copies(conn, THREAD) == [(f"/sessions/{THREAD}.jsonl", "codex")]


def test_what_reading_found_is_counted_and_listed_beside_what_rules_leave_out(conn: sqlite3.Connection) -> None:
    row = a_session(conn)
    a_session(conn, OTHER)
    sessions.set_excluded(conn, OTHER, "subagent")
    read = sessions.Covered(row.updated_at, row.record_bytes)
    for thread in (THREAD, OTHER):
        sessions.set_finding(conn, thread, read, "no_human_message")

    assert sessions.excluded_counts(conn) == {"subagent": 1, "no_human_message": 1}
    assert [row.thread_id for row in sessions.list_left_out(conn, "no_human_message")] == [THREAD]
    assert [row.thread_id for row in sessions.list_left_out(conn, "subagent")] == [OTHER]


def _relatives(conn: sqlite3.Connection, thread: str) -> list[str]:
    row = sessions.get_exact(conn, thread)
    assert row is not None
    return [relative.thread_id for relative in lineage.older_relatives(conn, row)]
