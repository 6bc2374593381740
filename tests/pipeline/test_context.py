import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from memoryd.pipeline.context import in_thread, threads_ended, while_wanted


async def test_what_blocking_work_returns_or_raises_comes_to_the_caller() -> None:
    assert await in_thread(sorted, [2, 1], reverse=True) == [2, 1]
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 // 0)


async def test_a_long_reading_ends_when_nobody_waits_for_it_any_more() -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def endless() -> Iterator[int]:
        while True:
            begun.set()
            yield 1
            go_on.wait()

    def read() -> int:
        try:
            return sum(while_wanted(endless()))
        finally:
            ended.set()

    reading = asyncio.create_task(in_thread(read))
    await asyncio.to_thread(begun.wait)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    go_on.set()

    assert await asyncio.to_thread(ended.wait, 30)


async def test_what_was_cancelled_is_waited_for_if_it_has_begun_and_never_begins_otherwise() -> None:
    """Forgetting waits for threads that may still write; one that never came to run would keep it waiting for ever."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    both_busy, go_on = threading.Barrier(3), threading.Event()
    done: list[str] = []

    def write(name: str) -> None:
        both_busy.wait()
        go_on.wait()
        done.append(name)

    begun = [asyncio.create_task(in_thread(write, name)) for name in ("first", "second")]
    await asyncio.get_running_loop().run_in_executor(ThreadPoolExecutor(1), both_busy.wait)
    queued = asyncio.create_task(in_thread(done.append, "third"))
    await asyncio.sleep(0)
    for task in (*begun, queued):
        task.cancel()
    assert [type(error) for error in await asyncio.gather(*begun, queued, return_exceptions=True)] == [
        asyncio.CancelledError
    ] * 3
    waiting = asyncio.create_task(threads_ended())
    await asyncio.sleep(0)
    assert not waiting.done()
    go_on.set()

    await waiting

    assert sorted(done) == ["first", "second"]
    await asyncio.wait_for(threads_ended(), 30)


def test_whoever_reads_for_itself_reads_everything() -> None:
    assert list(while_wanted(range(3))) == [0, 1, 2]
