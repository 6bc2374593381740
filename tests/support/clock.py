"""A clock that stands still until a test moves it, with a barrier in place of guessing how often to yield."""

import asyncio
import heapq
import itertools
import math

from memoryd.clock import Uptime


class FakeClock:
    """A Clock whose time passes only in `advance`.

    Tasks that sleep on it are woken in the order in which they are due, each at its own instant. Before moving time a
    test waits until as many tasks sleep as it expects: `await clock.sleeping(2)`. The barrier waits on an event, so
    work on threads (SQLite, git) may take as long as it likes.
    """

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._wall = start
        self._monotonic = 0.0
        self._asleep = 0.0
        self._boots = 1
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._changed = asyncio.Event()

    def now(self) -> float:
        return self._wall

    def monotonic(self) -> float:
        return self._monotonic

    def uptime(self) -> Uptime:
        return Uptime(f"boot-{self._boots}", self._monotonic + self._asleep, counts_sleep=True)

    async def sleep(self, seconds: float) -> None:
        if not math.isfinite(seconds):
            raise ValueError("a sleep needs a finite number of seconds")
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        sleeper = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._order), sleeper))
        self._changed.set()
        await sleeper

    def until_next(self) -> float | None:
        """Return the seconds until the first sleeper is due, None when nobody sleeps."""
        return min((due - self._monotonic for due, _, sleeper in self._sleepers if not sleeper.done()), default=None)

    def asleep(self, *, within: float = math.inf) -> int:
        """Return how many tasks sleep on this clock now, of those that are due `within` so many seconds."""
        return sum(not sleeper.done() and due - self._monotonic <= within for due, _, sleeper in self._sleepers)

    async def sleeping(self, count: int, *, within: float = math.inf, patience_seconds: float = 30.0) -> None:
        """Wait until at least `count` tasks sleep here; after `patience_seconds` of real time the test fails.

        `within` leaves out those that sleep longer: a heartbeat sleeps beside whatever a test waits for.
        """
        try:
            async with asyncio.timeout(patience_seconds):
                while self.asleep(within=within) < count:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"waited for {count} sleeping tasks, there are {self.asleep(within=within)}") from None

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass; what falls due on the way is woken at its instant, in order, before time moves on.

        A woken task runs until its next await of something unfinished. If it sleeps again within the span at once (no
        thread between), that sleep is served too.
        """
        target = self._monotonic + seconds
        while self._sleepers and self._sleepers[0][0] <= target:
            due, _, sleeper = heapq.heappop(self._sleepers)
            if sleeper.done():
                continue
            self._move_to(max(due, self._monotonic))
            sleeper.set_result(None)
            await self._let_run()
        self._move_to(target)
        await self._let_run()

    def freeze(self, seconds: float) -> None:
        """Let time pass while nobody runs, as for a stopped process: what fell due is late when it runs again."""
        self._move_to(self._monotonic + seconds)

    def jump(self, seconds: float) -> None:
        """Move the wall clock alone, as an administrator or a resumed laptop does; nobody is woken."""
        self._wall += seconds

    def suspend(self, seconds: float) -> None:
        """Let the machine sleep: wall time and the time since boot go on, monotonic time does not."""
        self._wall += seconds
        self._asleep += seconds

    def reboot(self) -> None:
        """Start the machine again: the time since boot begins anew. What sleeps here goes on sleeping."""
        self._boots += 1
        self._asleep = -self._monotonic

    def _move_to(self, monotonic: float) -> None:
        self._wall += monotonic - self._monotonic
        self._monotonic = monotonic

    async def _let_run(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
