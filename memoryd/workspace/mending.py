"""What code puts right in a staged folder by itself, before and instead of complaining."""

import os
import shutil
import stat
from pathlib import Path
from typing import Final

from memoryd.workspace.acceptance import strays
from memoryd.workspace.files import translated, write_private
from memoryd.workspace.folder import Folder, Odd
from memoryd.workspace.layout import ALWAYS_THERE, MEMORY_FILE, SUMMARY_FILE
from memoryd.workspace.provenance import with_provenance
from memoryd.workspace.quarantine import Quarantine
from memoryd.workspace.summary import Summary, render_summary

_EMPTY_HANDBOOK: Final = "> Nothing is remembered: no session or note supports a memory at present.\n"
_UNUSABLE: Final = (Odd.TOO_LARGE, Odd.BINARY)
_EMPTY_SUMMARY: Final = render_summary(Summary(profile=("Nothing is remembered yet.",)))


def clean_strays(work: Path, before: Folder | None = None, *, quarantine: Quarantine | None = None) -> tuple[str, ...]:
    """Remove what has no place in a staged folder, to the quarantine as far as it takes it; return the paths.

    Always: symlinks, nested repositories, hidden and editors' files, special files, binaries, files over 1 MiB. With
    `before`, the staged copy, also new files outside the places that a consolidation writes; but one of the two files
    that agents read which is too large or no text stays for acceptance to name.
    """
    found = Folder.read(work)
    doomed = strays(before if before is not None else found, found)
    if before is not None:
        doomed = tuple(path for path in doomed if path not in ALWAYS_THERE or found.odd[path] not in _UNUSABLE)
    own_git = work / ".git"
    removed = [*([".git"] if os.path.lexists(own_git) else []), *doomed]
    if quarantine is not None and doomed:
        quarantine.keep(work, doomed)
    for path in removed:
        _remove(work / path)
    return tuple(removed)


def rewrite_provenance(work: Path) -> None:
    """Rewrite the parentheses of MEMORY.md's rollout_summary_files rows from the headers of the files they name."""
    folder = Folder.read(work)
    old = folder.text(MEMORY_FILE)
    new = with_provenance(old, folder)
    if new != old:
        write_private(work / MEMORY_FILE, new.encode())


def empty_folder(work: Path) -> None:
    """Write MEMORY.md and memory_summary.md as they are when no evidence is left."""
    write_private(work / MEMORY_FILE, _EMPTY_HANDBOOK.encode())
    write_private(work / SUMMARY_FILE, _EMPTY_SUMMARY.encode())


def is_empty_summary(text: str) -> bool:
    """Say whether a summary is the one of a memory without evidence."""
    return text == _EMPTY_SUMMARY


def _remove(path: Path) -> None:
    with translated("remove", path):
        if stat.S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path)
        else:
            path.unlink()
