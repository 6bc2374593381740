"""A person's merge in the memory folder is waited for, and not for ever."""

import os
from pathlib import Path
from subprocess import CalledProcessError

import pytest

from memoryd.workspace.git import Repository
from memoryd.workspace.layout import MEMORY_FILE, SUMMARY_FILE, Home
from memoryd.workspace.repository import ensure
from memoryd.workspace.unfinished import BUSY, PATIENCE_SECONDS, Unfinished, find_unfinished
from tests.workspace.factories import NOW, git, write_files

CONFLICT = "a\n<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> other\nb\n"


def touch(path: Path, at: float) -> None:
    os.utime(path, (at, at))


@pytest.mark.parametrize("name", BUSY)
def test_a_merge_or_rebase_is_waited_for_until_it_was_left_alone_for_an_hour(
    home: Home, repo: Repository, name: str
) -> None:
    ensure(repo)
    assert find_unfinished(home, NOW) is None
    state = home.git_dir / name
    state.mkdir() if name in ("rebase-merge", "rebase-apply", "sequencer") else state.write_text("x")
    touch(state, NOW)
    wanted = Unfinished(f".git/{name} is there", NOW + PATIENCE_SECONDS)
    assert [find_unfinished(home, NOW + age) for age in (-59, 0, PATIENCE_SECONDS - 1)] == [wanted] * 3
    assert [find_unfinished(home, NOW + age) for age in (-61, PATIENCE_SECONDS)] == [None, None]


@pytest.mark.parametrize("path", [MEMORY_FILE, SUMMARY_FILE])
def test_conflict_markers_are_waited_for_and_parts_of_them_are_text(home: Home, path: str) -> None:
    for text in ("=======\n", "<<<<<<< HEAD\n=======\n", "x <<<<<<< HEAD\n=======\n>>>>>>> b\n"):
        write_files(home.memories, {path: text})
        touch(home.memories / path, NOW)
        assert find_unfinished(home, NOW) is None
    write_files(home.memories, {path: CONFLICT})
    touch(home.memories / path, NOW)
    found = find_unfinished(home, NOW + 1)
    assert found == Unfinished(f"{path} holds conflict markers", NOW + PATIENCE_SECONDS)
    assert find_unfinished(home, NOW + PATIENCE_SECONDS) is None


def test_what_git_itself_leaves_of_a_merge_is_found(home: Home, repo: Repository) -> None:
    ensure(repo)
    for number, branch in enumerate(("one", "two")):
        git(home.memories, "checkout", "-q", "--orphan", branch)
        write_files(home.memories, {MEMORY_FILE: f"{number}\n"})
        git(home.memories, "add", MEMORY_FILE)
        git(home.memories, "commit", "-qm", branch)
    with pytest.raises(CalledProcessError):
        git(home.memories, "merge", "-q", "--allow-unrelated-histories", "one")
    touch(home.git_dir / "MERGE_HEAD", NOW)
    assert find_unfinished(home, NOW) == Unfinished(".git/MERGE_HEAD is there", NOW + PATIENCE_SECONDS)
    (home.git_dir / "MERGE_HEAD").unlink()
    touch(home.memories / MEMORY_FILE, NOW)
    assert find_unfinished(home, NOW) == Unfinished("MEMORY.md holds conflict markers", NOW + PATIENCE_SECONDS)
