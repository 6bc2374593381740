"""Folders that others have filled, removed whatever lies in them."""

import os
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

_MOVED: Final = ".moved-"


def remove_tree(root: Path) -> None:
    """Remove a folder with all that is in it, as far as the system allows; raises nothing. A link is not followed.

    However deep it is: folders of folders are moved up one by one, so that no path grows too long and no call too deep
    (shutil.rmtree ends in a RecursionError at a thousand, and a program makes as many in a moment).
    """
    if root.is_symlink() or not root.is_dir():
        return
    names = (str(root / f"{_MOVED}{number}") for number in count())
    while sum(_dissolved(folder, lambda: next(names)) for folder in _folders_left(str(root))):
        pass
    _done(os.rmdir, str(root))


def _dissolved(folder: str, a_name: Callable[[], str]) -> bool:
    """Move the folders of a folder up, and remove it; tell whether something came of it."""
    moved = [_done(os.rename, inner, a_name()) for inner in _folders_left(folder)]
    return _done(os.rmdir, folder) or any(moved)


def _folders_left(folder: str) -> list[str]:
    """Remove the files of a folder, and return the folders in it, which can be written from then on."""
    _done(os.chmod, folder, 0o700)
    folders: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _done(os.chmod, entry.path, 0o700)
                folders.append(entry.path)
            else:
                _done(os.unlink, entry.path)
    return folders


def _done(deed: Callable[..., None], *arguments: object) -> bool:
    try:
        deed(*arguments)
    except OSError:
        return False
    return True
