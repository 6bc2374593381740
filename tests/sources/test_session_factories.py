"""The session factories do what tests lean on: shifted times, kept ids, the same session in another dress."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoryd.sources.codex import CodexReader
from memoryd.sources.items import ItemKind, MemoryMode, SessionKind
from memoryd.sources.readers import READERS
from tests.support.sessions import Command, Turn, a_rollout, install_recorded, recorded_files

NOW = 1_700_000_000.0
READER = CodexReader()


def test_the_last_of_all_recorded_sessions_is_as_old_as_asked(tmp_path: Path) -> None:
    copies = install_recorded(tmp_path, now=NOW, idle_hours=7)
    ages = [NOW - READER.tail(file).last_record_at for file in READER.find([tmp_path])]
    assert len(copies) == len(recorded_files())
    assert 0 <= min(ages) - 7 * 3600 <= 2
    assert max(ages) < 9 * 3600


def test_names_select_recordings(tmp_path: Path) -> None:
    (copy,) = install_recorded(tmp_path, now=NOW, idle_hours=1, names=["exec-0.29.0"])
    assert copy.stat().st_mtime == pytest.approx(NOW - 3600, abs=1)
    assert copy.relative_to(tmp_path).parts[:4] == ("sessions", "2026", "11", "29")


def test_no_recorded_time_is_left_and_all_are_shifted_alike(tmp_path: Path) -> None:
    (copy,) = install_recorded(tmp_path, now=NOW, idle_hours=7, names=["exec-0.171.0"])
    (original,) = recorded_files(["exec-0.171.0"])
    shifts: set[float] = set()
    epochs = re.compile(r'"(?:started_at|completed_at|create_time)":(\d+)')
    for before, after in zip(original.read_text().splitlines(), copy.read_text().splitlines(), strict=True):
        first, second = (datetime.fromisoformat(json.loads(line)["timestamp"]) for line in (before, after))
        shifts.add((first - second).total_seconds())
        shifts.update(int(a) - int(b) for a, b in zip(epochs.findall(before), epochs.findall(after), strict=True))
    assert len(shifts) == 1
    assert "2026-11-29T" not in copy.read_text()
    assert f"<current_date>{datetime.fromtimestamp(NOW - 7 * 3600, UTC).date()}" in copy.read_text()


def test_shifting_changes_nothing_else(tmp_path: Path) -> None:
    install_recorded(tmp_path, now=NOW, idle_hours=7, names=["lifecycle-0.171.0", "compressed"])
    originals = {file.path.name: file for file in READER.find([path.parents[4] for path in recorded_files()])}
    for copy in READER.find([tmp_path]):
        original = originals.get(copy.path.name) or originals[copy.path.name.removesuffix(".zst")]
        with READER.read(copy) as new, READER.read(original) as old:
            pairs = list(zip(new, old, strict=True))
        kept = [(item.kind, item.text, item.ordinal) for pair in pairs for item in pair]
        assert [row for row in kept[::2] if row[0] is ItemKind.HUMAN] == [
            row for row in kept[1::2] if row[0] is ItemKind.HUMAN
        ]
        assert READER.head(copy).thread_id == READER.head(original).thread_id


def test_a_rollout_is_read_as_it_was_asked_for(tmp_path: Path) -> None:
    turns: list[Turn | tuple[str, str] | str] = [
        Turn("a", commands=[Command("make", "no rule", 2)]),
        ("b", "answer b"),
        "c",
        Turn("d", answer=None),
    ]
    path = a_rollout(
        tmp_path, now=NOW, idle_hours=1, turns=turns, source={"custom": "x"}, memory_mode="polluted", branch=None
    )
    (file,) = READERS["codex"].find([tmp_path])
    head, tail = READER.head(file), READER.tail(file)
    assert file.path == path
    assert (head.kind, head.memory_mode, head.git_branch) == (SessionKind.NONINTERACTIVE, MemoryMode.POLLUTED, None)
    assert tail.last_record_at == NOW - 3600 == path.stat().st_mtime
    with READER.read(file) as reading:
        said = [item.text for item in reading if item.kind in (ItemKind.HUMAN, ItemKind.ASSISTANT_FINAL)]
    assert said == ["a", "Done.", "b", "answer b", "c", "Done.", "d"]


def test_two_rollouts_of_one_instant_are_two_threads(tmp_path: Path) -> None:
    a_rollout(tmp_path, now=NOW, turns=["a"])
    a_rollout(tmp_path, now=NOW, turns=["b"], compressed=True)
    assert len({READER.head(file).thread_id for file in READER.find([tmp_path])}) == 2
