"""The one folder that the agent can touch, entered component by component so that no path leads out of it.

Nothing is kept open between two operations: each enters from the root again, and the root must still be the directory
that it was. A symlink is never followed, at no component; only regular files are opened.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from memoryd.agent.paths import (
    MAX_DEPTH,
    MEMORY_FILE,
    SKILLS,
    SUMMARY_FILE,
    check_writable,
    is_visible,
    same_but_for_case,
)
from memoryd.agent.refusals import RefusalKind, RefusedError
from memoryd.errors import DiskFull, StorageError

MAX_WRITE_BYTES = 1 << 20
MAX_TOTAL_BYTES = 8 << 20
MAX_TOTAL_FILES = 500
MAX_READ_BYTES = 16 << 20  # the diff and the merged raw memories are the largest inputs, a few MiB each

_ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_SWAPPED = frozenset({errno.ELOOP, errno.EMLINK, errno.ENOTDIR})  # what opening something swapped in answers

Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A visible name in a folder; what is neither a regular file nor a directory is no entry."""

    name: str
    is_folder: bool
    size: int


@dataclass(frozen=True, slots=True)
class Folder:
    """The memory folder that a run works on. Raises RefusedError for the model, StorageError and DiskFull for us."""

    root: Path
    device: int
    inode: int

    @classmethod
    def at(cls, root: Path) -> "Folder":
        """Take a directory as the agent's world; raises StorageError when it is none, or a symlink to one."""
        with _translated(root), _closing(os.open(root, _ENTER)) as fd:
            found = os.fstat(fd)
        return cls(root, found.st_dev, found.st_ino)

    def entries(self, parts: Parts) -> list[Entry]:
        """Return what a folder holds, sorted by name."""
        with _translated(self.root), self._entered(parts) as fd:
            return _entries(fd)

    def is_folder(self, parts: Parts) -> bool:
        """Tell whether a path is a folder rather than a file; raises RefusedError when it is neither."""
        if not parts:
            return True
        with _translated(self.root), self._entered(parts[:-1]) as fd:
            return stat.S_ISDIR(_look_up(fd, parts, len(parts) - 1).st_mode)

    def read(self, parts: Parts, *, listed: bool = False) -> bytes:
        """Return the whole of a regular file of at most MAX_READ_BYTES.

        `listed`: `walk` has just spelled the path, so that no folder is listed again for each of its many files.
        """
        if not parts:
            raise RefusedError(RefusalKind.NOT_REGULAR, "the memory folder itself is no file: list it")
        with _translated(self.root), self._entered(parts[:-1], listed=listed) as fd:
            _require_regular(_look_up(fd, parts, len(parts) - 1, listed=listed), parts)
            with _closing(os.open(parts[-1], _READ, dir_fd=fd)) as file:
                _require_regular(os.fstat(file), parts)
                return _read_all(file, parts)

    def write(self, parts: Parts, data: bytes) -> bool:
        """Make `data` the whole content of a writable file; return False when that is what it held already."""
        check_writable(parts)
        if len(data) > MAX_WRITE_BYTES:
            raise RefusedError(
                RefusalKind.TOO_LARGE, f"{len(data)} bytes are too many: a file holds at most {MAX_WRITE_BYTES}"
            )
        try:
            before = self.read(parts)
        except RefusedError as refused:
            if refused.kind is not RefusalKind.NOT_FOUND:
                raise
            before = None
        if before == data:
            return False
        self._require_room(len(data), before)
        with _translated(self.root), self._entered(parts[:-1], create=True) as fd:
            _replace(fd, parts[-1], data)
        return True

    def delete(self, parts: Parts) -> None:
        """Remove a writable file, and the skill folders that it leaves empty."""
        check_writable(parts)
        with _translated(self.root), self._entered(parts[:-1]) as fd:
            _require_regular(_look_up(fd, parts, len(parts) - 1), parts)
            os.unlink(parts[-1], dir_fd=fd)
        for depth in range(len(parts) - 1, 1, -1):
            with _translated(self.root), self._entered(parts[: depth - 1]) as fd:
                try:
                    os.rmdir(parts[depth - 1], dir_fd=fd)
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        raise
                    return

    def walk(self, parts: Parts) -> Iterator[tuple[Parts, Entry]]:
        """Yield every visible regular file below a folder with its path; what goes meanwhile is passed over."""
        for entry in self.entries(parts):
            path = (*parts, entry.name)
            if not entry.is_folder:
                yield path, entry
            elif len(path) < MAX_DEPTH:
                with suppress(RefusedError):  # gone, or no folder any more
                    yield from self.walk(path)

    def _require_room(self, size: int, before: bytes | None) -> None:
        sizes = [entry.size for _, entry in self._written()]
        grown = size - len(before or b"")
        if grown > 0 and sum(sizes) + grown > MAX_TOTAL_BYTES:
            raise RefusedError(
                RefusalKind.TOO_LARGE, f"all written files together may hold at most {MAX_TOTAL_BYTES} bytes"
            )
        if before is None and len(sizes) >= MAX_TOTAL_FILES:
            raise RefusedError(RefusalKind.TOO_LARGE, f"there may be at most {MAX_TOTAL_FILES} written files")

    def _written(self) -> Iterator[tuple[Parts, Entry]]:
        for entry in self.entries(()):
            if entry.name in (MEMORY_FILE, SUMMARY_FILE) and not entry.is_folder:
                yield (entry.name,), entry
            elif entry.name == SKILLS and entry.is_folder:
                yield from self.walk((SKILLS,))

    @contextmanager
    def _entered(self, parts: Parts, *, create: bool = False, listed: bool = False) -> Iterator[int]:
        """Open a folder by walking down to it; the descriptor lives as long as the context."""
        fd = os.open(self.root, _ENTER)
        try:
            found = os.fstat(fd)
            if (found.st_dev, found.st_ino) != (self.device, self.inode):
                raise StorageError(f"the folder {self.root} was replaced while the agent worked in it")
            for depth in range(len(parts)):
                below = _enter(fd, parts, depth, create=create, listed=listed)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)


def _enter(fd: int, parts: Parts, depth: int, *, create: bool, listed: bool) -> int:
    name, shown = parts[depth], "/".join(parts[: depth + 1])
    try:
        found = _look_up(fd, parts, depth, listed=listed)
    except RefusedError as refused:
        if not create or refused.kind is not RefusalKind.NOT_FOUND:
            raise
        os.mkdir(name, 0o700, dir_fd=fd)
        return os.open(name, _ENTER, dir_fd=fd)
    if not stat.S_ISDIR(found.st_mode):
        raise RefusedError(RefusalKind.NOT_FOUND, f'"{shown}" is a file, not a folder')
    return os.open(name, _ENTER, dir_fd=fd)


def _look_up(fd: int, parts: Parts, depth: int, *, listed: bool = False) -> os.stat_result:
    """Find a name exactly as it is spelled on disk, so that all file systems answer alike, and refuse a symlink.

    `listed`: it is spelled so, unless it is gone.
    """
    name, shown = parts[depth], "/".join(parts[: depth + 1])
    names = [name] if listed else os.listdir(fd)
    if name not in names:
        near = same_but_for_case(name, names)
        if near is not None:
            meant = "/".join((*parts[:depth], near, *parts[depth + 1 :]))
            raise RefusedError(RefusalKind.NAME_DIFFERS, f'"{shown}" does not exist; did you mean "{meant}"?')
        raise RefusedError(RefusalKind.NOT_FOUND, f'"{shown}" does not exist; list its folder to see what there is')
    found = os.stat(name, dir_fd=fd, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        raise RefusedError(RefusalKind.SYMLINK, f'"{shown}" is a symlink: it is never followed, read or replaced')
    return found


def _require_regular(found: os.stat_result, parts: Parts) -> None:
    shown = "/".join(parts)
    if stat.S_ISDIR(found.st_mode):
        raise RefusedError(RefusalKind.NOT_REGULAR, f'"{shown}" is a folder: list it, or name a file in it')
    if not stat.S_ISREG(found.st_mode):
        raise RefusedError(RefusalKind.NOT_REGULAR, f'"{shown}" is no regular file')
    if found.st_nlink > 1:
        # Whoever works here makes files of their own: a further name is that of somebody else's file.
        raise RefusedError(RefusalKind.NOT_REGULAR, f'"{shown}" is a link to a file that has another name, too')


def _entries(fd: int) -> list[Entry]:
    found = []
    for name in sorted(os.listdir(fd)):
        if not is_visible(name):
            continue
        with suppress(FileNotFoundError):
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
                found.append(Entry(name, stat.S_ISDIR(status.st_mode), status.st_size))
    return found


def _read_all(file: int, parts: Parts) -> bytes:
    chunks, size = [], 0
    while chunk := os.read(file, 1 << 20):
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_READ_BYTES:
            raise RefusedError(RefusalKind.TOO_LARGE, f'"{"/".join(parts)}" is larger than {MAX_READ_BYTES} bytes')
    return b"".join(chunks)


def _replace(fd: int, name: str, data: bytes) -> None:
    """Write under a hidden temporary name, then rename. Not fsynced: no staging folder outlives a crash."""
    temporary = f".{secrets.token_hex(8)}.tmp"
    try:
        with os.fdopen(os.open(temporary, _CREATE, 0o600, dir_fd=fd), "wb") as file:
            file.write(data)
        os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=fd)
        raise


@contextmanager
def _closing(fd: int) -> Iterator[int]:
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _translated(root: Path) -> Iterator[None]:
    """Name what the operating system says: an oddity below a path is the model's to hear, the rest is ours."""
    try:
        yield
    except OSError as error:
        below_root = error.filename is not None and os.fspath(error.filename) != str(root)
        if below_root and error.errno in _SWAPPED:
            raise RefusedError(
                RefusalKind.SYMLINK, "a component of the path is a symlink or no folder: nothing is followed"
            ) from error
        if below_root and error.errno == errno.ENOENT:
            raise RefusedError(RefusalKind.NOT_FOUND, f'"{error.filename}" does not exist') from error
        reason = error.strerror or str(error)
        if error.errno in _FULL:
            raise DiskFull(f"cannot write below {root}: {reason}", remedy="free space on this disk") from error
        raise StorageError(f"cannot use the agent's folder {root}: {reason}", remedy="check its permissions") from error
