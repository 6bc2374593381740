"""A pass that is killed or frozen at a point: `python -m tests.support.killed_pass HOME POINT [NUMBER [SIGNAL]]`.

POINT is the name of a point, or its beginning; the process sends SIGNAL (SIGKILL unless said; SIGSTOP freezes it) to
itself when it passes such a point for the NUMBERth time (the first unless said). A pass that gets past all of it ends
as `sync` does.
"""

import asyncio
import itertools
import os
import signal
import sys
from pathlib import Path

from memoryd import config, logs
from memoryd.clock import SystemClock
from memoryd.daemon.house import open_house
from memoryd.daemon.passes import run_pass
from memoryd.errors import MemorydError


async def pass_until(home: Path, point: str, number: int, what: signal.Signals) -> int:
    """Make one pass, as `sync --now --backfill recent` does."""
    passed = itertools.count(1)

    def reached(name: str) -> None:
        if name.startswith(point) and next(passed) == number:
            os.kill(os.getpid(), what)

    environ = config.environ()
    settings = config.load(home, environ=environ)
    async with open_house(settings, clock=SystemClock(), environ=environ, role="sync", reached=reached) as context:
        report = await run_pass(context, now=True, backfill="recent")
    return report.exit_code


def main(home: str, point: str, number: str = "1", what: str = "SIGKILL") -> int:
    logs.configure("json", "debug")
    try:
        return asyncio.run(pass_until(Path(home), point, int(number), signal.Signals[what]))
    except MemorydError as error:
        print(f"memoryd: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
