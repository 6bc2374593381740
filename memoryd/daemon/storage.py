"""Whether the disk takes what must be kept. While it does not, nothing is claimed and nothing is spent.

A pause begins with the first write that was refused and ends by itself: every now and then a small row and a small file
are written for a trial.
"""

import asyncio
from contextlib import suppress
from pathlib import Path

from memoryd import logs
from memoryd.errors import StorageError
from memoryd.ledger import backups, meta
from memoryd.pipeline.context import Context, in_thread
from memoryd.workspace.files import write_durably

log = logs.get()

TRIAL_KEY = "storage_trial_at"
TRIAL_FILE = ".trial"
TRIAL_BYTES = 256 * 1024
"""What a job writes at least; less room would let it begin and not end."""


class Storage:
    """The pause of one daemon; `reason` says why nothing is claimed now, None when that is not so."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._trying = asyncio.Lock()
        self.reason: str | None = None
        self.since: float | None = None

    def refuse(self, reason: str) -> None:
        """Begin to pause, or go on."""
        if self.reason is None:
            self.since = self._context.clock.now()
        self.reason = reason

    async def look_again(self) -> bool:
        """Try whether there is room; tell whether the pause is over. Raises nothing: what is wrong is the reason."""
        async with self._trying:
            if self.reason is None:
                return True
            try:
                await self._try()
            except StorageError as error:
                self.reason = str(error)
                return False
            log.info("storage.resumed", since=self.since)
            self.reason = self.since = None
            return True

    async def _try(self) -> None:
        context = self._context
        # Its own log may be what fills the disk: cut, it gives that room back.
        await context.ledger.apart(backups.shorten_log)
        await in_thread(_write_and_remove, context.home.path / TRIAL_FILE)
        await context.ledger.write(meta.put, TRIAL_KEY, str(int(context.clock.now())))


def _write_and_remove(trial: Path) -> None:
    try:
        write_durably(trial, bytes(TRIAL_BYTES))
    finally:
        with suppress(OSError):
            trial.unlink()
