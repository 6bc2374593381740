"""`memoryd status`: whether it runs, what it does and why, what waits until when, what it spent, what is wrong."""

import argparse
import asyncio
import math
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from memoryd import config
from memoryd.clock import Clock, SystemClock
from memoryd.config import Settings
from memoryd.control.console import moment, print_json
from memoryd.control.exposition import exposition
from memoryd.control.overview import Picture, look
from memoryd.control.status_told import lines, screen
from memoryd.control.terminal import drawn_on
from memoryd.daemon import lock
from memoryd.daemon.house import DAEMON
from memoryd.errors import ConfigError, UsageError
from memoryd.workspace.layout import Home

Show = Callable[[Picture], None]
SHORTEST_SECONDS: Final = 0.1


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the options of `status`."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--prometheus", action="store_true", help="print metrics in Prometheus' text format")
    parser.add_argument("--watch", action="store_true", help="go on telling it until ^C; on a terminal in place")
    parser.add_argument(
        "--every", metavar="SECONDS", type=float, default=2.0, help="with --watch: how often to look (default 2)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the status. Exit 1 when health is degraded; a watch ends with 0 at ^C."""
    if not (math.isfinite(args.every) and args.every >= SHORTEST_SECONDS):
        raise UsageError(f"--every {args.every:g} is no interval", remedy=f"give at least {SHORTEST_SECONDS:g} seconds")
    environ, clock = config.environ(), SystemClock()
    settings = _settings(args.home, environ)

    async def looked() -> Picture:
        return await look(settings, environ, clock)

    if not args.watch:
        picture = asyncio.run(looked())
        _printer(args)(picture)
        return 1 if is_degraded(picture.report) else 0
    try:
        with _showing(args) as show:
            asyncio.run(watch(looked, show, clock, every=args.every))
    except KeyboardInterrupt:
        return 0
    return 0


def _settings(home: Path | None, environ: Mapping[str, str]) -> Settings:
    """Read the settings. Where they are wrong, say also what a daemon does that read them when they were right."""
    try:
        return config.load(home, environ=environ)
    except ConfigError as error:
        who = lock.holder(Home((home or config.default_home(environ)).absolute()).lock_file)
        if who is None or who.role != DAEMON:
            raise
        runs_on = f"; memoryd (pid {who.pid}) goes on with its old settings meanwhile"
        raise ConfigError(error.message, remedy=f"{error.remedy}{runs_on}") from error


def is_degraded(report: Mapping[str, Any]) -> bool:
    """Tell whether something needs a look."""
    return any(item["severity"] != "info" for item in report["health"])


async def watch(looked: Callable[[], Awaitable[Picture]], show: Show, clock: Clock, *, every: float) -> None:
    """Look and show, again and again, until cancelled."""
    while True:
        show(await looked())
        await clock.sleep(every)


@contextmanager
def _showing(args: argparse.Namespace) -> Iterator[Show]:
    """Give what shows one look after the other: in place on a terminal, else block by block."""
    if not sys.stdout.isatty() or args.json or args.prometheus:
        told = _printer(args)

        def block(picture: Picture) -> None:
            if not (args.json or args.prometheus):
                print(f"--- {moment(picture.now)}")
            told(picture)
            sys.stdout.flush()

        yield block
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(file=drawn_on()), screen=True, auto_refresh=False) as live:
        yield lambda picture: live.update(screen(picture), refresh=True)


def _printer(args: argparse.Namespace) -> Show:
    if args.json:
        return lambda picture: print_json(picture.report)
    if args.prometheus:
        return lambda picture: print(exposition(picture.report), end="")
    if not sys.stdout.isatty():
        return lambda picture: print("\n".join(lines(picture)))
    from rich.console import Console

    return lambda picture: Console(file=drawn_on()).print(screen(picture))
