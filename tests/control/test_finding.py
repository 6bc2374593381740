import shutil
from pathlib import Path

import pytest

from memoryd.clock import SystemClock
from memoryd.control.finding import find_session, neighbours
from memoryd.errors import UsageError
from memoryd.pipeline.context import Agent
from memoryd.sources.readers import READERS
from tests.support.sessions import a_rollout

FIXTURES = Path(__file__).parents[1] / "fixtures"
THREAD = "0194f5a6-89ab-7cde-8123-456789abcdef"


def agents(**homes: Path) -> dict[str, Agent]:
    return {name: Agent(READERS[name], (home,)) for name, home in homes.items()}


def test_an_id_that_stands_in_no_file_name_is_looked_for_in_the_files(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text('{"type": "session", "id": "my-session"}\n{"type": "user", "text": "Use tabs"}\n')
    for wanted in ("my-session", "my-ses", "generic:my-session"):
        found = find_session(agents(generic=tmp_path), wanted, None)
        assert found.session.file.path == path


def test_a_path_belongs_to_the_agent_that_would_find_it_there(tmp_path: Path) -> None:
    for agent in ("claude", "copilot", "gemini", "qwen"):
        shutil.copytree(FIXTURES / agent, tmp_path / agent)
        files = [path for path in (tmp_path / agent).rglob("*.jsonl") if path.stat().st_size > 2_000]
        for path in files:
            if "subagents" not in path.parts and not path.name.startswith("agent-"):
                assert find_session({}, str(path), None).session.agent.reader.name == agent


def test_what_is_gone_is_said_to_be_gone(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="in which it was seen, is gone"):
        find_session(agents(codex=tmp_path), THREAD, str(tmp_path / "gone.jsonl"))


def test_a_beginning_of_many_ids_names_some_and_counts_the_others(tmp_path: Path) -> None:
    now = SystemClock().now()
    for number in range(7):
        a_rollout(tmp_path, now=now, thread_id=f"0194f5a6-89ab-7cde-8123-45678900000{number}")
    with pytest.raises(UsageError, match=r"fits several sessions: .*-456789000004 and 2 more"):
        find_session(agents(codex=tmp_path), "0194f5a6", None)


def test_a_folder_is_no_session(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no session"):
        find_session(agents(codex=tmp_path), str(tmp_path), None)


def test_neighbours_lie_in_the_same_folder_or_store(tmp_path: Path) -> None:
    now = SystemClock().now()
    first, second = (a_rollout(tmp_path, now=now, turns=[words]) for words in ("one", "two"))
    far = a_rollout(tmp_path, now=now - 9 * 86_400, turns=["three"])
    codex = agents(codex=tmp_path)["codex"]
    beside = [file.path for file in neighbours(codex, codex.reader.locate(first))]
    assert second in beside
    assert first not in beside
    assert far not in beside
