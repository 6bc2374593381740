"""A copy of the ledger a day, three kept; whether one is due is read from the disk, so that missed days cost nothing.

The copies are whole databases (VACUUM INTO): they hold what the ledger held at one instant, the log included, and
never a publication that was decided and not yet in place, which a later start would put over a newer memory.
"""

import re
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.clock import utc_day
from memoryd.ledger import health, publications, queries
from memoryd.ledger.migrations import create_private, sync

_SQL = queries.load("connection")

FOLDER: Final = "backups"
"""Beside the ledger."""
KEPT: Final = 3
ROOM: Final = 2
"""A backup is made only while so many times the database's size are free: the ledger itself needs room first."""
LOG_LIMIT: Final = 16 * 1024 * 1024
"""A log that is longer is taken in: only a reader that stays open lets it grow past the automatic checkpoints."""
_NAME: Final = re.compile(r"ledger-(\d{4}-\d{2}-\d{2})\.sqlite3")
_UNFINISHED: Final = ".unfinished"


@dataclass(frozen=True, slots=True)
class Made:
    """A backup that is complete and safe on disk, and how many older ones went."""

    path: Path
    removed: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """No backup was made, and why not: not_due, folder_is_a_link, disk_nearly_full, publication_pending."""

    reason: str
    detail: str = ""


def folder_of(ledger: Path) -> Path:
    """Return where the backups of a ledger lie."""
    return ledger.parent / FOLDER


def is_due(names: Sequence[str], today: str) -> bool:
    """Tell whether there is no backup of the UTC day `today` among the file names of the folder."""
    return f"ledger-{today}.sqlite3" not in names


def newest_first(names: Sequence[str], today: str) -> list[str]:
    """Return the names of backups, newest first; those dated after today were made by a wrong clock and come last."""
    dated = [(found[1], name) for name in names if (found := _NAME.fullmatch(name))]
    return [name for _, name in sorted(dated, key=lambda pair: (pair[0] <= today, pair[0]), reverse=True)]


def back_up(
    conn: sqlite3.Connection, ledger: Path, *, now: float, free_bytes: Callable[[Path], int] | None = None
) -> Made | Skipped:
    """Make the backup of this UTC day if it is due, and let the oldest go; outside of any transaction.

    For a clock that is believed: names and ages are those of `now`. Raises OSError and sqlite3.Error.
    """
    folder, today = folder_of(ledger), utc_day(now)
    if not is_due(_names(folder), today):
        return Skipped("not_due")
    if folder.is_symlink():
        return Skipped("folder_is_a_link", f"{folder} is a symlink, and nothing outside the home is written")
    needed, free = ROOM * health.database_size(conn), (free_bytes or _free_bytes)(ledger.parent)
    if free < needed:
        return Skipped("disk_nearly_full", f"{free} bytes are free, {needed} are wanted")
    folder.mkdir(mode=0o700, exist_ok=True)
    target = folder / f"ledger-{today}.sqlite3"
    unfinished = target.with_name(target.name + _UNFINISHED)
    try:
        if not _copy(conn, unfinished):
            return Skipped("publication_pending")
        sync(unfinished)
        unfinished.replace(target)
        sync(folder)
    finally:
        unfinished.unlink(missing_ok=True)
    return Made(target, _rotate(folder, today))


def exist(ledger: Path) -> bool:
    """Tell whether there is any backup of the ledger."""
    return any(_NAME.fullmatch(name) for name in _names(folder_of(ledger)))


def sound_backups(ledger: Path, *, now: float) -> list[Path]:
    """Return the backups that can be read and in which SQLite finds nothing wrong, newest first."""
    folder = folder_of(ledger)
    return [folder / name for name in newest_first(_names(folder), utc_day(now)) if not problems_in(folder / name)]


def problems_in(database: Path, *, log_included: bool = False) -> tuple[str, ...]:
    """Return what SQLite finds wrong with a database file, nothing when it is sound; changes no byte of it.

    `log_included` reads a ledger that was left with a log beside it, and raises sqlite3.OperationalError where it
    cannot be opened; backups have none, and get none.
    """
    options = "mode=ro" if log_included else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?{options}", uri=True)) as conn:
            conn.execute(_SQL["busy_timeout"])
            return health.quick_check(conn)
    except sqlite3.DatabaseError as error:
        if log_included and isinstance(error, sqlite3.OperationalError):
            raise
        return (str(error),)


def shorten_log(conn: sqlite3.Connection) -> bool:
    """Take the whole log into the file and cut it to nothing; False when an open reader prevents it just now."""
    conn.execute(_SQL["busy_timeout_none"])
    try:
        busy, _, _ = conn.execute(_SQL["checkpoint"]).fetchone()
    finally:
        conn.execute(_SQL["busy_timeout"])
    return not busy


def log_bytes(ledger: Path) -> int:
    """Return the size of the log beside the ledger, 0 where there is none."""
    try:
        return ledger.with_name(ledger.name + "-wal").stat().st_size
    except FileNotFoundError:
        return 0


def _copy(conn: sqlite3.Connection, target: Path) -> bool:
    """Write the whole database to a new private file; False when something decided is not in place in it."""
    target.unlink(missing_ok=True)
    create_private(target)
    conn.execute(_SQL["vacuum_into"], {"target": str(target)})
    with closing(sqlite3.connect(f"{target.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as copy:
        return publications.pending(copy) is None


def _rotate(folder: Path, today: str) -> int:
    old = newest_first(_names(folder), today)[KEPT:]
    for name in old:
        (folder / name).unlink(missing_ok=True)
    return len(old)


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir() if path.is_file() and not path.is_symlink()]
    except FileNotFoundError:
        return []


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free
