"""`memoryd forget`: sessions by their ids, or a text by a note that asks for it."""

import argparse
import asyncio
from typing import Any, Final

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.console import plural, print_json, start_logging
from memoryd.control.noting import leave_note
from memoryd.daemon import control_socket
from memoryd.daemon.house import daemon_holds, open_house
from memoryd.errors import LedgerBusy, UsageError
from memoryd.pipeline.forget import forget
from memoryd.workspace.layout import Home
from memoryd.workspace.notes import request_to_forget

SHOWN: Final = 20
WIDTH: Final = 120


def configure(parser: argparse.ArgumentParser) -> None:
    """Take what is to be forgotten, and how thoroughly."""
    parser.add_argument("thread", nargs="*", metavar="THREAD", help="thread ids, or unique beginnings of some")
    parser.add_argument("--text", metavar="TEXT", help="leave a note that asks to forget this")
    parser.add_argument(
        "--purge",
        action="store_true",
        help="leave no byte of it: the history begins anew, copies of the ledger are removed",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Forget, and say what that took out."""
    settings = config.load(args.home, environ=config.environ())
    if bool(args.thread) == (args.text is not None):
        raise UsageError("`memoryd forget` needs sessions, or --text TEXT", remedy="`memoryd sessions` lists them")
    if args.text is not None:
        return _leave_request(settings, args)
    start_logging(settings, beside_bars=True)
    done = asyncio.run(_forget(settings, args.thread, purge=args.purge))
    if args.json:
        print_json(done)
    else:
        print("\n".join(_told(done)))
    return 0


def _leave_request(settings: Settings, args: argparse.Namespace) -> int:
    if args.purge:
        raise UsageError("--purge goes with sessions, not with --text", remedy="name the session that says it")
    path = leave_note(settings, request_to_forget(args.text))
    if args.json:
        print_json({"path": str(path)})
    else:
        print(f"{path}\nthe next consolidation forgets it; what a session teaches again is forgotten again")
    return 0


def _told(done: dict[str, Any]) -> list[str]:
    number, removed = plural(len(done["threads"]), "session"), plural(done["removed"], "statement")
    lines = [f"{number} forgotten; {removed} left the memory", *_remaining(done)]
    if done["purged"]:
        lines.append("history before now is purged: it begins anew; backups and damaged ledgers are removed")
    lines.append("they are not extracted again, unless `memoryd sessions set-mode ID enabled` says so")
    return lines


def _remaining(done: dict[str, Any]) -> list[str]:
    """Name the lines that still speak of what was forgotten, and say why they stand."""
    if "remains" not in done:  # a daemon of before an upgrade does not look
        return []
    remains, unnamed = done["remains"], done["remains_unnamed"]
    if not remains:
        return ["no other line of the memory folder speaks of it"]
    many = len(remains) + unnamed
    lines = [f"{plural(many, 'line')} of the memory folder still {'speak' if many > 1 else 'speaks'} of it:"]
    for each in remains[:SHOWN]:
        lines += [f"  {each['path']}:{each['line']}: {each['text'][:WIDTH]}", f"    {each['how']}; {each['why']}"]
    rest = many - min(len(remains), SHOWN)
    lines += [f"  and {rest} more (--json names more)"] if rest else []
    return [*lines, "take out by hand what is not to stand there: what you remove stays away"]


async def _forget(settings: Settings, threads: list[str], *, purge: bool) -> dict[str, Any]:
    """Forget here, or ask the daemon that holds the lock to."""
    home = Home(settings.home)
    try:
        async with open_house(settings, clock=SystemClock(), environ=config.environ(), role="forget") as context:
            done = await forget(context, threads, purge=purge)
            return {**done.as_json(), "purged": purge}
    except LedgerBusy:
        if not daemon_holds(home):
            raise
    request = {"do": "forget", "threads": threads, "purge": purge}
    return {**await control_socket.ask(home.socket, request, lambda _step: None), "purged": purge}
