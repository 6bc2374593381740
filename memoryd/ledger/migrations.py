"""From the ledger that is there to the one that this program knows: all steps in one transaction, after a backup."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memoryd.errors import LedgerTooNew, StorageError
from memoryd.ledger import queries

_SQL = queries.load("connection")

APPLICATION_ID = 0x6D656D64
"""`memd`, in the header of every ledger."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step; its statements end with the pragma that sets user_version to `version`."""

    version: int
    sql: str


def shipped() -> tuple[Migration, ...]:
    """Return the migrations of this program, in order."""
    return (
        Migration(1, queries.read("migrations/0001_initial.sql")),
        Migration(2, queries.read("migrations/0002_lineage.sql")),
        Migration(3, queries.read("migrations/0003_fewer_pages.sql")),
        Migration(4, queries.read("migrations/0004_reasoning.sql")),
        Migration(5, queries.read("migrations/0005_claims.sql")),
        Migration(6, queries.read("migrations/0006_held.sql")),
        Migration(7, queries.read("migrations/0007_claim_texts.sql")),
        Migration(8, queries.read("migrations/0008_active_days.sql")),
        Migration(9, queries.read("migrations/0009_search.sql")),
        Migration(10, queries.read("migrations/0010_cheaper_writes.sql")),
        Migration(11, queries.read("migrations/0011_request_sums.sql")),
    )


def present_version(conn: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> int:
    """Return which migration the file has reached, 0 for a new one; changes nothing.

    Raises StorageError for a database that is no ledger, LedgerTooNew for a ledger of a later program.
    """
    (application_id,) = conn.execute(_SQL["application_id"]).fetchone()
    (version,) = conn.execute(_SQL["user_version"]).fetchone()
    (objects,) = conn.execute(_SQL["count_objects"]).fetchone()
    if objects == 0 and version == 0:
        return 0
    if application_id != APPLICATION_ID:
        raise StorageError(f"{path} is a database, but not a ledger of memoryd", remedy="move it somewhere else")
    known = migrations[-1].version
    if version > known:
        raise LedgerTooNew(
            f"the ledger {path} has version {version}, this memoryd knows versions up to {known}",
            remedy="install the newer memoryd again, or put back the backup that it made beside the ledger",
        )
    return int(version)


def migrate(
    conn: sqlite3.Connection, path: Path, *, version: int, migrations: Sequence[Migration], now: float
) -> Path | None:
    """Bring the file from `version` to the last migration; returns the backup of an older ledger."""
    steps = [migration for migration in migrations if migration.version > version]
    if not steps:
        return None
    backup = back_up(conn, _backup_path(path, version, now)) if version > 0 else None
    conn.execute(_SQL["begin_write"])
    try:
        for step in steps:
            for statement in statements(step.sql):
                conn.execute(statement)
        conn.execute(_SQL["commit"])
    except BaseException:
        if conn.in_transaction:
            conn.execute(_SQL["rollback"])
        raise
    return backup


def back_up(conn: sqlite3.Connection, target: Path) -> Path:
    """Copy the whole database, WAL included, to `target` (mode 0600), which appears complete or not at all."""
    unfinished = target.with_name(target.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    create_private(unfinished)
    with closing(sqlite3.connect(unfinished, isolation_level=None)) as copy:
        conn.backup(copy)
        copy.execute(_SQL["journal_delete"])
    sync(unfinished)
    unfinished.replace(target)
    sync(target.parent)
    return target


def create_private(path: Path) -> None:
    """Create an empty file that only its owner can read; raises FileExistsError when it is there."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))


def sync(path: Path) -> None:
    """Make a file's content, or a folder's entries, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def statements(script: str) -> Iterator[str]:
    """Split a script into its statements, so that all of them can run inside one transaction."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def _backup_path(path: Path, version: int, now: float) -> Path:
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    return path.with_name(f"{path.name}.v{version}-{stamp}.backup")
