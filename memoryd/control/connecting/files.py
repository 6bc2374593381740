"""Reads an agent's settings file and writes it back whole: through its symbolic link, with its mode, or not at all."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.errors import UsageError
from memoryd.workspace.files import fsync_folder, temporary_beside, translated, write_durably

LARGEST_BYTES: Final = 4 * 1024 * 1024
"""Agents' settings are a few kilobytes; what is larger is something else."""
BACKUP_SUFFIX: Final = ".memoryd-backup"


@dataclass(frozen=True, slots=True)
class Found:
    """A settings file: the name it is known by, where it lies (a link followed), what it holds (None: not there)."""

    path: Path
    real: Path
    data: bytes | None
    mode: int = 0o600

    @property
    def text(self) -> str:
        """The text of the file, "" when it is not there. Raises UsageError where it is none."""
        try:
            return (self.data or b"").decode("utf-8")
        except UnicodeDecodeError:
            raise refused(self.path, "it is not UTF-8") from None


def refused(path: Path, why: str, remedy: str = "correct it, or move it away; nothing was changed") -> UsageError:
    """The error of a file that is left alone."""
    return UsageError(f"cannot use {path}: {why}", remedy=remedy)


def backup_of(path: Path, part: str = "") -> Path:
    """Return where the copy of a file lies while we are in it: beside it; each part that is put in has its own."""
    return path.with_name(path.name + (f".memoryd-{part}-backup" if part else BACKUP_SUFFIX))


def look(path: Path) -> Found:
    """Read a file that may be missing. Raises UsageError where it could not be read and written as it is."""
    try:
        real = path.resolve(strict=False)
        if path.is_symlink() and not real.parent.is_dir():
            raise refused(path, f"it is a link to {real}, whose folder is missing")
        status = real.stat()
    except FileNotFoundError:
        return Found(path, real, None)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, before Python 3.13
        raise refused(path, getattr(error, "strerror", None) or "its symbolic links lead in a circle") from None
    if not stat.S_ISREG(status.st_mode):
        raise refused(path, "it is a folder" if stat.S_ISDIR(status.st_mode) else "it is no ordinary file")
    if status.st_size > LARGEST_BYTES:
        raise refused(path, f"it has {status.st_size:,} bytes, so that it can hardly be settings")
    try:
        data = real.read_bytes()
    except OSError as error:
        raise refused(path, f"it cannot be read: {error.strerror}") from None
    return Found(path, real, data, stat.S_IMODE(status.st_mode))


def refuse_unwritable(found: Found) -> None:
    """Raise UsageError when the file, or a folder that takes its new version or its backup, cannot be written."""
    if found.data is not None and (not os.access(found.real, os.W_OK) or not found.mode & 0o222):
        raise refused(found.path, "it may not be written", "make it writable, if you want that; nothing was changed")
    for folder in {found.real.parent, found.path.parent}:
        there = next(each for each in (folder, *folder.parents) if each.exists())
        if not os.access(there, os.W_OK | os.X_OK):
            raise refused(found.path, f"the folder {there} may not be written", "make it writable; nothing was changed")


def make_folders(folder: Path) -> list[Path]:
    """Make a folder and those above it that are missing; return what was made, the outermost first."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()][::-1]
    for each in missing:
        with translated("make the folder", each):
            each.mkdir(mode=0o700)
    return missing


def replace(found: Found, data: bytes) -> None:
    """Write the new content in place of what was found. Raises UsageError when the file changed since it was read."""
    temporary = temporary_beside(found.real)
    with translated("write", found.real):
        try:
            write_durably(temporary, data, mode=found.mode)
            temporary.chmod(found.mode)
            if look(found.path).data != found.data:
                raise refused(found.path, "another program changed it at this moment", "try again; nothing was changed")
            temporary.replace(found.real)
        finally:
            temporary.unlink(missing_ok=True)
    fsync_folder(found.real.parent)


def delete(path: Path) -> None:
    """Remove a file that may be gone."""
    with translated("remove", path):
        path.unlink(missing_ok=True)


def delete_empty(folders: list[Path]) -> None:
    """Remove those of the folders that are empty, the innermost first."""
    for folder in reversed(folders):
        try:
            folder.rmdir()
        except OSError:  # something lies in it, or it is gone
            return
