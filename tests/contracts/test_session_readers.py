"""One contract for every reader of sessions: whatever the agent, the rest of the house can rely on these.

A reader's entry in SAMPLES says how to get its sessions: `install` puts the recorded ones under a home, `write` makes
one of given turns. Everything here runs against every reader; what needs a file of lines runs where there is one.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from memoryd.errors import SessionVanished, SessionWithoutItems, SourceError
from memoryd.pipeline.sanitise import Reason, sanitise
from memoryd.sources.items import Item, ItemKind, MemoryMode, SessionFile, SessionKind, SessionTail
from memoryd.sources.reader import MOST_KINDS, Reading, SessionReader
from memoryd.sources.readers import READERS
from memoryd.text import MARKER_CLOSE, MARKER_OPEN
from tests.support.claude_sessions import a_claude_session, install_recorded_claude
from tests.support.copilot_sessions import a_copilot_session, install_recorded_copilot
from tests.support.gemini_sessions import a_gemini_session, install_recorded_gemini
from tests.support.generic_sessions import a_generic_session, install_generic
from tests.support.opencode_sessions import an_opencode_session, install_recorded_opencode
from tests.support.qwen_sessions import a_qwen_session, install_recorded_qwen
from tests.support.sessions import Command, Turn, a_rollout, install_recorded

NOW = 1_700_000_000.0
IDLE_HOURS = 7
MEGABYTE = 1024 * 1024
LIMIT_MEGABYTES = 300
NOBODY = 65534
HOLE = "PUT-SOMETHING-HERE"
THREAD = "01a226ab-5fe7-707c-80dd-7a6d93907104"
CITATION = (
    "<oai-mem-citation>\n<citation_entries>\nMEMORY.md:2-3|note=[tests]\n</citation_entries>\n"
    f"<rollout_ids>\n{THREAD}\n</rollout_ids>\n</oai-mem-citation>"
)


@dataclass(frozen=True)
class Sample:
    """How the contract gets sessions of an agent.

    `write` puts one session with the given turns (what was said alone, or a Turn with commands and answers) below a
    home and returns the path that names it; its last record is IDLE_HOURS before NOW. `lines` is False where a session
    is no file of JSON lines; `tells_success` is False where the format gives no exit code to a command that worked.
    """

    install: Callable[[Path], Sequence[Path]]
    write: Callable[[Path, Sequence[Turn | str]], Path]
    lines: bool = True
    tells_success: bool = True


SAMPLES = {
    "codex": Sample(
        install=lambda home: install_recorded(home, now=NOW, idle_hours=IDLE_HOURS),
        write=lambda home, said: a_rollout(home, now=NOW, idle_hours=IDLE_HOURS, turns=said),
    ),
    "claude": Sample(
        install=lambda home: install_recorded_claude(home, now=NOW, idle_hours=IDLE_HOURS),
        write=lambda home, said: a_claude_session(home, now=NOW, idle_hours=IDLE_HOURS, turns=said),
    ),
    "gemini": Sample(
        install=lambda home: install_recorded_gemini(home, now=NOW, idle_hours=IDLE_HOURS),
        write=lambda home, said: a_gemini_session(home, now=NOW, idle_hours=IDLE_HOURS, turns=said),
    ),
    "copilot": Sample(
        install=lambda home: install_recorded_copilot(home, now=NOW, idle_hours=IDLE_HOURS),
        write=lambda home, said: a_copilot_session(home, now=NOW, idle_hours=IDLE_HOURS, turns=said),
    ),
    "generic": Sample(
        install=lambda home: install_generic(home, now=NOW, idle_hours=IDLE_HOURS),
        write=lambda home, said: a_generic_session(home, now=NOW, idle_hours=IDLE_HOURS, turns=said),
    ),
    "opencode": Sample(
        install=lambda home: install_recorded_opencode(home, now=NOW, idle_hours=IDLE_HOURS),
        write=lambda home, said: an_opencode_session(home, now=NOW, idle_hours=IDLE_HOURS, turns=said),
        lines=False,
    ),
    "qwen": Sample(
        install=lambda home: install_recorded_qwen(home, now=NOW, idle_hours=IDLE_HOURS),
        write=lambda home, said: a_qwen_session(home, now=NOW, idle_hours=IDLE_HOURS, turns=said),
    ),
}
LINED = sorted(name for name in READERS if name in SAMPLES and SAMPLES[name].lines)
TALK = (
    Turn(
        "Fix the off-by-one in calc.py, please.",
        "Fixed: page_count rounds up now.",
        commands=(Command("python3 -m unittest -q", "FAILED (failures=1)", 1), Command("git diff --stat", "1 file", 0)),
        commentary="I run the tests first.",
    ),
    Turn("从现在起先跑测试 \U0001f680", "Understood."),
    Turn("Thanks — that is all.", "You are welcome."),
)


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


def written(agent: str, home: Path, turns: Sequence[Turn | str]) -> SessionFile:
    path = SAMPLES[agent].write(home, turns)
    (file,) = READERS[agent].find([home])
    assert file.path == path
    return file


def humans(items: Sequence[Item]) -> list[str]:
    return [item.text for item in items if item.kind is ItemKind.HUMAN]


def shape(items: Sequence[Item]) -> list[tuple[ItemKind, str, int | None]]:
    return [(item.kind, item.text, item.exit_code) for item in items]


def marks(tail: SessionTail | Reading) -> tuple[int, int, bool]:
    return tail.last_record_at, tail.record_bytes, tail.timed


# finding


def test_sessions_are_found_once_and_described_without_being_opened(
    agent: str, reader: SessionReader, files: list[SessionFile]
) -> None:
    assert files
    assert len({file.path for file in files}) == len(files)
    assert len({reader.head(file).thread_id for file in files}) == len(files)
    for file in files:
        assert file == reader.locate(file.path)
        if SAMPLES[agent].lines:
            facts = file.path.stat()
            assert file == SessionFile(agent, file.name, facts.st_size, facts.st_mtime_ns)


@pytest.mark.parametrize("agent", LINED)
def test_finding_reads_no_session(agent: str, tmp_path: Path) -> None:
    paths = {Path(path) for path in SAMPLES[agent].install(tmp_path)}
    found = list(READERS[agent].find([tmp_path]))
    for path in paths:
        facts = path.stat()
        path.write_bytes(b"?" * facts.st_size)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert list(READERS[agent].find([tmp_path])) == found


def test_a_home_that_is_named_twice_counts_once(agent: str, reader: SessionReader, tmp_path: Path) -> None:
    file = written(agent, tmp_path, TALK)
    assert list(reader.find([tmp_path, tmp_path])) == [file]


def test_missing_homes_are_named_and_hold_nothing(reader: SessionReader, tmp_path: Path) -> None:
    homes = [tmp_path / "gone", tmp_path / "nowhere"]
    assert list(reader.find(homes)) == []
    assert reader.missing_roots(homes) == homes


def test_a_home_with_sessions_is_not_missing(agent: str, reader: SessionReader, tmp_path: Path) -> None:
    written(agent, tmp_path, TALK)
    assert reader.missing_roots([tmp_path]) == []


def test_a_session_that_is_gone_has_vanished(agent: str, reader: SessionReader, tmp_path: Path) -> None:
    file = written(agent, tmp_path, ["x"])
    Path(str(file.path).partition("#")[0]).unlink()
    for operation in (reader.head, reader.tail, reader.read, lambda gone: reader.locate(gone.path)):
        with pytest.raises(SessionVanished):
            operation(file)
    assert list(reader.find([tmp_path])) == []


def a_fifo(path: Path) -> None:
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_dangling_link(path: Path) -> None:
    path.symlink_to(path.with_name("nothing-there"))


@pytest.mark.parametrize("make", [a_fifo, a_folder, a_dangling_link])
def test_what_only_has_the_name_of_a_session_is_none(
    agent: str, reader: SessionReader, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    file = written(agent, tmp_path, ["x"])
    store = Path(str(file.path).partition("#")[0])
    store.unlink()
    make(store)
    assert list(reader.find([tmp_path])) == []
    for operation in (reader.head, reader.tail, lambda fake: read(reader, fake)):
        with pytest.raises(SourceError):
            operation(file)


def test_names_that_are_no_text_are_nobodys_session(agent: str, reader: SessionReader, tmp_path: Path) -> None:
    file = written(agent, tmp_path, ["x"])
    store = Path(str(file.path).partition("#")[0])
    for place in (store, *store.parents[: len(store.relative_to(tmp_path).parts) - 1]):
        strange = place.with_name(os.fsdecode(b"\n\xff") + place.name)
        if place is store:
            strange.write_bytes(store.read_bytes())
        else:
            shutil.copytree(place, strange)
    assert [found.path for found in reader.find([tmp_path])] == [file.path]


def test_links_that_lead_in_circles_end_no_search(agent: str, reader: SessionReader, tmp_path: Path) -> None:
    file = written(agent, tmp_path, ["x"])
    store = Path(str(file.path).partition("#")[0])
    for folder in store.parents[: len(store.relative_to(tmp_path).parts)]:
        for name, target in (
            ("me", "me"),
            ("here", "."),
            ("gone", "nowhere"),
            (f"me-{store.name}", f"me-{store.name}"),
        ):
            (folder / name).symlink_to(target)
    assert [found.path for found in reader.find([tmp_path])] == [file.path]


def test_a_session_that_may_not_be_read_is_an_error_of_ours(agent: str, reader: SessionReader, tmp_path: Path) -> None:
    file = written(agent, tmp_path, ["x"])
    Path(str(file.path).partition("#")[0]).chmod(0)
    with nobodys_rights():
        for operation in (reader.head, reader.tail, reader.read):
            with pytest.raises(SourceError):
                operation(file)


@contextmanager
def nobodys_rights() -> Iterator[None]:
    """Give up what root may do, which is to read everything, while the block lasts."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(mine)


# heads, tails, order


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
        assert marks(tail) == marks(reading)
        assert NOW - 24 * 3600 < tail.last_record_at <= NOW - IDLE_HOURS * 3600
        assert tail.memory_mode in (None, reading.memory_mode)


def test_items_come_in_order_with_words_or_an_exit_code(reader: SessionReader, files: list[SessionFile]) -> None:
    for file in files:
        items, reading = read(reader, file)
        ordinals = [item.ordinal for item in items]
        assert ordinals == sorted(ordinals)
        assert all(item.text.strip() or item.exit_code is not None for item in items)
        for item in items:
            # an answer to a question of the agent's is the human speaking through a tool
            assert (item.tool is not None) == item.kind.startswith("tool_") or item.kind is ItemKind.HUMAN
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


def test_reading_leaves_no_trace(reader: SessionReader, files: list[SessionFile], tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for file in files:
        reader.head(file)
        reader.tail(file)
        read(reader, file)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


# what was said


def test_the_same_conversation_gives_the_same_items_whatever_the_agent(
    agent: str, reader: SessionReader, tmp_path: Path
) -> None:
    items, reading = read(reader, written(agent, tmp_path, TALK))
    said = [item for item in items if item.kind is not ItemKind.HARNESS_CONTEXT]
    success = 0 if SAMPLES[agent].tells_success else None
    assert shape(said) == [
        (ItemKind.HUMAN, "Fix the off-by-one in calc.py, please.", None),
        (ItemKind.ASSISTANT_COMMENTARY, "I run the tests first.", None),
        (ItemKind.TOOL_CALL, "python3 -m unittest -q", None),
        (ItemKind.TOOL_OUTPUT, "FAILED (failures=1)", 1),
        (ItemKind.TOOL_CALL, "git diff --stat", None),
        (ItemKind.TOOL_OUTPUT, "1 file", success),
        (ItemKind.ASSISTANT_FINAL, "Fixed: page_count rounds up now.", None),
        (ItemKind.HUMAN, "从现在起先跑测试 \U0001f680", None),
        (ItemKind.ASSISTANT_FINAL, "Understood.", None),
        (ItemKind.HUMAN, "Thanks — that is all.", None),
        (ItemKind.ASSISTANT_FINAL, "You are welcome.", None),
    ]
    assert (reading.bad_lines, reading.unknown) == (0, Counter())
    assert not any(item.external for item in said)
    calls = [(item.call_id, item.tool) for item in said if item.kind is ItemKind.TOOL_CALL]
    outputs = [(item.call_id, item.tool) for item in said if item.kind is ItemKind.TOOL_OUTPUT]
    assert calls == outputs


def test_what_the_person_said_comes_out_word_for_word(agent: str, reader: SessionReader, tmp_path: Path) -> None:
    said = ["Rename foo to bar, please.", "Nein: zurück — «foo» \U0001f600\nmit zweiter Zeile", "日本語で\t答えて ⚙️"]
    assert humans(read(reader, written(agent, tmp_path, said))[0]) == said


def test_an_injected_memory_block_is_left_for_the_sanitiser(agent: str, reader: SessionReader, tmp_path: Path) -> None:
    said = f"before {MARKER_OPEN}\nremembered\n{MARKER_CLOSE} after"
    items, _ = read(reader, written(agent, tmp_path, [said]))
    assert humans(items) == [said]
    dropped: Counter[str] = Counter()
    clean = list(sanitise(items, private_tags=["private"], home=tmp_path, dropped=dropped))
    assert "remembered" not in " ".join(humans(clean))
    assert humans(clean)[0].split() == ["before", "after"]
    assert dropped[Reason.MEMORY_BLOCK] == 1


def test_citations_are_found_and_are_no_words_of_the_answer(agent: str, reader: SessionReader, tmp_path: Path) -> None:
    file = written(agent, tmp_path, [Turn("Which tests?", f"The quick ones.\n\n{CITATION}")])
    items, reading = read(reader, file)
    assert [item.text for item in items if item.kind is ItemKind.ASSISTANT_FINAL] == ["The quick ones."]
    (cited,) = reading.citations
    assert cited.thread_ids == (THREAD,)
    assert [(entry.path, entry.line_start, entry.line_end) for entry in cited.entries] == [("MEMORY.md", 2, 3)]
    assert cited.message_key
    assert read(reader, file)[1].citations == [cited]


# damage


def test_garbage_is_an_error_of_ours_or_nothing(agent: str, reader: SessionReader, tmp_path: Path) -> None:
    file = written(agent, tmp_path, ["x"])
    store = Path(str(file.path).partition("#")[0])
    for content in (b"", b"\x00" * 5000, b"\xff\xfe garbage", b"{}\n{}\n", b"[[[[[[[["):
        store.write_bytes(content)
        for operation in (reader.head, reader.tail, lambda file: read(reader, file)):
            with suppress(SourceError):
                operation(file)


@pytest.fixture(params=LINED)
def lined(request: pytest.FixtureRequest, tmp_path: Path) -> "Lined":
    agent = str(request.param)
    return Lined(READERS[agent], written(agent, tmp_path, TALK))


@dataclass
class Lined:
    """A session that is a file of lines, with the means to damage it."""

    reader: SessionReader
    file: SessionFile

    def __post_init__(self) -> None:
        self.content = self.file.path.read_bytes()
        self.lines = self.content.splitlines(keepends=True)
        self.items = self.read()[0]

    def read(self) -> tuple[list[Item], Reading]:
        return read(self.reader, self.file)

    def put(self, content: bytes) -> tuple[list[Item], Reading]:
        """Write the content in place, read it, and see that its end says what the whole says."""
        self.file.path.write_bytes(content)
        items, reading = self.read()
        assert marks(self.reader.tail(self.file)) == marks(reading)
        return items, reading

    def index(self, words: str) -> int:
        """Return the line that holds these words; the last one, where several do."""
        return max(index for index, line in enumerate(self.lines) if words.encode() in line)


def test_a_record_more_moves_the_watermark(lined: Lined) -> None:
    lined.put(b"".join(lined.lines[:-1]))
    before = lined.reader.tail(lined.file)
    lined.put(lined.content)
    after = lined.reader.tail(lined.file)
    assert marks(after) != marks(before)
    assert after.record_bytes == before.record_bytes + len(lined.lines[-1])
    assert after.last_record_at >= before.last_record_at


def test_a_torn_tail_is_forgiven_and_read_once_it_is_whole(lined: Lined) -> None:
    whole, last = b"".join(lined.lines[:-1]), lined.lines[-1]
    without, _ = lined.put(whole)
    for cut in (1, len(last) // 2, len(last) - 3):
        items, reading = lined.put(whole + last[:cut])
        assert (items, reading.bad_lines) == (without, 0)
    assert lined.put(lined.content)[0] == lined.items
    assert shape(lined.put(lined.content.rstrip(b"\n"))[0]) == shape(lined.items)


def test_a_record_that_begins_in_the_middle_of_a_torn_one_is_recovered(lined: Lined) -> None:
    at = lined.index("Thanks")
    torn = lined.lines[at - 1]
    items, reading = lined.put(b"".join([*lined.lines[: at - 1], torn[: len(torn) // 2], *lined.lines[at:]]))
    assert humans(items) == humans(lined.items)
    assert reading.bad_lines == 1


@pytest.mark.parametrize("filler", [b"\x00" * 4096 + b"\n", b"not json at all\n", b'{"type": "half\n', b"\xff\xfe\n"])
def test_a_line_that_is_none_is_counted_and_harms_no_other(lined: Lined, filler: bytes) -> None:
    at = lined.index("Thanks")
    items, reading = lined.put(b"".join([*lined.lines[:at], filler, *lined.lines[at:]]))
    assert shape(items) == shape(lined.items)
    assert reading.bad_lines == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"\xef\xbb\xbf" + content,
        lambda content: content.replace(b"\n", b"\r\n"),
        lambda content: content.replace(b"\n", b"\n\n"),
        lambda content: content.replace(b"\n", b"\n   \n"),
    ],
    ids=["byte order mark", "CRLF", "blank lines", "lines of spaces"],
)
def test_what_editors_and_tools_do_to_a_file_changes_nothing(lined: Lined, change: Callable[[bytes], bytes]) -> None:
    items, reading = lined.put(change(lined.content))
    assert shape(items) == shape(lined.items)
    assert (reading.bad_lines, reading.unknown) == (0, Counter())


def test_a_lone_surrogate_costs_one_character(lined: Lined) -> None:
    items, reading = lined.put(lined.content.replace("Thanks —".encode(), b"Thanks \\ud83d"))
    assert humans(items)[-1].encode().startswith(b"Thanks ")
    assert humans(items)[-1].endswith(" that is all.")
    assert reading.bad_lines == 0


def test_an_empty_file_holds_nothing_and_is_no_error(lined: Lined) -> None:
    items, reading = lined.put(b"")
    assert (items, reading.record_bytes) == ([], 0)
    with pytest.raises(SourceError):
        lined.reader.head(lined.file)


def test_bytes_without_any_item_are_an_error(lined: Lined) -> None:
    lined.file.path.write_bytes(b'{"some": "thing"}\n' * 100)
    with pytest.raises(SessionWithoutItems):
        lined.read()


def test_a_record_of_a_type_that_nobody_knows_is_counted(lined: Lined) -> None:
    at = lined.index("Thanks")
    newest = (
        b'{"type": "from.the.future", "timestamp": "2023-11-14T15:13:20.000Z", "id": "x", "uuid": "y", "data": 1}\n'
    )
    items, reading = lined.put(b"".join([*lined.lines[:at], newest, *lined.lines[at:]]))
    assert shape(items) == shape(lined.items)
    assert (sum(reading.unknown.values()), reading.bad_lines) == (1, 0)


def test_what_records_call_themselves_is_counted_in_little_space_and_steers_no_terminal(lined: Lined) -> None:
    at = lined.index("Thanks")
    names = [f"kind.{number}" for number in range(300)] + ["x" * 5_000, "\x1b[31mred\n       1       human user", "a b"]
    said = "2023-11-14T15:13:20.000Z"
    rows = [{"type": name, "timestamp": said, "id": f"x{at}", "uuid": f"y{at}"} for at, name in enumerate(names)]
    newest = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    items, reading = lined.put(b"".join([*lined.lines[:at], newest, *lined.lines[at:]]))
    assert shape(items) == shape(lined.items)
    assert sum(reading.unknown.values()) == len(names)
    assert len(reading.unknown) <= MOST_KINDS + 1
    assert all(len(name) < 80 and name.isprintable() and " " not in name for name in reading.unknown)


# size

MEASURE = """
import resource, sys
from pathlib import Path
from memoryd.sources.readers import READERS
reader = READERS[sys.argv[1]]
(file,) = reader.find([Path(sys.argv[2])])
reader.head(file), reader.tail(file)
with reader.read(file) as reading:
    words = sum(len(item.text) for item in reading)
if sys.platform == "darwin":
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 * 1024)
else:  # ru_maxrss begins at what the forking process had, VmHWM does not
    peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024
print(reading.items_seen, words, peak)
"""


def measured(agent: str, home: Path) -> tuple[int, int, int]:
    """Read the one session of a home in a process of its own: items, characters of text, megabytes at the peak."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, agent, str(home)],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": os.defpath},
    )
    items, words, peak = map(int, done.stdout.split())
    return items, words, peak


def test_60_megabytes_of_session_are_read_within_300_of_memory(agent: str, tmp_path: Path) -> None:
    long = [Turn(f"{number} {'word ' * 2000}", f"{number} {'answer ' * 1500}") for number in range(3000)]
    SAMPLES[agent].write(tmp_path, long)
    items, words, peak = measured(agent, tmp_path)
    assert items >= 2 * len(long)
    assert words > 55 * MEGABYTE
    assert peak < LIMIT_MEGABYTES


@pytest.mark.parametrize("name", LINED)
def test_a_line_of_40_megabytes_costs_its_own_words_alone(name: str, tmp_path: Path) -> None:
    talk = [Turn("x", commands=(Command("cat big", HOLE, 0),)), Turn("y")]
    path = SAMPLES[name].write(tmp_path, talk)
    whole, _ = read(READERS[name], READERS[name].locate(path))
    before, *after = path.read_bytes().split(HOLE.encode())

    def pieces() -> Iterator[bytes]:
        yield before
        for rest in after:
            yield from [b"x" * MEGABYTE] * 40
            yield rest

    with path.open("wb") as file:
        file.writelines(pieces())
    items, words, peak = measured(name, tmp_path)
    assert items == len(whole)
    assert words < 3 * MEGABYTE
    assert peak < LIMIT_MEGABYTES
