"""`memoryd sessions list | set-mode`: what is known of each session, and the person's own word about one of them."""

import argparse
import asyncio
from typing import Any, Final

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.console import moment, print_json
from memoryd.daemon import control_socket
from memoryd.daemon.house import daemon_holds, open_house
from memoryd.daemon.recalling import keep_recall_ready
from memoryd.errors import LedgerBusy, UsageError
from memoryd.ledger import sessions
from memoryd.ledger.database import Ledger
from memoryd.ledger.sessions import SessionRow, UserMode
from memoryd.pipeline.discover import choose_mode, mode_of_row
from memoryd.pipeline.eligibility import MEANING, UNREADABLE, Waiting
from memoryd.workspace.layout import Home

LIST_LIMIT: Final = 1_000_000
NOT_KEPT: Final = frozenset({*Waiting, UNREADABLE})
"""Reasons that no row holds: judged anew at each look, or of files that are no session."""
EFFECTS: Final = {
    UserMode.ENABLED: "it is remembered, whatever left it out before",
    UserMode.DISABLED: "it is not remembered, and what it taught leaves the memory with the next consolidation",
    UserMode.NO_RECALL: "it is remembered as the agent says, and given nothing of the memory when it is resumed",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the actions of `sessions`."""
    parser.add_argument("action", nargs="?", choices=["list", "set-mode"], default="list")
    parser.add_argument("thread", nargs="?", metavar="ID", help="set-mode: a thread id, or a unique beginning of one")
    parser.add_argument("mode", nargs="?", choices=[mode.value for mode in UserMode], help="set-mode: your choice")
    parser.add_argument("--excluded", metavar="REASON", help="list: only those that this reason leaves out")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Do the action."""
    settings = config.load(args.home, environ=config.environ())
    if args.action == "list" and args.thread:
        raise UsageError(
            "`memoryd sessions list` takes no session", remedy=f"`memoryd explain {args.thread}` tells of one"
        )
    if args.action == "list":
        return asyncio.run(_list(settings, args))
    if not args.thread or not args.mode:
        raise UsageError(
            "`memoryd sessions set-mode` needs a session and a mode: enabled, disabled or no-recall",
            remedy="`memoryd sessions` lists them",
        )
    return asyncio.run(_set_mode(settings, args.thread, UserMode(args.mode), as_json=args.json))


def told(row: SessionRow) -> dict[str, Any]:
    """Return what is known of a session, as `--json` prints it; `reason` is None where nothing keeps it out."""
    return {
        "thread_id": row.thread_id,
        "agent": row.agent,
        "path": row.path,
        "cwd": row.cwd,
        "git_branch": row.git_branch,
        "parent_id": row.parent_id,
        "kind": row.kind,
        "last_record_at": row.updated_at,
        "mode": mode_of_row(row),
        "your_mode": row.user_mode,
        "reason": row.excluded or row.finding,
        "extracted": (row.covered_updated_at, row.covered_bytes) == (row.updated_at, row.record_bytes),
    }


def line(session: dict[str, Any]) -> str:
    """Tell one session to a person."""
    state = "extracted" if session["extracted"] else "not extracted"
    state = f"left out: {session['reason']}" if session["reason"] else state
    yours = f", yours: {session['your_mode']}" if session["your_mode"] else ""
    place = session["cwd"] or "unknown directory"
    when = moment(session["last_record_at"])
    return f"{session['thread_id']:<36}  {session['agent']:<8} {when}  {state}{yours}  {place}"


async def _list(settings: Settings, args: argparse.Namespace) -> int:
    if args.excluded and args.excluded not in MEANING:
        raise UsageError(
            f"no rule is called {args.excluded!r}",
            remedy=f"the reasons are: {', '.join(sorted(MEANING.keys() - NOT_KEPT))}",
        )
    if args.excluded in NOT_KEPT:
        raise UsageError(
            f"sessions cannot be listed by {args.excluded}, which is judged anew at each look",
            remedy="`memoryd status` counts them, `memoryd explain PATH|ID` says it of one",
        )
    async with await Ledger.open(Home(settings.home).ledger_file, clock=SystemClock(), read_only=True) as ledger:
        if args.excluded:
            rows = await ledger.read(sessions.list_left_out, args.excluded, limit=LIST_LIMIT)
        else:
            rows = await ledger.read(sessions.list_sessions, limit=LIST_LIMIT)
    if args.json:
        print_json([told(row) for row in rows])
    elif not rows:
        print(f"no session is left out as {args.excluded}" if args.excluded else "no sessions yet: run `memoryd sync`")
    else:
        print("\n".join(line(told(row)) for row in rows))
    return 0


async def _set_mode(settings: Settings, thread: str, mode: UserMode, *, as_json: bool) -> int:
    session = await _chosen(settings, thread, mode)
    if as_json:
        print_json(session)
    else:
        left_out = session["reason"] if mode is UserMode.ENABLED else None
        effect = f"but it stays left out: {MEANING.get(left_out, left_out)}" if left_out else EFFECTS[mode]
        print(f"{session['thread_id']} is {mode.value} now: {effect}")
    return 0


async def _chosen(settings: Settings, thread: str, mode: UserMode) -> dict[str, Any]:
    """Record the choice here, or ask the daemon that holds the lock to; return the session as it stands."""
    home = Home(settings.home)
    try:
        async with open_house(settings, clock=SystemClock(), environ=config.environ(), role="sessions") as context:
            chosen = await choose_mode(context, thread, mode)
            await keep_recall_ready(context)
            return told(chosen)
    except LedgerBusy:
        if not daemon_holds(home):
            raise
    request = {"do": "set-mode", "thread": thread, "mode": mode.value}
    await control_socket.ask(home.socket, request, lambda _step: None)
    async with await Ledger.open(home.ledger_file, clock=SystemClock(), read_only=True) as ledger:
        row = await ledger.read(sessions.get, thread)
    assert row is not None  # the daemon has just found it
    return told(row)
