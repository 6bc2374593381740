import asyncio
import threading
from collections.abc import Iterator

import pytest

from memoryd.pipeline.context import in_thread, while_wanted


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


def test_whoever_reads_for_itself_reads_everything() -> None:
    assert list(while_wanted(range(3))) == [0, 1, 2]
