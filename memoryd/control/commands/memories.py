"""`memoryd memories`: what sessions taught, how often it was used, and what will become of it."""

import argparse
import asyncio
import math
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any, Final

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.control.console import moment, plural, print_json
from memoryd.ledger import outputs
from memoryd.ledger.active_days import DAY_SECONDS, days_since
from memoryd.ledger.database import Ledger
from memoryd.ledger.outputs import Memory
from memoryd.text import first_line
from memoryd.workspace.layout import Home

TITLE_CHARACTERS: Final = 72


@dataclass(frozen=True, slots=True)
class Listed:
    """The memories with what the next consolidation selects, and how many unknown ids were cited."""

    memories: list[Memory]
    selected_next: frozenset[str]
    active_days: dict[str, int]
    unknown_citations: int


def configure(parser: argparse.ArgumentParser) -> None:
    """Take the options of `memories`."""
    parser.add_argument("--unused", action="store_true", help="only those that no session ever cited")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """List them, the most used first."""
    settings = config.load(args.home, environ=config.environ())
    now = SystemClock().now()
    listed = asyncio.run(_listed(settings, now))
    rows = [told(memory, listed, settings, now=now) for memory in listed.memories]
    rows = [row for row in rows if not args.unused or row["usage_count"] == 0]
    if args.json:
        print_json({"memories": rows, "unknown_citations": listed.unknown_citations})
    elif not rows:
        print("every memory was used" if listed.memories else "no memories yet: run `memoryd sync`")
    else:
        print("\n".join(_lines(row) for row in rows))
        if listed.unknown_citations:
            print(f"{plural(listed.unknown_citations, 'citation')} named no memory that is known")
    return 0


def told(memory: Memory, listed: Listed, settings: Settings, *, now: float) -> dict[str, Any]:
    """Return what is known of a memory; `stays_days`: active days until it is too old, None where age does not count.

    `leaves_not_before`: the earliest instant at which that may be, with sessions recorded every day from now on.
    """
    limit = math.ceil(settings.consolidate.max_unused / DAY_SECONDS)
    left = max(0, limit - listed.active_days[memory.thread_id])
    fate = _fate(memory, listed, left)
    return {
        "thread_id": memory.thread_id,
        "title": _title(memory),
        "project": memory.cwd,
        "agent": memory.agent,
        "usage_count": memory.usage_count,
        "last_usage": memory.last_usage,
        "recorded_at": memory.source_updated_at,
        "age_days": round(max(0.0, now - memory.source_updated_at) / DAY_SECONDS, 1),
        "selected": memory.is_selected,
        "stays_days": left,
        "leaves_not_before": int(now + left * DAY_SECONDS),
        "what_next": fate,
    }


def _fate(memory: Memory, listed: Listed, left: int) -> str:
    if memory.held_because:
        return f"stays out until its session grows ({memory.held_because})"
    if not memory.is_wanted:
        why = memory.excluded or "not to be remembered"
        return f"leaves with the next consolidation ({why})" if memory.is_selected else f"left out ({why})"
    if memory.thread_id not in listed.selected_next:
        if left:
            return f"others rank above it; deleted after {plural(left, 'more day')} with sessions, unless cited"
        return (
            "too long unused: leaves with the next consolidation" if memory.is_selected else "too long unused: deleted"
        )
    coming = "" if memory.is_selected else "comes in with the next consolidation; "
    return f"{coming}stays for {plural(left, 'more day')} with sessions, longer when cited"


def _title(memory: Memory) -> str:
    return first_line(memory.summary, TITLE_CHARACTERS).lstrip("# ") or memory.slug or memory.thread_id


def _lines(row: dict[str, Any]) -> str:
    used = f"used {plural(row['usage_count'], 'time')}, last {moment(row['last_usage'])}"
    return (
        f"{row['thread_id']}  {used if row['usage_count'] else 'never used'}  {row['title']}\n"
        f"    {row['project'] or 'unknown directory'}, {row['age_days']:g} days old: {row['what_next']}"
    )


async def _listed(settings: Settings, now: float) -> Listed:
    async with await Ledger.open(Home(settings.home).ledger_file, clock=SystemClock(), read_only=True) as ledger:
        return await ledger.read(_read, settings, now)


def _read(conn: Connection, settings: Settings, now: float) -> Listed:
    memories = outputs.list_memories(conn)
    selected = outputs.select_for_consolidation(
        conn,
        now=now,
        max_raw_memories=settings.consolidate.max_raw_memories,
        max_unused=settings.consolidate.max_unused,
    )
    return Listed(
        memories,
        frozenset(row.thread_id for row in selected),
        {memory.thread_id: days_since(conn, memory.needed_at, now=now) for memory in memories},
        outputs.unknown_citations(conn),
    )
