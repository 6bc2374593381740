"""The world around a daemon: agents that record, go on with and delete sessions; outages, suspends, reloads, a person.

Everything happens by a schedule of its own, all of it in this process. Times are those of the shipped settings divided
by 60: a session that rested seven minutes is one of seven hours.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.support.model_asked import Recorded
from tests.support.model_replies import Drop, Hang, Scripted, Status
from tests.support.model_server import ModelServer
from tests.support.process import Place, Process
from tests.support.sessions import a_rollout

FASTER = 60
REST_HOURS = 7.0 / FASTER
PROJECTS = 8
SENTINEL = "marmaladequince"
"""A word that stands in every session, and must be in no log line."""
SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0" * 2
STEP_SECONDS = 0.1

SETTINGS: dict[str, object] = {
    "discover__min_idle": "6m",
    "discover__max_age": "4h",
    "discover__scan_interval": "1s",
    "discover__full_scan_interval": "30s",
    "extract__max_duration": "20s",
    "consolidate__debounce": "2s",
    "consolidate__min_interval": "30s",
    "consolidate__max_unused": "12h",
    "consolidate__max_duration": "20s",
    "consolidate__extension_retention": "168m",
    "consolidate__history_max_age": "146h",
    "ledger__lease": "3s",
    "ledger__retry_base": "1s",
    "ledger__retry_cap": "6m",
    "limits__backfill": "all",
    "limits__requests_per_day": 1_000_000,
    "limits__tokens_per_day": 10_000_000_000,
}


@dataclass
class Happened:
    """What the world did."""

    recorded: int = 0
    deleted: int = 0
    outages: int = 0
    suspends: int = 0
    reloads: int = 0
    notes: int = 0


@dataclass
class World:
    """Acts on a daemon in `place` until its time is over."""

    place: Place
    server: ModelServer
    daemon: Process
    seconds: float
    sessions: int
    rng: Random = field(default_factory=lambda: Random(7))
    happened: Happened = field(default_factory=Happened)
    paths: list[Path] = field(default_factory=list)
    outage_until: float = 0.0

    def live(self, each_step: Callable[[], None]) -> None:
        """Let the time pass; `each_step` is called about ten times a second."""
        began = time.monotonic()
        due = {
            self.delete: 4.0,
            self.go_on: 3.0,
            self.break_provider: 45.0,
            self.suspend: 60.0,
            self.reload: 55.0,
            self.write_note: 90.0,
            self.forget_requests: 20.0,
        }
        next_at = {act: began + every * self.rng.uniform(0.5, 1.0) for act, every in due.items()}
        self.server.reply_with(self.answer)
        while (now := time.monotonic()) < began + self.seconds and self.daemon.is_running:
            while self.happened.recorded < min(self.sessions, self.sessions * (now - began) / self.seconds):
                self.record()
            for act, every in due.items():
                if now >= next_at[act]:
                    next_at[act] = now + every * self.rng.uniform(0.7, 1.3)
                    act()
            each_step()
            threading.Event().wait(STEP_SECONDS)

    def record(self) -> None:
        """An agent has ended a session some time ago."""
        number = self.happened.recorded
        self.happened.recorded += 1
        said = f"From now on always use option number {number} of {SENTINEL}; the key is {SECRET}"
        talk = f"Tell me of part {number} of {SENTINEL}. " * self.rng.randint(1, 60)
        turns = [talk, said]
        cwd = f"/home/dev/project-{number % PROJECTS}"
        rest = REST_HOURS * self.rng.uniform(1.0, 1.2)
        self.paths.append(
            a_rollout(
                self.place.codex,
                now=time.time(),
                idle_hours=rest,
                turns=turns,
                cwd=cwd,
                compressed=self.rng.random() < 0.1,
            )
        )

    def delete(self) -> None:
        """An agent cleans up after itself, read or not."""
        if len(self.paths) > 10:
            path = self.paths.pop(self.rng.randrange(len(self.paths)))
            path.unlink(missing_ok=True)
            self.happened.deleted += 1

    def go_on(self) -> None:
        """A session is touched, as a backup program or an agent that opens it does; nothing is new in it."""
        if self.paths:
            path = self.rng.choice(self.paths[-50:])
            if path.exists():
                os.utime(path)

    def break_provider(self) -> None:
        self.outage_until = time.monotonic() + self.rng.uniform(4.0, 10.0)
        self.happened.outages += 1

    def answer(self, asked: Recorded) -> Scripted | None:
        """Fail in one of several ways while the provider is broken; else answer as a good model does."""
        if time.monotonic() >= self.outage_until:
            return None
        kinds: list[Scripted] = [Status(503), Status(429, headers={"Retry-After": "3"}), Drop(), Hang()]
        return kinds[asked.number % len(kinds)]

    def suspend(self) -> None:
        """Stop the process for longer than a lease."""
        self.daemon.freeze()
        threading.Event().wait(self.rng.uniform(1.0, 5.0))
        self.daemon.thaw()
        self.happened.suspends += 1

    def reload(self) -> None:
        self.daemon.send(signal.SIGHUP)
        self.happened.reloads += 1

    def write_note(self) -> None:
        """A person asks for something to be remembered, by a file of the folder."""
        notes = self.place.memories / "extensions" / "ad_hoc" / "notes"
        notes.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime())
        (notes / f"{stamp}-wish-{self.happened.notes}.md").write_text(f"Remember wish {self.happened.notes}.\n")
        self.happened.notes += 1

    def forget_requests(self) -> None:
        """The server's memory of requests is ours, not the daemon's."""
        self.server.forget()
