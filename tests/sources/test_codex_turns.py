"""Turns that were rolled back and rows that a fork copied do not count; a turn's last message is its answer."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.sources.codex_records import Record, SessionMeta, decode_record, parse_meta
from memoryd.sources.codex_turns import CopiedRows, Withdrawn
from memoryd.sources.finals import MAX_HELD_CHARACTERS, MAX_HELD_ITEMS, FinalMessages
from memoryd.sources.items import Item, ItemKind
from memoryd.sources.jsonl import Line
from tests.support.sessions import a_thread_id, iso, response

FORKED_AT = 1_700_000_000.0
OWN = a_thread_id(FORKED_AT, "own")
PARENT = a_thread_id(FORKED_AT - 5000, "parent")


def lines(records: Sequence[dict[str, Any] | bytes]) -> list[Line]:
    return [
        Line(index, record if isinstance(record, bytes) else json.dumps(record).encode(), ended=True)
        for index, record in enumerate(records)
    ]


def human(text: str = "do it") -> dict[str, Any]:
    return response("message", role="user", content=[{"type": "input_text", "text": text}])


def rolled_back(num_turns: Any) -> dict[str, Any]:
    return {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": num_turns}}


def withdrawn(records: Sequence[dict[str, Any] | bytes]) -> list[int]:
    seen = Withdrawn(lines(records))
    return [index for index in range(len(records) + 2) if index in seen]


OTHER: dict[str, Any] = response("reasoning", summary=[])
CONTEXT = human("<environment_context></environment_context>")


def test_a_session_without_rollbacks_keeps_everything() -> None:
    assert withdrawn([human(), OTHER, human(), b"torn"]) == []
    assert 0 not in Withdrawn()


def test_a_rollback_takes_out_the_last_human_turns_up_to_itself() -> None:
    assert withdrawn([human(), OTHER, human(), OTHER, rolled_back(1), human()]) == [2, 3]
    assert withdrawn([human(), OTHER, CONTEXT, human(), OTHER, rolled_back(2), human()]) == [0, 1, 2, 3, 4]


def test_rollbacks_after_each_other_add_up() -> None:
    records = [
        human("a"),
        human("b"),
        rolled_back(1),
        human("c"),
        rolled_back(2),
        human("d"),
        human("e"),
        rolled_back(1),
    ]
    assert withdrawn(records) == [0, 1, 2, 3, 6]


@pytest.mark.parametrize(("num_turns", "expected"), [(99, [0, 1]), (None, [1]), ("2", [1]), (0, []), (-1, [])])
def test_odd_numbers_of_turns_are_borne(num_turns: Any, expected: list[int]) -> None:
    assert withdrawn([human(), human(), rolled_back(num_turns)]) == expected


def test_a_rollback_without_a_turn_before_it_takes_nothing() -> None:
    assert withdrawn([rolled_back(1), human()]) == []


@given(st.lists(st.just(None) | st.integers(1, 4), max_size=25))
def test_what_is_left_is_what_a_stack_of_turns_would_hold(steps: list[int | None]) -> None:
    stack: list[int] = []
    for index, step in enumerate(steps):
        if step is None:
            stack.append(index)
        else:
            del stack[max(0, len(stack) - step) :]
    gone = withdrawn([human() if step is None else rolled_back(step) for step in steps])
    assert stack == [index for index, step in enumerate(steps) if step is None and index not in gone]


def a_record(at: float | None, **record: Any) -> Record:
    written = {"type": "response_item", "payload": {}} | record | ({} if at is None else {"timestamp": iso(at)})
    decoded = decode_record(Line(0, json.dumps(written).encode(), ended=True))
    assert decoded is not None
    return decoded


def a_meta(thread_id: str, **payload: Any) -> SessionMeta:
    record = a_record(FORKED_AT, type="session_meta", payload={"id": thread_id, "timestamp": iso(FORKED_AT)} | payload)
    meta = parse_meta(record)
    assert meta is not None
    return meta


def turn(at: float | None, began_at: float, kind: str = "turn_context", **payload: Any) -> Record:
    return a_record(at, type=kind, payload={"turn_id": a_thread_id(began_at, "turn")} | payload)


def test_rows_after_a_foreign_meta_are_copies_until_the_forks_own_turn_begins() -> None:
    copied = CopiedRows.of(a_meta(OWN, forked_from_id=PARENT))
    assert not copied.covers(a_record(FORKED_AT))
    copied.see_meta(a_meta(PARENT))
    assert copied.covers(turn(FORKED_AT, FORKED_AT - 4000))
    assert copied.covers(a_record(FORKED_AT + 3600))
    assert copied.covers(turn(FORKED_AT + 3600, FORKED_AT + 3600, "event_msg", type="item_completed"))
    assert not copied.covers(turn(FORKED_AT + 3600, FORKED_AT + 3600, "event_msg", type="task_started"))
    assert not copied.covers(a_record(FORKED_AT + 3600))


def test_where_turns_have_no_ids_the_first_pause_in_the_writing_ends_the_copies() -> None:
    copied = CopiedRows.of(a_meta(OWN))
    copied.see_meta(a_meta(PARENT))
    assert [copied.covers(a_record(at)) for at in (FORKED_AT, FORKED_AT + 0.9, None, FORKED_AT + 1.1)] == [True] * 4
    assert not copied.covers(a_record(FORKED_AT + 30))


def test_copies_that_kept_their_times_end_where_the_fork_begins() -> None:
    copied = CopiedRows.of(a_meta(OWN))
    copied.see_meta(a_meta(PARENT))
    assert [copied.covers(a_record(FORKED_AT - ago)) for ago in (5000, 3000, 10)] == [True, True, True]
    assert not copied.covers(a_record(FORKED_AT + 5))


def test_the_own_meta_repeated_begins_no_copies() -> None:
    copied = CopiedRows.of(a_meta(OWN))
    copied.see_meta(a_meta(OWN, memory_mode="enabled"))
    assert not copied.covers(a_record(FORKED_AT))


def test_a_fork_with_a_history_base_holds_only_its_own_rows() -> None:
    copied = CopiedRows.of(a_meta(OWN, history_base={"thread_id": PARENT, "end_ordinal_exclusive": 72}))
    copied.see_meta(a_meta(PARENT))
    assert not copied.covers(a_record(FORKED_AT))


def test_a_sub_agent_says_at_which_ordinal_its_own_history_starts() -> None:
    copied = CopiedRows.of(a_meta(OWN, subagent_history_start_ordinal=5))
    assert [copied.covers(a_record(FORKED_AT, ordinal=ordinal)) for ordinal in (3, 4, 5)] == [True, True, False]


def an_item(kind: ItemKind, text: str = "x", tool: str | None = None) -> Item:
    return Item(kind, text, 0, tool=tool)


def decided(*steps: Item | tuple[Item, bool]) -> list[tuple[ItemKind, str]]:
    final = FinalMessages()
    out: list[Item] = []
    for step in steps:
        if isinstance(step, tuple):
            final.push_undecided(step[0])
        else:
            final.push(step)
        out += final.decided()
    out += final.flush()
    return [(item.kind, item.text) for item in out]


def undecided(text: str) -> tuple[Item, bool]:
    return an_item(ItemKind.ASSISTANT_FINAL, text), True


def test_the_last_message_before_a_human_turn_or_the_end_is_the_answer() -> None:
    call, human_turn = an_item(ItemKind.TOOL_CALL, "call"), an_item(ItemKind.HUMAN, "next")
    assert decided(undecided("a"), call, undecided("b"), human_turn, undecided("c"), call) == [
        (ItemKind.ASSISTANT_COMMENTARY, "a"),
        (ItemKind.TOOL_CALL, "call"),
        (ItemKind.ASSISTANT_FINAL, "b"),
        (ItemKind.HUMAN, "next"),
        (ItemKind.ASSISTANT_FINAL, "c"),
        (ItemKind.TOOL_CALL, "call"),
    ]


def test_an_answered_question_ends_no_turn() -> None:
    answer = an_item(ItemKind.HUMAN, "yes", tool="request_user_input")
    assert decided(undecided("a"), answer, undecided("b"))[0] == (ItemKind.ASSISTANT_COMMENTARY, "a")


def test_a_message_with_a_phase_decides_the_one_before_it() -> None:
    spoken = an_item(ItemKind.ASSISTANT_FINAL, "said to be final")
    assert decided(undecided("a"), spoken) == [
        (ItemKind.ASSISTANT_COMMENTARY, "a"),
        (ItemKind.ASSISTANT_FINAL, "said to be final"),
    ]


def test_a_message_after_which_much_work_follows_is_no_answer_and_the_hold_is_bounded() -> None:
    call = an_item(ItemKind.TOOL_CALL, "call")
    many = decided(undecided("a"), *[call] * (MAX_HELD_ITEMS + 5))
    long = decided(undecided("a"), an_item(ItemKind.TOOL_OUTPUT, "x" * MAX_HELD_CHARACTERS))
    assert many[0] == long[0] == (ItemKind.ASSISTANT_COMMENTARY, "a")
    assert len(many) == MAX_HELD_ITEMS + 6


def test_a_lone_huge_message_may_still_be_the_answer() -> None:
    huge = "x" * (MAX_HELD_CHARACTERS + 1)
    assert decided(undecided(huge)) == [(ItemKind.ASSISTANT_FINAL, huge)]
