"""Limits that agents recorded: kept when a session is read, and asked for a provider that runs that agent."""

import json
from pathlib import Path

import pytest

from memoryd.llm.gate_state import snapshot_json
from memoryd.llm.limits import LimitSnapshot, LimitWindow
from memoryd.pipeline.agent_limits import best_limits, recorded_limits, remember_limits
from memoryd.sources import items
from memoryd.sources.items import RateLimits
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in

NOW = 1_700_000_000.0


def known(limit_id: str, *, resets_in: float, used: float = 90) -> tuple[str, str]:
    snapshot = LimitSnapshot((LimitWindow("primary", used, NOW + resets_in),), NOW - 5)
    return limit_id, json.dumps(snapshot_json(snapshot))


def recorded(at: float, used: float, *, limit_id: str | None = "codex", resets_at: float = NOW + 500) -> RateLimits:
    return RateLimits(at, limit_id, (items.LimitWindow(used, 300, int(resets_at)),), None)


@pytest.mark.parametrize(
    ("snapshots", "resets_in"),
    [
        ([known("other", resets_in=9), known("codex", resets_in=7)], 7),
        ([known("other", resets_in=9), known("codex", resets_in=0)], 9),
        ([known("newer", resets_in=9), known("older", resets_in=7)], 9),
        ([known("codex", resets_in=-1)], None),
        ([], None),
    ],
    ids=["codex is preferred", "unless it is over", "else the newest", "what is over is unknown", "nothing is known"],
)
def test_the_limit_of_the_agent_itself_is_preferred(snapshots: list[tuple[str, str]], resets_in: float | None) -> None:
    best = best_limits(snapshots, NOW)
    assert (best.windows[0].resets_at if best else None) == (None if resets_in is None else NOW + resets_in)


async def test_the_newest_snapshot_stands_whenever_its_session_is_read(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember_limits(context, "codex", recorded(NOW - 10, 80))
        await remember_limits(context, "codex", recorded(NOW - 900, 20))
        await remember_limits(context, "codex", None)
        await remember_limits(context, "codex", RateLimits(None, "codex", (), "primary"))
        found = await recorded_limits(context.ledger, "codex", NOW)
        assert found is not None
        assert [(window.name, window.used_percent) for window in found.windows] == [("primary", 80)]
        assert await recorded_limits(context.ledger, "claude", NOW) is None
        assert await recorded_limits(context.ledger, "codex", NOW + 500) is None


async def test_a_snapshot_from_the_future_is_of_now(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember_limits(context, "codex", recorded(NOW + 86_400, 80))
        await clock.advance(10)
        await remember_limits(context, "codex", recorded(NOW + 5, 30))
        found = await recorded_limits(context.ledger, "codex", clock.now())
        assert found is not None
        assert found.windows[0].used_percent == 30
