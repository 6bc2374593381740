"""A real clock on which time passes faster: pauses of half a minute are over in a moment."""

import asyncio
import time

from memoryd.clock import Uptime


class HastyClock:
    """A Clock whose seconds are `speed` times shorter than real ones."""

    def __init__(self, speed: float = 100.0) -> None:
        self._speed = speed
        self._began = time.time()
        self._monotonic = time.monotonic()

    def now(self) -> float:
        return self._began + self.monotonic()

    def monotonic(self) -> float:
        return (time.monotonic() - self._monotonic) * self._speed

    def uptime(self) -> Uptime:
        return Uptime("boot", self.monotonic(), counts_sleep=True)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self._speed)
