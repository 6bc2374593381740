"""Where Qwen Code's sessions lie, and what their beginning and their end say."""

import os
from pathlib import Path

import pytest

from memoryd.errors import SessionUnreadable
from memoryd.sources.items import ItemKind, SessionFile, SessionHead, SessionKind
from memoryd.sources.qwen import QwenReader
from tests.support.gemini_sessions import an_id
from tests.support.qwen_sessions import BRANCH, CWD, RECORDED, a_qwen_session, assistant, human, system, write_rows

NOW = 1_700_000_000.0
SESSION = "2d247c28-8968-477b-b063-c99f17f9f9f8"
READER = QwenReader()


def only(home: Path) -> SessionFile:
    (file,) = READER.find([home])
    return file


def head(home: Path) -> SessionHead:
    return READER.head(only(home))


def test_a_head_tells_what_the_first_row_of_the_conversation_says(tmp_path: Path) -> None:
    a_qwen_session(tmp_path, now=NOW, idle_hours=1, session_id=SESSION)
    told = head(tmp_path)
    assert (told.thread_id, told.kind, told.cwd, told.git_branch) == (SESSION, SessionKind.INTERACTIVE, CWD, BRANCH)
    assert told.started_at is not None
    assert NOW - 3700 < told.started_at < NOW - 3600
    assert told.parent_id is None


def test_a_session_is_named_by_its_file_and_never_by_its_rows(tmp_path: Path) -> None:
    write_rows(tmp_path, [human("a", sessionId=an_id("another"))], now=NOW, session_id=SESSION)
    assert head(tmp_path).thread_id == SESSION


def test_rows_of_the_program_may_come_first(tmp_path: Path) -> None:
    rows = [system("session_source", {"sourceType": "cli"}), human("a", uuid="u1", cwd="/elsewhere")]
    write_rows(tmp_path, rows, now=NOW, session_id=SESSION)
    told = head(tmp_path)
    assert (told.cwd, told.lineage) == ("/elsewhere", "u1")


def test_a_session_in_which_nobody_spoke_yet_still_has_a_head(tmp_path: Path) -> None:
    write_rows(tmp_path, [system("ui_telemetry", {})], now=NOW, session_id=SESSION)
    assert head(tmp_path).cwd == CWD


def test_a_fork_names_its_parent_and_has_its_lineage(tmp_path: Path) -> None:
    parent, fork = an_id("parent"), an_id("fork")
    common = [human("a", uuid="u1"), assistant({"text": "b"}, uuid="u2")]
    write_rows(tmp_path, common, now=NOW, session_id=parent)
    copied = [row | {"forkedFrom": {"sessionId": parent, "messageUuid": row["uuid"]}} for row in common]
    write_rows(tmp_path, [*copied, human("c")], now=NOW, session_id=fork)
    heads = {told.thread_id: told for told in map(READER.head, READER.find([tmp_path]))}
    assert (heads[fork].parent_id, heads[parent].parent_id) == (parent, None)
    assert heads[fork].lineage == heads[parent].lineage == "u1"


def test_a_session_that_an_agent_spawned_is_a_sub_agents(tmp_path: Path) -> None:
    rows = [system("parent_session", {"parentSessionId": an_id("parent")}), human("a")]
    write_rows(tmp_path, rows, now=NOW, session_id=SESSION)
    told = head(tmp_path)
    assert (told.kind, told.parent_id, told.lineage) == (SessionKind.SUBAGENT, an_id("parent"), None)


def test_a_session_of_side_chain_rows_is_a_sub_agents(tmp_path: Path) -> None:
    write_rows(tmp_path, [human("a", isSidechain=True)], now=NOW, session_id=SESSION)
    assert head(tmp_path).kind is SessionKind.SUBAGENT


def test_sub_agents_lie_in_folders_named_like_their_parents(tmp_path: Path) -> None:
    path = write_rows(tmp_path, [human("a", isSidechain=True)], now=NOW, session_id=an_id("x"))
    nested = path.parents[1] / "subagents" / SESSION / "agent-explore-7f3c.jsonl"
    nested.parent.mkdir(parents=True)
    path.rename(nested)
    told = head(tmp_path)
    assert (told.kind, told.parent_id, told.thread_id) == (
        SessionKind.SUBAGENT, SESSION, "qwen:agent-explore-7f3c")  # fmt: skip
    with READER.read(only(tmp_path)) as reading:
        assert [item.text for item in reading] == ["a"]


def test_an_archived_copy_is_the_same_session(tmp_path: Path) -> None:
    path = a_qwen_session(tmp_path, now=NOW, session_id=SESSION)
    archived = path.parent / "archive" / path.name
    archived.parent.mkdir()
    archived.write_bytes(path.read_bytes())
    os.utime(archived, (NOW - 1e6, NOW - 1e6))
    assert only(tmp_path).path == path
    path.unlink()
    assert only(tmp_path).path == archived


def test_what_else_lies_beside_the_chats_is_no_session(tmp_path: Path) -> None:
    path = a_qwen_session(tmp_path, now=NOW, session_id=SESSION)
    for name in (f"{SESSION}.runtime.json", "notes.jsonl", f"{SESSION}.jsonl.bak"):
        path.with_name(name).write_bytes(path.read_bytes())
    assert only(tmp_path).path == path


@pytest.mark.parametrize("content", [b"", b'{"brand": "new"}\n'])
def test_a_file_without_any_known_row_has_no_head(tmp_path: Path, content: bytes) -> None:
    a_qwen_session(tmp_path, now=NOW).write_bytes(content)
    with pytest.raises(SessionUnreadable, match="which session"):
        head(tmp_path)


def test_the_end_is_that_of_the_last_row_that_has_a_time(tmp_path: Path) -> None:
    path = a_qwen_session(tmp_path, now=NOW, idle_hours=2)
    with path.open("a") as file:
        file.write('{"type": "system", "uuid": "x"}\n')
    tail = READER.tail(only(tmp_path))
    assert (tail.last_record_at, tail.record_bytes, tail.timed) == (int(NOW - 7200), path.stat().st_size, True)


def test_a_session_without_times_has_that_of_its_file(tmp_path: Path) -> None:
    path = write_rows(tmp_path, [human("a", timestamp=None)], now=NOW, session_id=SESSION)
    os.utime(path, (NOW, NOW))
    tail = READER.tail(only(tmp_path))
    assert (tail.last_record_at, tail.timed) == (int(NOW), False)


# the recorded session


def test_the_recorded_session_reads_as_a_person_reads_it() -> None:
    (file,) = READER.find([RECORDED / "0.24.4" / ".qwen"])
    told = READER.head(file)
    with READER.read(file) as reading:
        items = list(reading)
    words = {kind: [item.text for item in items if item.kind is kind] for kind in ItemKind}
    assert (told.thread_id, told.cwd, told.git_branch) == (
        "23d11345-44be-4932-b10c-0a0493667f61", "/home/dev/paginator", "fix/pagination")  # fmt: skip
    assert words[ItemKind.HUMAN] == [
        "Please fix the pagination off-by-one bug in calc.py",
        "From now on I prefer that you always run the tests",
    ]
    assert words[ItemKind.ASSISTANT_FINAL] == [
        "Fixed: page_count now rounds up with (total + size - 1) // size. Tests pass (unittest test_calc.py).",
        "Understood. I will run `python3 -m unittest -q` before saying a change is done, and keep diffs small.",
    ]
    assert words[ItemKind.ASSISTANT_COMMENTARY] == [
        "I'll look at the repo and run the tests first.",
        "The test fails because page_count floors. Fixing it.",
        "`/` gives a float and the caller needs an int, so use floor division.",
    ]
    assert words[ItemKind.TOOL_CALL][1] == "python3 -m unittest -q test_calc.py"
    outputs = [item for item in items if item.kind is ItemKind.TOOL_OUTPUT]
    assert [item.exit_code for item in outputs] == [0, 1, None, None, 1, None, 0, 0]
    assert outputs[1].text.startswith("=====")
    assert outputs[1].text.endswith("FAILED (failures=1)")
    assert (reading.bad_lines, dict(reading.unknown), dict(reading.dropped)) == (0, {}, {})
