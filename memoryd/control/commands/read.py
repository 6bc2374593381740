"""`memoryd read PATH`: numbered lines of a file of the memory, for agents without the MCP server, and for people."""

import argparse
from pathlib import Path

from memoryd import config
from memoryd.control.console import print_json
from memoryd.control.counts import from_one
from memoryd.control.memory_tools import Desk, read_lines
from memoryd.recall.tools import DEFAULT_MAX_LINES, Read


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the file and the lines."""
    parser.add_argument("path", metavar="PATH", help="a file of the memory folder, such as MEMORY.md")
    parser.add_argument("--line-offset", metavar="N", type=from_one, default=1, help="first line (default: 1)")
    parser.add_argument(
        "--max-lines",
        metavar="N",
        type=from_one,
        default=DEFAULT_MAX_LINES,
        help=f"how many lines (default: {DEFAULT_MAX_LINES})",
    )
    parser.add_argument("--plain", action="store_true", help="without line numbers")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print them."""
    desk = Desk(config.load(args.home, environ=config.environ()), str(Path.cwd()))
    asked = Read(args.path, args.line_offset, args.max_lines)
    text = read_lines(desk, asked, numbered=not (args.plain or args.json), go_on="--line-offset ")
    if args.json:
        print_json({"path": args.path, "line_offset": args.line_offset, "text": text})
    else:
        print(text)
    return 0
