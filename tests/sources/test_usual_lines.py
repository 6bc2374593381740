"""Lines that are as nearly all are get decoded in one go, all others member by member: both tell the same."""

import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from memoryd.errors import SessionWithoutItems
from memoryd.sources.items import Item, SessionFile
from memoryd.sources.readers import READERS
from tests.bench.read.sessions import PLACES, write_session

FIXTURES = Path(__file__).parents[1] / "fixtures"
AGENTS = ("claude", "codex", "copilot", "gemini", "generic", "qwen")
NOW = 1_700_000_000
ROUNDS = 60
OTHER_VALUES = (
    "null", "true", "false", "0", "-1", "3.5", "100000000000000000000", '""', '"x"', '" \\n "', '"user"', "[]", "{}",
    '["a"]', "[null]", '{"a": 1}', '{"output": "o"}', '{"output": null}', '[{"type": "text", "text": "t"}]',
    '[{"text": "q"}]', '"2026-11-29T16:48:20Z"',
)  # fmt: skip
FILLER = b"\x00"  # what a crash of the machine leaves: a line that begins with it is none of the usual


@dataclass(frozen=True, slots=True)
class Told:
    """All that a reading tells of a session but its size."""

    items: list[Item]
    seen: dict[str, Any]


def tell(agent: str, file: SessionFile) -> Told:
    items: list[Item] = []
    with READERS[agent].read(file) as reading, suppress(SessionWithoutItems):
        items.extend(reading)
    names = ("bad_lines", "unknown", "dropped", "memory_mode", "rate_limits", "citations", "last_record_at", "timed")
    return Told(items, {name: getattr(reading, name) for name in names})


def both(agent: str, path: Path) -> tuple[Told, Told]:
    """Tell a session as it is, and with no line in it that is as usual."""
    os.utime(path, (NOW, NOW))
    usual = tell(agent, READERS[agent].locate(path))
    path.write_bytes(b"".join(FILLER + line for line in path.read_bytes().splitlines(keepends=True)))
    os.utime(path, (NOW, NOW))
    return usual, tell(agent, READERS[agent].locate(path))


def recorded(agent: str) -> list[Path]:
    return sorted(path for path in (FIXTURES / agent).rglob("*.jsonl") if path.stat().st_size)


@pytest.mark.parametrize("agent", AGENTS)
def test_recorded_sessions_read_the_same_line_by_line_and_member_by_member(tmp_path: Path, agent: str) -> None:
    read = 0
    for path in recorded(agent):
        copy = tmp_path / path.relative_to(FIXTURES)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        usual, other = both(agent, copy)
        assert usual == other, path
        read += len(usual.items)
    assert read


@pytest.mark.parametrize("agent", AGENTS)
def test_what_no_version_writes_reads_the_same_line_by_line_and_member_by_member(tmp_path: Path, agent: str) -> None:
    random = Random(agent)
    for path in [random.choice(recorded(agent)) for _ in range(ROUNDS)]:
        rows = [json.loads(line) for line in path.read_bytes().splitlines()]
        for _ in range(random.randint(1, 6)):
            replace_a_member(random.choice(rows), random)
        copy = tmp_path / path.relative_to(FIXTURES)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
        usual, other = both(agent, copy)
        assert usual == other, copy.read_text()


def replace_a_member(row: Any, random: Random) -> None:
    """Put something else in the place of one member or element, however deep, or take it away."""
    places: list[tuple[Any, Any]] = []
    rest = [row]
    while rest:
        holder = rest.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        places += [(holder, key) for key in keys]
        rest += [holder[key] for key in keys]
    holder, key = random.choice(places or [({}, "")])
    if isinstance(holder, dict) and random.random() < 0.2:
        holder.pop(key, None)
    else:
        holder[key] = json.loads(random.choice(OTHER_VALUES))


@pytest.mark.parametrize("agent", AGENTS)
def test_large_sessions_read_the_same_line_by_line_and_member_by_member(tmp_path: Path, agent: str) -> None:
    path = write_session(agent, tmp_path, 600_000)
    assert path == tmp_path / PLACES[agent]
    usual, other = both(agent, path)
    assert usual == other
    assert len(usual.items) > 20
