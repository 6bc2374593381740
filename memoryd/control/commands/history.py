"""`memoryd history [N] | show N|COMMIT`: what changed in the memory, when, by whom, from what, at what cost."""

import argparse
from typing import Final

from memoryd import config
from memoryd.control.changes_told import as_json, details, line, repository
from memoryd.control.console import print_json
from memoryd.errors import UsageError
from memoryd.workspace.git import Repository
from memoryd.workspace.history import MAX_ENTRIES, check_readable, entries, find_entry, patch

SHOWN: Final = 20
_USAGE: Final = "`memoryd history [N]` lists the last N changes, `memoryd history show N|COMMIT` shows one"


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the words of `history`."""
    parser.add_argument(
        "words", nargs="*", metavar="N | show N|COMMIT", help=f"how many changes to list (else {SHOWN}), or one to show"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print it. Reads git alone: no daemon is asked, no ledger opened."""
    repo = repository(config.load(args.home, environ=config.environ()))
    match args.words:
        case []:
            return _list(repo, SHOWN, as_data=args.json)
        case ["show", name]:
            return _show(repo, name, as_data=args.json)
        case [number] if number.isdecimal() and int(number) > 0:
            return _list(repo, min(int(number), MAX_ENTRIES), as_data=args.json)
        case words:
            raise UsageError(f"`memoryd history {' '.join(words)}` is no such command", remedy=_USAGE)


def _list(repo: Repository, limit: int, *, as_data: bool) -> int:
    check_readable(repo)
    changes = [as_json(entry, number) for number, entry in enumerate(entries(repo, limit=limit), start=1)]
    if as_data:
        print_json(list(changes))
    elif not changes:
        print("no change yet: the first consolidation makes one, run `memoryd sync`")
    else:
        print("\n".join(map(line, changes)))
    return 0


def _show(repo: Repository, name: str, *, as_data: bool) -> int:
    check_readable(repo)
    entry = find_entry(repo, name)
    diff = patch(repo, entry.base, entry.result)
    if as_data:
        print_json({**as_json(entry), "trailers": entry.trailers, "paths": sorted(entry.paths), "diff": diff})
    else:
        print("\n".join(details(entry, diff)))
    return 0
