"""The daemon: named services under one TaskGroup, woken by ticks, hints and each other, stopped by draining.

Read this file to see what runs. Each service is a short loop (`_forever`) around a `run_once` that lives elsewhere;
what is due is always read from the ledger, so a lost wake-up costs a wait and nothing else.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memoryd import logs
from memoryd.daemon import control_socket, personal
from memoryd.daemon.house import mend_clock_damage, worker_name
from memoryd.daemon.notify import notify
from memoryd.daemon.passes import PassReport, as_json, run_pass
from memoryd.daemon.probing import probe
from memoryd.daemon.progress import Step
from memoryd.daemon.recalling import keep_recall_ready
from memoryd.daemon.storage import Storage
from memoryd.daemon.ticker import JUMP_SECONDS, ClockWatch, Ticker
from memoryd.daemon.upkeep import judge_clock, look_after
from memoryd.daemon.wakeup import Wakeup
from memoryd.daemon.watcher import watch
from memoryd.daemon.worker import Worker
from memoryd.errors import DiskFull, LeaseLost, LedgerBusy, LedgerCorrupt, MemorydError
from memoryd.ledger import jobs
from memoryd.ledger.sessions import UserMode
from memoryd.ledger.states import JobKind
from memoryd.pipeline.consolidate import publish_decided
from memoryd.pipeline.context import Context
from memoryd.pipeline.discover import Discovery, choose_mode
from memoryd.pipeline.edits import notice_edits
from memoryd.pipeline.extract import extract
from memoryd.pipeline.forget import forget, reset
from memoryd.pipeline.forget_surely import consolidate_surely
from memoryd.pipeline.outcomes import DISK_FULL

log = logs.get()

DRAIN_SECONDS = 5.0
GIT_SECONDS = 2.0
"""What a publication may still take once all else was told to stop: a git that hangs must not keep the daemon alive."""
"""Grace for jobs in flight after SIGTERM; what is not done by then is released, and costs a request at most."""
LONGEST_WAIT_SECONDS = 60.0
"""A worker looks again at least this often, whatever wake-ups were lost."""
SHORTEST_WAIT_SECONDS = 0.05
MAINTENANCE_SECONDS = 3_600.0
WATCHDOG_SECONDS = 15.0
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 300.0
DISK_PAUSE_SECONDS = 30.0
RESULT_PATIENCE_SECONDS = 3_600.0
"""A result that the disk refuses is kept in memory this long: it is paid for."""


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


class Supervisor:
    """Runs the services of one daemon until it is told to stop."""

    def __init__(self, context: Context, *, notify_address: str | None = None) -> None:
        self._context = context
        self._notify_address = notify_address
        self._wakeups = Wakeups(extract=[Wakeup() for _ in range(context.settings.extract.concurrency)])
        self._discovery = Discovery(context)
        self._stopping = asyncio.Event()
        self._storage = Storage(context)
        self._lost: LeaseLost | LedgerCorrupt | None = None
        self._passing = asyncio.Lock()
        self._settled = Wakeup()
        self._ending: asyncio.TimerHandle | None = None

    def stop(self) -> None:
        """Begin to stop: nothing new is claimed, jobs in flight get the grace period. Twice is harmless."""
        self._stopping.set()
        self._wakeups.all()

    async def run(self) -> None:
        """Run until `stop`. Raises LeaseLost when the lock went to somebody else, StorageError without a socket.

        Raises LedgerCorrupt when the ledger is found damaged: whoever opened it sets it aside.
        """
        context = self._context
        ticker = Ticker(
            {
                "scan": (context.settings.discover.scan_interval, self._wakeups.scan.set),
                "maintain": (MAINTENANCE_SECONDS, self._wakeups.maintain.set),
            }
        )
        ticker.start(context.clock)
        try:
            async with control_socket.serve(context.home.socket, self._answer), asyncio.TaskGroup() as group:
                services = self._start_services(group, ticker)
                notify(self._notify_address, "READY=1", "STATUS=watching for idle sessions")
                log.info("daemon.started", agents=sorted(context.agents), provider=context.extract.provider)
                await self._stopping.wait()
                notify(self._notify_address, "STOPPING=1")
                await self._drain(services)
        finally:
            ticker.stop()
            if self._ending is not None:
                self._ending.cancel()
        log.info("daemon.stopped")
        if self._lost is not None:
            raise self._lost

    def _start_services(self, group: asyncio.TaskGroup, ticker: Ticker) -> list[asyncio.Task[None]]:
        context, wakeups = self._context, self._wakeups
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
            "pulse": self._beat,
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
        pause = FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            try:
                await loop()
                return
            except (LeaseLost, LedgerCorrupt) as error:
                log.error("service.failed", service=name, error=str(error), retry_in=None)
                self._lost = error
                self.stop()
            except (DiskFull, LedgerBusy) as error:
                self._storage.refuse(str(error))
                log.warning("storage.paused", service=name, error=str(error), retry_in=DISK_PAUSE_SECONDS)
                await self._pause(DISK_PAUSE_SECONDS)
                await self._storage.look_again()
            except MemorydError as error:
                log.error("service.failed", service=name, error=str(error), retry_in=pause)
                await self._pause(pause)
            except Exception as error:
                log.exception("service.crashed", service=name, error_class=type(error).__name__, retry_in=pause)
                await self._pause(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _discover(self) -> None:
        while not self._stopping.is_set():
            report = await self._discovery.run_once()
            log.debug("scan.completed", seen=report.seen, opened=report.opened, enqueued=report.enqueued)
            if report.enqueued or report.edited:
                self._wakeups.work()
            await self._wakeups.scan.wait(self._context.clock)

    async def _consolidate(self, worker: Worker) -> None:
        """Put in place what was decided before a crash, or before an error ended this service; then work."""
        await publish_decided(self._context)
        await self._work(worker, JobKind.CONSOLIDATE, self._wakeups.consolidate)

    def _goes_on(self) -> bool:
        """Tell whether jobs are taken now; a pass that was asked for reports what it did, so that they are its own."""
        return not self._stopping.is_set() and self._storage.reason is None and not self._passing.locked()

    async def _work(self, worker: Worker, kind: JobKind, wakeup: Wakeup) -> None:
        try:
            await self._work_on(worker, kind, wakeup)
        finally:
            await worker.let_go()

    async def _work_on(self, worker: Worker, kind: JobKind, wakeup: Wakeup) -> None:
        while not self._stopping.is_set():
            self._context.still_ours()
            if not self._goes_on():
                await worker.let_go()
                self._settled.set()
            if self._storage.reason is not None:
                await self._pause(DISK_PAUSE_SECONDS)
                await self._storage.look_again()
                continue
            done = await worker.run_once() if self._goes_on() else None
            if done is None:
                await wakeup.wait(self._context.clock, await self._until_next(kind))
            else:
                if done.reason == DISK_FULL:
                    self._storage.refuse(done.message)
                self._settled.set()
                self._wakeups.work()

    async def _until_next(self, kind: JobKind) -> float:
        """Seconds until a job of this kind may become claimable by itself."""
        ready_at = await self._context.ledger.read(jobs.next_ready_at, kind=kind)
        if ready_at is None:
            return LONGEST_WAIT_SECONDS
        return min(max(ready_at - self._context.clock.now(), SHORTEST_WAIT_SECONDS), LONGEST_WAIT_SECONDS)

    async def _maintain(self) -> None:
        while not self._stopping.is_set():
            await look_after(self._context)
            await self._wakeups.maintain.wait(self._context.clock)

    async def _beat(self) -> None:
        """Tell systemd that the loop turns."""
        while not self._stopping.is_set():
            notify(self._notify_address, "WATCHDOG=1")
            await self._pause(WATCHDOG_SECONDS)

    async def _watch_clock(self, ticker: Ticker, clocks: ClockWatch) -> None:
        """Put the ticks right after a clock jump or a sleep, and stop when somebody met damage and could not say so."""
        while not self._stopping.is_set():
            if (damage := self._context.ledger.damage) is not None:
                raise LedgerCorrupt(damage)
            moved = clocks.look()
            if await self._context.look_at_providers(woken=moved is not None and moved.slept >= JUMP_SECONDS):
                self._wakeups.work()
            if moved:
                log.warning("clock.jumped", seconds=round(moved.set_by, 1), slept=round(moved.slept, 1))
                ticker.rearm(self._context.clock)
                await judge_clock(self._context)
                await mend_clock_damage(self._context)
                self._wakeups.all()
            await self._pause(WATCHDOG_SECONDS)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not past the stop."""
        stopped = asyncio.create_task(self._stopping.wait(), name="stop")
        timer = asyncio.create_task(self._context.clock.sleep(seconds), name="pause")
        try:
            await asyncio.wait({stopped, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            timer.cancel()

    async def _drain(self, services: list[asyncio.Task[None]]) -> None:
        """Let workers finish what they hold for the grace period, then cancel what is left: it is released."""
        workers = {task for task in services if task.get_name().startswith(("extract", "consolidate"))}
        for task in set(services) - workers:
            task.cancel()
        drained = asyncio.gather(*workers, return_exceptions=True)
        grace = asyncio.create_task(self._context.clock.sleep(DRAIN_SECONDS), name="grace")
        try:
            first: set[asyncio.Future[Any]] = {drained, grace}
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (grace, *workers):
                task.cancel()
            loop, repository = asyncio.get_running_loop(), self._context.repository
            self._ending = loop.call_later(GIT_SECONDS, loop.run_in_executor, None, repository.end)

    def _roots(self) -> list[Path]:
        return [home for agent in self._context.agents.values() for home in agent.homes]

    async def _answer(self, request: control_socket.Request, tell: control_socket.Tell) -> dict[str, object]:
        """Answer a command that was given while this daemon holds the lock."""
        context = self._context
        match request.get("do"):
            case "sync":
                report = await self._pass(request, tell)
                return as_json(report)
            case "health":
                return {"paused": self._storage.reason, "since": self._storage.since}
            case "probe":
                model = context.extract if request.get("stage") == "extract" else context.consolidate
                return (await probe(model, str(request.get("stage")))).as_json()
            case "retry":
                revived = await context.ledger.write(
                    jobs.retry,
                    kind=JobKind(str(request["kind"])),
                    job_key=str(request["key"]),
                    now=context.clock.now(),
                    max_attempts=context.settings.ledger.max_attempts,
                )
                await context.look_at_providers(asked=True)
                self._wakeups.work()
                return {"revived": revived}
            case word if word in personal.REQUESTS:
                async with self._passing:
                    result = await personal.answer(context, request)
                self._wakeups.all()
                return result
            case "set-mode":
                row = await choose_mode(context, str(request["thread"]), UserMode(str(request["mode"])))
                await keep_recall_ready(context)
                self._wakeups.all()
                return {"thread_id": row.thread_id}
            case "forget" | "reset" | "note":
                return await self._forget(request)
            case other:
                return {"error": f"this memoryd does not know the request {other!r}"}

    async def _forget(self, request: control_socket.Request) -> dict[str, object]:
        """Forget as asked, or look at what a new note asks for; jobs are looked at again afterwards."""
        try:
            match request.get("do"):
                case "reset":
                    await reset(self._context, relearn=bool(request.get("relearn")))
                    return {}
                case "note":
                    return {"noticed": await notice_edits(self._context)}
            named = request["threads"]
            threads = [str(name) for name in named] if isinstance(named, list) else []
            done = await forget(self._context, threads, purge=bool(request.get("purge")))
            return {"threads": list(done.threads), "removed": done.removed}
        finally:
            self._wakeups.all()

    async def _pass(self, request: control_socket.Request, tell: control_socket.Tell) -> PassReport:
        def progress(step: Step) -> None:
            tell({"stage": step.stage, "done": step.done, "total": step.total, "note": step.note})

        thread, backfill = request.get("thread"), request.get("backfill")
        try:
            async with self._passing:
                while self._context.held:
                    await self._settled.wait(self._context.clock)
                return await run_pass(
                    self._context,
                    now=bool(request.get("now")),
                    thread=str(thread) if thread else None,
                    backfill=str(backfill) if backfill else None,
                    progress=progress,
                )
        finally:
            self._wakeups.all()
