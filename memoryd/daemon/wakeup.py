"""Waiting for a reason to look, or for a time: what every service's loop does between two looks."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from memoryd.clock import Clock

T = TypeVar("T")


class Wakeup:
    """A flag that ticks, hints and stages set, and one service waits for. Setting it twice is one wake-up."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Ask the service to look again."""
        self._event.set()

    async def wait(self, clock: Clock, seconds: float | None = None) -> bool:
        """Wait until set, at most `seconds`; clear it, and tell whether it was set."""
        if seconds is None:
            await self._event.wait()
        elif not self._event.is_set():
            await first_of(self._event.wait(), clock.sleep(seconds))
        was_set = self._event.is_set()
        self._event.clear()
        return was_set


@dataclass(slots=True)
class Wakeups:
    """Who can be asked to look again."""

    scan: Wakeup = field(default_factory=Wakeup)
    consolidate: Wakeup = field(default_factory=Wakeup)
    maintain: Wakeup = field(default_factory=Wakeup)
    extract: list[Wakeup] = field(default_factory=list)

    def all(self) -> None:
        """Ask everybody."""
        for wakeup in (self.scan, self.consolidate, self.maintain, *self.extract):
            wakeup.set()

    def work(self) -> None:
        """Ask whoever runs jobs."""
        for wakeup in (self.consolidate, *self.extract):
            wakeup.set()


async def within(clock: Clock, seconds: float, work: Awaitable[T]) -> T:
    """Return what `work` gives; after `seconds` of the clock raise TimeoutError and leave it alone."""
    doing = asyncio.ensure_future(work)
    timer = asyncio.create_task(clock.sleep(seconds), name="within.timer")
    try:
        await asyncio.wait({doing, timer}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise TimeoutError
        return doing.result()
    finally:
        timer.cancel()
        doing.cancel()


async def first_of(*waits: Awaitable[object]) -> None:
    """Wait until one of these is over, and cancel the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
