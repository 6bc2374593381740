"""What all crews of one daemon share: the wish to stop, who makes a pass, who is still at work, what is wrong."""

import asyncio
import math
from dataclasses import dataclass, field

from memoryd.daemon.notify import notify
from memoryd.daemon.wakeup import Wakeup
from memoryd.errors import LeaseLost, LedgerCorrupt


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that degrades a running daemon; what `status` says of it. `severity` is "warning" or "error".

    What is not renewed until then (monotonic seconds) is over.
    """

    id: str
    severity: str
    message: str
    remedy: str
    until: float = math.inf

    def as_json(self) -> dict[str, str]:
        """Render it for the socket."""
        return {"id": self.id, "severity": self.severity, "message": self.message, "remedy": self.remedy}


@dataclass(slots=True)
class Duty:
    """One for the life of a daemon. `address` is the service manager's socket; None: nobody listens."""

    address: str | None = None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    passing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a pass is made that somebody asked for."""
    settled: Wakeup = field(default_factory=Wakeup)
    """Set whenever a job has ended."""
    leaving: set[object] = field(default_factory=set)
    """The crews that end their jobs under settings that are no longer those of the daemon."""
    lost: LeaseLost | LedgerCorrupt | None = None
    """Why the daemon must not go on."""
    ready: bool = False
    """Once the first crew works."""
    exhausted: str | None = None
    """Which bound was passed that no daemon should come to; `exhaustion` is set with it."""
    exhaustion: asyncio.Event = field(default_factory=asyncio.Event)
    troubles: dict[str, Trouble] = field(default_factory=dict)
    """By id: what is or was wrong; `troubles_at` says what is."""
    _said: str = ""

    def give_up(self, error: LeaseLost | LedgerCorrupt) -> None:
        """Stop for good: the ledger is somebody else's, or damaged."""
        self.lost = error
        self.stopping.set()

    @property
    def why_it_stopped(self) -> str:
        """Say what ended the daemon: it was asked to, it must not go on, or it passed a bound."""
        return self.exhausted or (self.lost.message if self.lost is not None else "it was asked to stop")

    def report(self, trouble: Trouble) -> None:
        """Let health be degraded by this from now on."""
        self.troubles[trouble.id] = trouble

    def troubles_at(self, monotonic: float) -> list[Trouble]:
        """Return what is wrong now, and forget what is over."""
        self.troubles = {name: trouble for name, trouble in self.troubles.items() if trouble.until > monotonic}
        return list(self.troubles.values())

    def exhaust(self, reason: str) -> None:
        """Take no more work, and end so that the service manager starts a new daemon."""
        self.exhausted = reason
        self.exhaustion.set()

    def tell(self, *lines: str) -> None:
        """Tell the service manager something at once."""
        notify(self.address, *lines)

    def say(self, status: str) -> None:
        """Tell the service manager what is going on, if that is news."""
        if status != self._said:
            self._said = status
            self.tell(f"STATUS={status}")
