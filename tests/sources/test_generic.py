"""The generic format: sessions that anybody can write, as README describes them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from memoryd.errors import SessionUnreadable
from memoryd.sources.generic import GenericReader
from memoryd.sources.generic_records import ROLES, TYPES, key_of
from memoryd.sources.items import Item, ItemKind, MemoryMode, SessionHead, SessionKind
from memoryd.sources.reader import Reading
from tests.support.generic_sessions import RECORDED, a_generic_session, write_rows

NOW = 1_700_000_000.0
READER = GenericReader()
THREAD = "01a226ab-5fe7-707c-80dd-7a6d93907104"
README = Path(__file__).parents[2] / "README.md"
CALL, OUTPUT = ItemKind.TOOL_CALL, ItemKind.TOOL_OUTPUT


def written(folder: Path, *rows: dict[str, Any], name: str = "notes") -> Path:
    return write_rows(folder / f"{name}.jsonl", rows, NOW)


def head(path: Path) -> SessionHead:
    return READER.head(READER.locate(path))


def read(path: Path, *relatives: Path) -> tuple[list[Item], Reading]:
    with READER.read(READER.locate(path), [READER.locate(relative) for relative in relatives]) as reading:
        return list(reading), reading


def brief(items: list[Item]) -> list[tuple[ItemKind, str]]:
    return [(item.kind, item.text) for item in items]


def test_the_example_of_the_readme_reads_as_it_says(tmp_path: Path) -> None:
    section = README.read_text().partition("### Any other agent")[2].partition("\n## ")[0]
    (example,) = re.findall(r"```jsonl\n(.*?)```", section, re.DOTALL)
    path = tmp_path / "example.jsonl"
    path.write_text(example)
    told, (items, reading) = head(path), read(path)
    assert (told.thread_id, told.cwd, told.git_branch) == ("generic:editor-7", "/home/ada/shop", "main")
    assert told.kind is SessionKind.INTERACTIVE
    assert brief(items) == [
        (ItemKind.HUMAN, "Run the tests, please."),
        (CALL, "pytest -q"),
        (OUTPUT, "1 failed"),
        (ItemKind.ASSISTANT_FINAL, "One of them fails: test_total."),
        (ItemKind.HUMAN, "Always say which line fails, too."),
    ]
    assert [item.exit_code for item in items if item.kind is OUTPUT] == [1]
    assert (reading.bad_lines, reading.unknown, reading.timed) == (0, {}, True)
    described = set(re.findall(r"^\| `([a-z_]+)` \|", section, re.MULTILINE))
    assert described >= TYPES
    assert all(f"`{role}`" in section for role in ROLES)


def test_every_row_of_the_sample_session_is_what_it_says(tmp_path: Path) -> None:
    path = RECORDED / "editor.jsonl"
    items, reading = read(path)
    assert head(path) == SessionHead(
        thread_id="generic:editor-7",
        agent="generic",
        kind=SessionKind.INTERACTIVE,
        cwd="/home/dev/paginator",
        git_branch="fix/pagination",
        parent_id=None,
        started_at=1_699_974_600,
        memory_mode=MemoryMode.ENABLED,
        originator="my-editor 1.2",
        lineage=key_of("1", "user", "Please fix the pagination off-by-one bug in calc.py"),
    )
    assert brief(items) == [
        (ItemKind.HARNESS_CONTEXT, "Shell: bash. Two files are open."),
        (ItemKind.HUMAN, "Please fix the pagination off-by-one bug in calc.py"),
        (ItemKind.ASSISTANT_COMMENTARY, "I run the tests first."),
        (CALL, "python3 -m unittest -q test_calc.py"),
        (OUTPUT, "FAILED (failures=1)"),
        (CALL, "python ceil division"),
        (OUTPUT, "Use -(-a // b)."),
        (ItemKind.OTHER_AGENT, "reviewer: the change looks right."),
        (ItemKind.ASSISTANT_FINAL, "Fixed: page_count rounds up now."),
        (ItemKind.HUMAN, "Thanks. Always run the tests first."),
    ]
    assert [item.external for item in items if item.tool] == [False, False, True, True]
    assert [item.at for item in items][-2:] == [1_699_974_610.0, 1_699_974_800.0]
    assert reading.dropped == {"repeated": 1}


def test_a_chat_completions_log_reads_without_any_preparation() -> None:
    path = RECORDED / "nested" / "chat-export.jsonl"
    items, reading = read(path)
    assert head(path).thread_id == "generic:chat-export"
    assert brief(items) == [
        (ItemKind.HUMAN, "Which files are here?"),
        (CALL, "ls"),
        (OUTPUT, "calc.py\ntest_calc.py"),
        (ItemKind.ASSISTANT_FINAL, "Two: calc.py and test_calc.py."),
    ]
    assert {item.tool for item in items if item.tool} == {"bash"}
    assert (reading.dropped, reading.timed) == ({"developer": 1, "image": 1}, False)


def test_files_are_found_a_few_levels_deep_and_hidden_ones_are_not(tmp_path: Path) -> None:
    wanted = [written(tmp_path / place, {"type": "user", "text": "x"}) for place in (".", "a/b/c/d", "z")]
    for place in (".hidden", "a/.git", "a/b/c/d/e"):
        written(tmp_path / place, {"type": "user", "text": "x"})
    written(tmp_path, {"type": "user", "text": "x"}, name=".draft")
    (tmp_path / "notes.json").write_text("{}")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = [file.path for file in READER.find([tmp_path, tmp_path / "a"])]
    assert sorted(found) == sorted([*wanted, tmp_path / "a/b/c/d/e/notes.jsonl"])
    assert [file.path for file in READER.find([tmp_path])] == sorted(wanted, key=lambda path: path.parts)


def test_a_file_is_no_folder_of_sessions(tmp_path: Path) -> None:
    path = written(tmp_path, {"type": "user", "text": "x"})
    assert READER.missing_roots([path, tmp_path]) == [path]
    assert list(READER.find([path])) == []


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        ({"id": THREAD.upper()}, THREAD),
        ({"id": "run 7"}, "generic:run 7"),
        ({"id": "two\nlines"}, "generic:notes"),
        ({"id": ""}, "generic:notes"),
        ({}, "generic:notes"),
    ],
)
def test_the_id_is_the_session_rows_else_the_files_name(tmp_path: Path, session: dict[str, Any], expected: str) -> None:
    assert head(written(tmp_path, {"type": "session", **session}, {"type": "user", "text": "x"})).thread_id == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (None, SessionKind.INTERACTIVE),
        ("interactive", SessionKind.INTERACTIVE),
        ("noninteractive", SessionKind.NONINTERACTIVE),
        ("Subagent", SessionKind.SUBAGENT),
        ("cron", SessionKind.NONINTERACTIVE),
    ],
)
def test_a_kind_that_nobody_knows_counts_as_scripted(tmp_path: Path, kind: str | None, expected: SessionKind) -> None:
    assert head(written(tmp_path, {"type": "session", "kind": kind}, {"type": "user", "text": "x"})).kind is expected


def test_a_session_without_a_session_row_says_what_its_rows_say(tmp_path: Path) -> None:
    told = head(written(tmp_path, {"type": "user", "text": "x"}, {"type": "user", "text": "y", "cwd": "/w", "at": 5}))
    assert (told.cwd, told.started_at, told.parent_id, told.git_branch) == ("/w", 5, None, None)


def test_the_memory_mode_may_change_and_the_last_word_holds(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"type": "session", "memory_mode": "enabled"}, {"type": "user", "text": "x"}]
    path = written(tmp_path, *rows, {"type": "session", "memory_mode": "disabled"}, {"type": "user", "text": "y"})
    assert head(path).memory_mode is MemoryMode.ENABLED
    assert READER.tail(READER.locate(path)).memory_mode is MemoryMode.DISABLED
    assert read(path)[1].memory_mode is MemoryMode.DISABLED


def test_a_memory_mode_that_nobody_knows_is_no_consent(tmp_path: Path) -> None:
    told = head(written(tmp_path, {"type": "session", "memory_mode": "sometimes"}, {"type": "user", "text": "x"}))
    assert told.memory_mode is MemoryMode.DISABLED


@pytest.mark.parametrize("content", ["", '{"some": "log"}\n' * 70, "plain text\n"])
def test_other_json_lines_are_no_session(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(content)
    with pytest.raises(SessionUnreadable, match="cannot tell which session"):
        head(path)


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (1_699_974_800, 1_699_974_800.0),
        (1_699_974_800.25, 1_699_974_800.25),
        (1_699_974_800_250, 1_699_974_800.25),
        ("2023-11-14T15:13:20Z", 1_699_974_800.0),
        ("2023-11-14T16:13:20.250+01:00", 1_699_974_800.25),
        ("2023-11-14T15:13:20", 1_699_974_800.0),
        ("yesterday", None),
        (-5, None),
        (True, None),
        (None, None),
    ],
)
def test_times_are_iso_or_epoch(tmp_path: Path, at: Any, expected: float | None) -> None:
    path = written(tmp_path, {"type": "user", "text": "x", "at": at})
    (item,), reading = read(path)
    assert (item.at, reading.timed) == (expected, expected is not None)
    assert reading.last_record_at == int(NOW if expected is None else expected)


def test_a_folder_holds_until_another_is_named(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"type": "session", "cwd": "/a"},
        {"type": "user", "text": "one"},
        {"type": "user", "text": "two", "cwd": "/b"},
        {"type": "user", "text": "three"},
    ]
    assert [item.cwd for item in read(written(tmp_path, *rows))[0]] == ["/a", "/b", "/b"]


def test_a_later_row_with_the_same_id_is_a_repetition(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"type": "user", "text": word, "id": row_id} for word, row_id in (("a", "1"), ("b", None), ("c", "1"))
    ]
    items, reading = read(written(tmp_path, *rows, {"type": "user", "text": "b"}))
    assert [item.text for item in items] == ["a", "b", "b"]
    assert reading.dropped == {"repeated": 1}


def test_rows_that_a_fork_copied_are_its_parents(tmp_path: Path) -> None:
    copied = [{"type": "user", "text": word, "id": word} for word in ("one", "two")]
    parent = written(tmp_path, *copied, {"type": "user", "text": "three", "id": "three"}, name="parent")
    forked = {"type": "session", "parent_id": "parent"}
    fork = written(tmp_path, forked, *copied, {"type": "user", "text": "mine", "id": "mine"}, name="fork")
    assert head(fork).lineage == head(parent).lineage == key_of("one", "user", "one")
    assert head(fork).parent_id == "generic:parent"
    items, reading = read(fork, parent)
    assert [item.text for item in items] == ["mine"]
    assert reading.dropped == {"copied": 2}


def test_sessions_that_each_count_their_rows_from_one_are_no_forks(tmp_path: Path) -> None:
    """Else all but the first of them would lose every word, and none would say so."""
    said = [["Hello", "Use tabs."], ["Hello", "Use spaces."], ["Use make."]]
    paths = [
        written(
            tmp_path,
            *({"type": "user", "text": word, "id": str(at)} for at, word in enumerate(words)),
            name=f"s{number}",
        )
        for number, words in enumerate(said)
    ]
    assert head(paths[0]).lineage == head(paths[1]).lineage != head(paths[2]).lineage
    assert [item.text for item in read(paths[1], paths[0])[0]] == ["Use spaces."]
    assert [item.text for item in read(paths[2], paths[0], paths[1])[0]] == ["Use make."]


def test_rows_of_no_speaker_end_no_copy(tmp_path: Path) -> None:
    copied: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief.", "id": "0"},
        {"type": "hologram", "id": "1"},
        {"role": "user", "content": [{"type": "text", "text": "one"}], "id": "2"},
        {"role": "assistant", "content": "", "tool_calls": [], "id": "3"},
        {"role": "user", "content": "two", "id": "4"},
    ]
    parent = written(tmp_path, *copied, name="parent")
    fork = written(tmp_path, *copied, {"type": "user", "text": "mine", "id": "5"}, name="fork")
    assert [item.text for item in read(fork, parent)[0]] == ["mine"]


def test_calls_may_give_their_arguments_and_outputs_their_call(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"type": "tool_call", "tool": "shell", "arguments": {"command": ["bash", "-lc", "make"]}, "call_id": "1"},
        {"type": "tool_output", "call_id": "1", "text": "", "exit_code": 0},
        {"type": "tool_call", "tool": "edit", "arguments": {"path": "a.py", "new": "x"}},
        {"type": "tool_output", "text": "done"},
        {"type": "tool_output", "text": ""},
        {"type": "tool_call", "text": "look around"},
    ]
    items, _ = read(written(tmp_path, *rows))
    assert [(item.kind, item.tool, item.text, item.exit_code) for item in items] == [
        (CALL, "shell", "make", None),
        (OUTPUT, "shell", "", 0),
        (CALL, "edit", 'edit {"path":"a.py","new":"x"}', None),
        (OUTPUT, "tool", "done", None),
        (CALL, "tool", "look around", None),
    ]


def test_the_last_answer_of_a_turn_is_final_unless_the_rows_say_otherwise(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"type": "user", "text": "a"},
        {"type": "assistant", "text": "1"},
        {"type": "assistant", "text": "2"},
        {"type": "user", "text": "b"},
        {"type": "assistant", "text": "3", "final": True},
        {"type": "assistant", "text": "4", "final": False},
    ]
    items, _ = read(written(tmp_path, *rows))
    assert [(item.text, item.kind.value) for item in items if item.kind is not ItemKind.HUMAN] == [
        ("1", "assistant_commentary"),
        ("2", "assistant_final"),
        ("3", "assistant_final"),
        ("4", "assistant_commentary"),
    ]


def test_content_may_come_in_parts(tmp_path: Path) -> None:
    parts = ["one", {"type": "text", "text": "two"}, {"type": "input_audio", "data": "AAAA"}, {"type": "image"}, 7]
    items, reading = read(written(tmp_path, {"type": "user", "content": parts}))
    assert [item.text for item in items] == ["one\n\ntwo"]
    assert reading.dropped == {"image": 1, "audio": 1}


def test_rows_of_no_known_type_are_counted_by_what_they_call_themselves(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"type": "user", "text": "x"}, {"type": "plan"}, {"role": "critic"}, {"hello": 1}]
    assert read(written(tmp_path, *rows))[1].unknown == {"plan": 1, "critic": 1, "row": 1}


def test_a_session_can_be_made_of_turns(tmp_path: Path) -> None:
    path = a_generic_session(tmp_path, now=NOW, turns=["x"], session={"id": THREAD})
    assert json.loads(path.read_text().splitlines()[0])["id"] == head(path).thread_id == THREAD
