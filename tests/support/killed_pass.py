"""A pass that dies of SIGKILL at a named point: `python -m tests.support.killed_pass HOME POINT [NUMBER]`.

POINT is the name of a point, or its beginning; the process dies when it passes such a point for the NUMBERth time (the
first unless said). A pass that gets past all of it ends as `sync` does.
"""

import asyncio
import itertools
import os
import signal
import sys
from pathlib import Path

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.daemon.house import open_house
from memoryd.daemon.passes import run_pass


async def pass_until(home: Path, point: str, number: int) -> int:
    """Make one pass, as `sync --now --backfill recent` does."""
    passed = itertools.count(1)

    def reached(name: str) -> None:
        if name.startswith(point) and next(passed) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    environ = config.environ()
    settings = config.load(home, environ=environ)
    async with open_house(settings, clock=SystemClock(), environ=environ, role="sync", reached=reached) as context:
        report = await run_pass(context, now=True, backfill="recent")
    return report.exit_code


if __name__ == "__main__":
    home, point, number = [*sys.argv[1:], "1"][:3]
    sys.exit(asyncio.run(pass_until(Path(home), point, int(number))))
