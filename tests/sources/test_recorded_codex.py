"""Every recorded Codex session reads as a person reads it: who, where, and what the person said, in order."""

from pathlib import Path

import pytest

from memoryd.sources.codex import CodexReader
from memoryd.sources.items import ItemKind, SessionFile, SessionKind
from tests.support.sessions import RECORDED, recorded_files

READER = CodexReader()
CWD, BRANCH = "/home/dev/paginator", "fix/pagination"
FIX = "Please fix the pagination off-by-one bug in calc.py"
RUN = "From now on I prefer that you always run the tests"
RUN_FIRST = "From now on I prefer that you always run the tests before saying it is done"
FIXED = "Fixed: page_count now rounds up with (total + size - 1) // size. Tests pass (unittest test_calc.py)."
UNDERSTOOD = "Understood. I will run `python3 -m unittest -q` before saying a change is done, and keep diffs small."
CLI, EXEC, SUB, MEMORY = (
    SessionKind.INTERACTIVE,
    SessionKind.NONINTERACTIVE,
    SessionKind.SUBAGENT,
    SessionKind.MEMORY_RUN,
)

# recording, thread id, kind, cwd, branch, what the person said
SESSIONS = [
    ("exec-0.8.0", "87207ab4-43f1-4c73-8be2-1290dad5cffd", CLI, None, None, [FIX]),
    ("exec-0.20.0", "2abeee58-4121-4da4-a35e-ea149be876d7", CLI, None, BRANCH, [FIX]),
    ("exec-0.29.0", "7642a7ae-acee-42f7-8f34-3c7a942bf73b", CLI, CWD, BRANCH, [FIX]),
    ("exec-0.44.0", "01a22835-08aa-7613-8416-c3580369c89e", EXEC, CWD, BRANCH, [FIX]),
    ("exec-0.63.0", "01a22835-0fcb-7303-8181-adb54786812c", EXEC, CWD, BRANCH, [FIX, RUN]),
    ("exec-0.87.0", "01a22835-17ef-7100-8b81-47f7438f1476", EXEC, CWD, BRANCH, [FIX, RUN]),
    ("exec-0.110.0", "01a22835-20fe-7142-8458-53a7ac00c13f", EXEC, CWD, BRANCH, [FIX, RUN]),
    ("exec-0.125.0", "01a22835-5234-78e2-8bdb-438a7158b11d", EXEC, CWD, BRANCH, [FIX, RUN]),
    ("exec-0.142.3", "01a22835-859e-7cb1-a238-77f6030d392f", EXEC, CWD, BRANCH, [FIX, RUN]),
    ("exec-0.150.0", "01a22835-b846-7e73-a776-5f238ce1c99d", EXEC, CWD, BRANCH, [FIX, RUN]),
    ("exec-0.162.1", "01a22835-e9c6-7551-93e8-c42b497c48bd", EXEC, CWD, BRANCH, [FIX, RUN]),
    ("exec-0.171.0", "01a22836-1bfd-7823-9273-6bbc8312f1f1", EXEC, CWD, BRANCH, [FIX, RUN]),
    ("interactive-0.110.0", "01a22837-ebc6-75f3-99b3-86da6032e92a", CLI, CWD, BRANCH, [FIX, RUN_FIRST]),
    ("interactive-0.110.0", "01a22838-1108-7f92-b830-05907745747a", CLI, CWD, BRANCH, ["hello there"]),
    ("interactive-0.110.0", "01a22838-117c-7371-aee0-9d36038fe11e", MEMORY, "/home/dev/memories", None, None),
    ("interactive-0.125.0", "01a22838-3d17-7392-85d5-4e2aa6859021", CLI, CWD, BRANCH, [FIX, RUN_FIRST]),
    ("interactive-0.125.0", "01a22838-641e-7963-9a97-27a9b523ac62", CLI, CWD, BRANCH, ["hello there"]),
    ("interactive-0.142.3", "01a2282e-ec07-7ed3-838c-e57da7be15e6", CLI, CWD, BRANCH, [FIX, RUN_FIRST]),
    ("interactive-0.142.3", "01a2282f-1136-7f92-b1a6-c28db1ab7fa7", CLI, CWD, BRANCH, ["hello there"]),
    ("interactive-0.142.3", "01a22854-a978-7240-9225-ecb40c26d5bf", CLI, CWD, BRANCH, [FIX, RUN_FIRST]),
    ("interactive-0.144.0", "01a2282f-445c-7fb2-9464-66fde2e39549", CLI, CWD, BRANCH, [FIX, RUN_FIRST]),
    ("interactive-0.144.0", "01a2282f-6b18-7011-a61b-fdf9f11cc9dc", CLI, CWD, BRANCH, ["hello there"]),
    ("interactive-0.150.0", "01a2282e-7c1a-7cb0-9bc1-4dc23930a5f9", CLI, CWD, BRANCH, [FIX, RUN_FIRST]),
    ("interactive-0.150.0", "01a2282e-a003-7143-ab3f-83958e034f5d", CLI, CWD, BRANCH, ["hello there"]),
    ("interactive-0.150.0", "01a2283a-1430-7c23-b404-ef40fa7a819c", CLI, CWD, BRANCH, [FIX, RUN_FIRST]),
    ("interactive-0.157.1", "01a2282f-a0ba-70c1-baec-80223d7d913e", CLI, CWD, BRANCH, [FIX, RUN_FIRST]),
    ("interactive-0.157.1", "01a2282f-c40e-7803-8967-e8811efce1db", CLI, CWD, BRANCH, ["hello there"]),
    ("interactive-0.162.1", "01a2282f-f813-7150-a539-0df521c52b27", CLI, CWD, BRANCH, [FIX, RUN_FIRST]),
    ("interactive-0.162.1", "01a22830-1cec-75a3-a4f5-7a9135859c61", CLI, CWD, BRANCH, ["hello there"]),
    ("interactive-0.163.0", "01a22836-50a2-7202-a574-88449691b602", CLI, CWD, BRANCH, [FIX, RUN_FIRST]),
    ("interactive-0.163.0", "01a22836-75e3-7040-9c83-ef6768790f0c", CLI, CWD, BRANCH, ["hello there"]),
    ("interactive-0.164.0", "01a22836-a32c-7271-bec3-8ed863bc611d", CLI, CWD, BRANCH, [FIX, RUN_FIRST]),
    ("interactive-0.164.0", "01a22836-cd10-7ce1-b6af-8d4c0dc518a7", CLI, CWD, BRANCH, ["hello there"]),
    ("compressed", "01a22836-cd10-7ce1-b6af-8d4c0dc518a7", CLI, CWD, BRANCH, ["hello there"]),
    ("interactive-0.165.0", "01a22830-50ef-7690-90da-34771150ee22", CLI, CWD, BRANCH, [FIX, RUN_FIRST]),
    ("interactive-0.165.0", "01a22830-740f-7ca0-8adc-c503ac4e1792", CLI, CWD, BRANCH, ["hello there"]),
    ("interactive-0.171.0", "01a2282e-276f-7180-93f5-4996bcf466fb", CLI, CWD, BRANCH, [FIX, RUN_FIRST]),
    ("interactive-0.171.0", "01a2282e-4b06-7450-8931-b1901add4349", CLI, CWD, BRANCH, ["hello there"]),
    ("interactive-0.171.0", "01a2283a-3e53-7823-8b9b-1e42038a5d1a", CLI, CWD, BRANCH, [FIX, RUN_FIRST]),
    ("lifecycle-0.171.0", "01a2284b-263a-7881-b0d7-aa5a2ff0d2e2", CLI, CWD, BRANCH, [FIX, RUN]),
    ("lifecycle-0.171.0", "01a2284b-5eaa-70b1-8eee-7ff17262d9ed", CLI, CWD, BRANCH, [
        "From now on I prefer short answers"]),
    ("lifecycle-0.171.0", "01a2284b-7959-7e10-8723-ebaad8a38ada", CLI, CWD, BRANCH, [
        "Please delegate a look at the repo", "From now on I prefer tabs"]),
    ("lifecycle-0.171.0", "01a2284b-8326-79a2-9956-1a8ae6d8a3d5", SUB, CWD, BRANCH, [
        "SCOUT list the files in this repo"]),
    ("lifecycle-0.171.0", "01a2284b-c510-7f10-8ae2-20cba98abcf3", CLI, CWD, BRANCH, ["run the slow command"]),
    ("lifecycle-0.171.0", "01a2284b-e8e8-7d71-8f71-2297fdc0a25a", CLI, CWD, BRANCH, ["hang forever"]),
]  # fmt: skip


def recorded(recording: str, thread_id: str) -> SessionFile:
    (path,) = [path for path in recorded_files([recording]) if thread_id in path.name]
    facts = path.stat()
    return SessionFile("codex", str(path), facts.st_size, facts.st_mtime_ns)


def words(recording: str, thread_id: str, kind: ItemKind) -> list[str]:
    with READER.read(recorded(recording, thread_id)) as reading:
        return [item.text for item in reading if item.kind is kind]


def test_the_table_names_every_recorded_file() -> None:
    assert len(SESSIONS) == len(recorded_files())
    assert {path.relative_to(RECORDED).parts[0] for path in recorded_files()} == {row[0] for row in SESSIONS}


@pytest.mark.parametrize(("recording", "thread_id", "kind", "cwd", "branch", "said"), SESSIONS)
def test_a_recorded_session_reads_as_a_person_reads_it(
    recording: str, thread_id: str, kind: SessionKind, cwd: str | None, branch: str | None, said: list[str] | None
) -> None:
    file = recorded(recording, thread_id)
    head, tail = READER.head(file), READER.tail(file)
    with READER.read(file) as reading:
        items = list(reading)
    assert (head.thread_id, head.kind, head.cwd, head.git_branch) == (thread_id, kind, cwd, branch)
    assert (tail.last_record_at, tail.record_bytes) == (reading.last_record_at, reading.record_bytes)
    assert (reading.bad_lines, dict(reading.unknown), reading.citations) == (0, {}, [])
    if said is not None:
        assert [item.text for item in items if item.kind is ItemKind.HUMAN] == said
    assert {item.cwd for item in items} == {cwd}
    assert [item.ordinal for item in items] == sorted(item.ordinal for item in items)
    assert not any("Repo rules" in item.text for item in items)


@pytest.mark.parametrize("recording", ["exec-0.20.0", "exec-0.44.0", "exec-0.87.0", "exec-0.142.3", "exec-0.171.0"])
def test_every_format_tells_the_answers_from_the_commentary(recording: str) -> None:
    thread_id = next(row[1] for row in SESSIONS if row[0] == recording)
    resumed = recording not in ("exec-0.20.0", "exec-0.44.0")
    assert words(recording, thread_id, ItemKind.ASSISTANT_FINAL) == ([FIXED, UNDERSTOOD] if resumed else [FIXED])
    assert words(recording, thread_id, ItemKind.ASSISTANT_COMMENTARY) == [
        "I'll look at the repo and run the tests first.",
        "The test fails because page_count floors. Fixing it.",
        "`/` gives a float and the caller needs an int, so use floor division.",
    ]


@pytest.mark.parametrize("recording", ["exec-0.29.0", "exec-0.63.0", "exec-0.110.0", "exec-0.171.0"])
def test_every_format_tells_commands_and_their_exit_codes(recording: str) -> None:
    thread_id = next(row[1] for row in SESSIONS if row[0] == recording)
    with READER.read(recorded(recording, thread_id)) as reading:
        items = list(reading)
    calls = [item.text for item in items if item.kind is ItemKind.TOOL_CALL]
    outputs = [item for item in items if item.kind is ItemKind.TOOL_OUTPUT]
    assert calls[1] == "python3 -m unittest -q test_calc.py"
    assert [item.exit_code for item in outputs][:7] == [0, 1, 0, 0, 1, 0, 0]
    assert outputs[1].text.startswith("=====")
    assert "return total // size" in outputs[2].text


def test_a_fork_names_its_parent_and_holds_its_own_part_only() -> None:
    head = READER.head(recorded("lifecycle-0.171.0", "01a2284b-5eaa-70b1-8eee-7ff17262d9ed"))
    assert head.parent_id == "01a2284b-263a-7881-b0d7-aa5a2ff0d2e2"


def test_a_sub_agent_reports_in_its_own_name_and_a_compaction_leaves_nothing() -> None:
    thread_id = "01a2284b-7959-7e10-8723-ebaad8a38ada"
    (notification,) = words("lifecycle-0.171.0", thread_id, ItemKind.OTHER_AGENT)
    assert "scout: calc.py and test_calc.py." in notification
    assert words("lifecycle-0.171.0", thread_id, ItemKind.TOOL_CALL) == [
        'multi_agent_v1.spawn_agent {"message":"SCOUT list the files in this repo"}',
        "python3 -m unittest -q test_calc.py",
    ]


def test_an_interrupted_turn_says_so_as_context() -> None:
    context = words("lifecycle-0.171.0", "01a2284b-c510-7f10-8ae2-20cba98abcf3", ItemKind.HARNESS_CONTEXT)
    assert context[-1].startswith("<turn_aborted>")


def test_the_compressed_recording_equals_its_plain_twin() -> None:
    def everything(recording: str) -> object:
        file = recorded(recording, "01a22836-cd10-7ce1-b6af-8d4c0dc518a7")
        with READER.read(file) as reading:
            return list(reading), READER.head(file), READER.tail(file)

    assert everything("compressed") == everything("interactive-0.164.0")


def test_the_homes_of_all_recordings_hold_each_thread_once() -> None:
    homes: list[Path] = sorted(RECORDED.iterdir())
    found = [file.path for file in READER.find(homes)]
    assert len(found) == len(SESSIONS) - 1
    assert not [path for path in found if path.name.endswith(".zst")]
