"""Time as a value that can be handed in: the only module that asks the system what time it is."""

import asyncio
import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Uptime:
    """How long the machine has been up, as nobody can set it: comparable within one `boot`, another run has another.

    `counts_sleep` says whether suspended time is in `seconds`; where the system does not tell (macOS), `boot` is this
    process alone and its seconds are monotonic ones.
    """

    boot: str
    seconds: float
    counts_sleep: bool


class Clock(Protocol):
    """Wall time, monotonic time and waiting."""

    def now(self) -> float:
        """Return epoch seconds, UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back; the zero is arbitrary."""
        ...

    def uptime(self) -> Uptime:
        """Return the time since the machine was started."""
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

    def uptime(self) -> Uptime:
        """Return the time since the machine was started, its sleep included where the kernel counts that (Linux)."""
        return uptime()

    async def sleep(self, seconds: float) -> None:
        """Wait `seconds`; values that are not finite or negative are a programming error."""
        await asyncio.sleep(max(0.0, seconds))


def pause(seconds: float) -> None:
    """Hold the calling thread up for some seconds; never the event loop's."""
    time.sleep(seconds)


def uptime(source: Path = BOOT_ID) -> Uptime:
    """Read the clock that runs from boot on; monotonic time of this process alone where there is none."""
    try:
        boot = source.read_text(encoding="ascii").strip()
        return Uptime(boot, time.clock_gettime(time.CLOCK_BOOTTIME), counts_sleep=True)
    except (OSError, AttributeError):
        return Uptime(_PROCESS, time.monotonic(), counts_sleep=False)


_PROCESS: Final = f"process-{os.urandom(8).hex()}"


def in_calendar(instant: float) -> datetime:
    """Return epoch seconds as a moment in UTC; one whose year has not four digits becomes the nearest that has them.

    Sessions say when they were recorded, and a program or a damaged file may say anything.
    """
    return datetime.fromtimestamp(min(max(instant, _FIRST), _LAST), UTC)


_FIRST: Final = datetime(1000, 1, 2, tzinfo=UTC).timestamp()
_LAST: Final = datetime(9999, 12, 30, 23, 59, 59, tzinfo=UTC).timestamp()


def rfc3339(instant: float) -> str:
    """Render epoch seconds as `2026-11-29T09:38:15+00:00` (whole seconds)."""
    return in_calendar(int(instant)).isoformat()


def utc_day(instant: float) -> str:
    """Render the UTC day of an instant as `2026-11-29`."""
    return in_calendar(instant).date().isoformat()
