"""`memoryd note`: a statement of the person's, which the next consolidation takes in as authoritative."""

import argparse
import asyncio
import sys
from pathlib import Path

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.console import print_json
from memoryd.daemon import control_socket
from memoryd.daemon.house import daemon_holds, open_house
from memoryd.errors import LedgerBusy
from memoryd.pipeline.edits import notice_edits
from memoryd.redact import Redactor
from memoryd.workspace.layout import Home, prepare
from memoryd.workspace.notes import with_origin, write_note


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the note's words."""
    parser.add_argument("text", nargs="+", metavar="TEXT", help="what to remember; `-` reads it from standard input")
    parser.add_argument("--by", metavar="NAME", default="person", help="who writes it (default: person)")
    parser.add_argument("--session", metavar="ID", default="", help="the session in which it was said")
    parser.add_argument("--quote", metavar="WORDS", default="", help="the user's own words; a digest of them is kept")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Write the note."""
    settings = config.load(args.home, environ=config.environ())
    text = sys.stdin.read() if args.text == ["-"] else " ".join(args.text)
    path = leave_note(settings, with_origin(text, by=args.by, session=args.session, quote=args.quote))
    if args.json:
        print_json({"path": str(path)})
    else:
        print(f"{path}\nthe next consolidation takes it in")
    return 0


def leave_note(settings: Settings, text: str) -> Path:
    """Write a note, without what is a secret in it, and let whoever holds the lock look at it."""
    home = Home(settings.home)
    prepare(home)
    clock = SystemClock()
    path = write_note(home, Redactor(settings.privacy.patterns).clean(text), now=clock.now())
    asyncio.run(_let_know(settings, home))
    return path


async def _let_know(settings: Settings, home: Home) -> None:
    """A command that holds the lock now need not be told: the next scan sees the note."""
    try:
        async with open_house(settings, clock=SystemClock(), environ=config.environ(), role="note") as context:
            await notice_edits(context)
    except LedgerBusy:
        if daemon_holds(home):
            await control_socket.ask(home.socket, {"do": "note"}, lambda _step: None)
