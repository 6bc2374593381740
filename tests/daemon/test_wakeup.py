import asyncio

from memoryd.daemon.wakeup import Wakeup
from tests.support.clock import FakeClock


async def test_a_wakeup_that_was_set_before_the_wait_is_not_lost(clock: FakeClock) -> None:
    wakeup = Wakeup()
    wakeup.set()
    wakeup.set()
    assert await wakeup.wait(clock, 10.0) is True
    waiting = asyncio.create_task(wakeup.wait(clock, 10.0))
    await clock.sleeping(1)
    await clock.advance(10.0)
    assert await waiting is False


async def test_setting_ends_a_wait_before_its_time(clock: FakeClock) -> None:
    wakeup = Wakeup()
    waiting = asyncio.create_task(wakeup.wait(clock, 1_000.0))
    await clock.sleeping(1)
    wakeup.set()
    assert await waiting is True


async def test_a_wait_without_a_limit_lasts_until_it_is_set(clock: FakeClock) -> None:
    wakeup = Wakeup()
    waiting = asyncio.create_task(wakeup.wait(clock))
    await asyncio.sleep(0)
    assert not waiting.done()
    wakeup.set()
    assert await waiting is True
