"""The limits that agents record in their own sessions: kept when a session is read, asked when such an agent is run.

They are the limits of the person's subscription, so they speak only for a provider that runs this very agent.
"""

import json
from collections.abc import Sequence
from typing import Final

from memoryd.ledger import facts
from memoryd.ledger.database import Ledger
from memoryd.llm.gate_state import read_snapshot, snapshot_json
from memoryd.llm.limits import LimitSnapshot, LimitWindow, says_something
from memoryd.pipeline.context import Context
from memoryd.sources.items import RateLimits

PREFERRED: Final = "codex"
NAMES: Final = ("primary", "secondary")
"""How windows are called in messages, in their order."""


async def remember_limits(context: Context, agent: str, limits: RateLimits | None) -> None:
    """Keep what a session said of its agent's limits; the newest that any session said stand."""
    if limits is None or limits.seen_at is None:
        return
    seen_at = min(limits.seen_at, context.clock.now())
    text = json.dumps(snapshot_json(_snapshot(limits, seen_at)))
    await context.ledger.write(facts.put_agent_limits, agent, limits.limit_id or "", text, seen_at=seen_at)


async def recorded_limits(ledger: Ledger, agent: str, now: float) -> LimitSnapshot | None:
    """Return what an agent's sessions say of its limits, None when nothing of it holds any more."""
    return best_limits(await ledger.read(facts.agent_limits, agent), now)


def best_limits(known: Sequence[tuple[str, str]], now: float) -> LimitSnapshot | None:
    """Choose from what is known (id of the limit, recorded text; newest first): the limit `codex`, else the newest."""
    snapshots = [
        (limit_id, snapshot)
        for limit_id, text in known
        if (snapshot := read_snapshot(json.loads(text))) is not None and says_something(snapshot, now)
    ]
    return next(
        (snapshot for limit_id, snapshot in snapshots if limit_id == PREFERRED),
        snapshots[0][1] if snapshots else None,
    )


def _snapshot(limits: RateLimits, seen_at: float) -> LimitSnapshot:
    windows = tuple(
        LimitWindow(name, window.used_percent, window.resets_at, window.window_minutes)
        for name, window in zip(NAMES, limits.windows, strict=False)
    )
    return LimitSnapshot(windows, seen_at, limits.reached)
