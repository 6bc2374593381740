"""Reading a folder that another program made: as our own are read, after a look at how much there is."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memoryd.errors import UsageError
from memoryd.workspace.folder import MAX_FILE_BYTES, Folder

MAX_FILES: Final = 5_000
MAX_BYTES: Final = 128 * MAX_FILE_BYTES
"""A real folder has some hundred files of a few kilobytes; more than this is held in memory by nobody."""


def read_foreign(root: Path) -> Folder:
    """Read a folder; an empty one where there is none, or where the name is a symlink to somewhere else.

    Raises UsageError for a folder with more than anybody's memory, StorageError where it cannot be listed.
    """
    try:
        if not stat.S_ISDIR(root.lstat().st_mode):
            return Folder()
    except OSError:
        return Folder()
    files = size = 0
    for facts in _entries(root):
        files, size = files + 1, size + min(facts.st_size, MAX_FILE_BYTES)
        if files > MAX_FILES or size > MAX_BYTES:
            raise UsageError(
                f"{root} holds more than a memory does: over {MAX_FILES} files, or {MAX_BYTES // MAX_FILE_BYTES} MiB",
                remedy="name the right folder with --from DIR, or move away what is no memory",
            )
    return Folder.read(root)


def _entries(root: Path) -> Iterator[os.stat_result]:
    """Look at everything but hidden names, which are no inputs, without following a link."""
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if not name.startswith(".")]
        for name in files:
            try:
                yield os.lstat(os.path.join(folder, name))  # noqa: PTH118 (a walk's own names)
            except OSError:
                continue
