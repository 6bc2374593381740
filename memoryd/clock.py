"""Time as a value that can be handed in: the only module that asks the system what time it is."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time, monotonic time and waiting."""

    def now(self) -> float:
        """Return epoch seconds, UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back; the zero is arbitrary."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait `seconds` of monotonic time."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        """Return epoch seconds, UTC."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait `seconds`; values that are not finite or negative are a programming error."""
        await asyncio.sleep(max(0.0, seconds))


def rfc3339(instant: float) -> str:
    """Render epoch seconds as `2026-11-29T09:38:15+00:00` (whole seconds)."""
    return datetime.fromtimestamp(int(instant), UTC).isoformat()


def utc_day(instant: float) -> str:
    """Render the UTC day of an instant as `2026-11-29`."""
    return datetime.fromtimestamp(instant, UTC).date().isoformat()
