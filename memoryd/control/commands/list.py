"""`memoryd list [PATH]`: what a folder of the memory holds, for agents without the MCP server, and for people."""

import argparse

from memoryd import config
from memoryd.control.console import print_json
from memoryd.recall.reading import list_folder, paths_in
from memoryd.workspace.layout import Home


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the folder."""
    parser.add_argument(
        "path", metavar="PATH", nargs="?", default="", help="a folder of the memory (default: the whole)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print its entries, folders with a trailing slash."""
    home = Home(config.load(args.home, environ=config.environ()).home)
    if args.json:
        print_json({"path": args.path, "entries": paths_in(home.memories, args.path)})
    else:
        print(list_folder(home.memories, args.path))
    return 0
