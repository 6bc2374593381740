import asyncio

import pytest

from memoryd.clock import SystemClock
from memoryd.daemon.ticker import ClockWatch, Ticker
from tests.support.clock import FakeClock


def moved(watch: ClockWatch) -> tuple[float, float]:
    seen = watch.look()
    assert seen is not None
    return seen.set_by, seen.slept


async def _until(condition: asyncio.Event) -> None:
    await asyncio.wait_for(condition.wait(), timeout=20)


async def test_a_tick_only_sets_what_it_was_given(clock: FakeClock) -> None:
    ticked = asyncio.Event()
    ticker = Ticker({"scan": (0.05, ticked.set)})
    ticker.start(SystemClock())
    try:
        await _until(ticked)
    finally:
        ticker.stop()


async def test_a_tick_that_a_busy_loop_missed_is_made_good_once() -> None:
    ticks: list[float] = []
    ticked = asyncio.Event()
    clock = SystemClock()

    def tick() -> None:
        ticks.append(clock.monotonic())
        ticked.set()

    ticker = Ticker({"scan": (0.2, tick)})
    ticker.start(clock)
    try:
        blocked_until = clock.monotonic() + 1.1
        while clock.monotonic() < blocked_until:
            pass  # the loop cannot run: five ticks are missed
        await _until(ticked)
        assert len(ticks) == 1
    finally:
        ticker.stop()


async def test_rearming_puts_a_tick_back_on_time_after_the_clock_was_set_back() -> None:
    ticked = asyncio.Event()
    ahead = FakeClock(start=SystemClock().now() + 86_400.0)
    ticker = Ticker({"scan": (0.05, ticked.set)})
    ticker.start(ahead)
    try:
        await asyncio.sleep(0.2)
        assert not ticked.is_set()
        ticker.rearm(SystemClock())
        await _until(ticked)
    finally:
        ticker.stop()


async def test_years_of_missed_ticks_are_made_good_by_one_without_counting_them() -> None:
    ticks: list[int] = []
    ticked = asyncio.Event()

    def tick() -> None:
        ticks.append(1)
        ticked.set()

    long_ago = FakeClock(start=SystemClock().now() - 30 * 365 * 86_400.0)
    ticker = Ticker({"scan": (1.0, tick)})
    ticker.start(long_ago)
    try:
        await _until(ticked)
        assert len(ticks) == 1
    finally:
        ticker.stop()


async def test_stopping_twice_is_harmless() -> None:
    ticker = Ticker({})
    ticker.start(SystemClock())
    ticker.stop()
    await asyncio.sleep(0)
    ticker.stop()


@pytest.mark.parametrize("seconds", [7_200.0, -10_800.0])
async def test_a_jump_of_the_wall_clock_is_noticed_once(clock: FakeClock, seconds: float) -> None:
    watch = ClockWatch(clock)
    await clock.advance(100.0)
    assert watch.look() is None
    clock.jump(seconds)
    assert moved(watch) == pytest.approx((seconds, 0.0))
    assert watch.look() is None


async def test_a_sleep_of_the_machine_is_told_from_a_clock_that_was_set(clock: FakeClock) -> None:
    watch = ClockWatch(clock)
    clock.suspend(3_600.0)
    assert moved(watch) == pytest.approx((0.0, 3_600.0))
    clock.suspend(60.0)
    clock.jump(-60.0)
    assert moved(watch) == pytest.approx((-60.0, 60.0))
