"""Checks of `doctor`: what lies in MEMORYD_HOME is there, is private, and holds nothing that a crash left."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memoryd.control.checked import Checked, Repair
from memoryd.control.patient import Patient
from memoryd.daemon.recalling import circumstances
from memoryd.errors import MemorydError
from memoryd.ledger.database import Ledger
from memoryd.recall import ready, runner
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import MISFIT_REMEDY, Home, link_remedy

OTHERS: Final = 0o077
OLD_LOCK_SECONDS: Final = 900.0
"""No git command of ours takes so long; a person's merge in an editor holds no lock meanwhile."""
MOST_NAMED: Final = 3
FIX: Final = "`memoryd doctor --fix` puts it right"


async def check_modes(patient: Patient) -> list[Checked]:
    """Say what of the home others could read."""
    home = patient.home
    if not home.path.is_dir():
        return [Checked("home", "ok", f"{home.path} is not made yet: `memoryd init` and `memoryd sync` make it")]
    open_ones = open_to_others(home)
    if not open_ones:
        return [Checked("modes", "ok", f"{home.path} and what lies in it can be read by you alone")]
    named = ", ".join(str(path) for path in open_ones[:MOST_NAMED])
    rest = f" and {len(open_ones) - MOST_NAMED} more" if len(open_ones) > MOST_NAMED else ""
    return [
        Checked("modes", "warning", f"others can read or write {named}{rest}", f"{FIX}: chmod go=", Repair.MODES),
    ]


def open_to_others(home: Home) -> list[Path]:
    """Return the home and what lies directly in it, as far as the group or others have any right to it.

    None of it where the home itself is closed: then nobody else gets at what lies in it.
    """
    if not home.path.stat().st_mode & OTHERS:
        return []
    places = [*sorted(home.path.iterdir()), home.path]
    return [path for path in places if not path.is_symlink() and path.stat().st_mode & OTHERS and not path.is_socket()]


async def check_folders(patient: Patient) -> list[Checked]:
    """Say which of the folders are missing, what is a link to another place, and what is no folder or file at all."""
    home = patient.home
    linked = [
        Checked(f"link_{path.name}", "error", f"{path} is a symlink: memoryd does not start", link_remedy(home))
        for path in home.links()
    ]
    misfits = [
        Checked(f"misfit_{path.name}", "error", f"{path} is {is_not}: memoryd does not start", MISFIT_REMEDY)
        for path, is_not in home.misfits().items()
    ]
    return linked + misfits or _missing_folders(home)


def _missing_folders(home: Home) -> list[Checked]:
    if not home.ledger_file.exists():
        return []
    folders = (home.memories, home.staging, home.recall, home.bin)
    return [
        Checked(f"folder_{folder.name}", "warning", f"there is no folder {folder}", FIX, Repair.REOPEN)
        for folder in folders
        if not folder.is_dir()
    ]


async def check_locks(patient: Patient) -> list[Checked]:
    """Say which locks killed programs left."""
    left = list(stale_locks(patient.home, patient.clock.now()))
    return [
        Checked(f"lock_{path.name}", "warning", f"{path} was left by a program that was killed", FIX, Repair.LOCKS)
        for path in left
    ]


def stale_locks(home: Home, now: float) -> Iterator[Path]:
    """Yield git's locks that are so old that nobody works any more; a socket that was left is in nobody's way."""
    git = home.git_dir
    if git.is_dir() and not git.is_symlink():
        for path in (*git.glob("*.lock"), *git.glob("refs/**/*.lock")):
            if now - path.lstat().st_mtime > OLD_LOCK_SECONDS:
                yield path


async def check_read_path(patient: Patient) -> list[Checked]:
    """Say whether the hook's program and what agents are given are those of this version and of the memory as it is."""
    home, found = patient.home, []
    if home.ledger_file.exists() and not runner.is_current(home):
        found.append(
            Checked(
                "runner",
                "warning",
                f"{home.bin / runner.RUNNER}, which agents run, is missing or of another version",
                FIX,
                Repair.RUNNER,
            )
        )
    try:
        accepted = await asyncio.to_thread(_accepted, patient)
    except MemorydError as error:
        return [*found, Checked("git_broken", "error", error.message, error.remedy)]
    if accepted is None:
        return [*found, Checked("recall", "ok", "no memory is accepted yet, so agents are given nothing")]
    known = await _circumstances(patient)
    if known is not None and not ready.is_current(home, accepted, known):
        evidence = f"what agents are given ({home.recall}) is not that of the memory as it stands"
        return [*found, Checked("recall", "warning", evidence, FIX, Repair.REOPEN)]
    return [
        *found,
        Checked("recall", "ok", f"what agents are given was made from the memory as it stands ({accepted[:10]})"),
    ]


def _accepted(patient: Patient) -> str | None:
    """Return the accepted commit, None where there is none. Raises GitError for a git or a repository of no use."""
    home = patient.home
    repo = Repository(home.git_dir, home.memories, environ=patient.environ)
    repo.require_usable_git()
    return repo.accepted() if home.git_dir.is_dir() else None


async def _circumstances(patient: Patient) -> ready.Circumstances | None:
    try:
        async with await Ledger.open(patient.home.ledger_file, clock=patient.clock, read_only=True) as ledger:
            return await ledger.read(circumstances, settings=patient.settings)
    except MemorydError:  # the ground's own check says what is wrong with it
        return None
