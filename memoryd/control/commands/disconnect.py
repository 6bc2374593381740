"""`memoryd disconnect`: takes out of an agent's settings what connect put there, and nothing else."""

import argparse
from typing import Final

from memoryd import config
from memoryd.control.commands.connect import NAMES, told
from memoryd.control.connecting.connect import Change, Done
from memoryd.control.connecting.giving import take_back
from memoryd.control.connecting.targets import TARGETS
from memoryd.control.console import print_json
from memoryd.workspace.layout import Home

WORDS: Final = {
    Done.RESTORED: "{agent} is disconnected: {path} is what it was before",
    Done.TAKEN_OUT: "{agent} is disconnected: {path} had changed since, so only our entry was taken out",
    Done.GONE: "{agent} is disconnected: our entry was no longer in {path}",
    Done.NOT_CONNECTED: "{agent} is not connected",
}

PARTS: Final = {
    Done.RESTORED: "taken out, {path} is what it was before",
    Done.TAKEN_OUT: "taken out of {path}, which had changed since",
    Done.GONE: "it was no longer in {path}",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the agent."""
    parser.add_argument("agent", metavar="AGENT", help=f"one of: {', '.join(TARGETS)}")
    parser.add_argument("--dry-run", action="store_true", help="print what would change, and write nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Disconnect it, and name what was written."""
    environ = config.environ()
    home = Home(config.load(args.home, environ=environ).home)
    given = take_back(args.agent, home, environ, dry_run=args.dry_run)
    if args.json:
        print_json(told(given, dry_run=args.dry_run))
    elif args.dry_run and any(each.diff for each in given.all):
        parts_first = [*given.parts, given.memory]
        print("".join(each.diff for each in parts_first) + "nothing was written")
    else:
        for part in given.parts:
            print(f"{NAMES[part.part]}: {PARTS[part.done].format(path=part.path)}{_removed(part)}")
        print(_sentence(given.memory))
    return 0


def _sentence(change: Change) -> str:
    return WORDS[change.done].format(agent=change.agent, path=change.path) + _removed(change)


def _removed(change: Change) -> str:
    """Say so where the file itself went."""
    if change.after is not None or change.before is None:
        return ""
    why = "connect had made it" if change.done is Done.RESTORED else "nothing else stood in it"
    return f" ({why}: it is removed)"
