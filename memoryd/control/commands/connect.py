"""`memoryd connect`: gives one agent its memory, and beside it the tools to search it, or the skill of the commands."""

import argparse
from collections.abc import Iterator
from typing import Any, Final

from memoryd import config
from memoryd.control.connecting.connect import Change, Done
from memoryd.control.connecting.giving import Given, Wish, give
from memoryd.control.connecting.target import MCP, SKILL, WAYS
from memoryd.control.connecting.targets import TARGETS
from memoryd.control.console import print_json
from memoryd.workspace.layout import Home, prepare

NAMES: Final = {"": "memory", MCP: "MCP server", SKILL: "skill"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the agent, the way, and what else is wanted."""
    parser.add_argument("agent", metavar="AGENT", help=f"one of: {', '.join(TARGETS)}")
    parser.add_argument("--via", choices=WAYS, help="how (default: a hook where the agent has hooks)")
    parser.add_argument("--no-mcp", dest="mcp", action="store_false", help="without the entry of the MCP server")
    parser.add_argument(
        "--skill",
        action=argparse.BooleanOptionalAction,
        help="with the skill that teaches the commands, or without (default: where there is no MCP server)",
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would change, and write nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Connect it, and say what was written, what was left out and why, and what is left to do."""
    environ = config.environ()
    home = Home(config.load(args.home, environ=environ).home)
    if not args.dry_run:
        prepare(home)
    given = give(args.agent, args.via, Wish(args.mcp, args.skill), home, environ, dry_run=args.dry_run)
    if args.json:
        print_json(told(given, dry_run=args.dry_run))
    else:
        print("\n".join(_lines(given, dry_run=args.dry_run)))
    return 0


def told(given: Given, *, dry_run: bool) -> dict[str, object]:
    """Return the changes as data; `wrote` is empty when nothing was written."""
    memory = given.memory
    written = [each for each in given.all if not dry_run and each.before != each.after]
    return {
        "agent": memory.agent,
        "result": memory.done,
        "via": memory.via,
        "file": _path(memory),
        "wrote": list(dict.fromkeys(_path(each) for each in written)),
        "backup": str(memory.backup) if memory.backup else None,
        "diff": "".join(each.diff for each in given.all),
        "next": memory.advice,
        **{part: next((_told_part(each) for each in given.parts if each.part == part), None) for part in (MCP, SKILL)},
    }


def _told_part(change: Change) -> dict[str, Any]:
    backup = str(change.backup) if change.backup else None
    return {"result": change.done, "file": _path(change), "backup": backup, "why": change.why or None}


def _path(change: Change) -> str | None:
    return str(change.path) if change.path else None


def _lines(given: Given, *, dry_run: bool) -> Iterator[str]:
    memory = given.memory
    if dry_run:
        yield from (each.diff.rstrip("\n") for each in given.all if each.diff)
    if memory.done is Done.ALREADY:
        yield f"{memory.agent} is connected already, by {memory.via} in {memory.path}"
    elif dry_run:
        yield f"{memory.agent} would be connected by {memory.via}"
    else:
        yield f"{memory.agent} is connected by {memory.via}: wrote {memory.path}{_before(memory)}"
    for part in given.parts:
        yield _line(part, dry_run=dry_run)
    if dry_run:
        yield "nothing was written"
    yield from (f"next: {each}" for each in memory.advice)


def _line(part: Change, *, dry_run: bool) -> str:
    name = NAMES[part.part]
    match part.done:
        case Done.LEFT_OUT:
            return f"{name}: left out: {part.why}"
        case Done.ALREADY:
            return f"{name}: there already, in {part.path}"
        case _:
            return f"{name}: would go into {part.path}" if dry_run else f"{name}: wrote {part.path}{_before(part)}"


def _before(change: Change) -> str:
    return f"; as it was before: {change.backup}" if change.backup else ""
