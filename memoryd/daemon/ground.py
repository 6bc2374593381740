"""The ground of a house: the lock, the ledger and the memory folder, held as long as the process works in one home.

Settings come and go above it (a reload); who works on it, and what is being put in place, is one for all of them.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from memoryd import logs
from memoryd.clock import Clock
from memoryd.daemon import lock
from memoryd.daemon.rescue import sound_ledger
from memoryd.errors import LeaseLost, LedgerLocked
from memoryd.ledger.database import Ledger
from memoryd.ledger.jobs import Lease
from memoryd.workspace import repository, staging
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import Home, prepare

log = logs.get()

RETRY_SECONDS: Final = 1.0
"""Between two looks at a ledger that another program keeps locked; each look takes about as long."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What is open below all settings; the fields of the same name of Context say what the last four are."""

    home: Home
    clock: Clock
    environ: Mapping[str, str]
    ledger: Ledger
    repository: Repository
    still_ours: Callable[[], None]
    held: set[Lease] = field(default_factory=set)
    placing: asyncio.Lock = field(default_factory=asyncio.Lock)
    forgetting: asyncio.Lock = field(default_factory=asyncio.Lock)
    nudges: set[Callable[[], None]] = field(default_factory=set)


@asynccontextmanager
async def open_ground(
    path: Path, *, clock: Clock, environ: Mapping[str, str], role: str, patience_seconds: float = 0.0
) -> AsyncIterator[Ground]:
    """Take the lock of the home at `path` and open its ledger; close both again in the opposite order.

    For a ledger that another program keeps locked it waits so many seconds, and says so. Raises LedgerBusy,
    LedgerLocked, LedgerTooNew, DiskFull; LedgerCorrupt when the ledger is found damaged while it is in use: then it was
    set aside, and the next opening is sound. `role` says who holds the lock.
    """
    home = Home(path)
    async with AsyncExitStack() as stack:
        prepare(home)
        held = stack.enter_context(await lock.acquire(home.lock_file, clock=clock, role=role))
        staging.sweep(home)
        repository.sweep(home.git_dir)
        ledger = await _unlocked(stack, home, clock, patience_seconds)
        git = Repository(home.git_dir, home.memories, environ=environ)
        stack.callback(git.end)
        ledger.fence = partial(_still_ours, held, home.ledger_file, home.ledger_file.stat())
        yield Ground(home, clock, environ, ledger, git, ledger.fence)


async def _unlocked(stack: AsyncExitStack, home: Home, clock: Clock, patience_seconds: float) -> Ledger:
    gives_up_at, is_said = clock.monotonic() + patience_seconds, False
    while True:
        try:
            return await stack.enter_async_context(sound_ledger(home, clock))
        except LedgerLocked as error:
            if clock.monotonic() >= gives_up_at:
                raise
            if not is_said:
                log.warning("start.awaited", error=str(error), seconds=patience_seconds)
            is_said = True
        await clock.sleep(RETRY_SECONDS)


def _still_ours(held: lock.Lock, ledger_file: Path, opened: os.stat_result) -> None:
    """Raise LeaseLost when the lock or the ledger at its place is not the one that was opened."""
    held.still_ours()
    try:
        there = ledger_file.stat()
    except FileNotFoundError:
        there = None
    if there is None or (there.st_dev, there.st_ino) != (opened.st_dev, opened.st_ino):
        raise LeaseLost(
            f"the ledger {ledger_file} was removed or replaced while memoryd held it",
            remedy="put it back, or start memoryd again: it begins a new one",
        )
