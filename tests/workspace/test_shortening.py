"""A history that is cut: nothing of the present is lost, and what is a person's stays theirs (I10)."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from memoryd.errors import GitError
from memoryd.workspace import shortening
from memoryd.workspace.authorship import person_lines
from memoryd.workspace.git import ACCEPTED, DAEMON, KEPT, PERSON, Author, Repository
from memoryd.workspace.history import Change, entries, find_entry
from memoryd.workspace.repository import accept, ensure
from memoryd.workspace.shortening import LEAST_KEPT, commits_to_keep
from tests.support.house import PATH_ONLY

DAY = 86_400


@dataclass(frozen=True)
class Thirty:
    """A memory of thirty versions, one a day; the third is the person's, who wrote the line `mine`."""

    folder: Path
    names: list[str]


@pytest.fixture(scope="module")
def thirty(tmp_path_factory: pytest.TempPathFactory) -> Thirty:
    folder = tmp_path_factory.mktemp("thirty")
    repo = in_folder(folder)
    ensure(repo)
    return Thirty(folder, thirty_versions(repo))


@pytest.fixture
def repo(thirty: Thirty, tmp_path: Path) -> Repository:
    shutil.copytree(thirty.folder, tmp_path, dirs_exist_ok=True)
    return in_folder(tmp_path)


@pytest.fixture
def names(thirty: Thirty) -> list[str]:
    return thirty.names


def in_folder(folder: Path) -> Repository:
    return Repository(folder / "memories/.git", folder / "memories", environ=PATH_ONLY)


def commit(repo: Repository, text: str, author: Author, at: int) -> str:
    path = repo.work_tree.parent / "text"
    path.write_text(text)
    parent = repo.accepted()
    tree = repo.write_tree({"MEMORY.md": path, "memory_summary.md": path})
    name = repo.commit_tree(
        tree, [parent] if parent else [], "Consolidate\n\nChange: consolidation\n", author=author, at=at
    )
    accept(repo, name)
    return name


def thirty_versions(repo: Repository) -> list[str]:
    text, names = "one\n", []
    for day in range(30):
        text += "mine\n" if day == 2 else f"line {day}\n"
        names.append(commit(repo, text, PERSON if day == 2 else DAEMON, day * DAY))
    return names


def cut(repo: Repository, keep: int) -> shortening.Shortened:
    return shortening.shorten(repo, shortening.line_of(repo), keep)


def test_the_present_is_the_same_on_a_shorter_history(repo: Repository, names: list[str]) -> None:
    tree = repo.tree_of(names[-1])
    written = cut(repo, 20)
    assert repo.accepted() == names[-1]

    shortening.move_refs(repo, written)

    assert repo.accepted() == repo.head() == written.accepted != names[-1]
    assert repo.tree_of(written.accepted) == tree
    found = entries(repo, limit=99)
    assert len(found) == 21
    assert (found[-1].change, found[-1].trailers["Changes"]) == (Change.SHORTENING, "10")
    assert [entry.at for entry in found] == [day * DAY for day in range(29, 8, -1)]
    assert find_entry(repo, "1").commit == written.accepted
    shortening.forget_moves(repo)
    shortening.collect(repo)
    assert repo.run("fsck", "--no-dangling") == b""
    assert shortening.room(repo).bytes > 0


def test_a_persons_line_older_than_the_cut_is_still_theirs(repo: Repository, names: list[str]) -> None:
    before = person_lines(repo, names[-1], "MEMORY.md")
    assert before == {4}
    shortening.move_refs(repo, cut(repo, 20))
    accepted = repo.accepted()
    assert accepted is not None
    assert person_lines(repo, accepted, "MEMORY.md") == before


def test_a_history_that_is_in_place_may_be_put_there_again(repo: Repository) -> None:
    written = cut(repo, 20)
    for _ in range(2):
        shortening.move_refs(repo, written)

    assert repo.accepted() == repo.head() == written.accepted


def test_refs_that_moved_meanwhile_stop_it(repo: Repository) -> None:
    written = cut(repo, 20)
    newest = commit(repo, "another\n", DAEMON, 40 * DAY)
    with pytest.raises(GitError):
        shortening.move_refs(repo, written)
    assert repo.accepted() == repo.head() == newest


def test_a_commit_that_was_kept_for_the_person_comes_along_while_it_is_young(
    repo: Repository, names: list[str]
) -> None:
    young = repo.commit_tree(repo.tree_of(names[3]), [names[25]], "Mine", author=PERSON, at=26 * DAY)
    repo.run("update-ref", f"{KEPT}/{young}", young)
    repo.run("update-ref", f"{KEPT}/{names[2]}", names[2])
    shortening.move_refs(repo, cut(repo, 20))
    refs = repo.run("for-each-ref", "--format=%(objectname)", KEPT).decode().split()
    assert [repo.tree_of(name) for name in refs] == [repo.tree_of(names[3])]
    assert repo.is_ancestor(repo.log(limit=9, start=ACCEPTED)[4].id, refs[0])


@pytest.mark.parametrize(
    ("ages", "oldest_at", "is_too_large", "keep"),
    [
        (30, 0, False, None),
        (30, 5, False, 25),
        (30, 29, False, LEAST_KEPT),
        (LEAST_KEPT + 1, 99, True, None),
        (100, 0, True, 50),
        (100, 90, True, LEAST_KEPT),
    ],
)
def test_age_and_size_decide_how_much_stays(ages: int, oldest_at: int, keep: int | None, *, is_too_large: bool) -> None:
    commits = [(str(at), at) for at in reversed(range(ages))]
    assert commits_to_keep(commits, oldest_at=oldest_at, is_too_large=is_too_large) == keep
