"""A hint that something changed in the sessions folders. The scan is the truth: whatever goes wrong here is survivable.

watchfiles misses files in brand-new folders, never sees a root that is re-created, and ends on odd file names or when
the machine's watches run out; so it restarts with a growing pause, and nobody relies on it.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from watchfiles import awatch
from watchfiles._rust_notify import WatchfilesRustInternalError

from memoryd.clock import Clock
from memoryd.logs import get

log = get()

# Gather changes for this long before one wake-up (milliseconds): one a second at most.
STEP_MS = 1_000
DEBOUNCE_MS = 5_000
RUST_TIMEOUT_MS = 60_000
FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 600.0


async def watch(roots: Callable[[], Sequence[Path]], wake: Callable[[], None], clock: Clock) -> None:
    """Call `wake` whenever something under the roots changes, until cancelled; `roots` is asked at each restart."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        existing = [root for root in roots() if root.is_dir()]
        failure = await _watch_once(existing, wake) if existing else "no root exists"
        if failure is None:
            pause = FIRST_PAUSE_SECONDS
        else:
            log.warning("watcher.failed", error=failure, retry_in=pause, roots=len(existing))
        await clock.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


async def _watch_once(roots: Sequence[Path], wake: Callable[[], None]) -> str | None:
    """Watch until the watcher ends by itself; return why."""
    stop = asyncio.Event()
    try:
        async for _changes in awatch(
            *roots,
            watch_filter=None,
            stop_event=stop,
            step=STEP_MS,
            debounce=DEBOUNCE_MS,
            rust_timeout=RUST_TIMEOUT_MS,
            recursive=True,
            ignore_permission_denied=True,
        ):
            wake()
    except (OSError, RuntimeError, WatchfilesRustInternalError, UnicodeError) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        stop.set()
    return None
