"""`memoryd import codex|claude`: what another memory has learned becomes part of this one."""

import argparse
import asyncio
from pathlib import Path
from typing import Any, Final

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.changing import changed
from memoryd.control.console import plural, print_json
from memoryd.control.places import absolute_place
from memoryd.errors import UsageError
from memoryd.ledger.database import Ledger
from memoryd.pipeline.import_claude import preview_claude
from memoryd.pipeline.import_codex import preview_codex
from memoryd.redact import Redactor
from memoryd.text import on_one_line
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import Home
from memoryd.workspace.summary import summary_budget

AGENTS: Final = {"codex": "CODEX_HOME", "claude": "CLAUDE_CONFIG_DIR"}
"""Whose memory can be imported, and the variable that names its home."""
SHOWN: Final = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Take whose memory it is, and where it lies."""
    parser.add_argument("agent", choices=sorted(AGENTS), help="whose memory")
    parser.add_argument(
        "--from",
        dest="homes",
        action="append",
        type=Path,
        metavar="DIR",
        help=f"the agent's home (default: sources.roots, {', '.join(AGENTS.values())}, ~/.codex or ~/.claude)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would come, and write nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Import it, here or by the daemon; nothing is sent, and nothing is written beside the source."""
    environ = config.environ()
    settings = config.load(args.home, environ=environ)
    homes = [absolute_place(path) for path in args.homes or config.agent_home(args.agent, settings, environ)]
    missing = [home for home in homes if not home.is_dir()]
    if missing or not homes:
        raise UsageError(
            f"there is no folder {missing[0]}" if missing else f"it is not known where {args.agent} keeps its memory",
            remedy=f"name its home with --from DIR, or set {AGENTS[args.agent]}",
        )
    if args.dry_run:
        report = asyncio.run(_preview(settings, args.agent, homes))
    else:
        request: dict[str, object] = {"do": "import", "agent": args.agent, "homes": [str(home) for home in homes]}
        report = changed(settings, request, role="import")
    if args.json:
        print_json(report)
    else:
        print("\n".join(_told(report)))
    return 0


async def _preview(settings: Settings, agent: str, homes: list[Path]) -> dict[str, Any]:
    """Compare with what is here, without a lock and without making anything."""
    home, redactor = Home(settings.home), Redactor(settings.privacy.patterns)
    ours = Folder.read(home.memories) if home.memories.is_dir() else Folder()
    budget = summary_budget(settings.recall.max_tokens)
    if not home.ledger_file.exists():
        if agent == "claude":
            return preview_claude(None, home, homes, redactor).as_json()
        return preview_codex(None, ours, homes, redactor, max_summary_bytes=budget).as_json()
    async with await Ledger.open(home.ledger_file, clock=SystemClock(), read_only=True) as ledger:
        if agent == "claude":
            return (await ledger.read(preview_claude, home, homes, redactor)).as_json()
        return (await ledger.read(preview_codex, ours, homes, redactor, max_summary_bytes=budget)).as_json()


def _told(report: dict[str, Any]) -> list[str]:
    """Tell what came, what was here already, and what did not come and why."""
    verb = "would be imported" if report["dry_run"] else "imported"
    lines = [f"read {path}" for path in report["read"]]
    for kind, noun in (("sessions", "session"), ("files", "file")):
        counts = report[kind]
        if counts:
            known, out = counts.get("unchanged", 0), counts.get("left_out", 0)
            more = f", {known} here already" * bool(known) + f", {out} left out" * bool(out)
            lines.append(f"{plural(counts.get('imported', 0), noun)} {verb}{more}")
    if report["bullets"]:
        lines.append(f"{plural(report['bullets'], 'statement')} keep their own words, as if you had written them")
    shown = report["left_out"][:SHOWN]
    lines += [f"  left out: {on_one_line(each['what'])}: {each['why']}" for each in shown]
    rest = len(report["left_out"]) - len(shown) + report["left_out_unnamed"]
    lines += [f"  and {rest} more (--json names more)"] if rest else []
    if report["consolidation"]:
        lines.append("nothing was sent; the next consolidation takes it in (`memoryd sync`)")
        lines += ["`memoryd undo` takes the folder's part back"] if report["commit"] else []
    elif not report["dry_run"]:
        lines.append("nothing new: everything is here already")
    return lines
