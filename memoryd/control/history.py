"""What sending history would take: the sessions that consent would let go, and an upper bound of tokens and cost.

One request a session is counted, as large as its file or the budget of a request allows, with the longest answer; and
the consolidations that follow, each with all that one run may take. The caps of [limits] bound each day in any case.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Final

from memoryd.clock import SystemClock
from memoryd.config import Prices, Provider, Settings
from memoryd.control.console import plural
from memoryd.control.knowledge import judge
from memoryd.errors import SourceError
from memoryd.ledger import facts, meta, sessions
from memoryd.ledger.active_days import unused_before
from memoryd.ledger.database import Ledger
from memoryd.ledger.scratch import scratch
from memoryd.ledger.sessions import SessionRow
from memoryd.llm.question import Usage
from memoryd.llm.spend import cost_of
from memoryd.pipeline import prompting
from memoryd.pipeline.context import Agent
from memoryd.pipeline.discover import NO_LIMIT
from memoryd.pipeline.eligibility import Waiting, waiting, window
from memoryd.pipeline.extract import BYTES_PER_TOKEN, input_budget, output_budget
from memoryd.pipeline.sighting import look_at
from memoryd.redact import Redactor
from memoryd.text import estimate_tokens
from memoryd.workspace.layout import Home

QUICKEST_SESSION_SECONDS: Final = 10.0
"""No model reads a session faster: so many sessions at the most come between two consolidations."""
SHORTEST_ROUND_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Bound:
    """At most so much: requests for sessions, their tokens, the runs that follow, theirs. `cost` None: no prices."""

    sessions: int
    tokens: int
    consolidations: int
    consolidation_tokens: int
    cost: float | None


def history(
    conn: Connection, settings: Settings, *, now: float, first_start_at: int, backfill: str
) -> list[SessionRow]:
    """Return the sessions that this consent would let go, newest first; those that still rest count too."""
    when = window(
        now=now,
        discover=settings.discover,
        useful_from=unused_before(conn, now=now, max_unused=settings.consolidate.max_unused),
        first_start_at=first_start_at,
        backfill=backfill,
    )
    rows = sessions.due(conn, idle_before=float("inf"), newest_from=None, limit=NO_LIMIT)
    return [
        row
        for row in rows
        if row.updated_at < first_start_at and waiting(row.updated_at, when) in {None, Waiting.TOO_FRESH}
    ]


def bound(
    settings: Settings, extract: Provider, consolidate: Provider, sizes: Sequence[int], bytes_per_token: float
) -> Bound:
    """Work out the upper bound for sessions of these sizes (bytes)."""
    budget = input_budget(settings.extract.max_input_tokens, extract.context_window)
    around = estimate_tokens(sum(len(prompting.load_prompt(f"stage1_{name}").encode()) for name in ("system", "input")))
    read = sum(min(budget, math.ceil(size / bytes_per_token)) + around for size in sizes)
    written = len(sizes) * output_budget(extract.context_window)
    runs = _consolidations(settings, len(sizes))
    of_runs = runs * settings.consolidate.max_tokens
    cost = None
    if _are_set(extract.prices) and _are_set(consolidate.prices):
        dearest = max(consolidate.prices.input, consolidate.prices.output)
        cost = cost_of(Usage(input=read, output=written), extract.prices) + of_runs * dearest / 1_000_000
    return Bound(len(sizes), read + written, runs, of_runs, cost)


def sentence(found: Bound) -> str:
    """Tell a bound to a person."""
    money = "cost not known: no prices are set" if found.cost is None else f"at most {found.cost:.2f} USD"
    return (
        f"{plural(found.sessions, 'session')}, newest first: at most {found.tokens:,} tokens, and"
        f" {found.consolidation_tokens:,} for {plural(found.consolidations, 'consolidation')}; {money}"
    )


async def waiting_history(settings: Settings) -> dict[str, Bound]:
    """Return what `recent` and `all` would let go, as the ledger knows it; nothing where there is no ledger."""
    file = Home(settings.home).ledger_file
    if not file.exists():
        return {}
    async with await Ledger.open(file, clock=SystemClock(), read_only=True) as ledger:
        return await ledger.read(_bounds, settings, SystemClock().now())


def history_in_folders(settings: Settings, agents: Mapping[str, Agent]) -> dict[str, list[int]]:
    """Look through the agents' folders before there is a ledger; the sizes of what each consent would let go."""
    now = SystemClock().now()
    redactor = Redactor(settings.privacy.patterns)
    with scratch() as conn:
        for agent in agents.values():
            for file in agent.reader.find(agent.homes):
                try:
                    row = sessions.upsert(conn, look_at(agent, file, redactor), now=0)
                except SourceError:
                    continue
                sessions.set_excluded(conn, row.thread_id, judge(settings, row))
        return {
            backfill: [
                row.record_bytes
                for row in history(conn, settings, now=now, first_start_at=math.ceil(now), backfill=backfill)
            ]
            for backfill in ("recent", "all")
        }


def _bounds(conn: Connection, settings: Settings, now: float) -> dict[str, Bound]:
    extract, consolidate = settings.provider_for("extract"), settings.provider_for("consolidate")
    ratio = facts.bytes_per_token(conn, extract.name, extract.model) or BYTES_PER_TOKEN
    first_start_at = int(meta.get(conn, meta.FIRST_START) or now)
    found = {}
    for backfill in ("recent", "all"):
        rows = history(conn, settings, now=now, first_start_at=first_start_at, backfill=backfill)
        sizes = [row.record_bytes for row in rows]
        found[backfill] = bound(settings, extract.provider, consolidate.provider, sizes, ratio)
    return found


def _consolidations(settings: Settings, count: int) -> int:
    """Return how many runs so many sessions can lead to: one at the end, and one an interval while they are read."""
    if count == 0:
        return 0
    interval = max(settings.consolidate.min_interval, settings.consolidate.debounce, SHORTEST_ROUND_SECONDS)
    reading = count * QUICKEST_SESSION_SECONDS / settings.extract.concurrency
    return min(count, 1 + int(reading // interval))


def _are_set(prices: Prices) -> bool:
    return bool(prices.input or prices.output)
