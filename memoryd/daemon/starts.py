"""A limit on starts where the service manager has none (launchd): whoever fails again and again stays down."""

import json
from contextlib import suppress
from pathlib import Path

from memoryd import logs
from memoryd.clock import Clock

log = logs.get()

FILE = "starts.json"
MOST = 5
WITHIN_SECONDS = 300.0
"""As the unit for systemd has it. launchd waits 30 s between two starts, so that the sixth comes after some minutes."""


class Starts:
    """The latest starts of a home that did not end well, kept in its folder."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self._path = home / FILE
        self._clock = clock

    def begin(self) -> bool:
        """Count a start; False: there were too many, and this one should not go on. Then the count begins anew.

        A folder that cannot be written counts nothing.
        """
        now = self._clock.now()
        recent = [at for at in self._read() if 0 <= now - at < WITHIN_SECONDS]
        if len(recent) >= MOST:
            log.error("start.abandoned", count=len(recent), seconds=WITHIN_SECONDS)
            self.forget()
            return False
        with suppress(OSError):
            self._path.write_text(json.dumps([*recent, now]), encoding="ascii")
        return True

    def forget(self) -> None:
        """Count from nothing again: it ended as it was told to."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _read(self) -> list[float]:
        try:
            found = json.loads(self._path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return []
        return [float(at) for at in found if isinstance(at, int | float)] if isinstance(found, list) else []
