"""A hint that something changed in the sessions folders. The scan is the truth: whatever goes wrong here is survivable.

watchfiles misses files in brand-new folders, never sees a root that is re-created, and ends on odd file names or when
the machine's watches run out; so it restarts with a growing pause, and nobody relies on it.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR

from watchfiles import awatch
from watchfiles._rust_notify import WatchfilesRustInternalError

from memoryd.clock import Clock
from memoryd.logs import get

log = get()

FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 600.0
TROUBLES = (OSError, RuntimeError, WatchfilesRustInternalError, UnicodeError)
"""What watchfiles ends on: no root, no watches left, a name that is no text; alone or in a group of one."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often the watcher stirs, in milliseconds.

    It gathers changes in steps until one brings none, for `debounce_ms` at most; after `look_again_ms` without a change
    it looks whether roots came, went or were made anew.
    """

    step_ms: int = 1_000
    debounce_ms: int = 5_000
    look_again_ms: int = 60_000


CALM = Pace()
"""One wake-up of the processor a second, where the watcher's own defaults make twenty."""


def nobody(_paths: Collection[str]) -> None:
    """Take no hint."""


async def watch(
    roots: Callable[[], Sequence[Path]],
    wake: Callable[[], None],
    clock: Clock,
    *,
    pace: Pace = CALM,
    hint: Callable[[Collection[str]], None] = nobody,
) -> None:
    """Call `wake` whenever something under the roots changes, until cancelled; `roots` is asked at each restart.

    Before that, `hint` is told what changed, as far as the watcher noticed.
    """

    def changed(paths: Collection[str]) -> None:
        hint(paths)
        wake()

    pause = FIRST_PAUSE_SECONDS
    while True:
        failure = await _watch_once(roots, changed, pace) if _existing(roots()) else "no root exists"
        if failure is None:
            pause = FIRST_PAUSE_SECONDS
        else:
            log.warning("watcher.failed", error=failure, retry_in=pause, roots=len(roots()))
        await clock.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


async def _watch_once(
    roots: Callable[[], Sequence[Path]], changed: Callable[[Collection[str]], None], pace: Pace
) -> str | None:
    """Watch until the watcher fails (return why), or no longer watches what there is (None)."""
    stop = asyncio.Event()
    watched = _existing(roots())
    try:
        async for changes in awatch(
            *watched,
            watch_filter=None,
            stop_event=stop,
            step=pace.step_ms,
            debounce=pace.debounce_ms,
            rust_timeout=pace.look_again_ms,
            yield_on_timeout=True,
            recursive=True,
            ignore_permission_denied=True,
        ):
            if changes:
                changed({path for _kind, path in changes})
            elif _existing(roots()) != watched:
                changed(())
                return None
    except TROUBLES as error:
        return f"{type(error).__name__}: {error}"
    except ExceptionGroup as several:
        if several.split(TROUBLES)[1] is not None:
            raise
        return "; ".join(f"{type(error).__name__}: {error}" for error in several.exceptions)
    finally:
        stop.set()
    return None


def _existing(roots: Sequence[Path]) -> dict[Path, tuple[int, int]]:
    """Return the roots that are folders now, each with its device and inode."""
    found = {}
    for root in roots:
        with suppress(OSError):
            stat = root.stat()
            if S_ISDIR(stat.st_mode):
                found[root] = (stat.st_dev, stat.st_ino)
    return found
