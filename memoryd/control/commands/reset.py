"""`memoryd reset`: an empty memory, which learns only from what comes after it, or everything anew."""

import argparse
import asyncio
import sys

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.console import print_json, start_logging
from memoryd.daemon import control_socket
from memoryd.daemon.house import daemon_holds, open_house
from memoryd.errors import LedgerBusy, UsageError
from memoryd.pipeline.forget import reset
from memoryd.workspace.layout import Home


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the person's consent, and what is to come afterwards."""
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--relearn", action="store_true", help="extract everything anew, instead of only what comes")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Ask, reset, and say what that means."""
    settings = config.load(args.home, environ=config.environ())
    if not args.yes and not _agrees(settings):
        raise UsageError("nothing was reset", remedy="`memoryd reset --yes` does not ask")
    start_logging(settings, beside_bars=True)
    asyncio.run(_reset(settings, relearn=args.relearn))
    if args.json:
        print_json({"reset": True, "relearn": args.relearn})
        return 0
    print("the memory is empty; its history, the backups and your notes are gone; sessions and their modes are kept")
    print("every session is extracted anew" if args.relearn else "only what is recorded from now on is learned")
    return 0


def _agrees(settings: Settings) -> bool:
    """Ask a person on a terminal, and nobody else."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    print(f"Everything in {Home(settings.home).memories} goes: the memory, its history, skills, notes, and your edits.")
    print("So do the outputs in the ledger and its backups. There is no way back. Reset? [y/N]: ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


async def _reset(settings: Settings, *, relearn: bool) -> None:
    """Reset here, or ask the daemon that holds the lock to."""
    home = Home(settings.home)
    try:
        async with open_house(settings, clock=SystemClock(), environ=config.environ(), role="reset") as context:
            await reset(context, relearn=relearn)
    except LedgerBusy:
        if not daemon_holds(home):
            raise
        await control_socket.ask(home.socket, {"do": "reset", "relearn": relearn}, lambda _step: None)
