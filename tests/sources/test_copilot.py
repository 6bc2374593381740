"""The reader of GitHub Copilot CLI sessions: where they lie, and what their beginning and their end say."""

from pathlib import Path

import pytest

from memoryd.errors import SessionUnreadable
from memoryd.sources.copilot import CopilotReader
from memoryd.sources.items import ItemKind, SessionFile, SessionHead, SessionKind
from tests.support.copilot_sessions import (
    RECORDED,
    a_copilot_session,
    assistant,
    install_recorded_copilot,
    user,
    write_events,
)

NOW = 1_700_000_000.0
READER = CopilotReader()
THREAD = "01a226ab-5fe7-707c-80dd-7a6d93907104"


def head(path: Path) -> SessionHead:
    return READER.head(READER.locate(path))


def test_the_recorded_session_reads_as_a_person_reads_it() -> None:
    (file,) = READER.find([RECORDED / "1.0.102"])
    told = READER.head(file)
    assert told == SessionHead(
        thread_id="167864a3-8f78-4c8f-a6de-c51becfef55d",
        agent="copilot",
        kind=SessionKind.INTERACTIVE,
        cwd="/home/dev/paginator",
        git_branch="fix/pagination",
        parent_id=None,
        started_at=1_795_972_210,
        memory_mode=told.memory_mode,
        originator="copilot-agent",
        lineage="fed76ae6-ea97-4048-bd81-95f8c2e24d3e",
    )
    with READER.read(file) as reading:
        items = list(reading)
    assert [(item.kind, item.text) for item in items if not item.kind.startswith("tool_")] == [
        (ItemKind.HUMAN, "Please fix the pagination off-by-one bug in calc.py"),
        (ItemKind.ASSISTANT_COMMENTARY, "I'll look at the repo and run the tests first."),
        (ItemKind.ASSISTANT_COMMENTARY, "The test fails because page_count floors. Fixing it."),
        (
            ItemKind.ASSISTANT_COMMENTARY,
            "`/` gives a float and the caller needs an int, so use floor division.",
        ),
        (
            ItemKind.ASSISTANT_FINAL,
            "Fixed: page_count now rounds up with (total + size - 1) // size. Tests pass (unittest test_calc.py).",
        ),
    ]
    calls = [item.text for item in items if item.kind is ItemKind.TOOL_CALL]
    assert calls[:3] == [
        "ls && cat calc.py && git log --oneline | head -3",
        "python3 -m unittest -q test_calc.py",
        'view {"path":"/home/dev/paginator/calc.py"}',
    ]
    outputs = [item for item in items if item.kind is ItemKind.TOOL_OUTPUT]
    assert [item.exit_code for item in outputs if item.tool == "bash"] == [0, 1, 1, 0]
    assert outputs[0].text == (
        "AGENTS.md\ncalc.py\ntest_calc.py\ndef page_count(total, size):\n    return total // size\ne1ab60c initial"
    )
    assert {item.cwd for item in items} == {"/home/dev/paginator"}
    assert reading.dropped == {"developer": 1}


def test_a_session_is_a_folder_or_in_old_versions_a_file_and_the_folder_wins(tmp_path: Path) -> None:
    path = a_copilot_session(tmp_path, now=NOW, thread_id=THREAD)
    old = write_events(tmp_path / "session-state" / "old-one.jsonl", [user("hello")], NOW)
    twin = write_events(tmp_path / "session-state" / f"{THREAD}.jsonl", [user("hello")], NOW)
    (tmp_path / "session-state" / "notes.txt").write_text("x")
    (tmp_path / "session-state" / "empty-folder").mkdir()
    assert twin.exists()
    assert [file.path for file in READER.find([tmp_path])] == [path, old]
    assert head(old).thread_id == "copilot:old-one"


def test_the_folder_names_the_session_whatever_the_first_event_says(tmp_path: Path) -> None:
    path = a_copilot_session(tmp_path, now=NOW, thread_id=THREAD, start={"sessionId": "another"})
    assert head(path).thread_id == THREAD


def test_a_session_that_the_program_spawned_for_itself_is_a_sub_agents(tmp_path: Path) -> None:
    spawned = {"detachedFromSpawningParentSessionId": THREAD.upper()}
    told = head(a_copilot_session(tmp_path, now=NOW, start=spawned))
    assert (told.kind, told.parent_id) == (SessionKind.SUBAGENT, THREAD)


def test_old_versions_tell_the_folder_beside_the_events_alone(tmp_path: Path) -> None:
    path = a_copilot_session(tmp_path, now=NOW, cwd=None)
    assert (head(path).cwd, head(path).git_branch) == (None, None)
    path.with_name("workspace.yaml").write_text('id: x\ncwd: "/home/dev/a b"\nbranch: fix/it\ngit_root: /else\n')
    assert (head(path).cwd, head(path).git_branch) == ("/home/dev/a b", "fix/it")


@pytest.mark.parametrize("content", [b"", b"{}\n" * 80, b'{"role": "user"}\n'])
def test_what_has_no_events_names_no_session(tmp_path: Path, content: bytes) -> None:
    path = a_copilot_session(tmp_path, now=NOW)
    path.write_bytes(content)
    with pytest.raises(SessionUnreadable, match="cannot tell which session"):
        head(path)


def test_a_fork_has_the_lineage_of_the_session_that_it_copies(tmp_path: Path) -> None:
    copied = [user("first") | {"id": "u1"}, assistant("one") | {"id": "a1"}]
    parent = write_events(tmp_path / "session-state" / "a" / "events.jsonl", [*copied, user("parent's own")], NOW)
    own = [{"type": "session.start", "data": {}}, *copied, user("fork's own"), assistant("two")]
    fork = write_events(tmp_path / "session-state" / "b" / "events.jsonl", own, NOW + 60)
    assert head(parent).lineage == head(fork).lineage == "u1"
    with READER.read(READER.locate(fork), [READER.locate(parent)]) as reading:
        assert [item.text for item in reading] == ["fork's own", "two"]
    assert reading.dropped == {"copied": 2}
    gone = SessionFile("copilot", str(tmp_path / "gone" / "events.jsonl"), 0, 0)
    with READER.read(READER.locate(fork), [gone]) as reading:
        assert [item.text for item in reading] == ["first", "one", "fork's own", "two"]


def test_the_recorded_sessions_can_be_moved_in_time(tmp_path: Path) -> None:
    (path,) = install_recorded_copilot(tmp_path, now=NOW, idle_hours=7)
    tail = READER.tail(READER.locate(path))
    assert NOW - 7 * 3600 - 1 <= tail.last_record_at <= NOW - 7 * 3600
    assert tail.timed
