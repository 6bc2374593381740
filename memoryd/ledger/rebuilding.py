"""What happens to a damaged ledger: set aside whole, and replaced by the newest sound backup, else by nothing.

When it is looked for: a file that was closed properly has no log with content beside it, since the last to close a
database takes the log in and removes it. What is left after anything else (a kill, a crash, a power cut) is the very
trace of it, needs no write at start, and cannot itself be damaged, unlike a mark inside the file. A reader that was
open while the ledger was closed leaves the log as well: then a sound file is checked once more, and no harm is done.

Only the holder of memoryd.lock calls `mend_interrupted`, `set_aside` and `rebuild`. Each step can be interrupted: the
replacement is prepared first, under another name, then the old files go, then it takes their place.
"""

import json
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from memoryd.ledger import backups
from memoryd.ledger.migrations import create_private, sync
from memoryd.ledger.translate import translated

COMPANIONS: Final = ("-wal", "-shm", "-journal")
PREFIX: Final = "damaged-"
ACCOUNT_FILE: Final = "what-happened.json"
"""In the folder of a ledger that was set aside."""
_REPLACEMENT: Final = ".replacement"


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What became of a damaged ledger: `folder` holds it, `source` is the backup that took its place (None: none)."""

    folder: Path
    problem: str
    source: Path | None


def was_left_open(ledger: Path) -> bool:
    """Tell whether whoever had the ledger open last did not close it; meaningless while somebody has it open."""
    return any(_size(companion) > 0 for companion in (_beside(ledger, "-wal"), _beside(ledger, "-journal")))


def find_damage(ledger: Path) -> str | None:
    """Return what SQLite finds wrong with a ledger that was left open, None when it is sound or was closed.

    About 1 s per GB. A file that was emptied is damaged when there are backups of what it held. Raises StorageError
    when it cannot be looked at.
    """
    if ledger.is_file() and not _size(ledger) and backups.exist(ledger):
        return f"{ledger} is empty"
    if not ledger.is_file() or not was_left_open(ledger):
        return None
    with translated(ledger, "check"):
        problems = backups.problems_in(ledger, log_included=True)
    return "; ".join(problems[:3]) or None


def mend_interrupted(ledger: Path, *, now: float) -> Path | None:
    """Finish a rebuilding that was interrupted; returns the folder that took what was left of the old ledger."""
    with translated(ledger, "rebuild"):
        replacement, folder = _beside(ledger, _REPLACEMENT), None
        if ledger.exists():
            replacement.unlink(missing_ok=True)
            return None
        if any(_beside(ledger, suffix).exists() for suffix in COMPANIONS):
            folder = _set_aside(ledger, "a log without its ledger was found", now=now)
        if replacement.exists():
            _put_in_place(replacement, ledger)
        return folder


def rebuild(ledger: Path, *, problem: str, now: float) -> Rebuilt:
    """Set the ledger aside whole and put the newest sound backup in its place; the memory folder is not touched.

    Raises StorageError (DiskFull: nothing was moved, and a later start tries again).
    """
    with translated(ledger, "rebuild"):
        source = next(iter(backups.sound_backups(ledger, now=now)), None)
        replacement = _beside(ledger, _REPLACEMENT)
        if source is not None:
            _prepare(source, replacement)
        folder = _set_aside(ledger, problem, now=now, source=source)
        if source is not None:
            _put_in_place(replacement, ledger)
        return Rebuilt(folder, problem, source)


def damaged_folders(home: Path) -> list[Path]:
    """Return the folders of ledgers that were set aside, newest first."""
    return sorted((path for path in home.glob(f"{PREFIX}*") if path.is_dir()), reverse=True)


def account_of(folder: Path) -> dict[str, str | None]:
    """Return what was noted when the ledger in this folder was set aside: `problem` and `source`."""
    try:
        noted = json.loads((folder / ACCOUNT_FILE).read_text(encoding="utf-8"))
        return {"problem": str(noted["problem"]), "source": noted["source"] and str(noted["source"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"problem": "damaged", "source": None}


def _set_aside(ledger: Path, problem: str, *, now: float, source: Path | None = None) -> Path:
    folder = _new_folder(ledger.parent, now)
    account = folder / ACCOUNT_FILE
    create_private(account)
    noted = {"problem": problem, "source": source.name if source else None}
    account.write_text(json.dumps(noted, ensure_ascii=False), encoding="utf-8", errors="replace")
    for path in (ledger, *(_beside(ledger, suffix) for suffix in COMPANIONS)):
        if path.exists():
            path.rename(folder / path.name)
    sync(folder)
    sync(ledger.parent)
    return folder


def _new_folder(home: Path, now: float) -> Path:
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    number = 1
    while True:
        folder = home / (f"{PREFIX}{stamp}" if number == 1 else f"{PREFIX}{stamp}-{number}")
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            number += 1
        else:
            return folder


def _prepare(source: Path, replacement: Path) -> None:
    replacement.unlink(missing_ok=True)
    create_private(replacement)
    try:
        shutil.copyfile(source, replacement)
        sync(replacement)
    except BaseException:
        replacement.unlink(missing_ok=True)
        raise


def _put_in_place(replacement: Path, ledger: Path) -> None:
    replacement.rename(ledger)
    sync(ledger.parent)


def _beside(ledger: Path, suffix: str) -> Path:
    return ledger.with_name(ledger.name + suffix)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
