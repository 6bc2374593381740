"""`memoryd recall`: exactly what an agent is given at the start of a session in a folder, on stdout."""

import argparse
import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.console import print_json
from memoryd.daemon.recalling import circumstances
from memoryd.errors import MemorydError
from memoryd.ledger.database import Ledger
from memoryd.recall import hook, ready
from memoryd.recall.ready import Circumstances
from memoryd.recall.summary import BYTES_PER_TOKEN
from memoryd.workspace.layout import SUMMARY_FILE, Home

WHY: Final = {
    "off": 'recall.scope = "off"',
    "no_cwd": "the session's folder is not known",
    "excluded_cwd": "the folder is in recall.exclude_cwd",
    "no_recall": "you said that this session be given nothing (`memoryd sessions set-mode`)",
    "all": 'recall.scope = "all": every project is told in full',
    "project": "the project of {detail}",
    "repository": "the project of the repository {detail}",
    "everywhere": "no known project: what holds everywhere, and of projects their topics",
}


@dataclass(frozen=True, slots=True)
class Recalled:
    """The text (empty: nothing), and why; `pending`: agents are given this from the next pass or reload on."""

    text: str
    reason: str
    why: str
    file: str | None = None
    pending: bool = False


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the options of `recall`."""
    parser.add_argument("--cwd", metavar="DIR", type=Path, default=Path(), help="the session's folder (default: here)")
    parser.add_argument("--agent", metavar="AGENT", default="", help="the agent, where ids of its sessions are its own")
    parser.add_argument("--session", metavar="ID", default="", help="as when this session is resumed")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print it; how much it is and why, or why there is nothing, goes to stderr."""
    settings = config.load(args.home, environ=config.environ())
    cwd = args.cwd.absolute()
    given = recalled(settings, cwd, agent=args.agent, session=args.session)
    if args.json:
        print_json(_told(given, cwd))
        return 0
    if not given.text:
        print(f"memoryd: nothing is given to agents here: {given.why}", file=sys.stderr)
        return 0
    print(given.text, end="", flush=True)
    size = _told(given, cwd)
    later = "; agents are given this from the next pass on" if given.pending else ""
    print(f"memoryd: {size['bytes']:,} bytes, about {size['tokens']:,} tokens: {given.why}{later}", file=sys.stderr)
    return 0


def recalled(settings: Settings, cwd: Path, *, agent: str = "", session: str = "") -> Recalled:
    """Return what the hook gives a session that starts in `cwd`, by the very files that it reads.

    Where these were made with other settings, or are not there yet, what would be made now is taken.
    """
    home = Home(settings.home)
    index = ready.read_index(home)
    known = asyncio.run(_circumstances(settings, home))
    texts: dict[str, str] = {}
    commit = str(index.get("commit", ""))
    pending = not index or index["stamp"] != known.stamp(commit)
    if pending:
        made = ready.make_ready(home, commit, known, index)
        index, texts = made.index, made.texts
    found = hook.look_up(index, str(cwd), agent=agent, session=session)
    if found.file is None:
        return Recalled("", found.why, WHY[found.why], pending=pending)
    text = texts[found.file] if texts else hook.given(str(home.recall), str(cwd), agent=agent, session=session)
    if not text:
        return Recalled("", "empty", _why_empty(home), pending=pending)
    return Recalled(text, found.why, WHY[found.why].format(detail=found.detail), found.file, pending)


def _why_empty(home: Home) -> str:
    if not (home.memories / SUMMARY_FILE).exists():
        return "there is no memory yet; `memoryd sync --now` makes one"
    return "nothing is remembered yet, or recall.max_tokens leaves no room for it"


async def _circumstances(settings: Settings, home: Home) -> Circumstances:
    """Ask the ledger; without one nothing was used, and nobody said anything."""
    try:
        async with await Ledger.open(home.ledger_file, clock=SystemClock(), read_only=True) as ledger:
            return await ledger.read(circumstances, settings=settings)
    except MemorydError:
        return Circumstances(settings.recall, tuple(map(str, settings.user_homes)))


def _told(given: Recalled, cwd: Path) -> dict[str, Any]:
    size = len(given.text.encode())
    return {
        "cwd": str(cwd),
        "given": bool(given.text),
        "reason": given.reason,
        "why": given.why,
        "bytes": size,
        "characters": len(given.text),
        "tokens": -(-size // BYTES_PER_TOKEN),
        "file": given.file,
        "pending": given.pending,
        "text": given.text,
    }
