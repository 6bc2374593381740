"""`memoryd review list | show N | accept N | reject N`: results that wait for your word (review = "manual")."""

import argparse
import asyncio
from typing import Any

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.changes_told import as_json, details, repository
from memoryd.control.changing import changed, held_lines
from memoryd.control.console import moment, print_json
from memoryd.errors import UsageError
from memoryd.ledger import proposals
from memoryd.ledger.database import Ledger
from memoryd.ledger.proposals import Proposal, ProposalState
from memoryd.workspace.history import check_readable, entries, patch
from memoryd.workspace.layout import Home


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the actions of `review`."""
    parser.add_argument("action", nargs="?", choices=["list", "show", "accept", "reject"], default="list")
    parser.add_argument("number", nargs="?", type=int, metavar="N", help="the number of a proposal")
    parser.add_argument("--commit", metavar="ID", help="accept, reject: only if the proposal is this commit, as shown")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Do the action. Exit 2 for a proposal that does not wait, or is out of date."""
    settings = config.load(args.home, environ=config.environ())
    if args.action == "list":
        return _list(settings, as_data=args.json)
    if args.number is None and args.action != "show":
        raise UsageError(f"`memoryd review {args.action}` needs a number", remedy="`memoryd review list` names it")
    if args.action == "show":
        return _show(settings, args.number, as_data=args.json)
    request = {"do": "review", "action": args.action, "number": args.number, "shown": args.commit}
    result = changed(settings, request, role="review")
    if args.json:
        print_json(result)
    else:
        accepted = args.action == "accept"
        print(f"proposal {result['number']} is {'accepted and in place' if accepted else 'rejected'}")
        print("\n".join(held_lines(result["held"])), end="\n" if result["held"] else "")
    return 0


def _list(settings: Settings, *, as_data: bool) -> int:
    rows = asyncio.run(_rows(settings))
    if as_data:
        print_json([_told(row) for row in rows])
    elif not rows:
        wanted = "" if settings.consolidate.review == "manual" else ' (consolidate.review is "auto")'
        print(f"no proposal yet{wanted}")
    else:
        print("\n".join(_line(row) for row in rows))
    return 0


def _show(settings: Settings, number: int | None, *, as_data: bool) -> int:
    """Show one proposal, or with None the one that waits."""
    rows = asyncio.run(_rows(settings))
    found = [row for row in rows if (row.state is ProposalState.WAITING if number is None else row.id == number)]
    if not found:
        missing = "no proposal waits" if number is None else f"there is no proposal {number}"
        raise UsageError(missing, remedy="`memoryd review list` names them")
    proposal, repo = found[0], repository(settings)
    check_readable(repo)
    if repo.resolve(proposal.commit) is None:
        raise UsageError(
            f"proposal {proposal.id} ({proposal.state.value}) is not kept any more",
            remedy="`memoryd history` shows what was accepted",
        )
    entry = entries(repo, limit=1, start=proposal.commit)[0]
    diff = patch(repo, proposal.base, proposal.commit)
    if as_data:
        print_json({**as_json(entry), **_told(proposal), "trailers": entry.trailers, "diff": diff})
        return 0
    print("\n".join([_line(proposal), *details(entry, diff)]))
    if proposal.state is ProposalState.WAITING:
        accept = f"memoryd review accept {proposal.id} --commit {proposal.commit[:10]}"
        print(f"\n`{accept}`, or `memoryd review reject {proposal.id}`")
    return 0


async def _rows(settings: Settings) -> list[Proposal]:
    ledger_file = Home(settings.home).ledger_file
    async with await Ledger.open(ledger_file, clock=SystemClock(), read_only=True) as ledger:
        return await ledger.read(proposals.every)


def _told(row: Proposal) -> dict[str, Any]:
    return {
        "number": row.id,
        "state": row.state.value,
        "commit": row.commit,
        "made_at": row.made_at,
        "ended_at": row.ended_at,
    }


def _line(row: Proposal) -> str:
    ended = f", {row.state.value} {moment(row.ended_at)}" if row.ended_at is not None else ", waits for your word"
    return f"{row.id:>3}  {row.commit[:10]}  made {moment(row.made_at)}{ended}"
