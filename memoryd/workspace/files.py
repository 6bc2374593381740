"""Files written whole or not at all, and the one place where the room's OSErrors get a name."""

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from memoryd.errors import DiskFull, StorageError

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_TEMPORARY_PREFIX: Final = ".memoryd-"
_TEMPORARY_SUFFIX: Final = ".tmp"


@contextmanager
def translated(attempt: str, path: Path, *, remedy: str = "check its permissions and the disk") -> Iterator[None]:
    """Turn an OSError into a StorageError (DiskFull where space or a read-only mount is the cause).

    `attempt` is a verb phrase: "read", "make the folder".
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        message = f"cannot {attempt} {path}: {reason}"
        if error.errno in _NO_ROOM:
            raise DiskFull(message, remedy="free some space or make the disk writable") from error
        raise StorageError(message, remedy=remedy) from error


def temporary_beside(path: Path) -> Path:
    """Return the hidden name under which this process writes `path` before it is renamed; the same at every try."""
    digest = hashlib.sha256(b"%d %b" % (os.getpid(), os.fsencode(path.name))).hexdigest()[:16]
    return path.with_name(f"{_TEMPORARY_PREFIX}{digest}{_TEMPORARY_SUFFIX}")


def is_temporary(name: str) -> bool:
    """Say whether a file name is one of `temporary_beside`."""
    return name.startswith(_TEMPORARY_PREFIX) and name.endswith(_TEMPORARY_SUFFIX)


def write_durably(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write a file and fsync it; the file may be seen half-written, so `path` is a temporary name."""
    with translated("write", path):
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(descriptor, "wb") as stream:  # noqa: PTH123 (a descriptor, which Path cannot open)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())


def ensure_room(folder: Path, wanted_bytes: int) -> None:
    """Raise DiskFull unless so many bytes are free on the disk of `folder`: before work that is paid for."""
    with translated("look for room at", folder):
        free = shutil.disk_usage(folder).free
    if free < wanted_bytes:
        raise DiskFull(
            f"{free} bytes are free at {folder}, and {wanted_bytes} are needed to go on",
            remedy="free some space; memoryd goes on by itself",
        )


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    with translated("flush", folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_private_folder(folder: Path) -> None:
    """Make a folder, and each that it lies in, 0700: `mkdir` gives its mode to the last one alone. Raises OSError."""
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, data: bytes) -> None:
    """Write a file of a staging folder, 0600, with the folders it needs; not durable, since staging is thrown away."""
    with translated("write", path):
        make_private_folder(path.parent)
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as stream:  # noqa: PTH123 (a descriptor, which Path cannot open)
            stream.write(data)


def write_texts(folder: Path, texts: Mapping[str, str | None]) -> None:
    """Write files of a staging folder by their paths in it; None: that file goes."""
    for path, text in texts.items():
        if text is not None:
            write_private(folder / path, text.encode())
            continue
        with translated("remove", folder / path):
            (folder / path).unlink(missing_ok=True)
