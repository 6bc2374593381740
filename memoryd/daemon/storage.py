"""Whether the disk takes what must be kept. While it does not, nothing is claimed and nothing is spent.

A pause begins with the first write that was refused and ends by itself: every now and then a small row and a small file
are written for a trial.
"""

import asyncio

from memoryd import logs
from memoryd.errors import DiskFull, LedgerBusy
from memoryd.ledger import meta
from memoryd.pipeline.context import Context, in_thread
from memoryd.workspace.files import write_durably

log = logs.get()

TRIAL_KEY = "storage_trial_at"
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
        """Try whether there is room; tell whether the pause is over."""
        async with self._trying:
            if self.reason is None:
                return True
            try:
                await self._try()
            except (DiskFull, LedgerBusy) as error:
                self.reason = str(error)
                return False
            log.info("storage.resumed", since=self.since)
            self.reason = self.since = None
            return True

    async def _try(self) -> None:
        context = self._context
        trial = context.home.staging / ".trial"
        try:
            await in_thread(write_durably, trial, bytes(TRIAL_BYTES))
        finally:
            await in_thread(trial.unlink, missing_ok=True)
        await context.ledger.write(meta.put, TRIAL_KEY, str(int(context.clock.now())))
