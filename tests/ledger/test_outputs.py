"""What sessions taught: storing, selecting, citing, pruning."""

import sqlite3
from dataclasses import replace

from memoryd.ledger import outputs, sessions
from memoryd.ledger.outputs import ImportedOutput, PreviousSnapshot, Snapshot
from memoryd.ledger.sessions import UserMode
from tests.ledger.factories import NOW, OTHER, THREAD, a_session, an_output, recorded_every_day

DAY = 86_400
MONTH = 30 * DAY


def _store(
    conn: sqlite3.Connection, thread_id: str, *, age: float = 0, uses: int = 0, used: float | None = None
) -> None:
    """Store an output of a state `age` seconds old, cited `uses` times, last `used` seconds ago."""
    outputs.store(conn, an_output(thread_id, source_updated_at=int(NOW - age)), now=NOW)
    for number in range(uses):
        outputs.cite(conn, [thread_id], f"message-{number}", NOW - (used or 0))


def _selected(conn: sqlite3.Connection, *, limit: int = 256) -> list[str]:
    rows = outputs.select_for_consolidation(conn, now=NOW, max_raw_memories=limit, max_unused=MONTH)
    return [row.thread_id for row in rows]


def test_an_output_is_given_with_what_is_known_of_its_session(conn: sqlite3.Connection) -> None:
    a_session(conn)
    sessions.fix_stem(conn, THREAD, "stem")
    outputs.store(conn, an_output(), now=NOW)

    row = outputs.get(conn, THREAD)

    assert row is not None
    assert (row.agent, row.cwd, row.git_branch, row.started_at) == ("codex", "/home/dev/shop", "main", 900)
    assert (row.rollout_path, row.stem) == (f"/sessions/{THREAD}.jsonl", "stem")
    assert (row.updated_at, row.source_updated_at, row.snapshot) == (1000, 1000, Snapshot(THREAD, 1000))
    assert (row.usage_count, row.last_usage, row.selected_for_phase2) == (0, None, False)


def test_an_output_without_a_session_is_given_too(conn: sqlite3.Connection) -> None:
    outputs.store(conn, an_output(), now=NOW)

    row = outputs.get(conn, THREAD)

    assert row is not None
    assert (row.agent, row.rollout_path) == (None, None)
    assert outputs.get(conn, OTHER) is None


def test_replacing_an_output_keeps_its_use_and_selection(conn: sqlite3.Connection) -> None:
    _store(conn, THREAD, age=100, uses=2)
    outputs.mark_consumed(conn, [Snapshot(THREAD, int(NOW) - 100)])

    assert outputs.store(conn, an_output(source_updated_at=int(NOW), raw_memory="new"), now=NOW + 5)

    row = outputs.get(conn, THREAD)
    assert row is not None
    assert (row.raw_memory, row.generated_at, row.usage_count) == ("new", int(NOW) + 5, 2)
    assert row.selected_for_phase2
    assert row.selected_for_phase2_source_updated_at == int(NOW) - 100


def test_the_same_state_may_be_stored_again_but_no_earlier_one(conn: sqlite3.Connection) -> None:
    assert outputs.store(conn, an_output(source_updated_at=10), now=NOW)
    assert outputs.store(conn, an_output(source_updated_at=10), now=NOW)
    assert not outputs.store(conn, an_output(source_updated_at=9), now=NOW)


def test_removing_tells_whether_there_was_something(conn: sqlite3.Connection) -> None:
    outputs.store(conn, an_output(), now=NOW)

    assert outputs.remove(conn, THREAD)
    assert not outputs.remove(conn, THREAD)


def test_the_selection_is_given_in_thread_id_order(conn: sqlite3.Connection) -> None:
    for thread in ("c", "a", "b"):
        _store(conn, thread)

    assert _selected(conn) == ["a", "b", "c"]


def test_the_selection_is_cut_by_use_then_by_age(conn: sqlite3.Connection) -> None:
    _store(conn, "old-but-used", age=20 * DAY, uses=2, used=10 * DAY)
    _store(conn, "used-once-lately", age=20 * DAY, uses=1, used=1)
    _store(conn, "used-once", age=1, uses=1, used=9 * DAY)
    _store(conn, "new", age=1)
    _store(conn, "older", age=DAY)

    assert [set(_selected(conn, limit=limit)) for limit in (1, 2, 3, 4)] == [
        {"old-but-used"},
        {"old-but-used", "used-once-lately"},
        {"old-but-used", "used-once-lately", "used-once"},
        {"old-but-used", "used-once-lately", "used-once", "new"},
    ]


def test_equal_ranks_are_decided_by_source_time_then_thread_id(conn: sqlite3.Connection) -> None:
    _store(conn, "a", age=50, uses=1, used=5)
    _store(conn, "b", age=40, uses=1, used=5)
    _store(conn, "c", age=50, uses=1, used=5)

    assert [_selected(conn, limit=limit) for limit in (1, 2)] == [["b"], ["b", "c"]]


def test_what_was_not_used_for_long_is_left_out_exactly_after_the_limit(conn: sqlite3.Connection) -> None:
    recorded_every_day(conn)
    _store(conn, "never-used-at-limit", age=MONTH)
    _store(conn, "never-used", age=MONTH + 1)
    _store(conn, "used-at-limit", age=2 * MONTH, uses=1, used=MONTH)
    _store(conn, "used-long-ago", age=2 * MONTH, uses=1, used=MONTH + 1)

    assert _selected(conn) == ["never-used-at-limit", "used-at-limit"]


def test_empty_outputs_and_sessions_that_may_not_be_remembered_are_left_out(conn: sqlite3.Connection) -> None:
    for thread in ("polluted", "disabled", "enabled", "summary-only"):
        a_session(conn, thread)
        _store(conn, thread)
    _store(conn, "empty")
    conn.execute("UPDATE stage1_outputs SET raw_memory = ' ' WHERE thread_id IN ('empty', 'summary-only')")
    conn.execute("UPDATE stage1_outputs SET rollout_summary = '' WHERE thread_id = 'empty'")
    sessions.mark_polluted(conn, "polluted", NOW)
    sessions.set_user_mode(conn, "disabled", UserMode.DISABLED)

    assert _selected(conn) == ["enabled", "summary-only"]


def test_exactly_the_consumed_snapshots_are_selected(conn: sqlite3.Connection) -> None:
    a_session(conn, "a")
    sessions.fix_stem(conn, "a", "stem-a")
    for thread in ("a", "b", "c"):
        _store(conn, thread)
    outputs.mark_consumed(conn, [Snapshot("c", int(NOW))])

    still = outputs.mark_consumed(conn, [Snapshot("a", int(NOW)), Snapshot("b", 5), Snapshot("gone", 5)])

    assert still == 1
    assert outputs.previously_selected(conn) == [PreviousSnapshot("a", int(NOW), "stem-a")]


def test_a_citing_message_counts_once_for_each_known_thread(conn: sqlite3.Connection) -> None:
    _store(conn, THREAD)

    assert outputs.cite(conn, [THREAD, THREAD, "unknown"], "message", NOW + 5) == 1
    assert outputs.cite(conn, [THREAD], "message", NOW + 9) == 0
    assert outputs.cite(conn, [THREAD], "another", NOW + 7) == 1

    row = outputs.get(conn, THREAD)
    assert row is not None
    assert (row.usage_count, row.last_usage) == (2, int(NOW) + 7)


def test_a_clock_set_back_does_not_make_the_last_use_older(conn: sqlite3.Connection) -> None:
    _store(conn, THREAD)
    outputs.cite(conn, [THREAD], "a", NOW + 9)
    outputs.cite(conn, [THREAD], "b", NOW)

    row = outputs.get(conn, THREAD)
    assert row is not None
    assert row.last_usage == int(NOW) + 9


def test_pruning_takes_the_stalest_unselected_first_and_a_bounded_number(conn: sqlite3.Connection) -> None:
    recorded_every_day(conn)
    for thread, age in (("a", 40), ("b", 60), ("c", 50), ("fresh", 1), ("selected", 70)):
        _store(conn, thread, age=age * DAY)
    _store(conn, "used", age=90 * DAY, uses=1)
    outputs.mark_consumed(conn, [Snapshot("selected", int(NOW - 70 * DAY))])

    def left() -> set[str]:
        return {thread for (thread,) in conn.execute("SELECT thread_id FROM stage1_outputs")}

    assert outputs.prune(conn, now=NOW, max_unused=MONTH, limit=2) == 2
    assert left() == {"a", "fresh", "selected", "used"}
    assert outputs.prune(conn, now=NOW, max_unused=MONTH) == 1
    assert left() == {"fresh", "selected", "used"}


def test_a_row_of_another_program_is_kept_as_it_stands_and_replaces_earlier_states_alone(
    conn: sqlite3.Connection,
) -> None:
    assert not outputs.is_any(conn)
    theirs = ImportedOutput("thread", 100, "raw", "summary", "slug", 7, 3, 90)
    assert outputs.take_over(conn, theirs)
    assert outputs.is_any(conn)
    columns = "source_updated_at, raw_memory, rollout_summary, rollout_slug, generated_at, usage_count, last_usage"
    (row,) = conn.execute(f"SELECT {columns}, selected_for_phase2 FROM stage1_outputs").fetchall()
    assert tuple(row) == (100, "raw", "summary", "slug", 7, 3, 90, 0)
    assert not outputs.take_over(conn, replace(theirs, raw_memory="other"))
    assert outputs.take_over(conn, replace(theirs, source_updated_at=101, raw_memory="later", usage_count=None))
    found = outputs.get(conn, "thread")
    assert found is not None
    assert (found.raw_memory, found.usage_count, found.last_usage) == ("later", 3, 90)
