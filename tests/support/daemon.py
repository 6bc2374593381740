"""A supervisor that runs in this process, on a clock of the test's own, and what it logs meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memoryd.config import Settings
from memoryd.daemon import control_socket
from memoryd.daemon.ground import Ground, open_ground
from memoryd.daemon.house import furnish
from memoryd.daemon.supervisor import Listener, Supervisor
from memoryd.daemon.vitals import Bounds
from memoryd.ledger import jobs
from memoryd.ledger.overview import JobRow
from memoryd.ledger.states import JobKind
from memoryd.llm.question import Answer, Question
from memoryd.pipeline.context import Client, Context, StageModel
from tests.support.clock import FakeClock
from tests.support.house import PATH_ONLY, a_house, settings_in
from tests.support.in_process_model import good_model
from tests.support.log_lines import LogLines

THREAD = "0194f5a6-89ab-7cde-8123-456789abcdef"
OF_THE_TESTS = Bounds(soft_bytes=1 << 40, hard_bytes=1 << 41)
"""A process that has run thousands of tests has more memory than a daemon may have."""
PATIENCE_SECONDS = 30


@dataclass
class Daemon:
    """A supervisor that runs in this process."""

    context: Context
    supervisor: Supervisor
    task: asyncio.Task[None]
    log: LogLines
    clock: FakeClock

    async def logged(self, event: str, count: int = 1, **fields: object) -> list[dict[str, Any]]:
        """Wait until so many events with these fields were logged."""

        def found() -> list[dict[str, Any]]:
            return [line for line in self.log.events(event) if fields.items() <= line.items()]

        await self.until(lambda: len(found()) >= count)
        return found()

    async def until(self, holds: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not holds():
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(self.log.text) from None

    async def ask(self, **request: object) -> tuple[dict[str, object], list[dict[str, object]]]:
        steps: list[dict[str, object]] = []
        return await control_socket.ask(self.context.home.socket, request, steps.append), steps

    async def job(self, kind: JobKind = JobKind.STAGE1, key: str = THREAD) -> JobRow:
        detail = await self.context.ledger.read(jobs.show, kind, key)
        assert detail is not None
        return detail.job

    async def pass_time(self, seconds: float) -> None:
        """Let time pass once whoever has just said that it waits has begun to."""
        for _ in range(10):
            await asyncio.sleep(0)
        await self.clock.advance(seconds)

    async def logged_in_time(self, event: str) -> None:
        """Wait for an event while time goes on, whenever a pause began; it stands still for whoever holds a job."""

        async def pass_on() -> None:
            while not self.log.events(event):
                if not self.context.held:
                    await self.clock.advance(1)
                await asyncio.sleep(0.01)

        try:
            await asyncio.wait_for(pass_on(), PATIENCE_SECONDS)
        except TimeoutError:
            raise AssertionError(self.log.text) from None

    async def stop(self) -> None:
        self.supervisor.stop()
        self.supervisor.stop()
        await self.task


@asynccontextmanager
async def a_daemon(
    folder: Path,
    clock: FakeClock,
    client: Client | None = None,
    *,
    change: Callable[[Context], Context] = lambda context: context,
    notify: str | None = None,
    bounds: Bounds = OF_THE_TESTS,
    **settings: object,
) -> AsyncIterator[Daemon]:
    log = LogLines()
    changes: dict[str, object] = {"limits__backfill": "recent", "discover__scan_interval": "1s"}
    given = settings_in(folder, **(changes | settings))
    async with a_house(given, clock, client=client) as opened:
        context = change(opened)
        supervisor = Supervisor(lambda: nullcontext(context), clock, listener=Listener(notify), bounds=bounds)
        daemon = Daemon(context, supervisor, asyncio.create_task(supervisor.run()), log, clock)
        try:
            await daemon.logged("daemon.started")
            yield daemon
        finally:
            if not daemon.task.done():
                daemon.task.cancel()
            await asyncio.gather(daemon.task, return_exceptions=True)


class Hanging:
    """A model that answers only when it is told to; the first few questions at once."""

    def __init__(self, first_answers: int = 0) -> None:
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.questions: list[Question] = []
        self._first_answers = first_answers

    async def ask(self, question: Question, purpose: object) -> Answer:
        self.questions.append(question)
        if len(self.questions) > self._first_answers:
            self.asked.set()
            await self.may_answer.wait()
        return good_model(question)


class Written:
    """Settings as a person writes them: each reload reads the `next` ones, or meets the error that they are."""

    def __init__(self, folder: Path, client: Client, **settings: object) -> None:
        self._folder = folder
        self._client = client
        self._base = {"limits__backfill": "recent", "discover__scan_interval": "1s", **settings}
        self.next: Settings | Exception = settings_in(folder, **self._base)
        self.can_be_read = asyncio.Event()
        self.can_be_read.set()
        self.closed: list[str] = []
        """The models of the contexts that were closed, in order."""

    def write(self, **settings: object) -> None:
        self.next = settings_in(self._folder, **(self._base | settings))

    @asynccontextmanager
    async def furnish(self, ground: Ground) -> AsyncIterator[Context]:
        await self.can_be_read.wait()
        if isinstance(self.next, Exception):
            raise self.next
        settings = self.next
        async with furnish(ground, settings) as context:
            model = StageModel("scripted", settings.extract.model or "model-1", None, self._client, None)
            yield replace(context, extract=model, consolidate=model)
        self.closed.append(model.model)


@asynccontextmanager
async def a_reloading_daemon(
    written: Written, folder: Path, clock: FakeClock, notify: str | None = None
) -> AsyncIterator[Daemon]:
    """Run a daemon whose settings can change while it runs."""
    log = LogLines()
    async with open_ground(folder / "home", clock=clock, environ=PATH_ONLY, role="test") as ground:
        opened: list[Context] = []

        @asynccontextmanager
        async def furnish_next() -> AsyncIterator[Context]:
            async with written.furnish(ground) as context:
                opened.append(context)
                yield context

        supervisor = Supervisor(furnish_next, clock, listener=Listener(notify), bounds=OF_THE_TESTS)
        task = asyncio.create_task(supervisor.run())
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not (opened and log.events("daemon.started")):
                    await asyncio.sleep(0.01)
            yield Daemon(opened[0], supervisor, task, log, clock)
        finally:
            if not task.done():
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)
