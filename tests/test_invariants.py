"""What always holds, by the numbers that tests name: the list, and that no number stands for nothing."""

import re
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent
INVARIANTS: Final = {
    "I1": "No acknowledged result is lost by kill -9 at any point, and a restart converges; one kill repeats at most "
    "one request of each running extraction and one run of the consolidation agent.",
    "I2": "A holder that lost its lease changes nothing: no row, no file, no commit.",
    "I3": "MEMORY.md and memory_summary.md are at any instant the whole of an accepted version, a person's edits in.",
    "I4": "After success any number of ticks, restarts, touched files and citations costs no request.",
    "I5": "Every job that is not done can say why, and when it will run.",
    "I6": "No secret of a known shape reaches a request, the ledger, a file, a git object or a log.",
    "I7": "Nothing outside MEMORYD_HOME is written, but what a command names and undoes; nothing beside agents' files.",
    "I8": "A reply that is not a schema-valid answer never deletes or replaces a memory.",
    "I9": "Spend never passes a cap, and the ledger accounts for every request.",
    "I10": "A person's edit survives every consolidation until its evidence or the person removes it.",
    "I11": "An agent's session is never delayed or broken: hooks fail open.",
    "I12": "After `forget --purge` the text is in no row, file, git object, freelist page or log.",
    "I13": "Work grows with what changed: an idle scan of any number of sessions reads no session file.",
    "I14": "Memory use does not grow with the size of a session file.",
}
"""Which of them a test shows stands in its docstring, or in that of its module."""


def test_each_invariant_is_shown_by_some_test_and_no_test_names_another() -> None:
    named = {
        number
        for path in TESTS.rglob("*.py")
        if path != Path(__file__)
        for number in re.findall(r"\bI\d+\b", path.read_text())
    }
    assert sorted(named) == sorted(INVARIANTS)
