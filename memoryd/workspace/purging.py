"""The history of the memory folder begun anew, so that no object, ref, reflog or stash holds what was purged.

A repository is written beside the old one, with one version: the present one. Then it takes the place of the old one,
which is deleted whole. No filtering of old versions can be as sure of finding every trace. What a person wrote stays
theirs in the new history, and what they deleted stays deleted, as far as every word of it still stands somewhere.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from memoryd.workspace import mending
from memoryd.workspace.authorship import KEPT_SUBJECT, has_person_commit, person_lines, removed_by_person
from memoryd.workspace.extensions import seed_instructions
from memoryd.workspace.files import (
    fsync_folder,
    is_temporary,
    temporary_beside,
    translated,
    write_durably,
    write_private,
)
from memoryd.workspace.folder import Folder, Odd
from memoryd.workspace.git import DAEMON, PERSON, Repository
from memoryd.workspace.history import Change, message
from memoryd.workspace.layout import ALWAYS_THERE, DIFF_FILE, RAW_MEMORIES, SKILLS, Home
from memoryd.workspace.materialise import render_raw_memories
from memoryd.workspace.quarantine import empty_quarantine
from memoryd.workspace.repository import accept, ensure
from memoryd.workspace.wording import words_of

NEW: Final = ".git.rewritten"
OLD: Final = ".git.purged"
BROKEN: Final = ".git.broken-*"
SCRATCH: Final = "rewrite"
"""In the staging folder: the files of the new history while it is written."""
_TAKEN_OVER: Final = ("config",)
"""Of a person's own settings of the repository; hooks are never run, and everything else may hold text."""
_SUBJECT: Final = "Begin the history anew: what was before is purged"


def rewrite_history(
    home: Home, repo: Repository, *, now: float, reached: Callable[[str], None] = lambda _name: None
) -> str:
    """Make the accepted version the whole history; return its commit. Blocking, and repeatable after a crash.

    `reached` is called with the name of each point passed. Raises GitError, StorageError.
    """
    _mend_swap(home, repo)
    ensure(repo)
    accepted = repo.accepted()
    files = {} if accepted is None else _files_of(repo, accepted)
    persons = {} if accepted is None else _persons(repo, accepted, files)
    deleted = {} if accepted is None else _deleted(repo, accepted, files.values())
    commit = _write(home, repo, files, persons, deleted, now=now)
    _swap(home, repo, reached)
    remove_leftovers(home)
    return commit


def wipe(home: Home, repo: Repository, *, now: float, reached: Callable[[str], None] = lambda _name: None) -> str:
    """Leave an empty memory with a history of one version; return its commit. Blocking, and idempotent.

    The two files that agents read are replaced first, each in one step; then everything else in the folder goes, a
    person's notes and files too.
    """
    empty_quarantine(home)
    scratch = home.staging / SCRATCH
    shutil.rmtree(scratch, ignore_errors=True)
    mending.empty_folder(scratch)
    seed_instructions(scratch)
    write_private(scratch / RAW_MEMORIES, render_raw_memories([]).encode())
    files = {path: text.encode() for path, text in Folder.read(scratch).files.items()}
    _mend_swap(home, repo)
    commit = _write(home, repo, files, {}, {}, now=now)
    for path in ALWAYS_THERE:
        _put(home.memories / path, files[path])
    kept = {*ALWAYS_THERE, ".git", NEW}
    for entry in sorted(home.memories.iterdir()):
        if entry.name not in kept:
            _remove(entry)
    for path in files.keys() - set(ALWAYS_THERE):
        write_private(home.memories / path, files[path])
    reached("folder_wiped")
    _swap(home, repo, reached)
    return commit


def remove_leftovers(home: Home) -> list[str]:
    """Remove what older versions and runs may have left: repositories, temporaries, editors' copies, a diff, strays."""
    empty_quarantine(home)
    removed = []
    for path in sorted([*home.memories.glob(BROKEN), home.memories / OLD, home.memories / DIFF_FILE]):
        if os.path.lexists(path):
            _remove(path)
            removed.append(path.name)
    for name, reason in Folder.read(home.memories).odd.items():
        if reason is Odd.EDITOR_FILE or is_temporary(Path(name).name):
            _remove(home.memories / name)
            removed.append(name)
    return removed


def empty_recall(home: Home) -> None:
    """Remove what agents are given, so that all of it is made anew."""
    if not home.recall.is_symlink():
        for entry in sorted(home.recall.iterdir()) if home.recall.is_dir() else []:
            _remove(entry)


def _files_of(repo: Repository, commit: str) -> dict[str, bytes]:
    return repo.read_all(commit, sorted(path for path in repo.files(commit) if "\n" not in path))


def _persons(repo: Repository, commit: str, files: Mapping[str, bytes]) -> dict[str, frozenset[int]]:
    """Return the numbers of the lines that are a person's, by file."""
    paths = [path for path in files if path in ALWAYS_THERE or path.startswith(f"{SKILLS}/")]
    return {path: person_lines(repo, commit, path) for path in paths if has_person_commit(repo, commit, path)}


def _deleted(repo: Repository, commit: str, texts: Iterable[bytes]) -> dict[str, list[str]]:
    """Return what a person deleted from the two files, if every word of it still stands in the folder."""
    known = {word for text in texts for word in words_of(text.decode("utf-8", "replace"))}
    removed = removed_by_person(repo, commit)
    return {path: sorted(key for key in keys if known.issuperset(words_of(key))) for path, keys in removed.items()}


def _write(
    home: Home,
    repo: Repository,
    files: Mapping[str, bytes],
    persons: Mapping[str, frozenset[int]],
    deleted: Mapping[str, list[str]],
    *,
    now: float,
) -> str:
    """Write the new repository beside the old one: a version without the person's part, and theirs on top of it."""
    target = home.memories / NEW
    if os.path.lexists(target):
        _remove(target)
    new = repo.elsewhere(target)
    ensure(new)
    new.run("config", "--unset-all", "core.worktree", accepts=(0, 5))  # it is to be where every other repository is
    scratch = home.staging / SCRATCH
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        below = {path: _without(data, persons.get(path), deleted.get(path, [])) for path, data in files.items()}
        root = new.commit_tree(
            _tree(new, scratch, below), [], message(Change.FORGETTING, _SUBJECT, ()), author=DAEMON, at=now
        )
        commit = root
        if below != dict(files):
            commit = new.commit_tree(_tree(new, scratch, files), [root], f"{KEPT_SUBJECT}\n", author=PERSON, at=now)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    accept(new, commit)
    return commit


def _without(data: bytes, persons: frozenset[int] | None, deleted: list[str]) -> bytes:
    """Return a file as it would be without a person: without their lines, and with what they deleted."""
    if not persons and not deleted:
        return data
    rows = data.decode("utf-8", "replace").split("\n")
    kept = [row for number, row in enumerate(rows, start=1) if number not in (persons or ())]
    return "\n".join([*(f"- {key}" for key in deleted), *kept]).encode()


def _tree(repo: Repository, scratch: Path, files: Mapping[str, bytes]) -> str:
    shutil.rmtree(scratch, ignore_errors=True)
    for path, data in files.items():
        write_private(scratch / path, data)
    return repo.write_tree({path: scratch / path for path in files})


def _swap(home: Home, repo: Repository, reached: Callable[[str], None]) -> None:
    """Let the new repository take the place of the old one, which is deleted."""
    new, old = home.memories / NEW, home.memories / OLD
    _take_settings(repo, new)
    reached("history_written")
    with translated("replace", repo.git_dir):
        if os.path.lexists(old):
            _remove(old)
        if os.path.lexists(repo.git_dir):
            repo.git_dir.rename(old)
        reached("old_history_aside")
        new.rename(repo.git_dir)
    fsync_folder(home.memories)
    reached("new_history_in_place")
    if os.path.lexists(old):
        _remove(old)


def _mend_swap(home: Home, repo: Repository) -> None:
    """Finish a swap that was interrupted when the old repository had gone and the new one was not in its place."""
    new = home.memories / NEW
    if new.is_dir() and not os.path.lexists(repo.git_dir):
        with translated("replace", repo.git_dir):
            new.rename(repo.git_dir)
        fsync_folder(home.memories)


def _take_settings(repo: Repository, new: Path) -> None:
    """Take a person's own settings over (a remote of theirs), unless git cannot work with them."""
    fresh = repo.elsewhere(new)
    for name in _TAKEN_OVER:
        old, target = repo.git_dir / name, new / name
        if not old.is_file() or old.is_symlink():
            continue
        with translated("copy", old):
            made, kept = target.read_bytes(), old.read_bytes()
            target.write_bytes(kept)
            if fresh.accepted() is None:
                target.write_bytes(made)


def _put(target: Path, data: bytes) -> None:
    """Replace a file in one step, whatever stands there."""
    with translated("replace", target):
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        temporary = temporary_beside(target)
        write_durably(temporary, data)
        temporary.replace(target)
    fsync_folder(target.parent)


def _remove(path: Path) -> None:
    with translated("remove", path):
        if stat.S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path)
        else:
            path.unlink()
