"""Another folder's handbook and summary joined to ours: what stands stays to the byte, what comes keeps its words."""

import pytest

from memoryd.workspace.handbook import parse_handbook
from memoryd.workspace.importing import join_handbooks, join_summaries
from memoryd.workspace.summary import parse_summary
from tests.support.codex_memories import FIRST, RECORDED

THEIRS = (RECORDED / FIRST / "MEMORY.md").read_text()
SUMMARY = (RECORDED / FIRST / "memory_summary.md").read_text()
OURS = """\
# Task Group: /home/dev/billing
scope: ours
applies_to: cwd=/home/dev/billing; reuse_rule=any time

## Task 1: our task, success

### rollout_summary_files

- rollout_summaries/ours.md

### keywords

- cents

## Reusable knowledge

- The unit tests of billing are run with python -m unittest, and end with OK. [Task 1] [verified]
"""


@pytest.mark.parametrize("ours", ["", "\n", "> Nothing is remembered.\n"])
def test_into_an_empty_handbook_theirs_comes_as_it_is(ours: str) -> None:
    joined = join_handbooks(ours, THEIRS, source="Codex")
    assert (joined.text, joined.groups, len(joined.bullets)) == (THEIRS, 2, 6)


@pytest.mark.parametrize("theirs", ["", "no handbook", "# Other heading\n- a bullet\n", "## User preferences\n- x\n"])
def test_what_is_no_handbook_changes_nothing(theirs: str) -> None:
    assert join_handbooks(OURS, theirs, source="Codex").text == OURS


def test_a_group_whose_title_is_taken_comes_beside_ours_without_what_ours_says_already() -> None:
    joined = join_handbooks(OURS, THEIRS, source="Codex")
    assert joined.text.startswith(OURS)
    titles = [group.title for group in parse_handbook(joined.text).groups]
    assert titles == ["/home/dev/billing", "/home/dev/paginator", "/home/dev/billing (imported from Codex)"]
    assert joined.text.count("The unit tests of billing are run") == 1
    assert len(joined.bullets) == 5


def test_joining_twice_changes_nothing_more_and_a_new_statement_comes_alone() -> None:
    once = join_handbooks(OURS, THEIRS, source="Codex").text
    assert join_handbooks(once, THEIRS, source="Codex").text == once
    more = THEIRS.replace("[Task 1][Task 2]\n", "[Task 1][Task 2]\n- The page size is a parameter. [Task 1]\n", 1)
    twice = join_handbooks(once, more, source="Codex")
    assert twice.bullets == {"- The page size is a parameter. [Task 1]"}
    assert "# Task Group: /home/dev/paginator (imported from Codex)" in twice.text
    assert join_handbooks(twice.text, more, source="Codex").text == twice.text


def test_a_summary_takes_what_it_lacks_into_its_own_sections() -> None:
    ours = SUMMARY.replace("- In billing, amounts stay integers in cents.\n", "").replace("/home/dev/billing", "/x")
    joined = join_summaries(ours, SUMMARY, max_bytes=10_000)
    found = parse_summary(joined.text)
    assert found.preferences[-1].endswith("amounts stay integers in cents.")
    assert [scope.name for scope in found.scopes] == ["/home/dev/paginator", "/x", "/home/dev/billing"]
    assert joined.bullets == {"- In billing, amounts stay integers in cents."}
    assert join_summaries(joined.text, SUMMARY, max_bytes=10_000).text == joined.text


def test_a_summary_never_grows_beyond_its_budget() -> None:
    ours = "v1\n\n## User Profile\n\nA.\n\n## User preferences\n\n## General Tips\n\n## What's in Memory\n"
    size = len(ours.encode())
    joined = join_summaries(ours, SUMMARY, max_bytes=size + 60)
    assert (len(joined.bullets), joined.dropped) == (1, 4)
    assert len(joined.text.encode()) <= size + 60
    full = join_summaries(ours, SUMMARY, max_bytes=size)
    assert (full.text, full.dropped) == (ours, 5)


@pytest.mark.parametrize("theirs", ["", "v2\n\n## User preferences\n\n- x\n", "- x\n"])
def test_what_is_no_summary_changes_nothing(theirs: str) -> None:
    assert join_summaries(SUMMARY, theirs, max_bytes=10_000).text == SUMMARY
