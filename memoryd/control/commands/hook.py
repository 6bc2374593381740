"""`memoryd hook`: what an agent's hook is answered. Imports the standard library only, and never fails."""

import argparse
import os
from pathlib import Path

from memoryd.recall import hook


def configure(parser: argparse.ArgumentParser) -> None:
    """Take what connected agents pass; anything more is no reason to fail."""
    parser.add_argument("agent", nargs="?", default="", metavar="AGENT")
    parser.add_argument("event", nargs="?", default="", metavar="EVENT")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Answer, or say nothing. The settings are not read: their home is all that is needed, and quickly."""
    home = args.home or os.environ.get("MEMORYD_HOME") or "~/.memoryd"  # noqa: TID251 -- config.py takes too long here
    return hook.run(str(Path(home).expanduser() / "recall"), args.agent, args.event)
