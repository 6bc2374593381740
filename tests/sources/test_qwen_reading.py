"""What a Qwen Code session amounts to: rewound branches, rows of a fork, side chains, commands and the harness."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memoryd.sources.items import Item, ItemKind, SessionFile
from memoryd.sources.qwen import QwenReader
from memoryd.sources.qwen_branches import MAX_ROWS
from memoryd.sources.reader import Reading
from tests.support.gemini_sessions import an_id
from tests.support.qwen_sessions import a_call, a_result, assistant, human, system, write_rows
from tests.support.sessions import Command

NOW = 1_700_000_000.0
SESSION = "2d247c28-8968-477b-b063-c99f17f9f9f8"
READER = QwenReader()
HUMAN, FINAL, CALL, OUTPUT = ItemKind.HUMAN, ItemKind.ASSISTANT_FINAL, ItemKind.TOOL_CALL, ItemKind.TOOL_OUTPUT


def written(home: Path, *rows: dict[str, Any], session_id: str = SESSION) -> SessionFile:
    return READER.locate(write_rows(home, rows, now=NOW, session_id=session_id))


def told(file: SessionFile, *relatives: SessionFile) -> tuple[list[Item], Reading]:
    with READER.read(file, relatives) as reading:
        return list(reading), reading


def words(home: Path, *rows: dict[str, Any]) -> list[tuple[ItemKind, str]]:
    return [(item.kind, item.text) for item in told(written(home, *rows))[0]]


def says(text: str, **fields: Any) -> dict[str, Any]:
    return assistant({"text": text}, **fields)


def rewind(parent: str | None, **fields: Any) -> dict[str, Any]:
    return system("rewind", {"truncatedCount": 2}, parentUuid=parent, **fields)


# branches

ABC = human("a", uuid="1"), says("b", uuid="2"), human("c", uuid="3"), says("d", uuid="4")


def test_a_rewind_takes_back_what_stands_between(tmp_path: Path) -> None:
    items, reading = told(written(tmp_path, *ABC, rewind("2"), human("e"), says("f")))
    assert [item.text for item in items] == ["a", "b", "e", "f"]
    assert reading.dropped == Counter(rolled_back=2)


def test_a_rewind_to_before_everything_leaves_what_follows(tmp_path: Path) -> None:
    assert words(tmp_path, *ABC, rewind(None), human("e")) == [(HUMAN, "e")]


def test_a_rewind_with_nothing_after_it_counts(tmp_path: Path) -> None:
    assert words(tmp_path, *ABC, rewind("2")) == [(HUMAN, "a"), (FINAL, "b")]


def test_rewinds_add_up(tmp_path: Path) -> None:
    rows = *ABC, rewind("2", uuid="r"), human("e", uuid="5"), says("f"), rewind("1"), human("g")
    assert words(tmp_path, *rows) == [(HUMAN, "a"), (HUMAN, "g")]


def test_two_rewinds_to_the_same_row_leave_the_last_branch(tmp_path: Path) -> None:
    rows = *ABC, rewind("2"), human("e"), says("f"), rewind("2"), human("g")
    assert words(tmp_path, *rows) == [(HUMAN, "a"), (FINAL, "b"), (HUMAN, "g")]


def test_a_return_to_an_abandoned_branch_restores_it(tmp_path: Path) -> None:
    rows = *ABC, rewind("2"), human("e"), says("f"), rewind("4"), human("g")
    assert words(tmp_path, *rows) == [
        (HUMAN, "a"), (FINAL, "b"), (HUMAN, "c"), (FINAL, "d"), (HUMAN, "g")]  # fmt: skip


def test_a_prompt_may_branch_off_without_a_word(tmp_path: Path) -> None:
    assert words(tmp_path, *ABC, human("e", parentUuid="2")) == [(HUMAN, "a"), (FINAL, "b"), (HUMAN, "e")]


def test_answers_and_results_that_share_a_parent_are_no_branches(tmp_path: Path) -> None:
    results = [a_result(name, Command(name, f"out {name}")) | {"parentUuid": "2"} for name in ("x", "y")]
    calls = assistant(a_call("x", Command("x")), a_call("y", Command("y")), uuid="2")
    items = words(tmp_path, human("a", uuid="1"), calls, *results, says("done"))
    assert [text for _, text in items] == ["a", "x", "y", "out x", "out y", "done"]


@pytest.mark.parametrize("parent", [None, "unheard-of"])
def test_a_gap_in_the_chain_takes_nothing_back(tmp_path: Path, parent: str | None) -> None:
    assert [text for _, text in words(tmp_path, *ABC, human("e", parentUuid=parent))] == ["a", "b", "c", "d", "e"]


def test_very_many_rows_are_followed_in_bounded_memory(tmp_path: Path) -> None:
    rows = [human(f"{number}", uuid=f"{number}") for number in range(MAX_ROWS + 10)]
    items, _ = told(written(tmp_path, *rows, rewind(f"{MAX_ROWS}"), rewind("0")))
    assert len(items) == MAX_ROWS + 1


# forks


def test_a_fork_tells_only_what_no_older_session_holds(tmp_path: Path) -> None:
    older = written(tmp_path, *ABC, session_id=an_id("older"))
    fork = written(tmp_path, *ABC[:2], human("mine"), says("yours"))
    items, reading = told(fork, older)
    assert [item.text for item in items] == ["mine", "yours"]
    assert reading.dropped == Counter(copied=2)


def test_a_fork_whose_parent_is_gone_tells_everything(tmp_path: Path) -> None:
    older = written(tmp_path, *ABC, session_id=an_id("older"))
    older.path.unlink()
    items, reading = told(written(tmp_path, *ABC[:2], human("mine")), older)
    assert [item.text for item in items] == ["a", "b", "mine"]
    assert reading.dropped == Counter()


def test_rows_of_several_older_sessions_are_copies(tmp_path: Path) -> None:
    first = written(tmp_path, *ABC[:2], session_id=an_id("first"))
    second = written(tmp_path, *ABC[:2], human("x", uuid="9"), session_id=an_id("second"))
    items, _ = told(written(tmp_path, *ABC[:2], human("x", uuid="9"), human("mine")), first, second)
    assert [item.text for item in items] == ["mine"]


# rows that are nobody's words


def test_rows_of_a_sub_agent_are_dropped(tmp_path: Path) -> None:
    rows = human("a"), says("sub", isSidechain=True), human("go on", isSidechain=True), says("b")
    items, reading = told(written(tmp_path, *rows))
    assert [item.text for item in items] == ["a", "b"]
    assert reading.dropped == Counter(side_chain=2)


def test_a_side_chain_is_no_branch(tmp_path: Path) -> None:
    side = says("sub", uuid="s", parentUuid="1", isSidechain=True)
    rows = human("a", uuid="1"), says("b", uuid="2"), side, human("c", parentUuid="2")
    assert [text for _, text in words(tmp_path, *rows)] == ["a", "b", "c"]


def test_a_compression_leaves_what_was_said(tmp_path: Path) -> None:
    payload = {"compressedHistory": [{"role": "user", "parts": [{"text": "summary"}]}]}
    items, reading = told(written(tmp_path, human("a"), says("b"), system("chat_compression", payload), human("c")))
    assert [item.text for item in items] == ["a", "b", "c"]
    assert reading.dropped == Counter(compaction=1)


@pytest.mark.parametrize("subtype", ["ui_telemetry", "custom_title", "at_command", "from_the_future"])
def test_rows_of_the_program_are_skipped(tmp_path: Path, subtype: str) -> None:
    _, reading = told(written(tmp_path, human("a"), system(subtype, {"userText": "x"})))
    assert (reading.items_seen, reading.unknown, reading.dropped) == (1, Counter(), Counter())


@pytest.mark.parametrize("provenance", ["goal_control", "goal_runtime", "system"])
def test_prompts_of_the_program_are_not_the_persons(tmp_path: Path, provenance: str) -> None:
    items, reading = told(written(tmp_path, human("a"), human("Continue.", provenance=provenance)))
    assert [item.text for item in items] == ["a"]
    assert reading.dropped == Counter(harness=1)


def test_older_versions_do_not_say_who_speaks(tmp_path: Path) -> None:
    rows = human("a", provenance=None), human("at eight", provenance=None, subtype="cron")
    items, reading = told(written(tmp_path, *rows))
    assert [item.text for item in items] == ["a"]
    assert reading.dropped == Counter(harness=1)


def test_a_notification_is_another_agents(tmp_path: Path) -> None:
    row = human("<task-notification>done</task-notification>", subtype="notification", provenance="system")
    assert words(tmp_path, human("a"), row)[1][0] is ItemKind.OTHER_AGENT


def test_a_row_of_a_type_nobody_knows_is_counted(tmp_path: Path) -> None:
    _, reading = told(written(tmp_path, human("a"), {"type": "hologram"}, {"type": None}))
    assert reading.unknown == Counter({"hologram": 1, "row": 1})


# the person's words


def test_the_words_for_the_screen_are_what_the_person_typed(tmp_path: Path) -> None:
    row = human(
        "explain @a.py and the whole of a.py", systemPayload={"displayText": "explain @a.py", "hookContext": ""}
    )
    assert words(tmp_path, row) == [(HUMAN, "explain @a.py")]


@pytest.mark.parametrize("payload", [{"displayText": "also lint"}, None])
def test_words_in_the_middle_of_a_turn_are_the_persons(tmp_path: Path, payload: Any) -> None:
    text = "\n[User message received during tool execution]: also lint"
    row = human(text, subtype="mid_turn_user_message", systemPayload=payload)
    assert words(tmp_path, human("a"), row) == [(HUMAN, "a"), (HUMAN, "also lint")]


def invoked(command: str, **payload: Any) -> dict[str, Any]:
    return system("slash_command", {"phase": "invocation", "rawCommand": command} | payload)


def test_a_command_that_is_sent_on_is_told_as_it_was_typed(tmp_path: Path) -> None:
    rows = (
        invoked("/fix the login", sentToModel=True),
        human("You are an expert. Fix the login."),
        says("b"),
        human("c"),
    )
    items, reading = told(written(tmp_path, *rows))
    assert [(item.kind, item.text) for item in items] == [(HUMAN, "/fix the login"), (FINAL, "b"), (HUMAN, "c")]
    assert reading.dropped == Counter(expansion=1)


def test_a_command_that_stays_in_the_program_is_no_evidence(tmp_path: Path) -> None:
    done = system("slash_command", {"phase": "result", "rawCommand": "/about"})
    assert words(tmp_path, invoked("/about"), done, human("a")) == [(HUMAN, "a")]


def test_a_prompt_after_the_answer_to_a_command_is_the_persons(tmp_path: Path) -> None:
    rows = invoked("/go now", sentToModel=True), says("b"), human("c")
    assert [text for _, text in words(tmp_path, *rows)] == ["/go now", "b", "c"]


# calls


def test_an_exit_code_is_what_the_result_says(tmp_path: Path) -> None:
    result = a_result("x", Command("make", "no rule", 2))
    result["message"]["parts"][0]["functionResponse"]["response"] = {"error": "no rule"}
    items, _ = told(written(tmp_path, human("a"), assistant(a_call("x", Command("make"))), result))
    assert [(item.kind, item.text, item.exit_code) for item in items[1:]] == [
        (CALL, "make", None), (OUTPUT, "no rule", 2)]  # fmt: skip


def test_items_stand_where_their_rows_do(tmp_path: Path) -> None:
    items, _ = told(written(tmp_path, human("a"), human("b", cwd="/elsewhere"), human("c", cwd=None)))
    assert [item.cwd for item in items] == ["/home/dev/shop", "/elsewhere", None]
    assert [item.ordinal for item in items] == [0, 1, 2]
