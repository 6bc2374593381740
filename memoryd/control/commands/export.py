"""`memoryd export DIR`: what was learned, as files and JSON lines that anybody can read."""

import argparse
import asyncio
from dataclasses import asdict
from pathlib import Path

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.console import plural, print_json
from memoryd.control.exporting import Learned, check_place, export, learned
from memoryd.control.places import absolute_place
from memoryd.ledger.database import Ledger
from memoryd.redact import Redactor
from memoryd.text import on_one_line
from memoryd.workspace.layout import Home


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the place."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="where to; a new folder, or an empty one")
    parser.add_argument("--force", action="store_true", help="write into a folder that is not empty")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Write it; reads alone, beside a daemon as well."""
    settings = config.load(args.home, environ=config.environ())
    home, target = Home(settings.home), absolute_place(args.folder)
    check_place(target, home, force=args.force)
    rows = asyncio.run(_learned(settings))
    done = export(home, rows, target, Redactor(settings.privacy.patterns), now=SystemClock().now())
    if args.json:
        print_json({**asdict(done), "folder": str(target)})
        return 0
    print(f"wrote {target}")
    print(f"  memories/             {plural(done.files, 'file')}")
    print(f"  stage1_outputs.jsonl  {plural(done.outputs, 'session')}")
    print(f"  claims.jsonl          {plural(done.claims, 'statement')}, those that no longer stand included")
    for path, reason in done.left_out.items():
        print(f"  left out: {on_one_line(path)}: {reason}")
    return 0


async def _learned(settings: Settings) -> Learned:
    file = Home(settings.home).ledger_file
    if not file.exists():
        return Learned()
    async with await Ledger.open(file, clock=SystemClock(), read_only=True) as ledger:
        return await ledger.read(learned)
