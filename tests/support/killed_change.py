"""A person's command that is killed at a point: `python -m tests.support.killed_change HOME POINT REQUEST`.

POINT is the name of a point, or its beginning; REQUEST is the JSON of memoryd/daemon/personal.py.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from memoryd import config, logs
from memoryd.clock import SystemClock
from memoryd.daemon import personal
from memoryd.daemon.house import open_house


async def change_until(home: Path, point: str, request: dict[str, object]) -> None:
    def reached(name: str) -> None:
        if name.startswith(point):
            os.kill(os.getpid(), signal.SIGKILL)

    environ = config.environ()
    settings = config.load(home, environ=environ)
    async with open_house(settings, clock=SystemClock(), environ=environ, role="undo", reached=reached) as context:
        await personal.answer(context, request)


if __name__ == "__main__":
    logs.configure("json", "warning")
    asyncio.run(change_until(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])))
