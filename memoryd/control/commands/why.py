"""`memoryd why TEXT|ID`: why the memory says something: since when, on whose word, from which sessions; its history.

Reads; needs no daemon.
"""

import argparse
import asyncio

from memoryd import config
from memoryd.control.claims_told import said, traced
from memoryd.control.console import print_json
from memoryd.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """Take what is asked about."""
    parser.add_argument("claim", nargs="+", metavar="TEXT|ID", help="words of a statement, or the number of a claim")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Tell where a claim comes from. Exit 1 when there is none of these words."""
    settings = config.load(args.home, environ=config.environ())
    wanted = " ".join(args.claim)
    if not any(character.isalnum() for character in wanted):
        raise UsageError("`memoryd why` needs words of a statement, or the number of a claim")
    claims, number = asyncio.run(traced(settings, wanted))
    if args.json:
        print_json({"query": wanted, "found": number, "claims": claims})
    else:
        print(said(claims, number, wanted))
    return 0 if claims else 1
