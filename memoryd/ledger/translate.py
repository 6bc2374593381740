"""The one place where errors of SQLite and of its file become ours."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoryd.errors import DiskFull, LedgerCorrupt, LedgerLocked, StorageError

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
DAMAGED_REMEDY = "`memoryd run` or `memoryd sync` sets it aside whole and goes on from the newest sound backup"
LOCKED_REMEDY = "another program works on it: end it (a database browser, a copy), or wait until it has finished"
_UNDECODABLE = "Could not decode to UTF-8"
_WITHOUT_SEARCH = "no such module: fts5"
_PRIMARY = 0xFF
"""SQLite's extended codes keep the primary one in their low byte."""


@contextmanager
def translated(path: Path, attempt: str) -> Iterator[None]:
    """Raise StorageError or one of its kinds for anything that SQLite or the system says while we `attempt` something.

    `attempt` is a verb phrase, such as "write to".
    """
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise as_ours(error, path, attempt) from error


def as_ours(error: sqlite3.Error | OSError, path: Path, attempt: str) -> StorageError:
    """Return what `translated` raises instead of this error."""
    if isinstance(error, sqlite3.Error):
        return _from_sqlite(error, path, attempt)
    return _from_system(error, path, attempt)


def _from_sqlite(error: sqlite3.Error, path: Path, attempt: str) -> StorageError:
    code = primary_code(error)
    what = f"cannot {attempt} the ledger {path}: {error}"
    if code == sqlite3.SQLITE_FULL or _had_no_room(error):
        return DiskFull(what, remedy="free some disk space; memoryd goes on by itself")
    if code == sqlite3.SQLITE_READONLY:
        return DiskFull(what, remedy="make the folder writable for this user")
    # Python says of itself that a text is none; only text was ever written.
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or str(error).startswith(_UNDECODABLE):
        return LedgerCorrupt(what, remedy=DAMAGED_REMEDY)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LedgerLocked(what, remedy=LOCKED_REMEDY)
    if code == sqlite3.SQLITE_CANTOPEN:
        return StorageError(what, remedy="look at the path and its permissions")
    if str(error) == _WITHOUT_SEARCH:
        return StorageError(what, remedy="use a Python whose SQLite has FTS5, as those of python.org and of systems do")
    return StorageError(what, remedy="`memoryd doctor` looks further")


def _from_system(error: OSError, path: Path, attempt: str) -> StorageError:
    what = f"cannot {attempt} the ledger {path}: {error.strerror or error}"
    if error.errno in _NO_SPACE:
        return DiskFull(what, remedy="free some disk space or make it writable; memoryd goes on by itself")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return StorageError(what, remedy="`memoryd init` makes the folder")
    return StorageError(what, remedy="look at the path and its permissions")


def _had_no_room(error: sqlite3.Error) -> bool:
    """Say whether there was no room for the index of the log, which SQLite calls an error of the disk."""
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_IOERR_SHMSIZE


def primary_code(error: sqlite3.Error) -> int | None:
    """Return SQLite's primary result code; None for mistakes that Python's module itself reports."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & _PRIMARY
