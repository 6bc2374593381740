"""What MEMORYD_HOME takes on the disk, by named part; every byte below it belongs to exactly one of them."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memoryd.ledger import backups
from memoryd.workspace.layout import Home

MEANING: Final = {
    "ledger": "jobs and what each session taught (SQLite)",
    "wal": "the ledger's log, taken in by itself",
    "backups": "daily copies of the ledger, three kept",
    "memories": "the memory itself, without its history",
    "git": "its history (consolidate.history_max_size bounds it)",
    "recall": "what agents are given, ready-made",
    "staging": "consolidations in progress",
    "quarantine": "what runs left where nothing belongs",
    "logs": "log files of a service",
    "other": "settings, the hook's program, records of connections, damaged ledgers that were set aside",
}
"""The parts, in the order in which they are told."""
_WAL: Final = ("-wal", "-shm")


def sizes(home: Home) -> dict[str, int | None]:
    """Return bytes by part, as lying on the disk now, and `free`: what the disk has left (None: it does not say)."""
    found: dict[str, int | None] = dict.fromkeys(MEANING, 0)
    for part, path in _parts(home):
        found[part] = (found[part] or 0) + _size(path, without=home.git_dir)
    try:
        found["free"] = shutil.disk_usage(home.path if home.path.exists() else home.path.parent).free
    except OSError:
        found["free"] = None
    return found


def _parts(home: Home) -> Iterator[tuple[str, Path]]:
    """Yield what lies in the home, each entry with the part that it belongs to."""
    folders = {
        home.memories: "memories",
        home.recall: "recall",
        home.staging: "staging",
        home.quarantine: "quarantine",
        backups.folder_of(home.ledger_file): "backups",
        home.ledger_file: "ledger",
        **{home.ledger_file.with_name(home.ledger_file.name + end): "wal" for end in _WAL},
    }
    try:
        entries = list(home.path.iterdir())
    except OSError:
        return
    for entry in entries:
        yield folders.get(entry, "logs" if ".log" in entry.suffixes else "other"), entry
    yield "git", home.git_dir


def _size(path: Path, *, without: Path) -> int:
    """Count a file, or what lies below a folder; `without` is a folder that another part counts. Follows no link."""
    if path.is_symlink() or not path.is_dir():
        return _bytes_of(path)
    total = 0
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if Path(folder, name) != without]
        total += sum(_bytes_of(os.path.join(folder, name)) for name in names)  # noqa: PTH118 -- many small files
    return total


def _bytes_of(path: str | Path) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
