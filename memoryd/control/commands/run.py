"""`memoryd run`: the daemon in the foreground; what systemd and launchd start."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from memoryd import config, logs
from memoryd.clock import Clock, SystemClock
from memoryd.config import Settings
from memoryd.control.console import start_logging
from memoryd.daemon import house, lock
from memoryd.daemon.crew import DISK_PAUSE_SECONDS
from memoryd.daemon.ground import Ground, open_ground
from memoryd.daemon.house import DAEMON, furnish
from memoryd.daemon.notify import notify
from memoryd.daemon.own_log import OwnLog
from memoryd.daemon.starts import Starts
from memoryd.daemon.supervisor import Listener, Supervisor
from memoryd.daemon.vitals import spare_memory
from memoryd.daemon.wakeup import within
from memoryd.errors import DiskFull, LedgerBusy, LedgerCorrupt, LedgerLocked
from memoryd.pipeline.context import Context
from memoryd.workspace.layout import Home

log = logs.get()

WAIT_SECONDS = 2.0
LOCKED_SECONDS = 60.0
"""For so long a ledger that another program keeps locked is waited for; under a service manager as long as it takes."""
MOST_REPLACEMENTS = 3
"""A ledger that is damaged again and again lies on a disk that cannot be trusted: then a person should look."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the options of `run`."""
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], help="overrides log.level")
    parser.add_argument("--log-format", choices=["auto", "json", "console"], help="overrides log.format")


def run(args: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT; exit 0. Under launchd, which has no limit on starts, the sixth failure ends well."""
    spare_memory()
    environ = config.environ()
    if not config.started_by_launchd(environ):
        return asyncio.run(_run(_Configuration(args)))
    logs.configure("auto", "info")
    starts = Starts((args.home or config.default_home(environ)).absolute(), SystemClock())
    if not starts.begin():
        return 0
    code = asyncio.run(_run(_Configuration(args)))
    starts.forget()
    return code


class _Configuration:
    """The settings of a daemon: read at its start and at each reload, kept as they were when they are wrong."""

    def __init__(self, args: argparse.Namespace) -> None:
        flags = {"log.level": args.log_level, "log.format": args.log_format}
        self._overrides = {key: value for key, value in flags.items() if value}
        self._home = args.home
        self._is_read = True
        self.settings = self._read()
        start_logging(self.settings)

    @asynccontextmanager
    async def furnish(self, ground: Ground) -> AsyncIterator[Context]:
        """Open what the settings ask for; they are read anew unless they have just been. Raises ConfigError."""
        settings = self.settings if self._is_read else self._read()
        async with furnish(ground, settings) as context:
            self.settings, self._is_read = settings, False
            start_logging(settings)
            yield context

    def _read(self) -> Settings:
        environ = config.environ()
        settings = config.load(self._home, environ=environ, overrides=self._overrides)
        house.check_settings(settings, environ)
        return settings


async def _run(configuration: _Configuration) -> int:
    clock, environ, home = SystemClock(), config.environ(), configuration.settings.home
    address = config.notify_socket(environ)
    listener = Listener(address, config.watchdog_seconds(environ, os.getpid()))
    signals, replaced = _Signals(), 0
    waiting = Waiting(home, clock, address, signals.stop)
    while not signals.stop.is_set():
        try:
            async with open_ground(home, clock=clock, environ=environ, role=DAEMON) as ground:
                waiting.end()
                furnish_now, own_log = partial(configuration.furnish, ground), OwnLog.found_in(home)
                await signals.watch(Supervisor(furnish_now, clock, listener=listener, own_log=own_log))
                return 0
        except LedgerCorrupt:
            replaced += 1
            if replaced > MOST_REPLACEMENTS:
                raise
        except DiskFull as error:
            log.warning("storage.paused", service="start", error=str(error), retry_in=DISK_PAUSE_SECONDS)
            notify(address, "READY=1", "WATCHDOG=1", "STATUS=waiting for room on the disk")
            with suppress(TimeoutError):
                await within(clock, DISK_PAUSE_SECONDS, signals.stop.wait())
        except LedgerBusy as error:
            if not await waiting.for_others(error):
                return 0
    return 0


class Waiting:
    """Whoever is in the way of a start is named once, in the log and to a service manager, and waited for."""

    def __init__(self, home: Path, clock: Clock, address: str | None, stop: asyncio.Event) -> None:
        self._lock_file = Home(home).lock_file
        self._clock, self._address, self._stop = clock, address, stop
        self._named = ""
        self._locked_at: float | None = None

    async def for_others(self, error: LedgerBusy) -> bool:
        """Wait a while; False when a daemon runs already, and nobody needs another one in its place.

        Raises the error once another program has kept the ledger locked for a minute, unless a service manager waits.
        """
        if isinstance(error, LedgerLocked):
            now = self._clock.monotonic()
            self._locked_at = now if self._locked_at is None else self._locked_at
            if self._address is None and now - self._locked_at >= LOCKED_SECONDS:
                raise error
            await self._wait(error, "a program that keeps the ledger locked")
        elif (who := lock.holder(self._lock_file)) is not None:
            if self._address is None and who.role == DAEMON:
                print(f"memoryd is already running (pid {who.pid}); nothing to do")
                return False
            await self._wait(error, f"pid {who.pid}")
        return True

    def end(self) -> None:
        """Nobody is in the way any more: whoever gets there later is named and waited for like the first."""
        self._named, self._locked_at = "", None

    async def _wait(self, error: LedgerBusy, whom: str) -> None:
        if self._named != whom:
            self._named = whom
            log.warning("start.awaited", error=str(error), seconds=None)
        notify(self._address, "READY=1", "WATCHDOG=1", f"STATUS=waiting for {whom}")
        with suppress(TimeoutError):
            await within(self._clock, WAIT_SECONDS, self._stop.wait())


class _Signals:
    """SIGTERM and SIGINT as a wish to stop: the first one drains, a second one ends at once. SIGHUP reloads."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self._at_once = asyncio.Event()
        self._reload: Callable[[], None] | None = None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ask)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up, sys.stderr.isatty())

    async def watch(self, supervisor: Supervisor) -> None:
        """Run the supervisor until it is asked to stop, and then until it has."""
        self._reload = supervisor.reload
        running = asyncio.create_task(supervisor.run(), name="supervisor")
        drain = asyncio.create_task(self.stop.wait(), name="drain")
        hurry = asyncio.create_task(self._at_once.wait(), name="hurry")
        try:
            await asyncio.wait({running, drain}, return_when=asyncio.FIRST_COMPLETED)
            supervisor.stop()
            await asyncio.wait({running, hurry}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (drain, hurry, running):
                task.cancel()
            await asyncio.wait({running})
            self._reload = None
        if not running.cancelled():
            running.result()

    def _ask(self) -> None:
        (self._at_once if self.stop.is_set() else self.stop).set()

    def _hang_up(self, began_on_terminal: bool) -> None:
        """Reload; but where the terminal is gone on which this began, its person is gone as well."""
        if began_on_terminal and not sys.stderr.isatty():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # nothing more can be said
            self._ask()
        elif self._reload is not None:
            self._reload()
