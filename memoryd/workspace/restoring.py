"""A memory folder of which nothing is left but its history: no person's edit, but a loss, and put right from git."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from memoryd.workspace.files import fsync_folder, make_private_folder, temporary_beside, translated, write_durably
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import ALWAYS_THERE, Home
from memoryd.workspace.repository import ensure
from memoryd.workspace.staging import start_of

_HIDDEN: Final = "."
_BEGUN: Final = "memoryd-restoring"
"""In .git while files are put back: a crash in the middle is still a loss."""


def is_lost(home: Home) -> bool:
    """Say whether nothing that a person can see is in the folder, or there is none. Costs a look at one folder."""
    with translated("list", home.memories):
        try:
            with os.scandir(home.memories) as entries:
                return all(entry.name.startswith(_HIDDEN) for entry in entries)
        except FileNotFoundError:
            return True


def restore(home: Home, repo: Repository, *, still_ours: Callable[[], None]) -> int:
    """Put the last version back into a folder that lost everything but its history; return how many files those are.

    Zero where there is nothing to restore, or nothing to restore it from. After a crash, call it again.
    """
    begun = home.git_dir / _BEGUN
    if not home.git_dir.is_dir() or not (is_lost(home) or begun.exists()):
        return 0
    ensure(repo)
    newest = start_of(repo, repo.accepted())
    contents = repo.read_all(newest, sorted(repo.files(newest))) if newest is not None else {}
    if not contents:
        return 0
    still_ours()
    write_durably(begun, b"")
    fsync_folder(begun.parent)
    for path in sorted(contents, key=lambda path: (path in ALWAYS_THERE, path)):
        still_ours()
        _put_back(home.memories / path, contents[path])
    with translated("remove", begun):
        begun.unlink()
    return len(contents)


def _put_back(target: Path, data: bytes) -> None:
    if os.path.lexists(target):
        return
    with translated("make the folder", target.parent):
        make_private_folder(target.parent)
    temporary = temporary_beside(target)
    write_durably(temporary, data)
    with translated("restore", target):
        temporary.replace(target)
    fsync_folder(target.parent)
