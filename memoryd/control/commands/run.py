"""`memoryd run`: the daemon in the foreground; what systemd and launchd start."""

import argparse
import asyncio
import signal
from contextlib import suppress

from memoryd import config, logs
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.console import start_logging
from memoryd.daemon import house, lock
from memoryd.daemon.house import DAEMON, open_house
from memoryd.daemon.notify import notify
from memoryd.daemon.supervisor import DISK_PAUSE_SECONDS, Supervisor
from memoryd.daemon.wakeup import within
from memoryd.errors import DiskFull, LedgerBusy, LedgerCorrupt
from memoryd.workspace.layout import Home

log = logs.get()

WAIT_SECONDS = 5.0
MOST_REPLACEMENTS = 3
"""A ledger that is damaged again and again lies on a disk that cannot be trusted: then a person should look."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the options of `run`."""
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], help="overrides log.level")
    parser.add_argument("--log-format", choices=["auto", "json", "console"], help="overrides log.format")


def run(args: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT; exit 0."""
    overrides = {
        key: value for key, value in {"log.level": args.log_level, "log.format": args.log_format}.items() if value
    }
    settings = config.load(args.home, environ=config.environ(), overrides=overrides)
    house.check_settings(settings, config.environ())
    start_logging(settings)
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> int:
    clock, environ = SystemClock(), config.environ()
    address = config.notify_socket(environ)
    stop, replaced = _Stop(), 0
    while not stop.asked.is_set():
        try:
            async with open_house(settings, clock=clock, environ=environ, role=DAEMON) as context:
                await stop.when_asked(Supervisor(context, notify_address=address))
                return 0
        except LedgerCorrupt:
            replaced += 1
            if replaced > MOST_REPLACEMENTS:
                raise
        except DiskFull as error:
            log.warning("storage.paused", service="start", error=str(error), retry_in=DISK_PAUSE_SECONDS)
            notify(address, "READY=1", "STATUS=waiting for room on the disk")
            with suppress(TimeoutError):
                await within(clock, DISK_PAUSE_SECONDS, stop.asked.wait())
        except LedgerBusy:
            who = lock.holder(Home(settings.home).lock_file)
            if who is None:
                continue
            if address is None and who.role == DAEMON:
                print(f"memoryd is already running (pid {who.pid}); nothing to do")
                return 0
            notify(address, "READY=1", f"STATUS=waiting for pid {who.pid}")
            with suppress(TimeoutError):
                await within(clock, WAIT_SECONDS, stop.asked.wait())
    return 0


class _Stop:
    """SIGTERM, SIGINT or SIGHUP as a wish to stop: the first one drains, a second one ends at once."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self._at_once = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._ask)

    async def when_asked(self, supervisor: Supervisor) -> None:
        """Run the supervisor until it is asked to stop, and then until it has."""
        running = asyncio.create_task(supervisor.run(), name="supervisor")
        drain = asyncio.create_task(self.asked.wait(), name="drain")
        hurry = asyncio.create_task(self._at_once.wait(), name="hurry")
        try:
            await asyncio.wait({running, drain}, return_when=asyncio.FIRST_COMPLETED)
            supervisor.stop()
            await asyncio.wait({running, hurry}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (drain, hurry, running):
                task.cancel()
            await asyncio.wait({running})
        if not running.cancelled():
            running.result()

    def _ask(self) -> None:
        (self._at_once if self.asked.is_set() else self.asked).set()
