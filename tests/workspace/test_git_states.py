"""Every state in which `.git` may be found: the next run is accepted, and what could be kept of the history is."""

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.redact import Redactor
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import MEMORY_FILE, Home
from memoryd.workspace.repository import accept
from tests.workspace.factories import MEMORY, files, git, write_files
from tests.workspace.test_git_isolation import a_run

SECOND = "> New.\n\n" + MEMORY
MINE = MEMORY + "- my own line [Task 1] [stated]\n"
State = Callable[[Home], None]


@pytest.fixture
def first(home: Home, repo: Repository, redactor: Redactor) -> str:
    """An accepted memory, and a branch of the person's own."""
    commit = a_run(home, repo, redactor, files(), "first")
    git(home.memories, "branch", "mine")
    return commit


def objects_of(home: Home, kind: str) -> list[Path]:
    loose = [path for path in (home.git_dir / "objects").glob("??/*") if path.is_file()]
    return [path for path in loose if git(home.memories, "cat-file", "-t", path.parent.name + path.name) == kind + "\n"]


def damage(path: Path, data: bytes) -> None:
    path.chmod(0o600)
    path.write_bytes(data)


def packed(home: Home) -> Path:
    git(home.memories, "gc", "-q", "--prune=now")
    (pack,) = (home.git_dir / "objects/pack").glob("*.pack")
    return pack


# What can be gone on with: the history stays as it is.


def corrupt_index(home: Home) -> None:
    (home.git_dir / "index").write_bytes(b"DIRC garbage")


def no_index(home: Home) -> None:
    (home.git_dir / "index").unlink()


def index_that_is_a_folder(home: Home) -> None:
    (home.git_dir / "index").unlink()
    (home.git_dir / "index").mkdir()


def stale_index_lock(home: Home) -> None:
    (home.git_dir / "index.lock").write_bytes(b"")


def stale_head_lock(home: Home) -> None:
    (home.git_dir / "HEAD.lock").write_bytes(b"")


def stale_ref_locks(home: Home) -> None:
    for name in ("refs/heads/main.lock", "refs/memoryd/accepted.lock", "packed-refs.lock"):
        (home.git_dir / name).write_bytes(b"")


def corrupt_branch_of_the_persons(home: Home) -> None:
    (home.git_dir / "refs/heads/mine").write_bytes(b"\x00garbage")


def detached_head(home: Home) -> None:
    git(home.memories, "checkout", "-q", "--detach")


def another_branch(home: Home) -> None:
    git(home.memories, "checkout", "-q", "mine")


def orphan_branch(home: Home) -> None:
    git(home.memories, "symbolic-ref", "HEAD", "refs/heads/never-born")


def shallow(home: Home) -> None:
    (home.git_dir / "shallow").write_text(git(home.memories, "rev-parse", "HEAD"))


def borrowing_objects(home: Home) -> None:
    elsewhere = home.path / "objects"
    shutil.move(home.git_dir / "objects", elsewhere)
    (home.git_dir / "objects/info").mkdir(parents=True)
    (home.git_dir / "objects/info/alternates").write_text(f"{elsewhere}\n")


def all_in_one_pack(home: Home) -> None:
    packed(home)


def corrupt_commit_graph(home: Home) -> None:
    git(home.memories, "commit-graph", "write", "--reachable")
    damage(home.git_dir / "objects/info/commit-graph", b"CGPH garbage")


def dangling_reflog(home: Home) -> None:
    (home.git_dir / "logs").mkdir(exist_ok=True)
    (home.git_dir / "logs/HEAD").write_bytes(b"garbage\n")


SOUND: list[State] = [
    corrupt_index,
    no_index,
    index_that_is_a_folder,
    stale_index_lock,
    stale_head_lock,
    stale_ref_locks,
    corrupt_branch_of_the_persons,
    detached_head,
    another_branch,
    orphan_branch,
    shallow,
    borrowing_objects,
    all_in_one_pack,
    corrupt_commit_graph,
    dangling_reflog,
]


@pytest.mark.parametrize("state", SOUND, ids=lambda state: state.__name__)
def test_a_repository_that_can_be_gone_on_with_is(
    home: Home, repo: Repository, redactor: Redactor, first: str, state: State
) -> None:
    state(home)
    commit = a_run(home, repo, redactor, {MEMORY_FILE: SECOND}, "second")
    assert (repo.accepted(), repo.head()) == (commit, commit)
    assert repo.is_ancestor(first, commit)
    assert not list(home.memories.glob(".git.*"))
    assert (home.memories / MEMORY_FILE).read_text() == SECOND


# What cannot: it is set aside, and what can be read of it is taken over.


def missing(home: Home) -> None:
    home.git_dir.rename(home.path / "gone")


def empty(home: Home) -> None:
    missing(home)
    home.git_dir.mkdir()


def a_link_to_a_work_tree_elsewhere(home: Home) -> None:
    missing(home)
    home.git_dir.write_text(f"gitdir: {home.path}/gone\n")


def a_symlink(home: Home) -> None:
    missing(home)
    home.git_dir.symlink_to(home.path / "gone")


def no_head(home: Home) -> None:
    (home.git_dir / "HEAD").unlink()


def garbage_in_head(home: Home) -> None:
    (home.git_dir / "HEAD").write_bytes(b"\x00\xff")


def empty_head(home: Home) -> None:
    (home.git_dir / "HEAD").write_bytes(b"")


def broken_config(home: Home) -> None:
    (home.git_dir / "config").write_text("[broken\n")


def extension_of_the_future(home: Home) -> None:
    git(home.memories, "config", "core.repositoryformatversion", "1")
    git(home.memories, "config", "extensions.fromTheFuture", "1")


def corrupt_accepted_ref(home: Home) -> None:
    (home.git_dir / "refs/memoryd/accepted").write_bytes(b"garbage\n")


def missing_objects(home: Home) -> None:
    for path in objects_of(home, "tree"):
        path.unlink()


def no_objects(home: Home) -> None:
    shutil.rmtree(home.git_dir / "objects")


def a_bit_of_an_object_flipped(home: Home) -> None:
    """Its head, which is all that git looks at to say that it is there, is still right."""
    path = max(objects_of(home, "blob"), key=lambda path: path.stat().st_size)
    data = bytearray(path.read_bytes())
    data[-6] ^= 0xFF
    damage(path, bytes(data))


def truncated_pack(home: Home) -> None:
    pack = packed(home)
    damage(pack, pack.read_bytes()[: pack.stat().st_size // 2])


def no_pack_index(home: Home) -> None:
    packed(home).with_suffix(".idx").unlink()


def borrowed_objects_gone(home: Home) -> None:
    borrowing_objects(home)
    shutil.rmtree(home.path / "objects")


BROKEN: dict[State, bool] = {
    missing: False,
    empty: False,
    a_link_to_a_work_tree_elsewhere: False,
    a_symlink: False,
    no_head: True,
    garbage_in_head: True,
    empty_head: True,
    broken_config: True,
    extension_of_the_future: True,
    corrupt_accepted_ref: True,
    missing_objects: False,
    no_objects: False,
    a_bit_of_an_object_flipped: False,
    truncated_pack: False,
    no_pack_index: True,
    borrowed_objects_gone: False,
}
"""The state, and whether the history can still be read."""


@pytest.mark.parametrize("state", BROKEN, ids=lambda state: state.__name__)
def test_a_repository_that_cannot_be_gone_on_with_is_built_anew_beside_it(
    home: Home, repo: Repository, redactor: Redactor, first: str, state: State
) -> None:
    """The folder's text stands whatever becomes of its history, and so does what a person wrote since."""
    write_files(home.memories, {MEMORY_FILE: MINE})
    state(home)
    commit = a_run(home, repo, redactor, {MEMORY_FILE: "> New.\n\n" + MINE}, "second")
    assert (repo.accepted(), repo.head()) == (commit, commit)
    assert (home.memories / MEMORY_FILE).read_text() == "> New.\n\n" + MINE
    assert bool(list(home.memories.glob(".git.broken-1"))) is (state is not missing)
    assert git(home.memories, "fsck", "--full", "--strict", "--no-dangling") == ""
    if BROKEN[state]:
        assert repo.is_ancestor(first, commit)
        assert repo.resolve("refs/heads/mine") == first
    assert a_run(home, repo, redactor, {MEMORY_FILE: MINE}, "third") == repo.accepted()
    assert not list(home.memories.glob(".git.broken-2"))


def test_a_repository_of_the_longer_kind_of_ids_is_gone_on_with(
    home: Home, repo: Repository, redactor: Redactor
) -> None:
    git(home.memories, "init", "-q", "--object-format=sha256")
    first = a_run(home, repo, redactor, files(), "first")
    second = a_run(home, repo, redactor, {MEMORY_FILE: SECOND}, "second")
    assert (len(first), repo.accepted()) == (64, second)
    assert repo.is_ancestor(first, second)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_that_another_user_owns_is_gone_on_with(
    home: Home, repo: Repository, redactor: Redactor, first: str
) -> None:
    """A home that was restored from a backup, or lies on another machine's disk."""
    for path in (home.memories, *home.memories.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    commit = a_run(home, repo, redactor, {MEMORY_FILE: SECOND}, "second")
    assert repo.accepted() == commit
    assert repo.is_ancestor(first, commit)


def test_a_lock_that_comes_and_goes_is_waited_for_and_never_removed(
    home: Home, repo: Repository, redactor: Redactor, first: str
) -> None:
    """A person's git at work takes it again and again; one that a crash left never changes."""
    lock, stop, taken = home.git_dir / "refs/memoryd/accepted.lock", threading.Event(), 0
    robbed: list[int] = []

    def person() -> None:
        nonlocal taken
        while not stop.is_set():
            try:
                number = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            except FileExistsError:
                continue
            taken += 1
            os.close(number)
            time.sleep(0.3)
            try:
                lock.unlink()
            except FileNotFoundError:
                robbed.append(taken)
            time.sleep(0.15)

    thread = threading.Thread(target=person)
    thread.start()
    try:
        deadline = time.monotonic() + 20
        while not taken and time.monotonic() < deadline:
            time.sleep(0.01)
        accept(repo, first)
    finally:
        stop.set()
        thread.join()
    assert robbed == []
