"""`memoryd undo [N]`: the memory as it was before the last N changes of memoryd's own."""

import argparse

from memoryd import config
from memoryd.control.changing import changed, held_lines
from memoryd.control.console import plural, print_json
from memoryd.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the number of `undo`."""
    parser.add_argument(
        "count",
        nargs="?",
        default="1",
        metavar="N",
        help="how many changes to take back (else 1); an undo is one too, so that undoing it restores",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Take them back. Exit 0 also when there is nothing to undo; 2 when the history holds fewer."""
    if not (args.count.isascii() and args.count.isdecimal() and int(args.count) > 0):
        raise UsageError(f"cannot undo {args.count!r} changes", remedy="write a number from 1 on")
    settings = config.load(args.home, environ=config.environ())
    result = changed(settings, {"do": "undo", "count": int(args.count)}, role="undo")
    if args.json:
        print_json(result)
    elif result["commit"] is None:
        print("there is nothing to undo: memoryd has not changed the memory yet")
    else:
        changes = result["changes"]
        print(f"{plural(len(changes), 'change')} undone; what you wrote since is still there:")
        print("\n".join(f"  {change['commit'][:10]}  {change['subject']}" for change in changes))
        print("\n".join([*held_lines(result["held"]), "`memoryd undo` again brings it back"]))
    return 0
