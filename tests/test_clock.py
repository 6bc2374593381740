"""The system's clock, and the clock that tests move."""

import asyncio
import threading
from datetime import timedelta, timezone
from pathlib import Path

import pytest

from memoryd.clock import SystemClock, in_calendar, rfc3339, uptime, utc_day
from tests.support.clock import FakeClock


async def test_the_system_clock_waits_without_going_back() -> None:
    system = SystemClock()
    before, wall = system.monotonic(), system.now()
    await system.sleep(-1)
    await system.sleep(0.001)
    assert system.monotonic() > before
    assert system.now() > wall - 3600


def test_instants_are_written_in_utc() -> None:
    assert rfc3339(1_795_945_095.9) == "2026-11-29T09:38:15+00:00"
    assert utc_day(1_795_945_095.9) == "2026-11-29"


@pytest.mark.parametrize(
    ("instant", "day"), [(-(2.0**62), "1000-01-02"), (2.0**62, "9999-12-30"), (-1.0, "1969-12-31")]
)
def test_an_instant_in_no_year_of_four_digits_becomes_the_nearest_that_is(instant: float, day: str) -> None:
    assert utc_day(instant) == rfc3339(instant)[:10] == day
    for hours in (-14, 14):
        assert in_calendar(instant).astimezone(timezone(timedelta(hours=hours))).tzinfo is not None


async def test_the_fake_clock_stands_still_until_it_is_moved(clock: FakeClock) -> None:
    start = clock.now()
    await clock.advance(90)
    assert (clock.now() - start, clock.monotonic()) == (90, 90)


async def test_sleepers_wake_in_the_order_in_which_they_are_due_each_at_its_instant(clock: FakeClock) -> None:
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        for name, seconds in (("late", 30.0), ("early", 10.0), ("also early", 10.0), ("never", 99.0)):
            group.create_task(sleeper(name, seconds))
        await clock.sleeping(4)
        await clock.advance(50)
        assert woken == [("early", 10), ("also early", 10), ("late", 30)]
        assert clock.asleep() == 1
        await clock.advance(49)
    assert woken[-1] == ("never", 99)


async def test_a_loop_that_sleeps_again_is_served_within_one_advance(clock: FakeClock) -> None:
    ticks: list[float] = []

    async def tick() -> None:
        while len(ticks) < 50:
            await clock.sleep(10)
            ticks.append(clock.monotonic())

    task = asyncio.create_task(tick())
    await clock.sleeping(1)
    await clock.advance(500)
    await task
    assert ticks == [10.0 * n for n in range(1, 51)]


async def test_the_barrier_waits_for_a_task_that_is_busy_in_a_thread(clock: FakeClock) -> None:
    release = threading.Event()

    async def work_and_sleep() -> None:
        await asyncio.to_thread(release.wait)
        await clock.sleep(5)

    task = asyncio.create_task(work_and_sleep())
    asyncio.get_running_loop().call_later(0.02, release.set)
    await clock.sleeping(1)
    await clock.advance(5)
    await task


async def test_the_barrier_fails_the_test_when_nobody_comes_to_sleep(clock: FakeClock) -> None:
    with pytest.raises(AssertionError, match="waited for 1 sleeping tasks, there are 0"):
        await clock.sleeping(1, patience_seconds=0.01)


async def test_a_cancelled_sleeper_is_forgotten(clock: FakeClock) -> None:
    task = asyncio.create_task(clock.sleep(5))
    await clock.sleeping(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert clock.asleep() == 0
    await clock.advance(10)
    assert clock.monotonic() == 10


async def test_no_time_passes_in_a_sleep_of_nothing_and_endless_ones_are_refused(clock: FakeClock) -> None:
    await clock.sleep(0)
    assert clock.monotonic() == 0
    with pytest.raises(ValueError, match="finite"):
        await clock.sleep(float("nan"))


async def test_a_jump_moves_the_wall_clock_alone(clock: FakeClock) -> None:
    start = clock.now()
    clock.jump(-3600)
    assert (clock.now() - start, clock.monotonic()) == (-3600, 0)


def test_the_system_counts_the_time_since_boot_and_says_which_boot_it_was() -> None:
    first, second = SystemClock().uptime(), SystemClock().uptime()
    assert first.boot == second.boot
    assert second.seconds >= first.seconds >= 0


def test_where_the_kernel_names_no_boot_a_process_is_comparable_with_itself_alone(tmp_path: Path) -> None:
    first, second = uptime(tmp_path / "none"), uptime(tmp_path / "none")
    assert first.boot == second.boot
    assert first.boot.startswith("process-")
    assert not first.counts_sleep


async def test_the_fake_clock_sleeps_and_boots_as_a_machine_does(clock: FakeClock) -> None:
    start = clock.now()
    await clock.advance(10)
    clock.suspend(100)
    assert (clock.now() - start, clock.monotonic(), clock.uptime().seconds) == (110, 10, 110)
    before = clock.uptime()
    clock.reboot()
    assert (clock.uptime().seconds, clock.uptime().boot == before.boot) == (0, False)
