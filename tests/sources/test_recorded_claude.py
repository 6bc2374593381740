"""Every recorded Claude Code session reads as a person reads it: what was said, run and answered, and what was not."""

from collections import Counter
from pathlib import Path

import pytest

from memoryd.sources.claude import ClaudeReader
from memoryd.sources.items import Item, ItemKind, SessionFile, SessionKind
from memoryd.sources.reader import Reading
from tests.support.claude_sessions import HOME, RECORDED

READER = ClaudeReader()
FIX = "Please fix the pagination off-by-one bug in calc.py"
RUN = "From now on I prefer that you always run the tests"
SHORT = "From now on I prefer short answers"
TABS = "From now on I prefer tabs"
DELEGATE = "Please delegate a look at the repo"
FIXED = "Fixed: page_count now rounds up with (total + size - 1) // size. Tests pass (unittest test_calc.py)."
UNDERSTOOD = "Understood. I will run `python3 -m unittest -q` before saying a change is done, and keep diffs small."
DELEGATED = "The sub-agent finished its listing."
BY_A_PERSON, BY_A_PROGRAM = SessionKind.INTERACTIVE, SessionKind.NONINTERACTIVE
NOISE_OF_A_COMPACTION = Counter(compaction=1, harness=1, command=4)

# version, session, kind, what the person said, what is dropped
SESSIONS = [
    ("1.0.128", "b6d6049e", BY_A_PERSON, [FIX, RUN, TABS], NOISE_OF_A_COMPACTION + Counter(reminder=1, synthetic=1)),
    ("1.0.128", "2e5cc790", BY_A_PERSON, [DELEGATE], Counter(side_chain=4)),
    ("2.0.76", "b5c19b29", BY_A_PERSON, [FIX, RUN, TABS], NOISE_OF_A_COMPACTION + Counter(reminder=1, synthetic=1)),
    ("2.0.76", "da9dcd83", BY_A_PERSON, [DELEGATE], Counter()),
    ("2.1.111", "7f4f5d4c", BY_A_PROGRAM, [FIX, RUN, TABS],
     NOISE_OF_A_COMPACTION + Counter(reminder=1, synthetic=1, reasoning=1)),
    ("2.1.111", "a06ec7d3", BY_A_PROGRAM, [DELEGATE], Counter()),
    ("2.1.332", "af005b3c", BY_A_PROGRAM, [FIX, RUN, TABS], NOISE_OF_A_COMPACTION + Counter(reasoning=1)),
    ("2.1.332", "a34ed0be", BY_A_PROGRAM, [DELEGATE], Counter()),
]  # fmt: skip

# version, fork, the session it was forked from, how many rows of the conversation it copied
FORKS = [
    ("1.0.128", "bb0e4d88", "b6d6049e", 23),
    ("2.0.76", "c66d04d7", "b5c19b29", 23),
    ("2.1.111", "66eaf148", "7f4f5d4c", 24),
    ("2.1.332", "052e6e5c", "af005b3c", 24),
]


def recorded(version: str, name: str) -> SessionFile:
    (file,) = [file for file in READER.find([RECORDED / version / HOME]) if file.path.name.startswith(name)]
    return file


def read(file: SessionFile, *relatives: SessionFile) -> tuple[list[Item], Reading]:
    with READER.read(file, relatives) as reading:
        return list(reading), reading


def texts(items: list[Item], kind: ItemKind) -> list[str]:
    return [item.text for item in items if item.kind is kind]


@pytest.mark.parametrize(("version", "name", "kind", "human", "dropped"), SESSIONS)
def test_a_recorded_session_holds_what_was_said_and_nothing_else(
    version: str, name: str, kind: SessionKind, human: list[str], dropped: Counter[str]
) -> None:
    file = recorded(version, name)
    items, reading = read(file)
    head = READER.head(file)
    assert (head.kind, head.cwd, head.git_branch) == (kind, "/home/dev/paginator", "fix/pagination")
    assert texts(items, ItemKind.HUMAN) == human
    answers = [DELEGATED] if human == [DELEGATE] else [FIXED, UNDERSTOOD, UNDERSTOOD]
    assert texts(items, ItemKind.ASSISTANT_FINAL) == answers
    assert reading.dropped == dropped
    assert (reading.unknown, reading.bad_lines) == (Counter(), 0)
    assert {item.cwd for item in items} == {"/home/dev/paginator"}
    assert not [item for item in items if "system-reminder" in item.text or item.external]


@pytest.mark.parametrize(("version", "failed"), [("1.0.128", None), ("2.0.76", 1), ("2.1.111", 1), ("2.1.332", 1)])
def test_the_exit_codes_of_the_recorded_commands_are_told(version: str, failed: int | None) -> None:
    name = next(name for of, name, *_ in SESSIONS if of == version)
    items, _ = read(recorded(version, name))
    codes = [item.exit_code for item in items if item.kind is ItemKind.TOOL_OUTPUT and item.tool == "Bash"]
    assert codes == [0, failed, failed, 0, 0, 0]


@pytest.mark.parametrize(("version", "fork", "parent", "copied"), FORKS)
def test_a_recorded_fork_has_its_own_rows_and_its_parents(version: str, fork: str, parent: str, copied: int) -> None:
    own, older = recorded(version, fork), recorded(version, parent)
    assert READER.head(own).lineage == READER.head(older).lineage
    items, reading = read(own, older)
    assert (texts(items, ItemKind.HUMAN), reading.dropped) == ([SHORT], Counter(copied=copied))
    assert texts(items, ItemKind.ASSISTANT_FINAL) == [UNDERSTOOD]
    assert texts(read(own)[0], ItemKind.HUMAN) == [FIX, RUN, SHORT]


@pytest.mark.parametrize("version", sorted(path.name for path in RECORDED.iterdir()))
def test_the_recorded_sub_agents_name_a_session_and_hold_no_human_words(version: str) -> None:
    agents = [file for file in READER.find([RECORDED / version / HOME]) if file.path.name.startswith("agent-")]
    assert len(agents) == {"1.0.128": 0, "2.0.76": 13}.get(version, 1)
    for file in agents:
        head = READER.head(file)
        assert (head.kind, head.cwd) == (SessionKind.SUBAGENT, "/home/dev/paginator")
        assert head.parent_id is not None
        assert texts(read(file)[0], ItemKind.HUMAN) == []


def test_every_recorded_file_but_the_empty_ones_is_found() -> None:
    found = {file.path for version in RECORDED.iterdir() for file in READER.find([version / HOME])}
    assert found == {path for path in Path(RECORDED).rglob("*.jsonl") if path.stat().st_size}
