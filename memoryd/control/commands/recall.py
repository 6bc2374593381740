"""`memoryd recall`: exactly what an agent is given at the start of a session, on stdout."""

import argparse
import sys

from memoryd import config
from memoryd.recall import summary
from memoryd.workspace.layout import SUMMARY_FILE, Home


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the options of `recall`."""
    parser.add_argument(
        "--cwd", metavar="DIR", help="the project's folder (this version gives the same text everywhere)"
    )


def run(args: argparse.Namespace) -> int:
    """Print it; nothing when there is no memory yet, which is said on stderr."""
    settings = config.load(args.home, environ=config.environ())
    home = Home(settings.home)
    try:
        text = (home.memories / SUMMARY_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        text = ""
    injected = summary.injected(text, home.memories, max_tokens=settings.recall.max_tokens)
    if injected and settings.recall.scope != "off":
        print(injected, end="")
    else:
        print("memoryd: there is nothing to recall", file=sys.stderr)
    return 0
