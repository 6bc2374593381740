"""`memoryd run`: the daemon in the foreground; what systemd and launchd start."""

import argparse
import asyncio
import signal

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.console import start_logging
from memoryd.daemon import house, lock
from memoryd.daemon.house import DAEMON, open_house
from memoryd.daemon.notify import notify
from memoryd.daemon.supervisor import Supervisor
from memoryd.errors import LedgerBusy
from memoryd.workspace.layout import Home

WAIT_SECONDS = 5.0


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
    while True:
        try:
            async with open_house(settings, clock=clock, environ=environ, role=DAEMON) as context:
                supervisor = Supervisor(context, notify_address=address)
                task = asyncio.create_task(supervisor.run(), name="supervisor")
                _stop_on_signals(supervisor, task)
                try:
                    await task
                except asyncio.CancelledError:
                    return 0
                return 0
        except LedgerBusy:
            who = lock.holder(Home(settings.home).lock_file)
            if who is None:
                continue
            if address is None and who.role == DAEMON:
                print(f"memoryd is already running (pid {who.pid}); nothing to do")
                return 0
            notify(address, "READY=1", f"STATUS=waiting for pid {who.pid}")
            await clock.sleep(WAIT_SECONDS)


def _stop_on_signals(supervisor: Supervisor, task: asyncio.Task[None]) -> None:
    """SIGTERM, SIGINT or SIGHUP: drain; a second one: at once."""
    asked = False

    def stop() -> None:
        nonlocal asked
        if asked:
            task.cancel()
        asked = True
        supervisor.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop)
