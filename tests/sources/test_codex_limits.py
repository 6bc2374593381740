"""Rate limits are read from token_count events in each form that Codex has written."""

import json
from typing import Any

import pytest
from msgspec import Raw

from memoryd.sources.codex_limits import LatestLimits, parse_limits
from memoryd.sources.items import LimitWindow, RateLimits


def limits(at: float | None = 1000.0, **rate_limits: Any) -> RateLimits | None:
    return parse_limits(Raw(json.dumps(rate_limits).encode()), at)


def test_both_windows_are_read_in_order() -> None:
    expected = RateLimits(1000.0, "codex", (LimitWindow(12.5, 300, 2000), LimitWindow(80.0, 10080, 9000)), reached=None)
    assert expected == limits(
        limit_id="codex",
        primary={"used_percent": 12.5, "window_minutes": 300, "resets_at": 2000},
        secondary={"used_percent": 80.0, "window_minutes": 10080, "resets_at": 9000},
        rate_limit_reached_type=None,
    )


def test_seconds_until_the_reset_count_from_the_record() -> None:
    snapshot = limits(primary={"used_percent": 1, "window_minutes": 300, "resets_in_seconds": 60})
    assert snapshot is not None
    assert snapshot.windows == (LimitWindow(1.0, 300, 1060),)
    assert limits(None, primary={"used_percent": 1, "resets_in_seconds": 60}) == RateLimits(
        None, None, (LimitWindow(1.0, None, None),), None
    )


@pytest.mark.parametrize("window", [None, {}, [], "x", {"used_percent": None}, {"used_percent": "12"}])
def test_a_window_that_says_nothing_is_left_out(window: Any) -> None:
    assert limits(limit_id="codex", primary=window, secondary=None) is None


def test_an_event_without_limits_gives_none() -> None:
    assert parse_limits(Raw(b"null"), 1.0) is None
    assert parse_limits(None, 1.0) is None


@pytest.mark.parametrize(("reached", "expected"), [("primary", "primary"), ({"kind": "x"}, '{"kind":"x"}'), ("", None)])
def test_a_reached_limit_is_named(reached: Any, expected: str | None) -> None:
    snapshot = limits(rate_limit_reached_type=reached, primary={"used_percent": 100})
    assert snapshot is not None
    assert snapshot.reached == expected


def test_a_reached_limit_without_windows_is_still_a_snapshot() -> None:
    assert limits(rate_limit_reached_type="workspace") == RateLimits(1000.0, None, (), "workspace")


def test_the_latest_snapshot_of_the_limit_codex_is_preferred() -> None:
    def snapshot(at: float, limit_id: str | None) -> RateLimits:
        return RateLimits(at, limit_id, (), "x")

    latest = LatestLimits()
    best = [latest.best]
    for seen in (snapshot(1, None), snapshot(2, "codex"), snapshot(3, "codex"), None, snapshot(4, "codex_other")):
        latest.see(seen)
        best.append(latest.best)
    preferred = snapshot(3, "codex")
    assert best == [None, snapshot(1, None), snapshot(2, "codex"), preferred, preferred, preferred]
