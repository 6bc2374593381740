"""The pulse of a daemon: it beats as long as the event loop turns, and looks each time at what may run out.

A wedged loop beats no more, so that the service manager ends it; one that is merely late is told of.
"""

from collections.abc import Callable

from memoryd import logs
from memoryd.clock import Clock
from memoryd.daemon.duty import Duty, Trouble
from memoryd.daemon.own_log import OwnLog
from memoryd.daemon.vitals import Bounds, Excess, Usage, excesses, usage

log = logs.get()

LONGEST_BEAT_SECONDS = 5.0
BEATS_PER_WATCHDOG = 4
"""Three beats may be lost before the service manager's patience ends."""
LATE_SECONDS = 1.0
FORGIVEN_SECONDS = 60.0
"""After so long without another one a lateness is forgiven."""
START_SECONDS = 60
"""While it starts, each beat asks for so much more time: a large ledger may be looked through first."""
LONGEST_START_SECONDS = 1_800.0
"""What takes longer hangs."""
LATE = "loop_late"


class Pulse:
    """Beats for one daemon. `doing` says what goes on; `watchdog_seconds` is what the service manager waits for."""

    def __init__(
        self,
        duty: Duty,
        clock: Clock,
        doing: Callable[[], str],
        *,
        watchdog_seconds: float | None = None,
        own_log: OwnLog | None = None,
        bounds: Bounds | None = None,
        measure: Callable[[], Usage] = usage,
    ) -> None:
        self._duty = duty
        self._clock = clock
        self._doing = doing
        self._every = min(LONGEST_BEAT_SECONDS, (watchdog_seconds or 3_600.0) / BEATS_PER_WATCHDOG)
        self._own_log = own_log
        self._bounds = bounds or Bounds()
        self._measure = measure
        self._began = clock.monotonic()

    async def run(self) -> None:
        """Beat until cancelled."""
        late = 0.0
        while True:
            try:
                self.beat(late)
            except Exception as error:
                log.exception(
                    "service.crashed", service="pulse", error_class=type(error).__name__, retry_in=self._every
                )
            due = self._clock.monotonic() + self._every
            await self._clock.sleep(self._every)
            late = self._clock.monotonic() - due

    def beat(self, late: float) -> None:
        """Say that the loop turns, `late` seconds after it should have; look at memory, descriptors and the log."""
        if self._duty.ready:
            self._duty.tell("WATCHDOG=1")
            self._duty.say(self._doing())
        elif self._clock.monotonic() - self._began < LONGEST_START_SECONDS:
            self._duty.tell("WATCHDOG=1", f"EXTEND_TIMEOUT_USEC={START_SECONDS * 1_000_000}")
        self._judge_lateness(late)
        self._judge_usage(self._measure())
        if self._own_log is not None:
            self._own_log.rotate_if_large()

    def _judge_lateness(self, late: float) -> None:
        if late < LATE_SECONDS:
            return
        log.warning("loop.delayed", seconds=round(late, 1))
        message = f"the event loop of memoryd stood still for {late:.1f} seconds"
        remedy = "the machine was overloaded or stopped, or memoryd has a fault: its log says when (loop.delayed)"
        self._duty.report(Trouble(LATE, "warning", message, remedy, self._clock.monotonic() + FORGIVEN_SECONDS))

    def _judge_usage(self, has: Usage) -> None:
        over = {f"{excess.what}_grown": excess for excess in excesses(has, self._bounds)}
        for trouble in ("memory_grown", "descriptors_grown"):
            if trouble in over:
                self._tell_excess(trouble, over[trouble])
            else:
                self._duty.troubles.pop(trouble, None)

    def _tell_excess(self, trouble: str, excess: Excess) -> None:
        if trouble not in self._duty.troubles:
            log.warning("usage.exceeded", what=excess.what, has=excess.has, bound=excess.bound)
        remedy = "it starts anew by itself if it goes on; please report it with the log"
        self._duty.report(Trouble(trouble, "warning", str(excess), remedy))
        if excess.is_hard and self._duty.exhausted is None:
            log.error("daemon.exhausted", what=excess.what, has=excess.has, bound=excess.bound)
            self._duty.exhaust(str(excess))
