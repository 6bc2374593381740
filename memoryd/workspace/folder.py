"""A folder of memories as a value, and the rule of what in a folder is an input."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from memoryd.workspace.files import translated
from memoryd.workspace.layout import DIFF_FILE, RAW_MEMORIES

MAX_FILE_BYTES: Final = 1024 * 1024
MAX_MERGED_BYTES: Final = 96 * MAX_FILE_BYTES
"""For the two files that code puts together from all sessions; 256 raw memories of 256 KiB, and their headers."""
_EDITOR_FILE: Final = re.compile(r".*~|#.*#|.*\.(?:swp|swo|swx|bak|orig|rej|tmp)|4913", re.IGNORECASE)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class Odd(StrEnum):
    """Why an entry is no input."""

    SYMLINK = "symlink"
    REPOSITORY = "nested repository"
    HIDDEN = "hidden name"
    EDITOR_FILE = "editor's file"
    BAD_NAME = "unusable name"
    SPECIAL = "not a regular file"
    TOO_LARGE = "larger than 1 MiB"
    BINARY = "not UTF-8 text"
    UNREADABLE = "unreadable"
    MISPLACED = "in the place of one of memoryd's own"
    SECRET = "contains a secret"  # noqa: S105 (a reason, no password)
    SECRET_NAME = "its name holds a secret"  # noqa: S105 (as above)


@dataclass(frozen=True, slots=True)
class Folder:
    """The text files of a folder by relative path, and the entries that are no inputs with the reason."""

    files: Mapping[str, str] = field(default_factory=dict)
    odd: Mapping[str, Odd] = field(default_factory=dict)

    @classmethod
    def read(cls, root: Path) -> "Folder":
        """Read a folder; its own `.git` at the root is no entry of it. StorageError if it cannot be listed."""
        files: dict[str, str] = {}
        odd: dict[str, Odd] = {}
        for path, entry, reason in _entries(root, ""):
            content = _read_text(Path(entry.path), path) if reason is None else reason
            if isinstance(content, Odd):
                odd[path] = content
            else:
                files[path] = content
        return cls(files, odd)

    def text(self, path: str) -> str:
        """Return the text of a file, empty where there is none."""
        return self.files.get(path, "")


def folder_signature(root: Path) -> str:
    """Return a digest of the names, sizes and times of a folder's inputs: equal digests mean that nobody touched it.

    Reads no file, so the scan can afford it at every pass.
    """
    digest = hashlib.sha256()
    for path, entry, reason in _entries(root, ""):
        with translated("look at", Path(entry.path)):
            facts = entry.stat(follow_symlinks=False)
        digest.update(f"{path!r} {reason} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _entries(folder: Path, prefix: str) -> Iterator[tuple[str, os.DirEntry[str], Odd | None]]:
    """Walk in name order; a folder that is odd is one entry, what is in it none."""
    with translated("list", folder), os.scandir(folder) as scan:
        found = sorted(scan, key=lambda entry: entry.name)
    for entry in found:
        if not prefix and entry.name == ".git":
            continue
        path = prefix + entry.name
        reason = _oddity(entry)
        if reason is None and entry.is_dir(follow_symlinks=False):
            yield from _entries(Path(entry.path), path + "/")
        else:
            yield path, entry, reason


def _oddity(entry: os.DirEntry[str]) -> Odd | None:
    """Say why an entry cannot be an input, by its name and kind alone."""
    if entry.is_symlink():
        return Odd.SYMLINK
    if entry.name.startswith("."):
        return Odd.HIDDEN
    if _CONTROL.search(entry.name) or not _is_unicode(entry.name):
        return Odd.BAD_NAME
    if entry.is_dir(follow_symlinks=False):
        return Odd.REPOSITORY if os.path.lexists(os.path.join(entry.path, ".git")) else None  # noqa: PTH118 (hot)
    if not entry.is_file(follow_symlinks=False):
        return Odd.SPECIAL
    return Odd.EDITOR_FILE if _EDITOR_FILE.fullmatch(entry.name) else None


def _is_unicode(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _read_text(file: Path, path: str) -> str | Odd:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as stream:  # noqa: PTH123 (a descriptor, which Path cannot open)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return Odd.SPECIAL
            data = stream.read(_max_bytes(path) + 1)
    except OSError:
        return Odd.UNREADABLE
    return decode_text(path, data)


def decode_text(path: str, data: bytes) -> str | Odd:
    """Return the content of the file at a relative path as text, or why it is no memory text."""
    if len(data) > _max_bytes(path):
        return Odd.TOO_LARGE
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return Odd.BINARY
    return Odd.BINARY if "\x00" in text else text


def _max_bytes(path: str) -> int:
    return MAX_MERGED_BYTES if path in (RAW_MEMORIES, DIFF_FILE) else MAX_FILE_BYTES
