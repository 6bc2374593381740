"""Where Claude Code's sessions lie, and what their beginning and their end say of them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from memoryd.errors import SessionUnreadable
from memoryd.sources.claude import ClaudeReader
from memoryd.sources.files import Survey, surveying
from memoryd.sources.items import MemoryMode, SessionFile, SessionHead, SessionKind
from tests.support.claude_sessions import (
    a_claude_session,
    assistant,
    install_recorded_claude,
    user,
    write_claude_session,
)

NOW = 1_700_000_000.0
ONE = "1f249c7f-981c-49a7-ba03-37eda324b37e"
TWO = "2f249c7f-981c-49a7-ba03-37eda324b37e"
READER = ClaudeReader()


def found(home: Path) -> list[SessionFile]:
    return sorted(READER.find([home]), key=lambda file: file.path)


def head_of(path: Path) -> SessionHead:
    return READER.head(READER.locate(path))


def an_agent(folder: Path, name: str, *, session: str = ONE, **fields: Any) -> Path:
    row = user("list the files", isSidechain=True, sessionId=session, uuid="u1", cwd="/x", **fields)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    return path


# finding


def test_sessions_and_sub_agents_of_all_generations_are_found(tmp_path: Path) -> None:
    session = a_claude_session(tmp_path, now=NOW, session_id=ONE)
    beside = an_agent(session.parent, "agent-aa624d5.jsonl")
    below = an_agent(session.parent / ONE / "subagents", "agent-ac85540d8bf987c96.jsonl")
    deeper = an_agent(session.parent / ONE / "subagents" / "workflows", "agent-acompact-1.jsonl")
    assert {file.path for file in found(tmp_path)} == {session, beside, below, deeper}


def test_other_files_are_no_sessions(tmp_path: Path) -> None:
    session = a_claude_session(tmp_path, now=NOW, session_id=ONE)
    for name in ("notes.jsonl", f"{TWO}.json", f"{TWO}.jsonl.bak", f"x{TWO}.jsonl", "agent-.jsonl"):
        (session.parent / name).write_bytes(session.read_bytes())
    an_agent(session.parent / "memory" / "subagents", "agent-aa624d5.jsonl")
    (tmp_path / "projects" / f"{TWO}.jsonl").write_bytes(session.read_bytes())
    assert [file.path for file in found(tmp_path)] == [session]


def test_an_empty_file_is_no_session_yet(tmp_path: Path) -> None:
    session = a_claude_session(tmp_path, now=NOW, session_id=ONE)
    empty = session.with_name(f"{TWO}.jsonl")
    empty.touch()
    assert [file.path for file in found(tmp_path)] == [session]
    empty.write_bytes(session.read_bytes())
    assert [file.path for file in found(tmp_path)] == [session, empty]


def test_a_project_folder_that_is_a_link_is_followed_and_a_file_that_is_one_is_not(tmp_path: Path) -> None:
    elsewhere = a_claude_session(tmp_path / "elsewhere", now=NOW, session_id=ONE)
    home = tmp_path / "home"
    (home / "projects" / "-real").mkdir(parents=True)
    (home / "projects" / "-linked").symlink_to(elsewhere.parent)
    (home / "projects" / "-real" / f"{TWO}.jsonl").symlink_to(elsewhere)
    assert [file.path for file in found(home)] == [home / "projects" / "-linked" / f"{ONE}.jsonl"]


def test_of_two_files_with_one_name_the_one_that_was_written_last_is_the_session(tmp_path: Path) -> None:
    early = a_claude_session(tmp_path, now=NOW, session_id=ONE, cwd="/home/dev/a", idle_hours=9)
    late = a_claude_session(tmp_path, now=NOW, session_id=ONE, cwd="/home/dev/b", idle_hours=8)
    assert [file.path for file in found(tmp_path)] == [late]
    os.utime(early, (NOW, NOW))
    assert [file.path for file in found(tmp_path)] == [early]


def test_the_second_file_of_a_session_is_no_news_to_a_scan_that_knows_the_first(tmp_path: Path) -> None:
    early = a_claude_session(tmp_path, now=NOW, session_id=ONE, cwd="/home/dev/a", idle_hours=9)
    late = a_claude_session(tmp_path, now=NOW, session_id=ONE, cwd="/home/dev/b", idle_hours=8)
    facts = late.stat()
    survey = Survey({str(late): (facts.st_size, facts.st_mtime_ns)})

    def news() -> list[Path]:
        survey.begin(quick=False, now=NOW)
        with surveying(survey):
            return [file.path for file in found(tmp_path)]

    assert news() == []
    assert survey.knows(str(early), early.stat().st_size, early.stat().st_mtime_ns)
    os.utime(early, (NOW, NOW))
    assert news() == [early]


def test_a_home_without_a_projects_folder_is_missing(tmp_path: Path) -> None:
    assert READER.missing_roots([tmp_path]) == [tmp_path]
    (tmp_path / "projects").mkdir()
    assert READER.missing_roots([tmp_path]) == []


# heads


def test_a_head_says_who_and_where(tmp_path: Path) -> None:
    path = a_claude_session(tmp_path, now=NOW, session_id=ONE.upper(), cwd="/home/dev/my.shop", branch="fix/it")
    head = head_of(path)
    assert (head.thread_id, head.agent, head.kind) == (ONE, "claude", SessionKind.INTERACTIVE)
    assert (head.cwd, head.git_branch, head.parent_id) == ("/home/dev/my.shop", "fix/it", None)
    assert (head.memory_mode, head.originator, head.started_at) == (MemoryMode.ENABLED, "cli", int(NOW - 7 * 3600 - 2))
    assert path.parent.name == "-home-dev-my-shop"


def test_an_empty_branch_is_none(tmp_path: Path) -> None:
    assert head_of(a_claude_session(tmp_path, now=NOW, branch="")).git_branch is None


@pytest.mark.parametrize(
    ("entrypoint", "kind"),
    [
        ("cli", SessionKind.INTERACTIVE),
        ("claude-vscode", SessionKind.INTERACTIVE),
        ("claude-desktop", SessionKind.INTERACTIVE),
        ("remote", SessionKind.INTERACTIVE),
        (None, SessionKind.INTERACTIVE),
        ("sdk-cli", SessionKind.NONINTERACTIVE),
        ("sdk-py", SessionKind.NONINTERACTIVE),
        ("sdk-ts", SessionKind.NONINTERACTIVE),
        ("mcp", SessionKind.NONINTERACTIVE),
        ("claude-code-github-action", SessionKind.NONINTERACTIVE),
        ("from-the-future", SessionKind.NONINTERACTIVE),
    ],
)
def test_the_way_the_program_was_started_tells_whether_a_person_is_there(
    tmp_path: Path, entrypoint: str | None, kind: SessionKind
) -> None:
    assert head_of(a_claude_session(tmp_path, now=NOW, entrypoint=entrypoint)).kind is kind


def test_the_name_of_the_file_is_the_session_whatever_its_rows_say(tmp_path: Path) -> None:
    rows = [user("x", sessionId=TWO, uuid="u1"), assistant("y", sessionId=ONE)]
    head = head_of(write_claude_session(tmp_path, rows, ends_at=NOW, session_id=ONE))
    assert (head.thread_id, head.parent_id) == (ONE, TWO)


def test_a_branch_names_the_session_it_came_from(tmp_path: Path) -> None:
    rows = [user("x", forkedFrom={"sessionId": TWO, "messageUuid": "u1"})]
    assert head_of(write_claude_session(tmp_path, rows, ends_at=NOW, session_id=ONE)).parent_id == TWO


def test_forks_share_the_id_of_the_first_row(tmp_path: Path) -> None:
    noise = {"type": "summary", "summary": "x", "leafUuid": "l"}
    parent = write_claude_session(tmp_path, [user("x", uuid="u1")], ends_at=NOW, session_id=ONE)
    fork = write_claude_session(tmp_path, [noise, user("x", uuid="u1"), user("y")], ends_at=NOW, session_id=TWO)
    assert (head_of(parent).lineage, head_of(fork).lineage) == ("u1", "u1")


def test_sub_agents_name_their_session_by_folder_or_row(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "-x"
    beside = an_agent(folder, "agent-aa624d5.jsonl", session=TWO)
    below = an_agent(folder / ONE / "subagents", "agent-ac85540d8bf987c96.jsonl", session=TWO)
    deeper = an_agent(folder / ONE / "subagents" / "workflows", "agent-acompact-1.jsonl", session=TWO)
    heads = [head_of(path) for path in (beside, below, deeper)]
    assert {head.kind for head in heads} == {SessionKind.SUBAGENT}
    assert [head.parent_id for head in heads] == [TWO, ONE, ONE]
    assert heads[0].thread_id == "claude:agent-aa624d5"
    assert {head.lineage for head in heads} == {None}


def test_a_session_of_nothing_but_a_title_is_known_by_its_name(tmp_path: Path) -> None:
    rows = [{"type": "summary", "summary": "Fix it", "leafUuid": "l"}]
    path = write_claude_session(tmp_path, rows, ends_at=NOW, session_id=ONE)
    head = head_of(path)
    assert (head.thread_id, head.cwd, head.started_at, head.lineage) == (ONE, None, None, None)
    assert READER.tail(READER.locate(path)).timed is False


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b'{"some":"thing"}\n' * 100])
def test_what_is_no_session_has_no_head(tmp_path: Path, content: bytes) -> None:
    path = a_claude_session(tmp_path, now=NOW)
    path.write_bytes(content)
    with pytest.raises(SessionUnreadable):
        head_of(path)


# tails


def test_the_end_is_the_last_row_that_has_a_time(tmp_path: Path) -> None:
    noise = [{"type": "last-prompt", "lastPrompt": "x"}, {"type": "cost-state"}, {"type": "mode", "mode": "normal"}]
    path = a_claude_session(tmp_path, now=NOW, idle_hours=7, extra=noise)
    tail = READER.tail(READER.locate(path))
    assert (tail.last_record_at, tail.record_bytes) == (int(NOW - 7 * 3600 - 2 * len(noise)), path.stat().st_size)
    assert (tail.timed, tail.memory_mode) == (True, None)


def test_a_long_row_at_the_end_hides_no_time(tmp_path: Path) -> None:
    path = a_claude_session(tmp_path, now=NOW, extra=[{"type": "api-request-blob", "content": "x" * 300_000}])
    assert READER.tail(READER.locate(path)).last_record_at == int(NOW - 7 * 3600 - 2)


def test_the_recorded_sub_agents_are_told_apart(tmp_path: Path) -> None:
    install_recorded_claude(tmp_path, now=NOW, idle_hours=7)
    kinds = [(READER.head(file).kind is SessionKind.SUBAGENT, "agent-" in file.path.name) for file in found(tmp_path)]
    assert len(kinds) == 28
    assert all(told == named for told, named in kinds)
