"""Puts service files in place, whole or not at all, readable by all (0644), and never over one that is not ours."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

from memoryd.errors import UsageError
from memoryd.workspace.files import fsync_folder, temporary_beside, translated, write_durably

MARK: Final = "memoryd as a service of one user"
"""Stands in the first comment of every service file of ours, also of one that was copied by hand."""
MAX_BYTES: Final = 1024 * 1024
_NO_FILE: Final = frozenset({errno.ENXIO, errno.ELOOP, errno.ENOTDIR, errno.EISDIR})
"""A socket, links in a circle, a file in the place of a folder, a folder."""


def read(path: Path) -> str | None:
    """Return the text of a service file, None when there is none, "" for what is no file. Raises StorageError.

    A pipe is not waited for, and of what never ends the beginning is enough.
    """
    with translated("read", path):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in _NO_FILE:
                return ""
            raise
        try:
            is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
            return os.read(descriptor, MAX_BYTES).decode("utf-8", "replace") if is_file else ""
        finally:
            os.close(descriptor)


def is_ours(path: Path) -> bool:
    """Tell whether the file at a place that is taken was written by memoryd; a link never was."""
    return not path.is_symlink() and MARK in (read(path) or "")


def refuse_foreign(path: Path, *, force: bool) -> None:
    """Raise UsageError when somebody else's file, or a link, has the place of ours; a folder goes by nobody's force."""
    if path.is_dir() and not path.is_symlink():
        raise UsageError(f"{path} is a folder; nothing was changed", remedy="look at it, and move it away")
    if not force and (path.exists() or path.is_symlink()) and not is_ours(path):
        what = f"is a link to {path.readlink()}" if path.is_symlink() else "was not written by memoryd"
        raise UsageError(f"{path} {what}; nothing was changed", remedy="look at it, then use --force")


def place(path: Path, text: str) -> bool:
    """Write a file, its folders too; return False when it stood there just so. Raises StorageError."""
    data = text.encode("utf-8")
    with translated("write", path):
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        if not path.is_symlink() and path.is_file() and path.read_bytes() == data:
            path.chmod(0o644)
            return False
        temporary = temporary_beside(path)
        try:
            write_durably(temporary, data, mode=0o644)
            temporary.chmod(0o644)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    fsync_folder(path.parent)
    return True


def take_away(path: Path) -> list[Path]:
    """Remove a file or a link, or a folder of files; return what went. What is not there is no fault."""
    with translated("remove", path):
        if path.is_dir() and not path.is_symlink():
            gone = [removed for each in sorted(path.iterdir()) for removed in take_away(each)]
            path.rmdir()
            return gone
        if not (path.exists() or path.is_symlink()):
            return []
        path.unlink()
        return [path]


def take_away_empty(*folders: Path) -> None:
    """Remove those of the folders that hold nothing, in this order."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:  # something lies in it, or it is not there
            continue
