"""When to try again."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.ledger.policy import (
    ConsolidateTiming,
    Wait,
    after_crash,
    consolidation_wait,
    lease_is_live,
    newest_first,
    retry_delay,
)

TIMING = ConsolidateTiming(debounce=120, min_interval=1800)


@given(
    attempt=st.integers(-5, 10_000),
    base=st.floats(0, 1e6),
    cap=st.floats(0, 1e6),
    seed=st.integers(0, 2**32),
)
def test_a_delay_is_between_half_and_all_of_its_capped_power(attempt: int, base: float, cap: float, seed: int) -> None:
    ceiling = min(cap, base * 2.0 ** min(max(attempt, 1) - 1, 62))

    delay = retry_delay(attempt, base, cap, random.Random(seed))

    assert 0.5 * ceiling <= delay <= ceiling


def test_delays_double() -> None:
    delays = [retry_delay(attempt, 60, 21_600, random.Random(1)) for attempt in (1, 2, 3)]

    assert delays == [delays[0], delays[0] * 2, delays[0] * 4]


def test_a_negative_setting_makes_no_negative_delay() -> None:
    assert retry_delay(1, -60, -1, random.Random(1)) == 0


@pytest.mark.parametrize(
    ("now", "live"),
    [(99.0, True), (99.9, True), (100.0, False), (101.0, False), (-80.0, True), (-82.0, False)],
)
def test_a_lease_is_live_until_its_end_and_not_before_it_can_have_begun(now: float, *, live: bool) -> None:
    assert lease_is_live(lease_until=100, lease_seconds=180, now=now) == live


@given(now=st.floats(0, 2e9), seconds=st.floats(0.1, 1e5))
def test_a_lease_taken_now_is_live_now(now: float, seconds: float) -> None:
    import math

    assert lease_is_live(lease_until=math.ceil(now + seconds), lease_seconds=seconds, now=now)


@pytest.mark.parametrize(
    ("crashes", "now", "expected"),
    [
        (1, 200.5, Wait(200)),
        (2, 200.5, Wait(200)),
        (3, 200.5, Wait(1100, "crash")),
        (9, 200.5, Wait(1100, "crash")),
        (3, 1100.0, Wait(1100)),
        (3, 5000.5, Wait(5000)),
        (3, 50.0, Wait(1050, "crash")),
    ],
)
def test_from_the_third_crash_on_tries_are_the_cap_apart(crashes: int, now: float, expected: Wait) -> None:
    assert after_crash(crash_count=crashes, started_at=100, now=now, retry_cap=1000) == expected


@pytest.mark.parametrize(
    ("now", "first", "success", "expected"),
    [
        pytest.param(1000, 1000, None, Wait(1120, "debounce"), id="waits for quiet"),
        pytest.param(1000.5, 1000, None, Wait(1121, "debounce"), id="whole seconds, never early"),
        pytest.param(1550, 1000, None, Wait(1600, "debounce"), id="not for ever"),
        pytest.param(1700, 1000, None, Wait(1700), id="waited long enough"),
        pytest.param(1000, 1000, 900, Wait(2700, "min_interval"), id="not soon after a success"),
        pytest.param(2690, 2690, 900, Wait(2810, "debounce"), id="the longer wait names the reason"),
        pytest.param(1000, 1000, 999_999, Wait(2800, "min_interval"), id="a success in the future counts as now"),
        pytest.param(1000, 999_999, None, Wait(1120, "debounce"), id="an enqueue in the future counts as now"),
    ],
)
def test_consolidation_waits_for_quiet_and_distance(
    now: float, first: int, success: int | None, expected: Wait
) -> None:
    assert consolidation_wait(now=now, timing=TIMING, first_enqueued_at=first, last_success_at=success) == expected


def test_without_waits_consolidation_may_start_at_once() -> None:
    timing = ConsolidateTiming(debounce=0, min_interval=0)

    assert consolidation_wait(now=10.7, timing=timing, first_enqueued_at=10, last_success_at=10) == Wait(10)


@given(now=st.floats(1e9, 2e9), ages=st.lists(st.integers(-100, 300 * 86_400), min_size=2, max_size=5, unique=True))
def test_ready_sessions_are_taken_newest_first(now: float, ages: list[int]) -> None:
    ages = sorted(age for age in ages if age >= 0)
    places = [newest_first(now, int(now) - age) for age in ages]

    assert places == sorted(places)
    assert all(place <= now for place in places)


def test_a_fresh_session_goes_before_history_that_has_waited_for_a_day() -> None:
    history = newest_first(1e9, int(1e9) - 9 * 86_400)

    assert newest_first(1e9 + 86_400, int(1e9) + 80_000) < history
