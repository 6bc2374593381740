"""Rows that do not count: branches a person rewound, and what a fork copied; and rows that only look like such."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memoryd.sources.claude import ClaudeReader
from memoryd.sources.claude_branches import FILTER_BYTES, CopiedRows
from memoryd.sources.items import ItemKind, SessionFile
from tests.sources.test_claude_reading import read_rows
from tests.support.claude_sessions import assistant, tool_result, tool_use, user, write_claude_session

NOW = 1_700_000_000.0
ONE = "1f249c7f-981c-49a7-ba03-37eda324b37e"
TWO = "2f249c7f-981c-49a7-ba03-37eda324b37e"
THREE = "3f249c7f-981c-49a7-ba03-37eda324b37e"
READER = ClaudeReader()
BOUNDARY = {"type": "system", "subtype": "compact_boundary", "parentUuid": None}


def said(text: str, parent: str | None = "", **fields: Any) -> dict[str, Any]:
    """A prompt whose id is its text; an empty parent is the row before."""
    return user(text, uuid=text, **({} if parent == "" else {"parentUuid": parent}), **fields)


def answered(text: str, parent: str | None = "", **fields: Any) -> dict[str, Any]:
    """An answer whose id is its text; an empty parent is the row before."""
    return assistant(text, uuid=text, **({} if parent == "" else {"parentUuid": parent}), **fields)


def words(home: Path, *rows: dict[str, Any]) -> tuple[str, Counter[str]]:
    """Read the rows: what was said, and what was dropped."""
    items, reading = read_rows(home, *rows)
    return " ".join(item.text for item in items if item.kind is not ItemKind.TOOL_CALL), reading.dropped


# rewinds


def test_turns_that_were_rewound_are_no_evidence(tmp_path: Path) -> None:
    rows = [said("q1"), answered("a1"), said("q2"), answered("a2"), said("q3"), answered("a3")]
    assert words(tmp_path, *rows, said("q4", "a1"), answered("a4")) == ("q1 a1 q4 a4", Counter(rolled_back=4))


def test_a_prompt_that_was_taken_back_before_any_answer_is_none(tmp_path: Path) -> None:
    assert words(tmp_path, said("q1"), answered("a1"), said("q2"), said("q3", "a1"), answered("a3")) == (
        "q1 a1 q3 a3",
        Counter(rolled_back=1),
    )


def test_one_rewind_after_another_leaves_what_the_last_one_builds_on(tmp_path: Path) -> None:
    rows = [said("q1"), answered("a1"), said("q2"), answered("a2"), said("q3", "a1"), answered("a3"), said("q4")]
    assert words(tmp_path, *rows, said("q5", "a3"), answered("a5")) == ("q1 a1 q3 a3 q5 a5", Counter(rolled_back=3))


def test_a_branch_that_is_taken_up_again_counts_again(tmp_path: Path) -> None:
    rows = [said("q1"), answered("a1"), said("q2"), answered("a2"), said("q3", "a1"), answered("a3")]
    assert words(tmp_path, *rows, said("q4", "a2")) == ("q1 a1 q2 a2 q4", Counter(rolled_back=2))


def test_a_rewind_may_begin_with_a_command_of_the_program(tmp_path: Path) -> None:
    command = user("<command-name>/model</command-name>", uuid="c", parentUuid="m")
    caveat = user("Caveat", uuid="m", isMeta=True, parentUuid="a1")
    rows = [said("q1"), answered("a1"), said("q2"), answered("a2"), caveat, command, said("q3")]
    assert words(tmp_path, *rows)[0] == "q1 a1 q3"


def test_a_rewind_may_begin_with_a_row_of_the_system(tmp_path: Path) -> None:
    system = {"type": "system", "subtype": "local_command", "uuid": "s", "parentUuid": "a1"}
    rows = [said("q1"), answered("a1"), said("q2"), answered("a2"), system, said("q3"), answered("a3")]
    assert words(tmp_path, *rows) == ("q1 a1 q3 a3", Counter(rolled_back=2))


def test_a_rewind_past_a_compaction_takes_its_summary_along(tmp_path: Path) -> None:
    rows = [said("q1"), answered("a1"), said("q2"), answered("a2"), BOUNDARY, said("sum", isCompactSummary=True)]
    text, dropped = words(tmp_path, *rows, said("q3"), said("q4", "a1"))
    assert text == "q1 a1 q4"
    assert dropped == Counter(rolled_back=4)


def test_a_rewind_to_before_the_first_prompt_is_believed_when_the_program_goes_on_from_there(tmp_path: Path) -> None:
    rows = [said("q1"), answered("a1"), said("q2", None), answered("a2")]
    assert words(tmp_path, *rows, {"type": "last-prompt", "leafUuid": "a2"})[0] == "q2 a2"
    assert words(tmp_path, *rows, {"type": "last-prompt", "leafUuid": "a1"})[0] == "q1 a1 q2 a2"
    assert words(tmp_path, *rows)[0] == "q1 a1 q2 a2"


def test_a_file_that_was_written_with_other_white_space_is_read_alike(tmp_path: Path) -> None:
    rows = [said("q1"), answered("a1"), said("q2"), answered("a2"), said("q3", "a1")]
    path = write_claude_session(tmp_path, rows, ends_at=NOW, session_id=ONE)
    loose = [json.dumps(json.loads(line)) for line in path.read_text().splitlines()]
    path.write_text("".join(f"{line}\n" for line in loose))
    with READER.read(READER.locate(path)) as reading:
        assert [item.text for item in reading] == ["q1", "a1", "q3"]


# what is no rewind


def test_parallel_calls_are_no_branches(tmp_path: Path) -> None:
    rows = [
        said("q1"),
        assistant(tool_use("a", "Read"), uuid="ca", message_id="m"),
        assistant(tool_use("b", "Read"), uuid="cb", message_id="m"),
        tool_result("a", "ra", uuid="ra", parentUuid="ca"),
        tool_result("b", "rb", uuid="rb", parentUuid="cb"),
        answered("a1", "ra"),
        said("q2"),
        answered("a2"),
    ]
    assert words(tmp_path, *rows) == ("q1 ra rb a1 q2 a2", Counter())


def test_hooks_and_other_rows_beside_a_prompt_are_no_branches(tmp_path: Path) -> None:
    beside = [{"type": kind, "uuid": kind, "parentUuid": "a1"} for kind in ("progress", "attachment", "system")]
    assert words(tmp_path, said("q1"), answered("a1"), *beside, said("q2", "a1"), answered("a2")) == (
        "q1 a1 q2 a2",
        Counter(),
    )


def test_a_notification_beside_a_prompt_does_not_take_it_back(tmp_path: Path) -> None:
    note = said("job", "a1", origin={"kind": "task-notification"})
    text, dropped = words(tmp_path, said("q1"), answered("a1"), said("q2"), note, answered("a2", "q2"), said("q3"))
    assert (text, dropped["rolled_back"]) == ("q1 a1 q2 a2 q3", 0)


def test_compactions_are_no_branches(tmp_path: Path) -> None:
    summary = {"isCompactSummary": True, "uuid": "s"}
    rows = [said("q1"), answered("a1"), BOUNDARY, user("sum", **summary), said("q2"), BOUNDARY]
    text, dropped = words(tmp_path, *rows, user("sum", isCompactSummary=True), said("q3"))
    assert (text, dropped["rolled_back"]) == ("q1 a1 q2 q3", 0)


def test_sub_agents_rows_are_no_branches(tmp_path: Path) -> None:
    inline = [said("s1", None, isSidechain=True), said("s2", None, isSidechain=True)]
    text, dropped = words(tmp_path, said("q1"), answered("a1"), *inline, answered("a2"), said("q2"))
    assert (text, dropped) == ("q1 a1 a2 q2", Counter(side_chain=2))


def test_a_row_that_is_written_twice_takes_nothing_back(tmp_path: Path) -> None:
    rows = [said("q1"), answered("a1"), said("q2"), answered("a2"), said("q2", "a1"), said("q3", "a2")]
    assert words(tmp_path, *rows)[1]["rolled_back"] == 0


def test_a_parent_that_nobody_knows_takes_nothing_back(tmp_path: Path) -> None:
    rows = [said("q1"), answered("a1"), said("q2", "gone"), answered("a2"), said("q3", "gone")]
    assert words(tmp_path, *rows) == ("q1 a1 q2 a2 q3", Counter())


def test_a_prompt_that_names_itself_is_no_loop(tmp_path: Path) -> None:
    rows = [said("q1", "q1"), answered("a1"), said("q2", "q2"), said("q3", "q2"), said("q4", "q2")]
    assert words(tmp_path, *rows)[0].startswith("q1 a1 q2")


# forks


def a_session(home: Path, session: str, *rows: dict[str, Any]) -> SessionFile:
    return READER.locate(write_claude_session(home, rows, ends_at=NOW, session_id=session))


def read_fork(fork: SessionFile, *relatives: SessionFile) -> tuple[list[str], int]:
    with READER.read(fork, relatives) as reading:
        return [item.text for item in reading], reading.dropped["copied"]


TALK = [said("q1"), answered("a1"), said("q2"), answered("a2")]


def test_rows_of_an_older_session_are_not_the_forks(tmp_path: Path) -> None:
    parent = a_session(tmp_path, ONE, *TALK)
    fork = a_session(tmp_path, TWO, {"type": "mode", "mode": "normal"}, *TALK[:2], said("q3"), answered("a3"))
    assert read_fork(fork, parent) == (["q3", "a3"], 2)
    assert read_fork(fork) == (["q1", "a1", "q3", "a3"], 0)


def test_a_fork_of_a_fork_has_rows_of_both(tmp_path: Path) -> None:
    parent = a_session(tmp_path, ONE, *TALK)
    fork = a_session(tmp_path, TWO, *TALK[:2], said("q3"), answered("a3"))
    third = a_session(tmp_path, THREE, *TALK[:2], said("q3"), answered("a3"), said("q4"))
    assert read_fork(third, parent, fork) == (["q4"], 4)


def test_a_copy_with_gaps_is_a_copy(tmp_path: Path) -> None:
    parent = a_session(tmp_path, ONE, *TALK)
    fork = a_session(tmp_path, TWO, TALK[0], TALK[3], said("q3"))
    assert read_fork(fork, parent) == (["q3"], 2)


def test_a_relative_that_is_gone_is_passed_over(tmp_path: Path) -> None:
    parent = a_session(tmp_path, ONE, *TALK)
    fork = a_session(tmp_path, TWO, *TALK, said("q3"))
    parent.path.unlink()
    assert read_fork(fork, parent) == (["q1", "a1", "q2", "a2", "q3"], 0)


def test_words_queued_in_the_older_session_are_copies_too(tmp_path: Path) -> None:
    queued = {"type": "attachment", "uuid": "w", "attachment": {"type": "queued_command", "prompt": "and docs"}}
    parent = a_session(tmp_path, ONE, *TALK, queued)
    assert read_fork(a_session(tmp_path, TWO, *TALK, queued, said("q3")), parent) == (["q3"], 5)


@pytest.mark.parametrize("count", [1, 20_000])
def test_a_row_is_found_among_any_number_in_a_fixed_amount_of_memory(tmp_path: Path, count: int) -> None:
    lines = (json.dumps({"type": "user", "uuid": f"row-{number}", "sessionId": ONE}) for number in range(count))
    path = tmp_path / f"{ONE}.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    copied = CopiedRows([READER.locate(path)])
    assert all(f"row-{number}" in copied for number in range(count))
    assert not any(f"other-{number}" in copied for number in range(20_000))
    assert copied.size_bytes == FILTER_BYTES
    assert CopiedRows().size_bytes == 0
