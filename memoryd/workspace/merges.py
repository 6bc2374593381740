"""Which files a publication has merged already: after a crash a merge is not made a second time.

A merge is not made twice with the same outcome where lines repeat, so what is about to be put in place is written down
before. Only digests are kept, and only until the refs have moved.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.workspace.files import fsync_folder, temporary_beside, translated, write_durably

_RECORD: Final = "memoryd-merges"
"""Beside git's own files, in .git."""


@dataclass(slots=True)
class Merges:
    """The merges of one decided commit, each a digest of its path and its text. Raises StorageError, DiskFull."""

    file: Path
    commit: str
    digests: set[str]

    @classmethod
    def of(cls, git_dir: Path, commit: str) -> "Merges":
        """Read what was written down; what belongs to another commit counts for nothing."""
        file = git_dir / _RECORD
        with translated("read", file):
            rows = file.read_text("ascii", "replace").split() if file.is_file() else []
        return cls(file, commit, set(rows[1:]) if rows[:1] == [commit] else set())

    def has(self, path: str, data: bytes) -> bool:
        """Say whether a file holds what a merge has put there."""
        return _digest(path, data) in self.digests

    def note(self, path: str, data: bytes) -> None:
        """Write down, durably, what a merge is about to put in place."""
        self.digests.add(_digest(path, data))
        temporary = temporary_beside(self.file)
        write_durably(temporary, "\n".join((self.commit, *sorted(self.digests))).encode())
        with translated("replace", self.file):
            temporary.replace(self.file)
        fsync_folder(self.file.parent)


def forget_merges(git_dir: Path) -> None:
    """Remove the record once the refs have moved."""
    file = git_dir / _RECORD
    with translated("remove", file):
        file.unlink(missing_ok=True)


def _digest(path: str, data: bytes) -> str:
    return hashlib.sha256(path.encode() + b"\0" + data).hexdigest()
