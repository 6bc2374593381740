"""`memoryd note`: a statement of the person's, which the next consolidation takes in as authoritative."""

import argparse
import sys

from memoryd import config
from memoryd.control.console import print_json
from memoryd.control.noting import leave_note
from memoryd.workspace.notes import with_origin


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
