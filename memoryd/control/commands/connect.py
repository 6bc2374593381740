"""`memoryd connect`: gives one agent its memory, by a hook, an import or an entry in its instructions."""

import argparse

from memoryd import config
from memoryd.control.connecting.connect import Change, Done, connect
from memoryd.control.connecting.target import WAYS
from memoryd.control.connecting.targets import TARGETS
from memoryd.control.console import print_json
from memoryd.workspace.layout import Home, prepare


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the agent and the way."""
    parser.add_argument("agent", metavar="AGENT", help=f"one of: {', '.join(TARGETS)}")
    parser.add_argument("--via", choices=WAYS, help="how (default: a hook where the agent has hooks)")
    parser.add_argument("--dry-run", action="store_true", help="print what would change, and write nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Connect it, and say what was written and what is left to do."""
    environ = config.environ()
    home = Home(config.load(args.home, environ=environ).home)
    if not args.dry_run:
        prepare(home)
    change = connect(args.agent, args.via, home, environ, dry_run=args.dry_run)
    if args.json:
        print_json(told(change, dry_run=args.dry_run))
    else:
        print("\n".join(_lines(change, dry_run=args.dry_run)))
    return 0


def told(change: Change, *, dry_run: bool) -> dict[str, object]:
    """Return a change as data; `wrote` is empty when nothing was written."""
    wrote = not dry_run and change.before != change.after
    return {
        "agent": change.agent,
        "result": change.done,
        "via": change.via,
        "file": str(change.path) if change.path else None,
        "wrote": [str(change.path)] if wrote else [],
        "backup": str(change.backup) if change.backup else None,
        "diff": change.diff,
        "next": change.advice,
    }


def _lines(change: Change, *, dry_run: bool) -> list[str]:
    if change.done is Done.ALREADY:
        lines = [f"{change.agent} is connected already, by {change.via} in {change.path}"]
    elif dry_run:
        lines = [change.diff.rstrip("\n"), f"{change.agent} would be connected by {change.via}; nothing was written"]
    else:
        before = f"; as it was before: {change.backup}" if change.backup else ""
        lines = [f"{change.agent} is connected by {change.via}: wrote {change.path}{before}"]
    return [*lines, *(f"next: {each}" for each in change.advice)]
