"""Session files in directory listings: what lies there, without opening any of it."""

import os
from collections.abc import Iterator
from pathlib import Path

from memoryd.errors import SessionVanished
from memoryd.sources.items import SessionFile


def listing(folder: str | Path) -> list["os.DirEntry[str]"]:
    """Return what a folder holds in order of names; what cannot be listed holds nothing."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def files_below(folder: str | Path, levels: int) -> Iterator["os.DirEntry[str]"]:
    """Yield what a folder and its sub-folders, `levels` deep, hold; a sub-folder's content in place of its name."""
    for entry in listing(folder):
        if levels and entry.is_dir():
            yield from files_below(entry.path, levels - 1)
        else:
            yield entry


def is_tellable(name: str) -> bool:
    """Tell whether a name can be kept in the ledger and shown on one line; others are nobody's session."""
    return name.isprintable()


def session_file(agent: str, entry: "os.DirEntry[str]") -> SessionFile | None:
    """Describe a regular file of a listing; None for anything else, and for what is gone since."""
    try:
        if not entry.is_file(follow_symlinks=False):
            return None
        facts = entry.stat(follow_symlinks=False)
    except OSError:
        return None  # the next scan sees what became of it
    return SessionFile(agent, Path(entry.path), facts.st_size, facts.st_mtime_ns)


def locate_file(agent: str, path: Path) -> SessionFile:
    """Look at a session's file without opening it. Raises SessionVanished."""
    try:
        facts = path.stat()
    except OSError as error:
        raise SessionVanished(
            f"the session file {path} is no longer there", remedy="its memory, if it has one, stays"
        ) from error
    return SessionFile(agent, path, facts.st_size, facts.st_mtime_ns)
