"""A git that hangs, is killed or is too old says nothing of the repository, and holds nobody up."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.errors import GitError, GitMissing
from memoryd.workspace.git import Repository
from memoryd.workspace.git_process import Children
from memoryd.workspace.layout import Home
from memoryd.workspace.repository import accept, ensure
from tests.workspace.factories import a_repository
from tests.workspace.test_git import a_program
from tests.workspace.test_repository import a_commit

SOON_SECONDS = 20.0
"""Far below what git is given, far above what ending it takes on a busy machine."""
HANG = 'sleep 600 & echo $$ $! > "{pids}"; wait'
STUBBORN = f'trap "" TERM; {HANG}'
Act = Callable[[Repository], object]
Wait = Callable[[Children, dict[str, str]], object]


def hanging(home: Home, folder: Path) -> Repository:
    """A repository whose git never ends, and has started something that holds its output."""
    environ = a_program(folder / "bin", HANG.replace("{pids}", str(folder / "pids")))
    return Repository(home.git_dir, home.memories, environ=environ)


def pids_in(folder: Path) -> list[int]:
    deadline = time.monotonic() + SOON_SECONDS
    while not (folder / "pids").exists() or not (folder / "pids").read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return [int(word) for word in (folder / "pids").read_text().split()]


def is_gone(pid: int) -> bool:
    """Tell whether a process is no more, or only waits for its parent to take note."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def assert_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + SOON_SECONDS
    while not all(is_gone(pid) for pid in pids):
        assert time.monotonic() < deadline, pids
        time.sleep(0.01)


def end_once_it_hangs(repo: Repository, folder: Path) -> threading.Thread:
    def end() -> None:
        pids_in(folder)
        repo.end()

    thread = threading.Thread(target=end)
    thread.start()
    return thread


@pytest.mark.skipif("FAKETIME" in os.environ, reason="timed waits of threads may never end under libfaketime")
@pytest.mark.parametrize(
    "wait",
    [
        lambda children, environ: children.run(["git"], environ, stdin=b"", seconds=0.5),
        lambda children, environ: children.read(["git"], environ, max_bytes=10, seconds=0.5),
    ],
    ids=["run", "read"],
)
def test_a_git_that_gives_no_answer_is_ended_with_all_that_it_started(tmp_path: Path, wait: Wait) -> None:
    environ = a_program(tmp_path / "bin", STUBBORN.replace("{pids}", str(tmp_path / "pids")))
    with pytest.raises(GitError, match=r"no answer within 0\.5 s"):
        wait(Children(), environ)
    assert_gone(pids_in(tmp_path))


@pytest.mark.parametrize(
    "act", [lambda repo: repo.head(), lambda repo: repo.diff("a" * 40, "b" * 40, max_bytes=10)], ids=["run", "read"]
)
def test_a_git_that_hangs_is_ended_when_memoryd_stops_and_none_is_started_again(
    home: Home, tmp_path: Path, act: Act
) -> None:
    repo = hanging(home, tmp_path)
    thread = end_once_it_hangs(repo, tmp_path)
    started = time.monotonic()
    with pytest.raises(GitError, match="memoryd is stopping"):
        act(repo)
    thread.join()
    assert time.monotonic() - started < SOON_SECONDS
    assert_gone(pids_in(tmp_path))
    with pytest.raises(GitError, match="not run any more"):
        act(repo.scratch(tmp_path))


@pytest.mark.parametrize(
    "script",
    ["kill -9 $$", 'case "$*" in *rev-list*) kill -9 $$;; *) exec /usr/bin/env -i PATH="$REAL" git "$@";; esac'],
)
def test_a_git_that_is_killed_says_nothing_of_the_repository(
    home: Home, repo: Repository, tmp_path: Path, script: str
) -> None:
    """A sound repository used to be set aside for it."""
    ensure(repo)
    commit = a_commit(repo, tmp_path / "work", "text\n")
    accept(repo, commit)
    real = "/usr/local/bin:/usr/bin:/bin"
    killed = Repository(home.git_dir, home.memories, environ=a_program(tmp_path / "bin", script.replace("$REAL", real)))
    with pytest.raises(GitError, match="signal 9"):
        ensure(killed)
    assert sorted(path.name for path in home.memories.iterdir()) == [".git"]
    assert repo.accepted() == commit


def test_a_git_that_is_too_old_is_named_and_changes_nothing(home: Home, repo: Repository, tmp_path: Path) -> None:
    """It lacks an option that tells whether the history is whole: every repository would look broken to it."""
    accept_one(repo, tmp_path)
    old = Repository(
        home.git_dir, home.memories, environ=a_program(tmp_path / "bin", 'echo "git version 2.17.1 (Apple Git-1)"')
    )
    with pytest.raises(GitMissing, match=r"cannot use git 2\.17: memoryd needs 2\.22 or newer.*install a newer git"):
        ensure(old)
    assert sorted(path.name for path in home.memories.iterdir()) == [".git"]


def test_a_git_that_names_its_version_in_another_way_is_tried(home: Home, tmp_path: Path) -> None:
    environ = a_program(tmp_path / "bin", 'echo "my own git"')
    Repository(home.git_dir, home.memories, environ=environ).require_usable_git()


def accept_one(repo: Repository, folder: Path) -> str:
    ensure(repo)
    commit = a_commit(repo, folder / "work", "text\n")
    accept(repo, commit)
    return commit


def test_a_long_answer_is_cut_and_its_git_ended(home: Home, tmp_path: Path) -> None:
    repo = a_repository(home)
    ensure(repo)
    trees = []
    for letter in ("a", "b"):
        (tmp_path / letter).write_text(f"{letter}\n" * 400_000)
        trees.append(repo.write_tree({"x.md": tmp_path / letter}))
    assert len(repo.diff(*trees, max_bytes=1000)) == 1001
    assert len(repo.diff(*trees, max_bytes=10_000_000)) > 2_400_000
