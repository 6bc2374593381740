"""One change of the memory, for people and as JSON: what `history` and `review` print."""

import re
import sys
from typing import Any, Final

from memoryd import config
from memoryd.config import Settings
from memoryd.control.console import moment, plural
from memoryd.text import plain
from memoryd.workspace.git import Repository
from memoryd.workspace.history import CHANGE, Change, Entry
from memoryd.workspace.layout import Home
from memoryd.workspace.run_trailers import of_entry

SHORT: Final = 10
WHO: Final = {
    Change.CONSOLIDATION: "consolidation",
    Change.UNDO: "undo",
    Change.IMPORT: "import",
    Change.FORGETTING: "forget",
    Change.CLEAN_UP: "clean-up",
    Change.SHORTENING: "shortening",
    Change.PERSON: "person",
}
_COLOURS: Final = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}
_BOLD: Final = "\x1b[1m"
_PLAIN: Final = "\x1b[0m"
_HEAD: Final = re.compile(r"diff --git |index |--- |\+\+\+ |new file |deleted file ")


def repository(settings: Settings) -> Repository:
    """Return the history of a home, for reading."""
    home = Home(settings.home)
    return Repository(home.git_dir, home.memories, environ=config.environ())


def as_json(entry: Entry, number: int | None = None) -> dict[str, Any]:
    """Return a change as `--json` prints it; what its trailers do not say is None."""
    run = of_entry(entry)
    sessions = None
    if run.total is not None:
        sessions = {"total": run.total, "added": run.added, "changed": run.changed, "removed": run.removed}
    return {
        "number": number,
        "commit": entry.commit,
        "at": entry.at,
        "who": WHO[entry.change],
        "subject": entry.subject,
        "files": len(entry.paths),
        "lines_added": entry.lines_added,
        "lines_removed": entry.lines_removed,
        "sessions": sessions,
        "provider": entry.trailers.get("Provider"),
        "model": entry.trailers.get("Model"),
        "requests": run.requests,
        "tokens": run.tokens,
    }


def line(change: dict[str, Any]) -> str:
    """Tell one change on one line."""
    parts = [f"{plural(change['files'], 'file')} +{change['lines_added']} -{change['lines_removed']}"]
    if (sessions := change["sessions"]) is not None:
        parts.append(f"sessions +{sessions['added']} ~{sessions['changed']} -{sessions['removed']}")
    if change["model"] is not None:
        parts.append("no model" if change["model"] == "none" else change["model"])
    if change["tokens"]:
        parts.append(f"{change['tokens']:,} tokens")
    parts.append(plain(change["subject"]))
    number = f"{change['number']:>3}  " if change["number"] is not None else ""
    return f"{number}{moment(change['at'])}  {change['commit'][:SHORT]}  {change['who']:<13}  {', '.join(parts)}"


def details(entry: Entry, diff: str) -> list[str]:
    """Tell one change with its trailers and what it changed; colours on a terminal alone."""
    told = [f"{WHO[entry.change]} {entry.commit}", f"  {moment(entry.at)}  {plain(entry.subject)}"]
    told += [f"  {plain(name)}: {plain(value)}" for name, value in entry.trailers.items() if name != CHANGE]
    told.append(f"  {plural(len(entry.paths), 'file')}, {entry.lines_added} lines added, {entry.lines_removed} removed")
    body = coloured(plain(diff)) if sys.stdout.isatty() else plain(diff)
    return [*told, "", body.rstrip("\n") or "(MEMORY.md, memory_summary.md and skills/ did not change)"]


def coloured(diff: str) -> str:
    """Colour a unified diff for a terminal."""
    return "\n".join(_coloured(row) for row in diff.split("\n"))


def _coloured(row: str) -> str:
    if _HEAD.match(row):
        return f"{_BOLD}{row}{_PLAIN}"
    colour = _COLOURS.get(row[:1])
    return f"{colour}{row}{_PLAIN}" if colour else row
