"""What leaves the handbook with its evidence, line by line, and that nothing else does."""

from memoryd.workspace.cleaning_handbook import Gone, clean_handbook
from tests.workspace.factories import MEMORY

TABS = "- use tabs, never spaces [Task 1][Task 2] [stated]\n"
PORT = "- port 5433 is the test database [Task 1] [verified]\n"
TASK_1 = MEMORY[MEMORY.index("## Task 1") : MEMORY.index("## Task 2")]
A, B = "rollout_summaries/a.md", "rollout_summaries/b.md"


def without_task_1(text: str) -> str:
    """The handbook whose first task is gone, and whose second is the first now."""
    rest = text.replace(TASK_1, "").replace("[Task 1][Task 2]", "[Task 1]").replace("[Task 2]", "[Task 1]")
    return rest.replace("## Task 2", "## Task 1")


def test_a_handbook_of_which_nothing_is_gone_comes_back_to_the_byte() -> None:
    clean = clean_handbook(MEMORY, Gone(frozenset({"rollout_summaries/other.md"})))
    assert (clean.text, clean.removed, clean.orphans) == (MEMORY, [], set())


def test_a_task_goes_with_its_only_session_and_so_does_what_cites_it_alone() -> None:
    clean = clean_handbook(MEMORY, Gone(frozenset({A})))
    assert clean.text == without_task_1(MEMORY.replace(PORT, ""))
    assert clean.removed == [
        "speed up the checkout, done checkout postgres EXPLAIN ANALYZE",
        "port 5433 is the test database",
    ]


def test_with_a_purge_what_another_session_supports_too_goes_as_well() -> None:
    clean = clean_handbook(MEMORY, Gone(frozenset({A}), purge=True))
    assert "use tabs" not in clean.text
    assert "`make check` runs all tests [Task 1] [verified]" in clean.text
    assert "deploys happen on Fridays [ad-hoc note]" in clean.text


def test_a_task_of_two_sessions_loses_the_row_of_one_and_its_statements_are_suspects() -> None:
    row = f"- {B}\n"
    text = MEMORY.replace(row, f"{row}- rollout_summaries/c.md\n")
    clean = clean_handbook(text, Gone(frozenset({B})))
    assert clean.text == text.replace(row, "")
    assert clean.removed == []
    assert clean.suspects == {"use tabs, never spaces", "`make check` runs all tests"}


def test_with_a_purge_a_shared_task_goes_and_its_other_session_is_an_orphan() -> None:
    row = f"- {B}\n"
    clean = clean_handbook(MEMORY.replace(row, f"{row}- rollout_summaries/c.md\n"), Gone(frozenset({B}), purge=True))
    assert clean.orphans == {"rollout_summaries/c.md"}
    assert "## Task 2" not in clean.text
    assert "make check" not in clean.text


def test_a_group_that_lost_all_it_had_goes_whole_and_says_what_it_was() -> None:
    text = MEMORY.replace("- deploys happen on Fridays [ad-hoc note]\n", "")
    clean = clean_handbook(text, Gone(frozenset({A, B})))
    assert "#" not in clean.text
    assert (clean.titles, clean.cwds) == ({"shop"}, {"/home/dev/shop"})


def test_a_persons_statement_without_a_reference_stays_when_every_task_is_gone_and_another_does_not() -> None:
    mine, other = "- mine, without a reference", "- memoryd's, without a reference"
    text = MEMORY.replace(TABS, f"{TABS}{mine}\n{other}\n")
    clean = clean_handbook(text, Gone(frozenset({A, B}), persons=frozenset({mine})))
    assert mine in clean.text
    assert other not in clean.text


def test_statements_named_by_their_lines_go_in_any_case() -> None:
    number = MEMORY.split("\n").index(PORT.rstrip("\n")) + 1
    assert clean_handbook(MEMORY, Gone(lines=frozenset({number}))).text == MEMORY.replace(PORT, "")
