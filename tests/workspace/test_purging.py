"""The history begun anew: one version, no trace of the rest, and what is a person's stays theirs."""

import pytest

from memoryd.redact import Redactor
from memoryd.workspace.authorship import person_lines, removed_by_person
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import MEMORY_FILE, Home
from memoryd.workspace.publish import prepare_commit, put_in_place
from memoryd.workspace.purging import rewrite_history, wipe
from memoryd.workspace.repository import ensure
from memoryd.workspace.staging import stage
from tests.workspace.factories import MEMORY, NOW, files, git, write_files

MINE = "- never touch the ledger by hand\n"
TABS = "- use tabs, never spaces [Task 1][Task 2] [stated]\n"
SENTINEL = "zanzibar"
POINTS = ("history_written", "old_history_aside", "new_history_in_place")


class Killed(Exception):
    """The process ends here."""


def run(home: Home, repo: Repository, contents: dict[str, str]) -> str:
    staged = stage(home, repo, "run", now=NOW, redactor=Redactor())
    write_files(staged.work, contents)
    commit = prepare_commit(repo, staged, "run\n", now=NOW)
    put_in_place(home, repo, commit, staged.base_id)
    return commit


@pytest.fixture
def lived(home: Home, repo: Repository) -> Repository:
    """A memory that once said the sentinel, with a line of the person's and without one that they deleted."""
    run(home, repo, {**files(), "skills/x/SKILL.md": SENTINEL})
    git(home.memories, "branch", "other")
    (home.memories / "skills/x/SKILL.md").write_text("clean\n")
    write_files(home.memories, {MEMORY_FILE: MEMORY.replace(TABS, MINE)})
    run(home, repo, {"rollout_summaries/a.md": files()["rollout_summaries/a.md"] + "use tabs, never spaces\n"})
    return repo


def has_trace(home: Home) -> bool:
    names = git(home.memories, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    return any(SENTINEL in git(home.memories, "cat-file", "-p", name) for name in names)


def test_no_object_of_an_earlier_version_is_left_and_the_folder_stays_as_it_is(home: Home, lived: Repository) -> None:
    """I12."""
    before = (home.memories / MEMORY_FILE).read_bytes()
    assert has_trace(home)
    commit = rewrite_history(home, lived, now=NOW)
    assert not has_trace(home)
    assert (lived.head(), lived.accepted(), lived.resolve("refs/heads/other")) == (commit, commit, None)
    assert (home.memories / MEMORY_FILE).read_bytes() == before == lived.read(commit, MEMORY_FILE)
    assert git(home.memories, "status", "--porcelain") == ""


def test_a_persons_line_stays_theirs_and_what_they_deleted_stays_deleted(home: Home, lived: Repository) -> None:
    """I10."""
    commit = rewrite_history(home, lived, now=NOW)
    rows = (home.memories / MEMORY_FILE).read_text().split("\n")
    assert person_lines(lived, commit, MEMORY_FILE) == {rows.index(MINE.rstrip("\n")) + 1}
    assert removed_by_person(lived, commit)[MEMORY_FILE] == {"use tabs, never spaces"}


def test_what_they_deleted_is_forgotten_when_a_word_of_it_stands_nowhere(home: Home, lived: Repository) -> None:
    """I12."""
    run(home, lived, {"rollout_summaries/a.md": files()["rollout_summaries/a.md"]})
    commit = rewrite_history(home, lived, now=NOW)
    assert removed_by_person(lived, commit)[MEMORY_FILE] == frozenset()


@pytest.mark.parametrize("point", POINTS)
def test_after_a_kill_at_any_point_it_is_done_by_doing_it_again(home: Home, lived: Repository, point: str) -> None:
    def reached(at: str) -> None:
        if at == point:
            raise Killed

    with pytest.raises(Killed):
        rewrite_history(home, lived, now=NOW, reached=reached)
    commit = rewrite_history(home, lived, now=NOW)
    assert (lived.accepted(), ensure(lived)) == (commit, None)
    assert lived.read(commit, MEMORY_FILE) == (home.memories / MEMORY_FILE).read_bytes()
    assert not has_trace(home)
    assert sorted(path.name for path in home.memories.glob(".git*")) == [".git"]


def test_a_reset_leaves_an_empty_memory_of_one_version(home: Home, lived: Repository) -> None:
    write_files(home.memories, {"mine.md": SENTINEL})
    commit = wipe(home, lived, now=NOW)
    assert "Nothing is remembered" in (home.memories / MEMORY_FILE).read_text()
    assert not (home.memories / "mine.md").exists()
    assert not (home.memories / "skills").exists()
    assert (lived.accepted(), has_trace(home)) == (commit, False)
    assert git(home.memories, "rev-list", "--all", "--count").strip() == "1"
