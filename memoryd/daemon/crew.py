"""The services that work by one set of settings: woken by ticks, hints and each other, ended by draining.

Read this file to see what runs. Each service is a short loop (`_forever`) around a `run_once` that lives elsewhere;
what is due is always read from the ledger, so a lost wake-up costs a wait and nothing else.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from memoryd import logs
from memoryd.daemon import control_socket
from memoryd.daemon.alarms import Alarms
from memoryd.daemon.answering import Answering
from memoryd.daemon.duty import Duty, Trouble
from memoryd.daemon.house import mend_clock_damage, worker_name
from memoryd.daemon.storage import Storage
from memoryd.daemon.ticker import JUMP_SECONDS, ClockWatch, Ticker
from memoryd.daemon.upkeep import judge_clock, look_after
from memoryd.daemon.vitals import give_memory_back
from memoryd.daemon.wakeup import Wakeup, Wakeups, first_of
from memoryd.daemon.watcher import watch
from memoryd.daemon.worker import Worker
from memoryd.errors import DiskFull, LeaseLost, LedgerBusy, LedgerCorrupt, MemorydError
from memoryd.ledger import jobs
from memoryd.ledger.states import JobKind
from memoryd.pipeline.consolidate import publish_decided
from memoryd.pipeline.context import Context
from memoryd.pipeline.discover import Discovery
from memoryd.pipeline.extract import extract
from memoryd.pipeline.forget_surely import consolidate_surely
from memoryd.pipeline.outcomes import DISK_FULL
from memoryd.pipeline.rescan import rescan

log = logs.get()

DRAIN_SECONDS = 5.0
"""Grace for jobs in flight after SIGTERM; what is not done by then is released, and costs a request at most."""
GIT_SECONDS = 2.0
"""What a publication may still take once all else was told to stop: a git that hangs must not keep the daemon alive."""
LONGEST_WAIT_SECONDS = 60.0
"""A worker looks again at least this often, whatever wake-ups were lost."""
SHORTEST_WAIT_SECONDS = 0.05
MAINTENANCE_SECONDS = 3_600.0
WATCHDOG_SECONDS = 15.0
ALARM_SECONDS = 300.0
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 300.0
RECOVERED_SECONDS = 60.0
"""A service that has run for so long after a pause works again."""
DISK_PAUSE_SECONDS = 30.0
RESULT_PATIENCE_SECONDS = 3_600.0
"""A result that the disk refuses is kept in memory this long: it is paid for."""
WORKERS = ("extract", "consolidate")
"""How the names of the services begin that hold jobs."""


class Crew:
    """Works in one context until it is relieved (by a crew with other settings) or the daemon stops."""

    def __init__(self, context: Context, duty: Duty) -> None:
        self.context = context
        self._duty = duty
        self._wakeups = Wakeups(extract=[Wakeup() for _ in range(context.settings.extract.concurrency)])
        self._discovery = Discovery(context)
        self._storage = Storage(context)
        self._answering = Answering(context, duty, self._wakeups, self._storage)
        self._requests: set[asyncio.Task[Any]] = set()
        self._leaving = asyncio.Event()
        self._ending: asyncio.TimerHandle | None = None

    def relieve(self) -> None:
        """Begin to leave: nothing new is claimed. What is in hand goes on to its end, or to that of the grace period.

        Twice is harmless.
        """
        self._leaving.set()
        self._wakeups.all()

    def doing(self) -> str:
        """Say in a few words what goes on, without a name or a word of a session."""
        held = [lease.kind for lease in self.context.held]
        stage1, consolidations = held.count(JobKind.STAGE1), held.count(JobKind.CONSOLIDATE)
        said = ["paused: the disk takes nothing"] if self._storage.reason is not None else []
        said += [f"reading {stage1} session{'' if stage1 == 1 else 's'}"] if stage1 else []
        said += ["rewriting the memory"] if consolidations else []
        is_well = not self._duty.troubles_at(self.context.clock.monotonic())
        said += [] if is_well else ["needs a look: `memoryd status`"]
        return "; ".join(said) or "watching for idle sessions"

    def look_after_soon(self) -> None:
        """Do what is done once in a while now."""
        self._wakeups.maintain.set()

    async def answer(self, request: control_socket.Request, tell: control_socket.Tell) -> dict[str, object]:
        """Answer a command; this crew stays until it has."""
        task = asyncio.current_task()
        assert task is not None, "the control socket gives each request a task of its own"
        self._requests.add(task)
        try:
            return await self._answering.answer(request, tell)
        finally:
            self._requests.discard(task)

    async def work(self) -> None:
        """Run the services until relieved, and then to the end of what they hold."""
        context = self.context
        ticker = Ticker(
            {
                "scan": (context.settings.discover.scan_interval, self._wakeups.scan.set),
                "maintain": (MAINTENANCE_SECONDS, self._wakeups.maintain.set),
            }
        )
        ticker.start(context.clock)
        try:
            async with asyncio.TaskGroup() as group:
                services = self._start_services(group, ticker)
                await self._leaving.wait()
                workers = {task for task in services if task.get_name().startswith(WORKERS)}
                for task in set(services) - workers:
                    task.cancel()
                await self._finish(workers)
                await self._drain(workers)
        finally:
            ticker.stop()
            if self._ending is not None:
                self._ending.cancel()

    def _start_services(self, group: asyncio.TaskGroup, ticker: Ticker) -> list[asyncio.Task[None]]:
        context, wakeups = self.context, self._wakeups
        name = worker_name("run")
        extractors = [
            (
                f"extract-{number}",
                Worker(
                    context,
                    kind=JobKind.STAGE1,
                    run=extract,
                    max_running=len(wakeups.extract),
                    worker_id=f"{name}-{number}",
                    patience_seconds=RESULT_PATIENCE_SECONDS,
                    goes_on=self._goes_on,
                ),
                wakeup,
            )
            for number, wakeup in enumerate(wakeups.extract)
        ]
        consolidator = Worker(
            context,
            kind=JobKind.CONSOLIDATE,
            run=consolidate_surely,
            publish=publish_decided,
            worker_id=name,
            patience_seconds=RESULT_PATIENCE_SECONDS,
        )
        loops: dict[str, Callable[[], Awaitable[None]]] = {
            "discover": self._discover,
            "maintain": self._maintain,
            "alarms": self._look_for_standstills,
            "watchdog": lambda: self._watch_clock(ticker, ClockWatch(context.clock)),
            "watcher": lambda: watch(self._roots, wakeups.scan.set, context.clock, hint=self._discovery.hint),
            "consolidate": lambda: self._consolidate(consolidator),
        }
        for label, worker, wakeup in extractors:
            loops[label] = self._worker_loop(worker, wakeup)
        return [group.create_task(self._forever(label, loop), name=label) for label, loop in loops.items()]

    def _worker_loop(self, worker: Worker, wakeup: Wakeup) -> Callable[[], Awaitable[None]]:
        return lambda: self._work(worker, JobKind.STAGE1, wakeup)

    async def _forever(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        """Keep one service going: what it cannot handle is logged, and it starts again after a growing pause."""
        pause, clock = 0.0, self.context.clock
        while not self._leaving.is_set():
            began = clock.monotonic()
            try:
                await loop()
                return
            except (LeaseLost, LedgerCorrupt) as error:
                log.error("service.failed", service=name, error=str(error), retry_in=None)
                self._duty.give_up(error)
                self.relieve()
            except (DiskFull, LedgerBusy) as error:
                self._storage.refuse(str(error))
                log.warning("storage.paused", service=name, error=str(error), retry_in=DISK_PAUSE_SECONDS)
                await self._pause(DISK_PAUSE_SECONDS)
                await self._storage.look_again()
            except MemorydError as error:
                pause = next_pause(pause, clock.monotonic() - began)
                log.error("service.failed", service=name, error=str(error), retry_in=pause)
                await self._recover(name, pause, error.message)
            except Exception as error:
                pause = next_pause(pause, clock.monotonic() - began)
                log.exception("service.crashed", service=name, error_class=type(error).__name__, retry_in=pause)
                await self._recover(name, pause, f"a fault in memoryd ({type(error).__name__})")

    async def _recover(self, name: str, pause: float, error: str) -> None:
        """Wait before a service starts again; health is degraded until it has run for a while."""
        until = self.context.clock.monotonic() + pause + RECOVERED_SECONDS
        message = f"a part of memoryd ({name}) fails and is started again: {error}"
        self._duty.report(Trouble(f"{name}_failing", "warning", message, "its log says more", until))
        await self._pause(pause)

    async def _discover(self) -> None:
        while not self._leaving.is_set():
            report = await self._discovery.run_once()
            log.debug("scan.completed", seen=report.seen, opened=report.opened, enqueued=report.enqueued)
            if report.enqueued or report.edited:
                self._wakeups.work()
            await self._wakeups.scan.wait(self.context.clock)

    async def _consolidate(self, worker: Worker) -> None:
        """Put in place what was decided before a crash, or before an error ended this service; then work."""
        await publish_decided(self.context)
        await self._work(worker, JobKind.CONSOLIDATE, self._wakeups.consolidate)

    def _goes_on(self) -> bool:
        """Tell whether jobs are taken now; a pass that was asked for reports what it did, so that they are its own."""
        return not self._leaving.is_set() and self._storage.reason is None and not self._duty.passing.locked()

    async def _work(self, worker: Worker, kind: JobKind, wakeup: Wakeup) -> None:
        try:
            await self._work_on(worker, kind, wakeup)
        finally:
            await worker.let_go()

    async def _work_on(self, worker: Worker, kind: JobKind, wakeup: Wakeup) -> None:
        while not self._leaving.is_set():
            self.context.still_ours()
            if not self._goes_on():
                await worker.let_go()
                self._duty.settled.set()
            if self._storage.reason is not None:
                await self._pause(DISK_PAUSE_SECONDS)
                await self._storage.look_again()
                continue
            done = await worker.run_once() if self._goes_on() else None
            if done is None:
                await wakeup.wait(self.context.clock, await self._until_next(kind))
            else:
                if done.reason == DISK_FULL:
                    self._storage.refuse(done.message)
                self._duty.settled.set()
                self._wakeups.work()
                if kind is JobKind.CONSOLIDATE:
                    give_memory_back()

    async def _until_next(self, kind: JobKind) -> float:
        """Seconds until a job of this kind may become claimable by itself."""
        ready_at = await self.context.ledger.read(jobs.next_ready_at, kind=kind)
        if ready_at is None:
            return LONGEST_WAIT_SECONDS
        return min(max(ready_at - self.context.clock.now(), SHORTEST_WAIT_SECONDS), LONGEST_WAIT_SECONDS)

    async def _maintain(self) -> None:
        while not self._leaving.is_set():
            if not self._duty.leaving:  # whoever leaves may still write what other rules have redacted
                await rescan(self.context)
            await look_after(self.context)
            await self._wakeups.maintain.wait(self.context.clock)

    async def _look_for_standstills(self) -> None:
        alarms = Alarms(self._duty, self.context.ledger, self.context.clock, self.context.settings)
        while not self._leaving.is_set():
            await alarms.look()
            await self._pause(ALARM_SECONDS)

    async def _watch_clock(self, ticker: Ticker, clocks: ClockWatch) -> None:
        """Put the ticks right after a clock jump or a sleep, and stop when somebody met damage and could not say so."""
        while not self._leaving.is_set():
            if (damage := self.context.ledger.damage) is not None:
                raise LedgerCorrupt(damage)
            moved = clocks.look()
            if await self.context.look_at_providers(woken=moved is not None and moved.slept >= JUMP_SECONDS):
                self._wakeups.work()
            if moved:
                log.warning("clock.jumped", seconds=round(moved.set_by, 1), slept=round(moved.slept, 1))
                ticker.rearm(self.context.clock)
                await judge_clock(self.context)
                await mend_clock_damage(self.context)
                self._wakeups.all()
            await self._pause(WATCHDOG_SECONDS)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not past the time to leave."""
        await first_of(self._leaving.wait(), self.context.clock.sleep(seconds))

    async def _finish(self, workers: set[asyncio.Task[None]]) -> None:
        """Let what is in hand go on to its end under its own settings, unless the daemon stops meanwhile."""
        stopped = asyncio.create_task(self._duty.stopping.wait(), name="stop")
        try:
            while not stopped.done():
                in_hand: set[asyncio.Task[Any]] = {task for task in (*workers, *self._requests) if not task.done()}
                if not in_hand:
                    return
                await asyncio.wait({stopped, *in_hand}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()

    async def _drain(self, workers: set[asyncio.Task[None]]) -> None:
        """Let workers finish what they hold for the grace period, then cancel what is left: it is released."""
        drained = asyncio.gather(*workers, return_exceptions=True)
        grace = asyncio.create_task(self.context.clock.sleep(DRAIN_SECONDS), name="grace")
        try:
            first: set[asyncio.Future[Any]] = {drained, grace}
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        finally:
            requests = list(self._requests)
            for task in (grace, *workers, *requests):
                task.cancel()
            loop, repository = asyncio.get_running_loop(), self.context.repository
            self._ending = loop.call_later(GIT_SECONDS, loop.run_in_executor, None, repository.end)
        await asyncio.gather(*requests, return_exceptions=True)

    def _roots(self) -> list[Path]:
        return [home for agent in self.context.agents.values() for home in agent.homes]


def next_pause(last: float, ran: float) -> float:
    """Return how long (seconds) a service that ran for `ran` rests: twice the last pause, unless it had recovered."""
    if not last or ran >= LONGEST_PAUSE_SECONDS:
        return FIRST_PAUSE_SECONDS
    return min(2 * last, LONGEST_PAUSE_SECONDS)
