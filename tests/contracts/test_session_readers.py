"""One contract for every reader of sessions: whatever the agent, the rest of the house can rely on these."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from memoryd.errors import SessionVanished, SourceError
from memoryd.sources.items import Item, ItemKind, MemoryMode, SessionFile, SessionKind
from memoryd.sources.reader import Reading, SessionReader
from memoryd.sources.readers import READERS
from tests.support.sessions import a_rollout, install_recorded

NOW = 1_700_000_000.0
IDLE_HOURS = 7


@dataclass(frozen=True)
class Sample:
    """How the contract gets sessions of an agent: the recorded ones under a home, and one with given words."""

    install: Callable[[Path], Sequence[Path]]
    write: Callable[[Path, list[str]], Path]


SAMPLES = {
    "codex": Sample(
        install=lambda home: install_recorded(home, now=NOW, idle_hours=IDLE_HOURS),
        write=lambda home, said: a_rollout(home, now=NOW, idle_hours=IDLE_HOURS, turns=said),
    ),
}


def test_every_reader_has_samples_and_stands_under_its_own_name() -> None:
    assert {name: reader.name for name, reader in READERS.items()} == {name: name for name in SAMPLES}


@pytest.fixture(params=sorted(READERS))
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def reader(agent: str) -> SessionReader:
    return READERS[agent]


@pytest.fixture
def files(agent: str, reader: SessionReader, tmp_path: Path) -> list[SessionFile]:
    SAMPLES[agent].install(tmp_path)
    return list(reader.find([tmp_path]))


def read(reader: SessionReader, file: SessionFile) -> tuple[list[Item], Reading]:
    with reader.read(file) as reading:
        return list(reading), reading


def test_files_are_found_once_and_described_without_being_opened(
    agent: str, reader: SessionReader, files: list[SessionFile]
) -> None:
    assert files
    assert len({file.path for file in files}) == len(files)
    assert len({reader.head(file).thread_id for file in files}) == len(files)
    for file in files:
        facts = file.path.stat()
        assert file == SessionFile(agent, file.path, facts.st_size, facts.st_mtime_ns)


def test_a_head_names_the_session(agent: str, reader: SessionReader, files: list[SessionFile]) -> None:
    heads = [reader.head(file) for file in files]
    assert {head.agent for head in heads} == {agent}
    assert all(head.thread_id and head.thread_id == head.thread_id.strip() for head in heads)
    assert any(head.kind is SessionKind.INTERACTIVE for head in heads)
    assert all(isinstance(head.memory_mode, MemoryMode) for head in heads)
    assert all(head.started_at is None or 0 < head.started_at <= NOW for head in heads)


def test_the_end_and_the_whole_agree_on_the_watermark(reader: SessionReader, files: list[SessionFile]) -> None:
    for file in files:
        tail = reader.tail(file)
        _, reading = read(reader, file)
        assert (tail.last_record_at, tail.record_bytes, tail.timed) == (
            reading.last_record_at,
            reading.record_bytes,
            reading.timed,
        )
        assert NOW - 24 * 3600 < tail.last_record_at <= NOW - IDLE_HOURS * 3600


def test_items_come_in_order_with_words_or_an_exit_code(reader: SessionReader, files: list[SessionFile]) -> None:
    for file in files:
        items, reading = read(reader, file)
        ordinals = [item.ordinal for item in items]
        assert ordinals == sorted(ordinals)
        assert all(item.text.strip() or item.exit_code is not None for item in items)
        assert all((item.tool is not None) == item.kind.startswith("tool_") for item in items)
        assert reading.items_seen == len(items)
        assert (reading.bad_lines, sum(reading.unknown.values())) == (0, 0)


def test_reading_twice_gives_the_same(reader: SessionReader, files: list[SessionFile]) -> None:
    for file in files:
        first, second = read(reader, file), read(reader, file)
        assert first[0] == second[0]
        assert first[1].dropped == second[1].dropped


def test_every_text_can_be_written_down(reader: SessionReader, files: list[SessionFile]) -> None:
    for file in files:
        assert all(item.text.encode("utf-8") is not None for item in read(reader, file)[0])


def test_what_the_person_said_comes_out_word_for_word(agent: str, reader: SessionReader, tmp_path: Path) -> None:
    said = ["Rename foo to bar, please.", "Nein: zurück — «foo» \U0001f600\nmit zweiter Zeile"]
    path = SAMPLES[agent].write(tmp_path, said)
    (file,) = reader.find([tmp_path])
    assert file.path == path
    assert [item.text for item in read(reader, file)[0] if item.kind is ItemKind.HUMAN] == said


def test_a_session_that_is_gone_has_vanished(agent: str, reader: SessionReader, tmp_path: Path) -> None:
    path = SAMPLES[agent].write(tmp_path, ["x"])
    (file,) = reader.find([tmp_path])
    path.unlink()
    for operation in (reader.head, reader.tail, reader.read):
        with pytest.raises(SessionVanished):
            operation(file)


def test_garbage_is_an_error_of_ours_or_nothing(agent: str, reader: SessionReader, tmp_path: Path) -> None:
    path = SAMPLES[agent].write(tmp_path, ["x"])
    (file,) = reader.find([tmp_path])
    for content in (b"", b"\x00" * 5000, b"\xff\xfe garbage", b"{}\n{}\n", b"[[[[[[[["):
        path.write_bytes(content)
        for operation in (reader.head, reader.tail, lambda file: read(reader, file)):
            with suppress(SourceError):
                operation(file)


def test_missing_homes_are_named_and_hold_nothing(reader: SessionReader, tmp_path: Path) -> None:
    homes = [tmp_path / "gone", tmp_path / "nowhere"]
    assert list(reader.find(homes)) == []
    assert reader.missing_roots(homes) == homes


def test_reading_leaves_no_trace(reader: SessionReader, files: list[SessionFile], tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for file in files:
        reader.head(file)
        reader.tail(file)
        read(reader, file)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
