"""What a note asks to forget leaves the memory wherever it is said, and its surroundings stand."""

from memoryd.workspace.cleaning_texts import mentions, without_texts
from memoryd.workspace.folder import Folder
from tests.workspace.factories import MEMORY, SUMMARY, a_folder

PORT = "- port 5433 is the test database [Task 1] [verified]\n"


def test_a_statement_that_says_it_goes_whatever_its_case_and_marks() -> None:
    texts, number = without_texts(a_folder(), ["Port 5433: is the TEST database"])
    assert (texts, number) == ({"MEMORY.md": MEMORY.replace(PORT, "")}, 1)


def test_nothing_is_touched_where_nobody_says_it_or_nothing_is_asked() -> None:
    assert without_texts(a_folder(), ["port 5432"]) == ({}, 0)
    assert without_texts(a_folder(), []) == ({}, 0)
    assert list(mentions(a_folder(), [])) == []


def test_a_keyword_leaves_its_row_and_a_detail_its_topic() -> None:
    texts, _ = without_texts(a_folder(), ["postgres", "an index helped"])
    assert "- checkout, EXPLAIN ANALYZE\n" in texts["MEMORY.md"]
    assert texts["memory_summary.md"] == SUMMARY.replace(", postgres", "").replace(
        "  - learnings: an index helped\n", ""
    )


def test_a_topic_whose_title_says_it_is_found_under_its_directory() -> None:
    folder = Folder({"memory_summary.md": SUMMARY.replace("- shop: checkout", "- the till: checkout")})
    texts, _ = without_texts(folder, ["the till"])
    assert texts == {"memory_summary.md": SUMMARY.replace("- shop: checkout", "- /home/dev/shop: checkout")}


def test_skills_lose_the_rows_that_say_it_and_evidence_and_a_persons_files_are_left() -> None:
    folder = Folder(
        {"skills/x/SKILL.md": "one\nthe port is 5433\ntwo\n", "mine.md": "5433", "rollout_summaries/a.md": "5433"}
    )
    assert without_texts(folder, ["5433"]) == ({"skills/x/SKILL.md": "one\ntwo\n"}, 1)


def test_a_complaint_names_the_place_and_not_the_words() -> None:
    (complaint,) = mentions(a_folder(), ["port 5433"])
    line = MEMORY.split("\n").index(PORT.rstrip("\n")) + 1
    assert complaint == f"MEMORY.md line {line}: a note asks to forget what stands here; remove it"
