"""Opens a ledger that can be relied upon: one that is damaged is set aside whole, said loudly, and replaced.

For the holder of memoryd.lock alone. What the ledger knew comes back from the newest sound backup, else by reading the
sessions again; then what was recorded before is history, and waits for consent like any other. The memory folder is
not touched: it is the other store, and whole by itself.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memoryd import logs
from memoryd.clock import Clock
from memoryd.errors import LedgerCorrupt
from memoryd.ledger import rebuilding
from memoryd.ledger.database import Ledger
from memoryd.ledger.rebuilding import Rebuilt
from memoryd.workspace.layout import Home

log = logs.get()


@asynccontextmanager
async def sound_ledger(home: Home, clock: Clock) -> AsyncIterator[Ledger]:
    """Give the open ledger, and close it; one found damaged on the way is set aside, so that the next opening is sound.

    Raises what Ledger.open raises but LedgerCorrupt; that comes only from the block itself. What another process has
    taken over is not set aside: LeaseLost.
    """
    ledger = await _open(home, clock)
    try:
        yield ledger
    except LedgerCorrupt as error:
        rebuilt = await _end(ledger, home, clock, error.message)
        raise LedgerCorrupt(
            f"{error.message}; it was set aside whole in {rebuilt.folder}",
            remedy=f"start memoryd again: it goes on {_means(rebuilt)}",
        ) from error
    finally:
        await _end_if_open(ledger, home, clock)


async def _open(home: Home, clock: Clock) -> Ledger:
    """Open the ledger, after a look at it when it was left open."""
    left = await asyncio.to_thread(rebuilding.mend_interrupted, home.ledger_file, now=clock.now())
    if left is not None:
        log.warning("rebuilding.finished", folder=str(left))
    problem = await asyncio.to_thread(rebuilding.find_damage, home.ledger_file)
    if problem is None:
        try:
            return await _opened(home, clock)
        except LedgerCorrupt as error:
            problem = error.message
    await _rebuild(home, clock, problem)
    return await _opened(home, clock)


async def _opened(home: Home, clock: Clock) -> Ledger:
    ledger = await Ledger.open(home.ledger_file, clock=clock)
    if ledger.warning is not None:
        log.warning("ledger.misplaced", warning=ledger.warning)
    return ledger


async def _end_if_open(ledger: Ledger, home: Home, clock: Clock) -> None:
    """Close a ledger; when damage was found that nobody raised, or closing finds it, set it aside as well."""
    if not ledger.is_open:
        return
    try:
        await ledger.close()
    except LedgerCorrupt as error:
        ledger.damage = error.message
    if ledger.damage is not None:
        ledger.fence()
        await _rebuild(home, clock, ledger.damage)


async def _end(ledger: Ledger, home: Home, clock: Clock, problem: str) -> Rebuilt:
    try:
        await ledger.close()
    except LedgerCorrupt:
        pass  # said already
    ledger.fence()
    return await _rebuild(home, clock, problem)


async def _rebuild(home: Home, clock: Clock, problem: str) -> Rebuilt:
    rebuilt = await asyncio.to_thread(rebuilding.rebuild, home.ledger_file, problem=problem, now=clock.now())
    log.error(
        "ledger.replaced",
        problem=problem,
        folder=str(rebuilt.folder),
        source=str(rebuilt.source) if rebuilt.source else None,
        means=_means(rebuilt),
    )
    return rebuilt


def _means(rebuilt: Rebuilt) -> str:
    if rebuilt.source is not None:
        return f"from the backup {rebuilt.source.name}; newer sessions are read again"
    return (
        "with a new ledger: sessions are read again, and those recorded before now wait for consent "
        "unless limits.backfill says otherwise"
    )
