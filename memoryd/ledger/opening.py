"""A connection to the ledger's file: the one that writes, or one that only reads."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from memoryd.errors import StorageError
from memoryd.ledger import migrations, queries
from memoryd.ledger.migrations import Migration
from memoryd.ledger.mounts import network_file_system
from memoryd.ledger.translate import primary_code

_SQL = queries.load("connection")

_PRAGMAS = (
    "busy_timeout",
    "foreign_keys",
    "trusted_schema",
    "temp_store",
    "synchronous",
    "fullfsync",
    "journal_size_limit",
    "wal_autocheckpoint",
)


LOOK_SECONDS = 1.0
"""Whoever writes for longer just when the ledger is opened is worth a word."""

_NO_FILE_BESIDE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)


def open_writer(
    path: Path, *, steps: Sequence[Migration], mountinfo: str, now: float
) -> tuple[sqlite3.Connection, str | None]:
    """Open the ledger for writing, creating or migrating it; the second value is a warning, if there is one.

    A file that is no ledger, or one of a later program, is not touched; for one that another program keeps locked,
    nobody waits here: who opens it can say so, and try again.
    """
    _create_or_tighten(path)
    conn = _connect(path, "mode=rw", timeout=LOOK_SECONDS)
    try:
        version = migrations.present_version(conn, path, steps)
        if version:
            conn.execute(_SQL["begin_write"])
            conn.execute(_SQL["rollback"])
        conn.execute(_SQL["small_pages"])
        for name in _PRAGMAS:
            conn.execute(_SQL[name])
        warning = _set_journal(conn, path, mountinfo)
        migrations.migrate(conn, path, version=version, migrations=steps, now=now)
    except BaseException:
        conn.close()
        raise
    return conn, warning


def open_reader(path: Path, *, steps: Sequence[Migration]) -> sqlite3.Connection:
    """Open the ledger so that nothing can be written; raises StorageError when there is none yet.

    On a read-only mount, or without room for the log's index, a WAL database opens only as immutable.
    """
    if not path.exists():
        raise _no_ledger(path)
    if not path.is_file():  # SQLite would wait for ever for a FIFO's writer
        raise StorageError(f"cannot open the ledger {path}: it is no regular file", remedy="move it away")
    conn = _connect(path, "mode=ro")
    try:
        version = _read_version(conn, path, steps)
    except sqlite3.OperationalError as error:
        conn.close()
        if primary_code(error) not in _NO_FILE_BESIDE:
            raise
        conn = _connect(path, "mode=ro&immutable=1")
        version = _read_version(conn, path, steps)
    if version == steps[-1].version:
        return conn
    conn.close()
    if version == 0:
        raise _no_ledger(path)
    raise StorageError(
        f"the ledger {path} has version {version}, this memoryd reads version {steps[-1].version}",
        remedy="start the daemon, again if one of before an upgrade runs, or run `memoryd sync` once: it brings the"
        " ledger up to date",
    )


def _create_or_tighten(path: Path) -> None:
    try:
        migrations.create_private(path)
    except FileExistsError:
        if path.stat().st_mode & 0o077 and path.is_file():
            path.chmod(0o600)


def _connect(path: Path, options: str, *, timeout: float = 5.0) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True, isolation_level=None, timeout=timeout)


def _read_version(conn: sqlite3.Connection, path: Path, steps: Sequence[Migration]) -> int:
    """Return the file's version; closes the connection when it is no ledger or too new."""
    try:
        conn.execute(_SQL["busy_timeout"])
        conn.execute(_SQL["temp_store"])
        return migrations.present_version(conn, path, steps)
    except BaseException:
        conn.close()
        raise


def _set_journal(conn: sqlite3.Connection, path: Path, mountinfo: str) -> str | None:
    warning = place_warning(path, mountinfo)
    if warning is None:
        (answer,) = conn.execute(_SQL["journal_wal"]).fetchone()
        if answer != "wal":
            raise StorageError(
                f"cannot use the ledger {path}: SQLite keeps journal mode {answer} instead of wal",
                remedy="put MEMORYD_HOME on a local disk",
            )
        return None
    conn.execute(_SQL["locking_exclusive"])
    conn.execute(_SQL["journal_delete"])
    return warning


def place_warning(path: Path, mountinfo: str) -> str | None:
    """Say what is not as it should be about where the ledger lies, None when nothing is."""
    network = network_file_system(path.resolve(), mountinfo)
    if network is None:
        return None
    return f"the ledger lies on a network file system ({network}): it is slower there, and only the daemon can read it"


def _no_ledger(path: Path) -> StorageError:
    return StorageError(f"there is no ledger at {path} yet", remedy="`memoryd sync` or `memoryd run` makes it")
