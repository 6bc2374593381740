import os
from pathlib import Path

import pytest

from memoryd.errors import DiskFull, GitError, GitMissing
from memoryd.workspace.git import DAEMON, PERSON, Change, Repository, Status
from memoryd.workspace.layout import Home
from memoryd.workspace.repository import ensure
from tests.workspace.factories import NOW, git, write_files


def a_tree(repo: Repository, folder: Path, contents: dict[str, str]) -> str:
    write_files(folder, contents)
    return repo.write_tree({path: folder / path for path in contents})


def a_program(folder: Path, script: str) -> dict[str, str]:
    """Return an environment whose git is a shell script."""
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "git").chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_without_git_the_error_says_how_to_get_it(home: Home, tmp_path: Path) -> None:
    repo = Repository(home.git_dir, home.memories, environ={"PATH": str(tmp_path)})
    with pytest.raises(GitMissing, match=r"no git program on PATH.*install git"):
        ensure(repo)


def test_a_stub_that_only_offers_to_install_git_counts_as_missing(home: Home, tmp_path: Path) -> None:
    environ = a_program(tmp_path / "bin", 'echo "xcrun: error: invalid active developer path" >&2; exit 1')
    with pytest.raises(GitMissing, match="xcrun"):
        ensure(Repository(home.git_dir, home.memories, environ=environ))


def test_a_full_disk_is_told_apart_from_a_refusal(home: Home, tmp_path: Path) -> None:
    environ = a_program(tmp_path / "bin", 'echo "fatal: sha1 file: No space left on device" >&2; exit 128')
    with pytest.raises(DiskFull, match="No space left"):
        ensure(Repository(home.git_dir, home.memories, environ=environ))


def test_a_refusal_names_the_command_and_the_reason(repo: Repository) -> None:
    ensure(repo)
    with pytest.raises(GitError, match=r"git rev-parse in the memory folder failed: .*doctor"):
        repo.tree_of("no-such-commit")


def test_a_system_that_cannot_start_git_is_a_refusal_with_its_reason(repo: Repository) -> None:
    with pytest.raises(GitError, match="Argument list too long"):
        repo.run("log", "x" * 5_000_000)


def test_nothing_inherited_reaches_git(home: Home, tmp_path: Path) -> None:
    hostile = {
        "PATH": os.environ["PATH"],
        "GIT_DIR": str(tmp_path / "elsewhere"),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "true",
        "HOME": str(tmp_path),
    }
    (tmp_path / ".gitconfig").write_text("[commit]\n  gpgsign = true\n[broken\n")
    repo = Repository(home.git_dir, home.memories, environ=hostile)
    ensure(repo)
    assert repo.tree_of(None) == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    assert not (tmp_path / "elsewhere").exists()


def test_hooks_filters_and_ignore_files_have_no_say(repo: Repository, home: Home, tmp_path: Path) -> None:
    ensure(repo)
    for hook in ("reference-transaction", "post-index-change"):
        (home.git_dir / "hooks").mkdir(exist_ok=True)
        (home.git_dir / "hooks" / hook).write_text("#!/bin/sh\nexit 1\n")
        (home.git_dir / "hooks" / hook).chmod(0o755)
    (home.git_dir / "info").mkdir(exist_ok=True)
    (home.git_dir / "info/attributes").write_text("* text eol=crlf\n")
    (home.git_dir / "info/exclude").write_text("*\n")
    git(home.memories, "config", "core.autocrlf", "true")
    tree = a_tree(repo, tmp_path / "w", {"a.md": "x\r\ny\n", 'q"\\uote.md': "q", "é/ü.md": "z"})
    commit = repo.commit_tree(tree, [], "subject\n\nJob: 1\n", author=DAEMON, at=NOW)
    repo.run("update-ref", "refs/memoryd/accepted", commit)
    assert repo.read(commit, "a.md") == b"x\r\ny\n"
    assert repo.read(commit, 'q"\\uote.md') == b"q"
    assert repo.read(commit, "é/ü.md") == b"z"
    assert repo.read(commit, "absent.md") is None


def test_the_history_says_who_made_what_when(repo: Repository, tmp_path: Path) -> None:
    ensure(repo)
    assert repo.log(limit=5) == ()
    first = repo.commit_tree(a_tree(repo, tmp_path / "w", {"a": "1"}), [], "one\n", author=PERSON, at=NOW)
    second = repo.commit_tree(
        a_tree(repo, tmp_path / "w", {"a": "2"}), [first], "two\n\nJob: 7\nModel: m\n", author=DAEMON, at=NOW + 1
    )
    newest, oldest = repo.log(limit=5, start=second)
    assert (newest.subject, newest.body, newest.author, newest.at) == ("two", "Job: 7\nModel: m", "memoryd", 1764409096)
    assert (oldest.id, oldest.parents, newest.parents, oldest.author) == (first, (), (first,), "person")
    assert len(repo.log(limit=1, start=second)) == 1


def test_changes_and_diff_between_trees(repo: Repository, tmp_path: Path) -> None:
    ensure(repo)
    old = a_tree(repo, tmp_path / "old", {"gone.md": "g\n", "same.md": "s\n", "é.md": "1\n"})
    new = a_tree(repo, tmp_path / "new", {"same.md": "s\n", "new.md": "n\n", "é.md": "2\n"})
    assert repo.changes(old, new) == (
        Change(Status.DELETED, "gone.md"),
        Change(Status.ADDED, "new.md"),
        Change(Status.MODIFIED, "é.md"),
    )
    text = repo.diff(old, new, max_bytes=10_000).decode()
    assert "--- a/é.md\n+++ b/é.md\n@@ -1 +1 @@\n-1\n+2\n" in text
    assert len(repo.diff(old, new, max_bytes=10)) == 11
    with pytest.raises(GitError):
        repo.diff(old, "f" * 40, max_bytes=10)


def test_files_are_read_though_a_folder_or_nothing_stands_where_another_was_looked_for(
    repo: Repository, tmp_path: Path
) -> None:
    ensure(repo)
    tree = a_tree(repo, tmp_path / "work", {"a/b.md": "one\n", "c.md": "two\nblob 3"})
    assert repo.read_all(tree, ["x y missing", "a", "c.md", "a/b.md"]) == {"c.md": b"two\nblob 3", "a/b.md": b"one\n"}


def test_in_a_merge_both_sides_count_and_ours_wins_where_they_clash(repo: Repository, home: Home) -> None:
    ensure(repo)
    base = b"one\ntwo\nthree\nfour\nfive\n"
    ours = b"ONE\ntwo\nthree\nfour\nfive ours\n"
    theirs = b"one\ntwo\nTHREE\nfour\nfive theirs\n"
    assert repo.merge(base, ours, theirs, scratch=home.staging) == b"ONE\ntwo\nTHREE\nfour\nfive ours\n"
    assert repo.merge(b"\x00", b"\x00a", b"\x00b", scratch=home.staging) is None
    assert list(home.staging.iterdir()) == []


def test_a_scratch_view_leaves_no_object_behind(repo: Repository, home: Home, tmp_path: Path) -> None:
    ensure(repo)
    count = sum(1 for _ in (home.git_dir / "objects").rglob("*"))
    (tmp_path / "obj:ects").mkdir()
    scratch = repo.scratch(tmp_path / "obj:ects")
    tree = a_tree(scratch, tmp_path / "w", {"a": "1"})
    scratch.commit_tree(tree, [], "m", author=DAEMON, at=NOW)
    assert sum(1 for _ in (home.git_dir / "objects").rglob("*")) == count
