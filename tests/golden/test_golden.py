"""Every recorded session of every agent reads as its golden file says: written by a second reader, checked by eye."""

import ast
import json
from functools import cache
from pathlib import Path

import pytest

from memoryd.errors import SessionUnreadable
from memoryd.sources.items import Item, ItemKind, SessionFile
from memoryd.sources.reader import Reading
from memoryd.sources.readers import READERS
from tests.golden.extract import EXTRACTORS, extract, golden_name
from tests.golden.record import EMPTY, MEMORY_RUN, SUBAGENT, Golden

HERE = Path(__file__).parent
FIXTURES = HERE.parent / "fixtures"
EXPECTED = HERE / "expected"
# where in a recording the agent's home lies
HOMES = {
    "codex": ".",
    "claude": ".claude",
    "opencode": ".local/share/opencode",
    "gemini": ".gemini",
    "qwen": ".qwen",
    "copilot": ".copilot",
}


def goldens(agents: set[str]) -> list[Golden]:
    told = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(EXPECTED.rglob("*.json"))]
    return [golden for golden in (Golden(**fields) for fields in told) if golden.agent in agents]


READABLE = goldens(set(READERS))


@cache
def found(agent: str, recording: str) -> list[SessionFile]:
    """What the reader finds in a recording, as in the home of a person who has nothing else."""
    folder = FIXTURES / agent / recording
    home = folder / HOMES[agent]
    return list(READERS[agent].find([home if home.exists() else folder]))


def file_of(golden: Golden) -> SessionFile | None:
    named = golden.file.removesuffix(".json")
    files = found(golden.agent, golden.recording)
    matching = [file for file in files if str(file.path).removesuffix(".json").endswith(named)]
    assert len(matching) <= 1
    return matching[0] if matching else None


def read(golden: Golden, file: SessionFile, *, with_relatives: bool) -> tuple[list[Item], Reading]:
    older = [other for other in READABLE if other.recording == golden.recording and other.id == golden.copied_from]
    relatives = [relative for relative in map(file_of, older) if relative] if with_relatives else []
    with READERS[golden.agent].read(file, relatives) as reading:
        return list(reading), reading


def human(items: list[Item]) -> list[str]:
    return [item.text for item in items if item.kind is ItemKind.HUMAN]


def named(golden: Golden) -> str:
    return str(golden_name(golden))


def test_the_second_reader_shares_no_code_with_memoryd() -> None:
    for path in HERE.glob("*.py"):
        if path.name != Path(__file__).name:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            imported = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
            imported += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
            assert not [name for name in imported if name.partition(".")[0] == "memoryd"], path.name


def test_the_golden_files_are_what_the_second_reader_says_of_the_recordings() -> None:
    extracted = extract(FIXTURES)
    agents = {golden.agent for golden in extracted}
    assert set(READERS) & set(EXTRACTORS) <= agents
    assert sorted(extracted, key=named) == sorted(goldens(agents), key=named)


def test_nothing_is_found_that_has_no_golden_file() -> None:
    for agent in READERS:
        folder = FIXTURES / agent
        for recording in sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.exists() else []:
            known = [golden for golden in READABLE if (golden.agent, golden.recording) == (agent, recording)]
            if known:
                files = {file.path for golden in known if (file := file_of(golden))}
                assert {file.path for file in found(agent, recording)} == files


@pytest.mark.parametrize("golden", READABLE, ids=named)
def test_a_recorded_session_is_told_as_in_its_golden_file(golden: Golden) -> None:
    file = file_of(golden)
    if golden.kind == EMPTY:
        assert file is None or _says_nothing(golden, file)
        return
    if file is None:
        assert golden.kind == SUBAGENT
        return
    head = READERS[golden.agent].head(file)
    assert (head.agent, head.thread_id, head.kind) == (golden.agent, golden.id, golden.kind)
    assert (head.cwd, head.git_branch, head.parent_id) == (golden.cwd, golden.branch, golden.parent)
    if golden.kind in (SUBAGENT, MEMORY_RUN):
        return
    items, reading = read(golden, file, with_relatives=True)
    assert human(items) == golden.human
    assert sum(item.kind is ItemKind.TOOL_CALL for item in items) == golden.tool_calls
    assert (reading.bad_lines, dict(reading.unknown)) == (0, {})
    assert (reading.dropped["copied"] > 0) == (golden.copied_from is not None)


FORKS = [golden for golden in READABLE if golden.copied_from]


@pytest.mark.parametrize("golden", FORKS, ids=named)
def test_a_fork_whose_older_session_is_gone_tells_at_least_its_own_part(golden: Golden) -> None:
    file = file_of(golden)
    assert file is not None
    said = human(read(golden, file, with_relatives=False)[0])
    assert said in (golden.human, golden.copied_human + golden.human)


def _says_nothing(golden: Golden, file: SessionFile) -> bool:
    try:
        READERS[golden.agent].head(file)
    except SessionUnreadable:
        return True
    return not human(read(golden, file, with_relatives=False)[0])
