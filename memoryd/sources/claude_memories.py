"""Where Claude Code keeps what it remembers by itself: projects/<name>/memory/, a folder of Markdown for each project.

The folder's name is the project's directory with everything but letters and digits made into dashes, which cannot be
undone; where the project lies is read from the beginning of one of its sessions. `autoMemoryDirectory` of the user's
settings.json names one folder in place of them all (claude-code 2.1).
"""

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.errors import SourceError
from memoryd.sources.claude import PROJECTS, SUFFIX
from memoryd.sources.reader import SessionReader

MEMORY: Final = "memory"
SETTINGS: Final = "settings.json"
CUSTOM: Final = "autoMemoryDirectory"
MAX_SETTINGS_BYTES: Final = 1024 * 1024
SESSIONS_ASKED: Final = 3
"""How many of a project's newest sessions are asked where it lies."""


@dataclass(frozen=True, slots=True)
class ProjectMemory:
    """One project's folder; `directory` is None where no session tells."""

    name: str
    folder: Path
    directory: str | None


def find_project_memories(home: Path, reader: SessionReader) -> Iterator[ProjectMemory]:
    """Yield the projects of a Claude Code home that have a memory, in name order; links are not followed.

    First comes the folder that the settings name, which is of no one project.
    """
    custom = _custom_folder(home)
    if custom is not None and _is_folder(custom):
        yield ProjectMemory(custom.name, custom, None)
    root = home / PROJECTS
    try:
        names = sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in names:
        folder = root / name / MEMORY
        if _is_folder(folder):
            yield ProjectMemory(name, folder, _directory(root / name, reader))


def _custom_folder(home: Path) -> Path | None:
    """Return the folder that the settings name: an absolute one, or one below the user's home."""
    try:
        if not (home / SETTINGS).is_file():  # a pipe would be waited for
            return None
        with (home / SETTINGS).open("rb") as file:
            settings = json.loads(file.read(MAX_SETTINGS_BYTES))
        named = settings.get(CUSTOM) if isinstance(settings, dict) else None
        path = Path(named).expanduser() if isinstance(named, str) and named else None
    except (OSError, ValueError, RuntimeError, RecursionError):
        return None
    return path if path is not None and path.is_absolute() else None


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _directory(project: Path, reader: SessionReader) -> str | None:
    """Ask the newest sessions of a project where they were recorded."""
    try:
        with os.scandir(project) as scan:
            files = [entry for entry in scan if entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False)]
            newest = sorted(files, key=lambda entry: entry.stat().st_mtime_ns, reverse=True)
    except OSError:
        return None
    for entry in newest[:SESSIONS_ASKED]:
        try:
            head = reader.head(reader.locate(Path(entry.path)))
        except SourceError:
            continue
        if head.cwd:
            return head.cwd
    return None
