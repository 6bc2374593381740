"""Errors of SQLite and of the system leave the ledger as ours, each with a remedy."""

import errno
import sqlite3
from pathlib import Path

import pytest

from memoryd.errors import DiskFull, LeaseLost, LedgerCorrupt, LedgerLocked, StorageError
from memoryd.ledger.translate import translated

PATH = Path("/home/me/.memoryd/ledger.sqlite3")


def _sqlite_error(code: int | None) -> sqlite3.Error:
    error = sqlite3.OperationalError("what SQLite says")
    if code is not None:
        error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "expected", "remedy"),
    [
        (_sqlite_error(sqlite3.SQLITE_FULL), DiskFull, "free some disk space"),
        (_sqlite_error(sqlite3.SQLITE_IOERR_SHMSIZE), DiskFull, "free some disk space"),
        (_sqlite_error(sqlite3.SQLITE_READONLY), DiskFull, "writable"),
        (_sqlite_error(sqlite3.SQLITE_READONLY_DBMOVED), DiskFull, "writable"),
        (_sqlite_error(sqlite3.SQLITE_CORRUPT), LedgerCorrupt, "backup"),
        (_sqlite_error(sqlite3.SQLITE_CORRUPT_INDEX), LedgerCorrupt, "backup"),
        (_sqlite_error(sqlite3.SQLITE_NOTADB), LedgerCorrupt, "backup"),
        (_sqlite_error(sqlite3.SQLITE_BUSY_SNAPSHOT), LedgerLocked, "another program"),
        (_sqlite_error(sqlite3.SQLITE_LOCKED), LedgerLocked, "another program"),
        (_sqlite_error(sqlite3.SQLITE_CANTOPEN), StorageError, "permissions"),
        (_sqlite_error(sqlite3.SQLITE_IOERR_FSYNC), StorageError, "memoryd doctor"),
        (_sqlite_error(None), StorageError, "memoryd doctor"),
        (sqlite3.OperationalError("no such module: fts5"), StorageError, "FTS5"),
        (OSError(errno.ENOSPC, "No space left on device"), DiskFull, "disk space"),
        (OSError(errno.EROFS, "Read-only file system"), DiskFull, "writable"),
        (OSError(errno.ENOENT, "No such file or directory"), StorageError, "memoryd init"),
        (OSError(errno.EACCES, "Permission denied"), StorageError, "permissions"),
    ],
)
def test_each_foreign_error_becomes_one_of_ours(error: Exception, expected: type[StorageError], remedy: str) -> None:
    with pytest.raises(StorageError) as caught, translated(PATH, "write to"):
        raise error

    assert type(caught.value) is expected
    assert caught.value.message.startswith(f"cannot write to the ledger {PATH}: ")
    assert remedy in caught.value.remedy
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [LeaseLost("gone"), RuntimeError("a fault of ours")])
def test_other_errors_pass_unchanged(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, translated(PATH, "write to"):
        raise error

    assert caught.value is error
