"""What `doctor --fix` does: only what is safe, does the same twice, and loses nothing. Each repair says what it did."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from memoryd.control.checked import Repair
from memoryd.control.checks_home import OTHERS, open_to_others, stale_locks
from memoryd.control.patient import Patient
from memoryd.daemon.house import open_house
from memoryd.errors import LedgerBusy, MemorydError
from memoryd.pipeline.consolidate import publish_decided
from memoryd.pipeline.edits import notice_edits
from memoryd.recall import runner
from memoryd.workspace.files import translated

ROLE: Final = "doctor"


async def repair(patient: Patient, wanted: set[Repair]) -> list[str]:
    """Do the repairs that findings call for, in the order of the table; return what was done, a line each.

    What could not be done is a line too: the finding that called for it stands.
    """
    told = []
    for name, mend in REPAIRS.items():
        if name in wanted:
            try:
                told += await mend(patient)
            except LedgerBusy as error:
                told.append(f"not now: {error.message}; a running memoryd does it itself at its next pass")
            except MemorydError as error:
                told.append(f"not done: {error}")
    return told


async def _close_to_others(patient: Patient) -> list[str]:
    return await asyncio.to_thread(_chmod, open_to_others(patient.home))


def _chmod(paths: list[Path]) -> list[str]:
    told = []
    for path in paths:
        with translated("change the mode of", path):
            mode = path.stat().st_mode & 0o777
            path.chmod(mode & ~OTHERS)
        told.append(f"{path}: mode {mode:o} is {mode & ~OTHERS:o} now")
    return told


async def _remove_locks(patient: Patient) -> list[str]:
    told = []
    for path in stale_locks(patient.home, patient.clock.now()):
        with translated("remove", path):
            path.unlink(missing_ok=True)
        told.append(f"{path}: removed")
    return told


async def _renew_runner(patient: Patient) -> list[str]:
    path = await asyncio.to_thread(runner.install_runner, patient.home)
    return [f"{path}: written anew"]


async def _reopen(patient: Patient) -> list[str]:
    """Open and close the house, as every start does, and finish what a crash interrupted."""
    async with open_house(patient.settings, clock=patient.clock, environ=patient.environ, role=ROLE) as context:
        await publish_decided(context)
        await notice_edits(context)
    return [f"{patient.home.path}: opened and closed once, which puts folders, recall and what a crash left right"]


REPAIRS: Final[Mapping[Repair, Callable[[Patient], Awaitable[list[str]]]]] = {
    Repair.MODES: _close_to_others,
    Repair.LOCKS: _remove_locks,
    Repair.RUNNER: _renew_runner,
    Repair.REOPEN: _reopen,
}
