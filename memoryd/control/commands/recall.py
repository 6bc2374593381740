"""`memoryd recall`: exactly what an agent is given at the start of a session in a folder, on stdout."""

import argparse
import sys
from pathlib import Path

from memoryd import config
from memoryd.config import Settings
from memoryd.pipeline.eligibility import matches_any
from memoryd.recall import summary
from memoryd.workspace.layout import SUMMARY_FILE, Home


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the options of `recall`."""
    parser.add_argument("--cwd", metavar="DIR", type=Path, default=Path(), help="the session's folder (default: here)")


def run(args: argparse.Namespace) -> int:
    """Print it; when there is nothing, say why on stderr."""
    settings = config.load(args.home, environ=config.environ())
    text, why = recalled(settings, args.cwd.absolute())
    if text:
        print(text, end="")
    else:
        print(f"memoryd: nothing is given to agents here: {why}", file=sys.stderr)
    return 0


def recalled(settings: Settings, cwd: Path) -> tuple[str, str]:
    """Return what an agent that starts in `cwd` is given, or nothing and why."""
    home = Home(settings.home)
    if settings.recall.scope == "off":
        return "", 'recall.scope = "off"'
    if matches_any(str(cwd), settings.recall.exclude_cwd):
        return "", f"{cwd} is in recall.exclude_cwd"
    try:
        text = (home.memories / SUMMARY_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return "", "there is no memory yet; `memoryd sync --now` makes one"
    if settings.recall.scope == "project":
        text = summary.of_project(text, str(cwd))
    return summary.injected(text, home.memories, max_tokens=settings.recall.max_tokens), "the memory is empty"
