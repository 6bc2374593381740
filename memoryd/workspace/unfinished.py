"""Whether a person is in the middle of something in the memory folder that half a text comes of: a merge, a rebase.

Then a run waits, within a bound: what was left lying for an hour is taken as it is, or memoryd would stand still.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.workspace.files import translated
from memoryd.workspace.layout import ALWAYS_THERE, Home

BUSY: Final = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "sequencer")
"""What stands in .git while a person is in the middle of something that HEAD is a part of."""
PATIENCE_SECONDS: Final = 3600.0
_CLOCKS_APART_SECONDS: Final = 60.0
"""How far in the future a file may have been written, on a disk with a clock of its own."""
_CONFLICT: Final = re.compile(r"^<{7} .*^={7}$.*^>{7} ", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What was found, as words, and until when it is waited for at most (epoch seconds)."""

    what: str
    until: float


def find_unfinished(home: Home, now: float) -> Unfinished | None:
    """Return what a person has not finished, unless it was not touched for an hour. Raises StorageError."""
    found = [(home.git_dir / name, f".git/{name} is there") for name in BUSY]
    found += [(home.memories / name, f"{name} holds conflict markers") for name in ALWAYS_THERE]
    for path, what in found:
        touched_at = _touched_at(path)
        if touched_at is None or not -_CLOCKS_APART_SECONDS <= now - touched_at < PATIENCE_SECONDS:
            continue
        if path.parent == home.git_dir or _has_conflict(path):
            return Unfinished(what, touched_at + PATIENCE_SECONDS)
    return None


def _touched_at(path: Path) -> float | None:
    with translated("look at", path):
        try:
            return path.lstat().st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return None


def _has_conflict(file: Path) -> bool:
    with translated("read", file):
        return file.is_file() and not file.is_symlink() and bool(_CONFLICT.search(file.read_text("utf-8", "replace")))
