import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memoryd.errors import GitError
from memoryd.workspace.git import DAEMON, Repository
from memoryd.workspace.layout import Home
from memoryd.workspace.repository import accept, ensure, sweep
from tests.workspace.factories import NOW, a_repository, git, write_files


def a_commit(repo: Repository, folder: Path, text: str, parent: str | None = None) -> str:
    write_files(folder, {"MEMORY.md": text})
    tree = repo.write_tree({"MEMORY.md": folder / "MEMORY.md"})
    return repo.commit_tree(tree, [parent] if parent else [], "m\n", author=DAEMON, at=NOW)


@pytest.fixture
def accepted(repo: Repository, tmp_path: Path) -> str:
    ensure(repo)
    commit = a_commit(repo, tmp_path / "work", "text\n")
    accept(repo, commit)
    return commit


def test_a_new_repository_is_private_and_names_its_branch(repo: Repository, home: Home) -> None:
    assert ensure(repo) is None
    assert ensure(repo) is None
    assert (home.git_dir / "HEAD").read_text() == "ref: refs/heads/main\n"
    assert home.git_dir.stat().st_mode & 0o777 == 0o700
    assert repo.accepted() is None
    assert repo.head() is None


def test_accepting_moves_both_refs_and_leaves_a_clean_status(repo: Repository, home: Home, accepted: str) -> None:
    assert (repo.accepted(), repo.head()) == (accepted, accepted)
    write_files(home.memories, {"MEMORY.md": "text\n"})
    assert git(home.memories, "status", "--porcelain") == ""
    accept(repo, accepted)
    assert (repo.accepted(), repo.head()) == (accepted, accepted)


def test_a_result_that_does_not_follow_the_accepted_one_is_refused(
    repo: Repository, accepted: str, tmp_path: Path
) -> None:
    other = a_commit(repo, tmp_path / "work", "other\n")
    with pytest.raises(GitError, match="is not behind it"):
        accept(repo, other)
    assert repo.accepted() == accepted


def test_a_commit_that_a_person_made_meanwhile_is_kept_under_a_ref(
    repo: Repository, home: Home, accepted: str, tmp_path: Path
) -> None:
    result = a_commit(repo, tmp_path / "work", "result\n", accepted)
    write_files(home.memories, {"MEMORY.md": "mine\n"})
    git(home.memories, "commit", "-qam", "mine")
    mine = repo.head()
    accept(repo, result)
    assert repo.head() == result
    assert repo.resolve(f"refs/memoryd/kept/{mine}") == mine


def test_accepting_again_does_not_take_a_persons_later_commit_away(repo: Repository, home: Home, accepted: str) -> None:
    write_files(home.memories, {"MEMORY.md": "mine\n"})
    git(home.memories, "commit", "-qam", "mine")
    mine = repo.head()
    accept(repo, accepted)
    assert repo.head() == mine


def test_locks_that_a_crash_left_are_removed(repo: Repository, home: Home, accepted: str, tmp_path: Path) -> None:
    result = a_commit(repo, tmp_path / "work", "result\n", accepted)
    for lock in ("refs/memoryd/accepted.lock", "refs/heads/main.lock", "HEAD.lock"):
        (home.git_dir / lock).write_text("")
    (home.git_dir / "index.lock").write_text("")
    accept(repo, result)
    assert repo.accepted() == result


@pytest.mark.parametrize("damage", ["no HEAD", "garbage in HEAD", "packed refs"])
def test_a_broken_repository_is_built_anew_with_its_history(
    repo: Repository, home: Home, accepted: str, damage: str
) -> None:
    if damage == "packed refs":
        git(home.memories, "pack-refs", "--all")
    (home.git_dir / "HEAD").unlink()
    if damage == "garbage in HEAD":
        (home.git_dir / "HEAD").write_bytes(b"\x00\x00")
    aside = ensure(repo)
    assert aside == home.memories / ".git.broken-1"
    assert (repo.accepted(), repo.head()) == (accepted, accepted)
    assert repo.read(accepted, "MEMORY.md") == b"text\n"


def test_a_repository_whose_accepted_ref_was_torn_is_built_anew(repo: Repository, home: Home, accepted: str) -> None:
    (home.git_dir / "refs/memoryd/accepted").write_bytes(b"")
    assert ensure(repo) is not None
    assert (repo.accepted(), repo.head()) == (None, accepted)


def test_a_repository_whose_objects_are_gone_is_built_anew_and_nothing_is_thrown_away(
    repo: Repository, home: Home, accepted: str
) -> None:
    shutil.rmtree(home.git_dir / "objects")
    (home.memories / ".git.broken-1").mkdir()
    assert ensure(repo) == home.memories / ".git.broken-2"
    assert repo.accepted() is None
    assert (home.memories / ".git.broken-2/refs/memoryd/accepted").read_text().strip() == accepted


@pytest.mark.parametrize("damage", ["blobs are empty", "everything is empty", "blobs are cut"])
def test_objects_that_a_power_cut_damaged_are_not_taken_over(
    repo: Repository, home: Home, accepted: str, tmp_path: Path, damage: str
) -> None:
    for path in [path for path in (home.git_dir / "objects").rglob("*") if path.is_file()]:
        is_blob = git(home.memories, "cat-file", "-t", path.parent.name + path.name).strip() == "blob"
        if is_blob or damage == "everything is empty":
            content = path.read_bytes()
            path.chmod(0o600)
            path.write_bytes(content[:4] if damage == "blobs are cut" else b"")
    assert ensure(repo) == home.memories / ".git.broken-1"
    assert repo.accepted() is None
    again = a_commit(repo, tmp_path / "work", "text\n")
    assert repo.read(again, "MEMORY.md") == b"text\n"
    accept(repo, again)


def test_a_branch_that_cannot_be_read_is_no_unborn_branch(repo: Repository, home: Home, accepted: str) -> None:
    (home.git_dir / "refs/heads/main").write_text("f" * 40 + "\n")
    assert ensure(repo) is not None
    assert repo.accepted() == accepted


@pytest.mark.parametrize("kind", ["empty folder", "file", "symlink"])
def test_a_repository_further_up_or_elsewhere_is_never_touched(tmp_path: Path, kind: str) -> None:
    outer = tmp_path / "dotfiles"
    outer.mkdir()
    git(outer, "init", "-q")
    home = Home(outer / "home")
    home.memories.mkdir(parents=True)
    if kind == "empty folder":
        home.git_dir.mkdir()
    elif kind == "file":
        home.git_dir.write_text(f"gitdir: {outer / '.git'}\n")
    else:
        home.git_dir.symlink_to(outer / ".git")
    state = sorted((path, path.stat().st_mtime_ns) for path in (outer / ".git").rglob("*"))
    repo = a_repository(home)
    assert ensure(repo) == home.memories / ".git.broken-1"
    accept(repo, a_commit(repo, tmp_path / "work", "text\n"))
    assert sorted((path, path.stat().st_mtime_ns) for path in (outer / ".git").rglob("*")) == state
    assert (home.git_dir / "objects").is_dir()


def test_an_index_that_a_crash_left_is_swept(repo: Repository, home: Home, accepted: str) -> None:
    (home.git_dir / ".memoryd-index-x").mkdir()
    sweep(home.git_dir)
    assert not (home.git_dir / ".memoryd-index-x").exists()
    assert repo.accepted() == accepted


def test_an_index_in_use_outlives_whoever_looks_after_the_repository_meanwhile(
    repo: Repository, home: Home, accepted: str
) -> None:
    (home.git_dir / ".memoryd-index-x").mkdir()
    ensure(repo)
    assert (home.git_dir / ".memoryd-index-x").exists()


def test_a_repository_that_several_want_at_once_is_made_once(tmp_path: Path) -> None:
    for number in range(5):
        home = Home(tmp_path / str(number))
        repo = a_repository(home)
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(ensure, [repo] * 4)) == [None] * 4
        accept(repo, a_commit(repo, tmp_path / "work", "text\n"))
        assert not list(home.memories.glob(".git.broken-*"))
