"""The tick source: APScheduler interval jobs whose callbacks only set a wake-up.

Nothing is decided here. What is due is read from the ledger by whoever is woken, so a tick that was missed (sleep, a
blocked loop, a clock jump) costs nothing but the wait for the next one, and is made good by one late tick.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from memoryd.clock import Clock

# Wall and monotonic time drift apart by this much only when the clock was set or the machine slept.
JUMP_SECONDS = 5.0


class Every(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types
    """Fires once an interval (seconds); however many were missed, the next fire time lies in the future.

    APScheduler's own interval trigger lists each missed one before it joins them: after a sleep of a year at an
    interval of a second it does nothing else for minutes, and takes gigabytes.
    """

    __slots__ = ("_interval",)

    def __init__(self, seconds: float) -> None:
        self._interval = timedelta(seconds=seconds)

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
        """Return the next fire time after the previous one, but never one that has passed."""
        following = (previous_fire_time or now) + self._interval
        return following if following > now else now + self._interval


class Ticker:
    """Fires callbacks at intervals (seconds); `rearm()` puts all of them back on time after a clock jump."""

    def __init__(self, ticks: Mapping[str, tuple[float, Callable[[], None]]]) -> None:
        self._ticks = ticks
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        self._scheduler = AsyncIOScheduler(
            timezone=UTC,
            # Defaults skip whole periods after one second's lateness; one late tick for all that were missed is right.
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        )

    def start(self, clock: Clock) -> None:
        """Begin ticking; the first tick of each comes after one interval (services look once at their own start)."""
        self._scheduler.start()
        self.rearm(clock)

    def rearm(self, clock: Clock) -> None:
        """Schedule every tick anew from now; an interval job whose clock was set back would stay silent for ever."""
        for name, (seconds, callback) in self._ticks.items():
            self._scheduler.add_job(
                callback,
                Every(seconds),
                id=name,
                replace_existing=True,
                next_run_time=datetime.fromtimestamp(clock.now(), UTC) + timedelta(seconds=seconds),
            )

    def stop(self) -> None:
        """Stop ticking."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)


@dataclass(frozen=True, slots=True)
class Moved:
    """By how many seconds the wall clock was set (ahead is positive), and how many the machine slept."""

    set_by: float
    slept: float


class ClockWatch:
    """Notices when wall time, monotonic time and the time since boot part company.

    Where the time since boot does not count sleep, a sleep looks like a clock that was set ahead.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._set, self._slept = self._offsets()

    def look(self) -> Moved | None:
        """Return what happened to the clocks since the last time that something had, None while nothing has."""
        set_now, slept_now = self._offsets()
        moved = Moved(set_now - self._set, slept_now - self._slept)
        if abs(moved.set_by) < JUMP_SECONDS and moved.slept < JUMP_SECONDS:
            return None
        self._set, self._slept = set_now, slept_now
        return moved

    def _offsets(self) -> tuple[float, float]:
        """Return the wall clock less the time since boot, and that less monotonic time."""
        up, monotonic = self._clock.uptime().seconds, self._clock.monotonic()
        return self._clock.now() - up, up - monotonic
