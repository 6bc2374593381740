"""A run and a person at work at the same lines: what the run adds there is not lost with its passage."""

import pytest

from memoryd.workspace.git import Repository
from memoryd.workspace.layout import MEMORY_FILE, SUMMARY_FILE, Home
from memoryd.workspace.run_additions import with_added
from memoryd.workspace.summary import index_of, parse_summary
from tests.workspace.factories import MEMORY, SUMMARY

TOPIC = "- shop: checkout, postgres\n  - desc: the backend\n  - learnings: an index helped\n"
NEW = "- till: receipts\n  - desc: the printer\n  - learnings: it jams\n"


def merged(home: Home, repo: Repository, path: str, base: str, live: str, theirs: str) -> str:
    text = repo.merge(base.encode(), live.encode(), theirs.encode(), scratch=home.staging)
    assert text is not None
    assert text.decode() == live  # the merge of lines alone loses what the run added
    return with_added(path, base, live, theirs, text.decode())


@pytest.mark.parametrize("old", ["- tabs", "- run `make check`"])
def test_a_preference_or_tip_beside_one_that_the_person_changes_is_kept(home: Home, repo: Repository, old: str) -> None:
    live = SUMMARY.replace(old, f"{old}, says the person")
    theirs = SUMMARY.replace(old, f"{old}\n- what the run adds")
    assert merged(home, repo, SUMMARY_FILE, SUMMARY, live, theirs) == SUMMARY.replace(
        old, f"{old}, says the person\n- what the run adds"
    )


def test_a_topic_beside_one_that_the_person_changes_is_kept_with_its_details(home: Home, repo: Repository) -> None:
    live = SUMMARY.replace("an index helped", "an index helped a lot")
    theirs = SUMMARY.replace(TOPIC, TOPIC + NEW)
    text = merged(home, repo, SUMMARY_FILE, SUMMARY, live, theirs)
    assert text == live.replace("a lot\n", f"a lot\n{NEW}")
    assert index_of(parse_summary(text)).reaches(title="till", cwd="/home/dev/shop")


def test_a_topic_of_a_day_that_the_person_took_out_goes_to_the_older_ones(home: Home, repo: Repository) -> None:
    live = SUMMARY.replace("#### 2025-11-29\n\n" + TOPIC, "")
    theirs = SUMMARY.replace(TOPIC, TOPIC + NEW)
    text = merged(home, repo, SUMMARY_FILE, SUMMARY, live, theirs)
    assert text.endswith("### Older Memory Topics\n\n#### /home/dev/shop\n\n- till: receipts\n  - desc: the printer\n")
    assert "postgres" not in text


def test_a_topic_that_the_person_renamed_or_took_out_does_not_come_back(home: Home, repo: Repository) -> None:
    theirs = SUMMARY.replace("- shop: checkout, postgres", "- shop: checkout, postgres, EXPLAIN")
    for mine in ("- backend: checkout", "- shop: mine"):
        live = SUMMARY.replace("- shop: checkout, postgres", mine)
        assert merged(home, repo, SUMMARY_FILE, SUMMARY, live, theirs) == live


def test_the_runs_own_wording_of_what_the_person_changed_stays_out(home: Home, repo: Repository) -> None:
    live, theirs = SUMMARY.replace("- tabs", "- tabs, never in YAML"), SUMMARY.replace("- tabs", "- tabs always")
    assert merged(home, repo, SUMMARY_FILE, SUMMARY, live, theirs) == live


def test_a_profile_is_not_said_twice(home: Home, repo: Repository) -> None:
    live = SUMMARY.replace("Works on a shop.", "Owns a shop.")
    theirs = SUMMARY.replace("Works on a shop.", "Works on a shop.\nAnd on a till.")
    assert merged(home, repo, SUMMARY_FILE, SUMMARY, live, theirs) == live


def test_a_bullet_of_the_handbook_beside_one_that_the_person_changes_is_kept(home: Home, repo: Repository) -> None:
    old = "- port 5433 is the test database [Task 1] [verified]"
    live = MEMORY.replace(old, "- my port [Task 1] [stated]")
    theirs = MEMORY.replace(old, f"{old}\n- new [Task 1] [verified]")
    text = merged(home, repo, MEMORY_FILE, MEMORY, live, theirs)
    assert "- new [Task 1] [verified]\n" in text
    assert "5433" not in text
