"""The daemon: one crew at work under the settings of now, a control socket, and a change of crew at each reload.

A reload opens the new settings over the same lock and ledger. Only when that went well is the old crew relieved: it
claims nothing more, ends what it holds under the settings with which that was claimed, and closes what it had open.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from memoryd import logs
from memoryd.clock import Clock
from memoryd.config import Settings
from memoryd.daemon import control_socket
from memoryd.daemon.crew import Crew
from memoryd.daemon.duty import Duty, Trouble
from memoryd.daemon.own_log import OwnLog
from memoryd.daemon.pulse import Pulse
from memoryd.daemon.vitals import Bounds
from memoryd.daemon.wakeup import Wakeup, first_of
from memoryd.errors import Exhausted, LeaseLost, LedgerCorrupt, MemorydError
from memoryd.pipeline.context import Context
from memoryd.pipeline.rescan import distrust

log = logs.get()

REFUSED = "settings_refused"
EXHAUSTED_SECONDS = 600.0
"""What jobs in hand may still take when a bound was passed: longer, and the system would end them in the middle."""
MOST_NAMED = 20
"""Settings that the log names as changed."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Who started the daemon and listens to it: the address of its socket, and how often it wants to hear something."""

    address: str | None = None
    watchdog_seconds: float | None = None


class Supervisor:
    """Runs one daemon until it is told to stop. `furnish` opens a context by the settings as they are at that time."""

    def __init__(
        self,
        furnish: Callable[[], AbstractAsyncContextManager[Context]],
        clock: Clock,
        *,
        listener: Listener | None = None,
        own_log: OwnLog | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        listener = listener or Listener()
        self._furnish = furnish
        self._clock = clock
        self._duty = Duty(listener.address)
        self._pulse = Pulse(
            self._duty,
            clock,
            self._doing,
            watchdog_seconds=listener.watchdog_seconds,
            own_log=own_log,
            bounds=bounds,
        )
        self._crew: Crew | None = None
        self._reload_asked = Wakeup()

    def stop(self) -> None:
        """Begin to stop: nothing new is claimed, jobs in flight get the grace period. Twice is harmless."""
        self._duty.stopping.set()
        if self._crew is not None:
            self._crew.relieve()

    def reload(self) -> None:
        """Ask for the settings to be read again."""
        self._reload_asked.set()

    async def run(self) -> None:
        """Run until `stop`. Raises LeaseLost when the lock went to somebody else, StorageError without a socket.

        Raises LedgerCorrupt when the ledger is found damaged: whoever opened it sets it aside; Exhausted when it has
        passed a bound and should be started anew; and what `furnish` raises when it is asked first.
        """
        try:
            async with asyncio.TaskGroup() as group:
                await self._run(group)
        except BaseExceptionGroup as several:
            raise _first(several) from None
        log.info("daemon.stopped", reason=self._duty.why_it_stopped)
        if self._duty.lost is not None:
            raise self._duty.lost
        if self._duty.exhausted is not None:
            raise Exhausted(self._duty.exhausted, remedy="it has to be started anew; a service manager does so")

    async def _run(self, group: asyncio.TaskGroup) -> None:
        crews: set[asyncio.Task[None]] = set()
        pulse = group.create_task(self._pulse.run(), name="pulse")
        try:
            self._crew = crew = await self._engage(group, crews)
            context = crew.context
            async with control_socket.serve(context.home.socket, self._answer):
                self._duty.ready = True
                self._duty.tell("READY=1", f"STATUS={self._doing()}")
                log.info("daemon.started", agents=sorted(context.agents), provider=context.extract.provider)
                reloading = group.create_task(self._reload_when_asked(group, crews), name="reload")
                await first_of(self._duty.stopping.wait(), self._duty.exhaustion.wait())
                reloading.cancel()
                await asyncio.wait({reloading})
                await self._leave(crews)
        finally:
            pulse.cancel()

    async def _leave(self, crews: set[asyncio.Task[None]]) -> None:
        """Let everybody go: when stopping within the grace period, when exhausted once what is in hand has ended."""
        self._current.relieve()
        if not self._duty.stopping.is_set():
            self._duty.tell("STATUS=ending its jobs, to be started anew")
            ended = asyncio.gather(*crews)
            await first_of(self._duty.stopping.wait(), self._clock.sleep(EXHAUSTED_SECONDS), asyncio.shield(ended))
            self._duty.stopping.set()
        self._duty.tell("STOPPING=1", "STATUS=stopping")
        await asyncio.gather(*crews)

    def _doing(self) -> str:
        return self._crew.doing() if self._crew is not None else "starting"

    async def _engage(self, group: asyncio.TaskGroup, crews: set[asyncio.Task[None]]) -> Crew:
        """Open the settings of now, and put a crew to work by them. Raises what opening them raises."""
        arrived: asyncio.Future[Crew] = asyncio.get_running_loop().create_future()
        task = group.create_task(self._employ(arrived), name="crew")
        crews.add(task)
        task.add_done_callback(crews.discard)
        try:
            return await arrived
        except asyncio.CancelledError:
            task.cancel()
            raise

    async def _employ(self, arrived: asyncio.Future[Crew]) -> None:
        """Keep what a crew needs open for as long as it works."""
        try:
            async with self._furnish() as context:
                crew = Crew(context, self._duty)
                if not arrived.cancelled():
                    arrived.set_result(crew)
                await crew.work()
        except Exception as error:
            if arrived.done():
                raise
            arrived.set_exception(error)
        else:
            self._left(crew)

    async def _reload_when_asked(self, group: asyncio.TaskGroup, crews: set[asyncio.Task[None]]) -> None:
        while True:
            await self._reload_asked.wait(self._clock)
            self._duty.tell("RELOADING=1", f"MONOTONIC_USEC={int(self._clock.monotonic() * 1_000_000)}")
            try:
                await self._reload(group, crews)
            except (LeaseLost, LedgerCorrupt) as error:
                log.error("settings.refused", error=str(error))
                self._duty.give_up(error)
                return
            except MemorydError as error:
                log.error("settings.refused", error=str(error))
                self._refuse(error.message, error.remedy)
            except Exception as error:
                log.exception("service.crashed", service="reload", error_class=type(error).__name__, retry_in=None)
                self._refuse(f"a fault in memoryd ({type(error).__name__})", "its log has the place")
            self._duty.tell("READY=1", f"STATUS={self._doing()}")

    async def _reload(self, group: asyncio.TaskGroup, crews: set[asyncio.Task[None]]) -> None:
        """Put a new crew in the place of the old one, which leaves. Raises what opening the new settings raises."""
        old = self._current
        self._crew = new = await self._engage(group, crews)
        self._duty.troubles.pop(REFUSED, None)
        self._duty.leaving.add(old)
        old.relieve()
        changed = changed_keys(old.context.settings, new.context.settings)
        log.info("settings.reloaded", changed=changed[:MOST_NAMED], count=len(changed), held=len(new.context.held))
        if old.context.redactor.fingerprint != new.context.redactor.fingerprint:
            await distrust(new.context)

    def _left(self, crew: Crew) -> None:
        """Look after what a crew wrote last that has left: other rules may call a secret what its own let pass."""
        self._duty.leaving.discard(crew)
        self._current.look_after_soon()

    def _refuse(self, message: str, remedy: str) -> None:
        told = f"memoryd goes on with its old settings, since the new ones were refused: {message}"
        self._duty.report(Trouble(REFUSED, "error", told, f"{remedy or 'correct them'}; then reload again"))

    @property
    def _current(self) -> Crew:
        assert self._crew is not None, "nothing is asked of a daemon before its first crew works"
        return self._crew

    async def _answer(self, request: control_socket.Request, tell: control_socket.Tell) -> dict[str, object]:
        return await self._current.answer(request, tell)


def changed_keys(old: Settings, new: Settings) -> list[str]:
    """Name the settings that differ, never their values."""
    before, after = _flat(old.model_dump(mode="json")), _flat(new.model_dump(mode="json"))
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


def _flat(table: Mapping[str, object], above: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in table.items():
        key = f"{above}{name}"
        flat |= _flat(value, f"{key}.") if isinstance(value, dict) else {key: value}
    return flat


def _first(several: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = several
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
