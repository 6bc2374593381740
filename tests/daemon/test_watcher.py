import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from watchfiles._rust_notify import WatchfilesRustInternalError

from memoryd.daemon.watcher import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, Pace, watch
from tests.support.clock import FakeClock
from tests.support.log_lines import LogLines

PATIENCE_SECONDS = 30


@asynccontextmanager
async def watching(
    roots: Callable[[], Sequence[Path]], wake: Callable[[], None], clock: FakeClock, *, look_again_ms: int = 60_000
) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(watch(roots, wake, clock, pace=Pace(50, 200, look_again_ms)))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def change_until(condition: Callable[[], bool], folder: Path) -> None:
    """Change something now and then until the watcher, which may be still starting, has noticed."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        number = 0
        while not condition():
            if folder.is_dir() and number % 15 == 0:
                (folder / f"{number}.jsonl").write_text("{}\n")
            number += 1
            await asyncio.sleep(0.1)


async def test_a_change_below_a_root_wakes_the_scan(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "sessions").mkdir()
    woken = asyncio.Event()
    async with watching(lambda: [tmp_path], woken.set, clock):
        await change_until(woken.is_set, tmp_path / "sessions")


async def test_without_any_root_it_looks_again_after_a_growing_pause(tmp_path: Path, clock: FakeClock) -> None:
    log = LogLines()
    async with watching(lambda: [tmp_path / "nowhere"], lambda: None, clock):
        pause = FIRST_PAUSE_SECONDS
        for _ in range(9):
            await clock.sleeping(1)
            await clock.advance(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        await clock.sleeping(1)

    waits = [line["retry_in"] for line in log.events("watcher.failed")]
    assert waits == [5, 10, 20, 40, 80, 160, 320, 600, 600, 600]


async def test_a_root_that_is_made_anew_is_watched_again(tmp_path: Path, clock: FakeClock) -> None:
    """The watcher itself would never see it again."""
    root = tmp_path / "sessions"
    root.mkdir()
    woken = asyncio.Event()
    async with watching(lambda: [root], woken.set, clock, look_again_ms=200):
        await change_until(woken.is_set, root)
        root.rename(tmp_path / "old")
        root.mkdir()
        await clock.sleeping(1)  # it has noticed, and pauses before it restarts
        woken.clear()
        await clock.advance(FIRST_PAUSE_SECONDS)
        await change_until(woken.is_set, root)


@pytest.mark.parametrize(
    "trouble",
    [
        OSError(28, "no space left on device"),
        RuntimeError("too many instances"),
        WatchfilesRustInternalError("Too many open files (os error 24)"),
        UnicodeError("odd name"),
    ],
)
async def test_whatever_ends_the_watch_only_pauses_it(tmp_path: Path, clock: FakeClock, trouble: Exception) -> None:
    """A wake-up that fails stands for the watch that fails: both come out of the same loop."""
    log = LogLines()
    woken = asyncio.Event()
    troubles = [trouble]

    def wake() -> None:
        if troubles:
            raise troubles.pop()
        woken.set()

    async with watching(lambda: [tmp_path], wake, clock) as task:
        await change_until(lambda: clock.asleep() > 0, tmp_path)
        await clock.advance(FIRST_PAUSE_SECONDS)
        await change_until(woken.is_set, tmp_path)
        assert not task.done()
    (line,) = log.events("watcher.failed")
    assert type(trouble).__name__ in line["error"]
    assert line["retry_in"] == FIRST_PAUSE_SECONDS


async def test_what_changed_is_passed_on_before_anybody_wakes(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "sessions").mkdir()
    hinted: set[str] = set()
    woken = asyncio.Event()

    def wake() -> None:
        assert hinted
        woken.set()

    task = asyncio.create_task(watch(lambda: [tmp_path], wake, clock, pace=Pace(50, 200, 60_000), hint=hinted.update))
    try:
        await change_until(woken.is_set, tmp_path / "sessions")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert {Path(path).parent for path in hinted} <= {tmp_path, tmp_path / "sessions"}


async def test_a_root_that_appears_while_another_is_watched_is_watched_too(tmp_path: Path, clock: FakeClock) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    woken = asyncio.Event()
    async with watching(lambda: [first, second], woken.set, clock, look_again_ms=200):
        await change_until(woken.is_set, first)
        second.mkdir()
        await clock.sleeping(1)  # it has noticed, and pauses before it restarts
        woken.clear()
        await clock.advance(FIRST_PAUSE_SECONDS)
        await change_until(woken.is_set, second)


async def test_names_that_are_no_text_end_no_watch_for_good(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "sessions").mkdir()
    woken = asyncio.Event()
    async with watching(lambda: [tmp_path], woken.set, clock) as task:
        await change_until(woken.is_set, tmp_path / "sessions")
        with suppress(OSError):
            os.close(os.open(os.fsencode(tmp_path) + b"/sessions/\xff\xfe.jsonl", os.O_CREAT | os.O_WRONLY, 0o600))
        woken.clear()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not woken.is_set():
                if clock.asleep():
                    await clock.advance(LONGEST_PAUSE_SECONDS)
                (tmp_path / "sessions" / "more.jsonl").write_text("{}")
                await asyncio.sleep(0.1)
        assert not task.done()
