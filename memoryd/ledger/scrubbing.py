"""No byte of what was deleted stays: not in free pages, not in the log, not in a copy of the ledger."""

import shutil
import sqlite3
from pathlib import Path
from typing import Final

from memoryd.errors import StorageError
from memoryd.ledger import backups, queries, rebuilding, search
from memoryd.ledger.migrations import sync

_SQL = queries.load("scrubbing")

IN_THE_WAY: Final = "cannot be cut while another program reads it"
_COPIES: Final = (".v*.backup", ".v*.backup.unfinished", ".replacement")
"""What may lie beside a ledger: copies from before a migration, and one that was to take its place."""


def scrub(conn: sqlite3.Connection, ledger: Path) -> list[str]:
    """Remove every copy of the ledger, rewrite its file, and cut its log to nothing (outside of any transaction).

    Runs on the ledger's own thread, so that no copy is being made meanwhile; return the names of what was removed.
    Raises StorageError while a reader keeps the log from being cut, OSError and sqlite3.Error.
    """
    removed = _remove_copies(ledger)
    search.rebuild(conn)
    conn.execute(_SQL["vacuum"])
    if not backups.shorten_log(conn):
        raise StorageError(
            f"the log of {ledger} {IN_THE_WAY}",
            remedy="end that program; memoryd goes on by itself",
        )
    return removed


def _remove_copies(ledger: Path) -> list[str]:
    """Remove backups, and the folders of damaged ledgers that were set aside."""
    home, removed = ledger.parent, []
    for folder in (backups.folder_of(ledger), *rebuilding.damaged_folders(home)):
        if folder.is_symlink():
            folder.unlink()
        elif folder.is_dir():
            shutil.rmtree(folder)
        else:
            continue
        removed.append(folder.name)
    for path in (path for pattern in _COPIES for path in sorted(home.glob(ledger.name + pattern))):
        path.unlink(missing_ok=True)
        removed.append(path.name)
    sync(home)
    return removed
