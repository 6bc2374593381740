"""The gate of remaining quota, and the headers that feed it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.llm.limits import (
    UNDATED_HOLD_SECONDS,
    Allowed,
    LimitSnapshot,
    LimitWindow,
    RefusedUntil,
    may_ask,
    parse_limits,
)

NOW = 1_700_000_000.0


def a_snapshot(used: float, resets_at: float | None = NOW + 60, reached: str | None = None) -> LimitSnapshot:
    return LimitSnapshot((LimitWindow("primary", used, resets_at),), seen_at=NOW, reached=reached)


def test_unknown_limits_allow() -> None:
    assert may_ask(None, 25, NOW) == Allowed()


def test_exactly_the_wished_remainder_passes() -> None:
    assert may_ask(a_snapshot(75.0), 25, NOW) == Allowed()


def test_less_than_the_wished_remainder_is_refused_until_the_reset() -> None:
    assert may_ask(a_snapshot(75.1), 25, NOW) == RefusedUntil(NOW + 60, "primary limit is 75 % used")


def test_a_window_whose_reset_has_passed_is_unknown_not_full() -> None:
    assert may_ask(a_snapshot(100.0, resets_at=NOW), 25, NOW) == Allowed()


def test_a_full_window_without_a_reset_holds_for_a_while_only() -> None:
    snapshot = a_snapshot(100.0, resets_at=None)
    assert may_ask(snapshot, 25, NOW) == RefusedUntil(NOW + UNDATED_HOLD_SECONDS, "primary limit is 100 % used")
    assert may_ask(snapshot, 25, NOW + UNDATED_HOLD_SECONDS) == Allowed()


def test_a_short_window_without_a_reset_holds_for_its_own_length() -> None:
    window = LimitWindow("primary", 100.0, None, window_minutes=1)
    assert may_ask(LimitSnapshot((window,), NOW), 25, NOW + 60) == Allowed()


def test_a_reached_limit_refuses_whatever_the_percentages() -> None:
    assert may_ask(a_snapshot(0.0, reached="credits"), 25, NOW) == RefusedUntil(NOW + 60, "credits limit is reached")


def test_a_reached_limit_without_windows_holds_for_a_while_only() -> None:
    snapshot = LimitSnapshot((), seen_at=NOW, reached="credits")
    assert isinstance(may_ask(snapshot, 25, NOW + 1), RefusedUntil)
    assert may_ask(snapshot, 25, NOW + UNDATED_HOLD_SECONDS) == Allowed()


def test_the_latest_reset_of_the_full_windows_counts() -> None:
    windows = (LimitWindow("primary", 90, NOW + 60), LimitWindow("secondary", 80, NOW + 600))
    assert may_ask(LimitSnapshot(windows, NOW), 25, NOW) == RefusedUntil(NOW + 600, "secondary limit is 80 % used")


@pytest.mark.parametrize(
    ("headers", "window"),
    [
        (
            {
                "X-RateLimit-Limit-Requests": "100",
                "x-ratelimit-remaining-requests": "25",
                "x-ratelimit-reset-requests": "1m30s",
            },
            LimitWindow("requests", 75.0, NOW + 90),
        ),
        (
            {
                "x-ratelimit-limit-tokens": "200",
                "x-ratelimit-remaining-tokens": "200",
                "x-ratelimit-reset-tokens": "120ms",
            },
            LimitWindow("tokens", 0.0, NOW + 0.12),
        ),
        (
            {"x-ratelimit-limit": "10", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700000060000"},
            LimitWindow("requests", 100.0, NOW + 60),
        ),
        (
            {
                "x-codex-primary-used-percent": "42.5",
                "x-codex-primary-window-minutes": "300",
                "x-codex-primary-reset-at": "1700000600",
            },
            LimitWindow("primary", 42.5, NOW + 600, 300),
        ),
        (
            {"x-codex-secondary-used-percent": "9", "x-codex-secondary-reset-after-seconds": "30"},
            LimitWindow("secondary", 9, NOW + 30),
        ),
        (
            {
                "anthropic-ratelimit-input-tokens-limit": "1000",
                "anthropic-ratelimit-input-tokens-remaining": "100",
                "anthropic-ratelimit-input-tokens-reset": "2023-11-14T22:14:20Z",
            },
            LimitWindow("input-tokens", 90.0, NOW + 60),
        ),
        (
            {
                "anthropic-ratelimit-unified-5h-utilization": "0.5",
                "anthropic-ratelimit-unified-5h-reset": "2023-11-14T22:14:20",
            },
            LimitWindow("5h", 50.0, NOW + 60),
        ),
    ],
)
def test_a_window_is_read_from_the_headers_of_each_vendor(headers: dict[str, str], window: LimitWindow) -> None:
    snapshot = parse_limits(headers, NOW)
    assert snapshot is not None
    (found,) = snapshot.windows
    assert (found.name, found.window_minutes) == (window.name, window.window_minutes)
    assert found.used_percent == pytest.approx(window.used_percent)
    assert found.resets_at == pytest.approx(window.resets_at)


def test_a_reached_limit_is_read_from_its_header() -> None:
    snapshot = parse_limits({"x-codex-rate-limit-reached-type": "weekly"}, NOW)
    assert snapshot == LimitSnapshot((), NOW, "weekly")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-ratelimit-limit-requests": "100"},
        {"x-ratelimit-limit-requests": "0", "x-ratelimit-remaining-requests": "0"},
        {"x-ratelimit-limit-requests": "many", "x-ratelimit-remaining-requests": "few"},
        {"x-codex-primary-used-percent": "nan"},
        {"anthropic-ratelimit-unified-5h-utilization": "half"},
    ],
)
def test_headers_that_say_nothing_make_no_snapshot(headers: dict[str, str]) -> None:
    assert parse_limits(headers, NOW) is None


def test_a_reset_that_cannot_be_understood_is_unknown() -> None:
    snapshot = parse_limits({"x-codex-primary-used-percent": "1", "x-codex-primary-reset-at": "tomorrow"}, NOW)
    assert snapshot == LimitSnapshot((LimitWindow("primary", 1, None),), NOW)


@given(
    st.dictionaries(
        st.sampled_from(["x-ratelimit-limit-a", "x-ratelimit-remaining-a", "x-ratelimit-reset-a"]), st.text(max_size=12)
    )
)
def test_no_header_value_breaks_the_parser(headers: dict[str, str]) -> None:
    parse_limits(headers, NOW)
