"""Keeps what agents read in step with the memory and the settings: recall/ and the hook's runner."""

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Final

from memoryd import logs
from memoryd.config import Settings
from memoryd.errors import LeaseLost, LedgerCorrupt, MemorydError
from memoryd.ledger import outputs, sessions
from memoryd.ledger.database import Ledger
from memoryd.pipeline.context import Context, in_thread
from memoryd.recall.ready import Circumstances, refresh
from memoryd.recall.runner import install_runner
from memoryd.workspace.layout import Home

log = logs.get()

READ_SECONDS: Final = 30.0
"""A ledger that does not answer for so long is being closed."""


@dataclass(frozen=True, slots=True)
class RecallRefresher:
    """What stages call with the accepted commit, on a thread of its own; what the ledger knows is asked on its loop."""

    settings: Settings
    home: Home
    ledger: Ledger
    loop: asyncio.AbstractEventLoop

    def __call__(self, commit: str) -> bool:
        """Rewrite recall/ where it is out of date. Blocking, and never on the loop's own thread."""
        reading = self.ledger.read(functools.partial(circumstances, settings=self.settings))
        known = asyncio.run_coroutine_threadsafe(reading, self.loop).result(READ_SECONDS)
        return refresh(self.home, commit, known)


def refresher(settings: Settings, home: Home, ledger: Ledger) -> Callable[[str], object]:
    """Return what a Context takes as `refresh_recall`."""
    return RecallRefresher(settings, home, ledger, asyncio.get_running_loop())


def circumstances(conn: Connection, *, settings: Settings) -> Circumstances:
    """Gather what decides what agents are given."""
    return Circumstances(
        settings.recall,
        tuple(map(str, settings.user_homes)),
        tuple(sessions.without_recall(conn)),
        outputs.usage_by_stem(conn),
    )


async def keep_recall_ready(context: Context) -> None:
    """Bring recall/ and the runner up to date: after a start, a change of the settings, or the person's word.

    What is in the way is logged: the next pass tries again, and agents read what stands meanwhile.
    """
    try:
        await in_thread(install_runner, context.home)
        accepted = await in_thread(context.repository.accepted) if context.home.git_dir.is_dir() else None
        if accepted is not None:
            await in_thread(context.refresh_recall, accepted)
    except (LeaseLost, LedgerCorrupt):
        raise
    except MemorydError as error:
        log.warning("recall.postponed", error=str(error))
