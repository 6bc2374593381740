"""Every recorded session of Gemini CLI, looked at by eye: who it is, where it ran, and what was said and done."""

from pathlib import Path

import pytest

from memoryd.sources.gemini import GeminiReader
from memoryd.sources.items import Item, ItemKind, SessionFile, SessionKind
from tests.support.gemini_sessions import RECORDED

READER = GeminiReader()
CWD = "/home/dev/paginator"
FIX = "Please fix the pagination off-by-one bug in calc.py"
RUN = "From now on I prefer that you always run the tests"
DELEGATE = "Please delegate a look at the repo"
LOOK = "I'll look at the repo and run the tests first."
FLOORS = "The test fails because page_count floors. Fixing it."
FLOAT = "`/` gives a float and the caller needs an int, so use floor division."
FIXED = "Fixed: page_count now rounds up with (total + size - 1) // size. Tests pass (unittest test_calc.py)."
UNDERSTOOD = "Understood. I will run `python3 -m unittest -q` before saying a change is done, and keep diffs small."
LISTED = "The sub-agent finished its listing."
TEST = "python3 -m unittest -q test_calc.py"

# recording, thread id, cwd, what the person said, what the agent said in the end, and meanwhile
SESSIONS = [
    ("0.20.2", "dfb58c68-dc13-4e14-8417-54bc1cec0564", None, [FIX, RUN], [LOOK, UNDERSTOOD], []),
    ("0.20.2", "209dd946-63bc-4df7-b314-3d562ecfe380", None, [DELEGATE], [LISTED], []),
    ("0.36.0", "2d247c28-8968-477b-b063-c99f17f9f9f8", CWD, [FIX, RUN], [FIXED, UNDERSTOOD], [LOOK, FLOORS, FLOAT]),
    ("0.36.0", "5b69c727-2ee4-4942-a0ba-bd05830fd3ee", CWD, [DELEGATE], [LISTED], []),
    ("0.61.0", "1437f405-2c1c-4c1d-a742-c38ba2d21107", CWD, [DELEGATE], [LISTED], []),
    ("0.61.0", "1f8f1ecd-3e8c-4988-94e7-a0436899db7a", CWD, [FIX, RUN], [FIXED, UNDERSTOOD], [LOOK, FLOORS, FLOAT]),
]
LONG = [SESSIONS[2][:2], SESSIONS[5][:2]]


def recorded(recording: str, thread_id: str) -> SessionFile:
    files = READER.find([RECORDED / recording / ".gemini"])
    (file,) = [file for file in files if READER.head(file).thread_id == thread_id]
    return file


def read(recording: str, thread_id: str) -> list[Item]:
    with READER.read(recorded(recording, thread_id)) as reading:
        items = list(reading)
    assert (reading.bad_lines, dict(reading.unknown), dict(reading.dropped), reading.citations) == (0, {}, {}, [])
    return items


def of(items: list[Item], kind: ItemKind) -> list[str]:
    return [item.text for item in items if item.kind is kind]


def test_the_table_names_every_recorded_session() -> None:
    homes: list[Path] = sorted(RECORDED.glob("*/.gemini"))
    assert len(SESSIONS) == len(list(READER.find(homes)))
    assert {home.parent.name for home in homes} == {row[0] for row in SESSIONS}


@pytest.mark.parametrize(("recording", "thread_id", "cwd", "said", "final", "meanwhile"), SESSIONS)
def test_a_recorded_session_reads_as_a_person_reads_it(
    recording: str, thread_id: str, cwd: str | None, said: list[str], final: list[str], meanwhile: list[str]
) -> None:
    head = READER.head(recorded(recording, thread_id))
    items = read(recording, thread_id)
    assert (head.kind, head.cwd, head.git_branch) == (SessionKind.INTERACTIVE, cwd, None)
    assert {item.cwd for item in items} == {cwd}
    assert of(items, ItemKind.HUMAN) == said
    assert of(items, ItemKind.ASSISTANT_FINAL) == final
    assert of(items, ItemKind.ASSISTANT_COMMENTARY) == meanwhile
    assert of(items, ItemKind.OTHER_AGENT) == []


@pytest.mark.parametrize(("recording", "thread_id"), LONG)
def test_commands_come_with_what_they_printed_and_their_exit_codes(recording: str, thread_id: str) -> None:
    items = read(recording, thread_id)
    calls, outputs = of(items, ItemKind.TOOL_CALL), [item for item in items if item.kind is ItemKind.TOOL_OUTPUT]
    assert calls[:3] == ["ls && cat calc.py && git log --oneline | head -3", TEST,
                         'read_file {"file_path":"/home/dev/paginator/calc.py"}']  # fmt: skip
    assert calls[-2:] == [f"{TEST} && git diff --stat", TEST]
    assert [item.exit_code for item in outputs] == [0, 1, None, None, 1, None, 0, 0]
    assert [item.call_id for item in outputs] == [item.call_id for item in items if item.kind is ItemKind.TOOL_CALL]
    assert outputs[1].text.startswith("=====")
    assert outputs[1].text.endswith("FAILED (failures=1)")
    assert not [item for item in outputs if "PGID" in item.text or "untrusted" in item.text]


def test_a_resume_in_the_newest_version_tells_the_context_once() -> None:
    (context,) = of(read(*SESSIONS[5][:2]), ItemKind.HARNESS_CONTEXT)
    assert context.startswith("<session_context>\nThis is the Gemini CLI.")
    assert f"  - {CWD}" in context


def test_what_was_said_before_a_resume_keeps_its_time() -> None:
    items = read(*SESSIONS[5][:2])
    first, second = [item.at for item in items if item.kind is ItemKind.HUMAN]
    assert first is not None
    assert second is not None
    assert 5 < second - first < 6
