"""A forgetting that is killed at a point: `python -m tests.support.killed_forget HOME POINT [THREAD]`.

Purges the thread, or resets without one; the process kills itself when it passes the point of that name.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from memoryd import config, logs
from memoryd.clock import SystemClock
from memoryd.daemon.house import open_house
from memoryd.pipeline.forget import forget, reset


async def forget_until(home: Path, point: str, thread: str | None) -> None:
    """Forget, as `memoryd forget --purge` and `memoryd reset` do."""

    def reached(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    environ = config.environ()
    settings = config.load(home, environ=environ)
    async with open_house(settings, clock=SystemClock(), environ=environ, role="forget", reached=reached) as context:
        await (reset(context) if thread is None else forget(context, [thread], purge=True))


if __name__ == "__main__":
    logs.configure("json", "debug")
    asyncio.run(forget_until(Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None))
