"""What a stage works with: the open things of the house, handed over by the composer; stages open nothing."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from memoryd.clock import Clock
from memoryd.config import Settings
from memoryd.ledger.database import Ledger
from memoryd.ledger.jobs import Lease
from memoryd.llm.question import Answer, Question
from memoryd.llm.spend import Purpose
from memoryd.redact import Redactor
from memoryd.sources.reader import SessionReader
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import Home

P = ParamSpec("P")
T = TypeVar("T")

_LEFT: set[threading.Event] = set()
"""One for each thread that goes on although nobody waits for it."""
_UNWANTED: ContextVar[threading.Event | None] = ContextVar("unwanted", default=None)
"""Set once nobody waits any more for what this thread does."""


class Client(Protocol):
    """A model behind its caps, limits and breaker (memoryd.llm.client.ModelClient, or a test's own)."""

    async def ask(self, question: Question, purpose: Purpose) -> Answer:
        """Send one question; raises the ModelError family and BudgetSpent."""
        ...


@dataclass(frozen=True, slots=True)
class StageModel:
    """Which model a stage asks. `client` is None for the offline writer; `context_window` is in tokens or unknown."""

    provider: str
    model: str
    effort: str | None
    client: Client | None
    context_window: int | None
    fingerprint: str = ""
    """Program, provider, model and prompts: what died under another one is tried anew."""
    admit: Callable[[], Awaitable[None]] | None = None
    """Raises what forbids any request just now (limits, pause, breaker, the day's caps): then nothing is read."""

    works_alone: bool = False
    """An agent's own program (kind `command`): it is given the folder, where others are given tools."""

    @property
    def is_offline(self) -> bool:
        """Nothing leaves the machine."""
        return self.client is None


@dataclass(frozen=True, slots=True)
class Agent:
    """A configured agent: its reader and the homes its sessions lie in."""

    reader: SessionReader
    homes: tuple[Path, ...]


async def _nothing_new(**_of_the_look: bool) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Context:
    """The open things and the settings of one running memoryd.

    `refresh_recall` is told the accepted commit and rewrites what agents read. `still_ours` raises LeaseLost when
    another process has the lock. `reached` is called with the name of each point of some consequence as it is passed,
    so that tests can kill the process there. `held` are the leases whose tasks live in this process; whoever puts files
    of the memory folder in place holds `placing`.
    """

    settings: Settings
    home: Home
    ledger: Ledger
    repository: Repository
    clock: Clock
    rng: Random
    redactor: Redactor
    agents: Mapping[str, Agent]
    extract: StageModel
    consolidate: StageModel
    refresh_recall: Callable[[str], object]
    still_ours: Callable[[], None]
    reached: Callable[[str], None]
    held: set[Lease] = field(default_factory=set)
    placing: asyncio.Lock = field(default_factory=asyncio.Lock)
    forgetting: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while something is forgotten: no consolidation begins meanwhile."""
    nudges: set[Callable[[], None]] = field(default_factory=set)
    """One for each lease in `held`: its next heartbeat is now, so that it hears what was asked of it."""
    look_at_providers: Callable[..., Awaitable[bool]] = _nothing_new
    """Arms anew what a new key or another network may have put right; tells whether jobs were let loose."""
    told: dict[str, float] = field(default_factory=dict)
    """Reasons for which jobs wait that a warning has named, and when (monotonic seconds): twenty sessions that meet one
    refused key are one thing to know."""


async def in_thread(work: Callable[Concatenate[P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work (files, git) beside the event loop: the one way in which stages do so.

    When cancelled, the thread goes on to its end, or to the next item that it takes from `while_wanted`.
    """
    unwanted, around, ended = threading.Event(), copy_context(), threading.Event()
    around.run(_UNWANTED.set, unwanted)

    def run() -> T:
        try:
            if unwanted.is_set():
                raise asyncio.CancelledError
            return around.run(work, *args, **kwargs)
        finally:
            ended.set()
            _LEFT.discard(ended)

    running = asyncio.get_running_loop().run_in_executor(None, run)
    try:
        return await asyncio.shield(running)  # cancelled itself before it has begun, it would never say that it ended
    finally:
        unwanted.set()
        if not ended.is_set():
            _LEFT.add(ended)


async def threads_ended() -> None:
    """Wait until no thread goes on whose caller was cancelled: until then they may still write files."""
    while _LEFT:
        ended = _LEFT.pop()
        try:
            await in_thread(ended.wait)
        finally:
            if not ended.is_set():
                _LEFT.add(ended)


def while_wanted(items: Iterable[T]) -> Iterator[T]:
    """Pass items on until whoever waits for this thread is cancelled: no long reading holds up the end of a daemon."""
    unwanted = _UNWANTED.get()
    for item in items:
        if unwanted is not None and unwanted.is_set():
            raise asyncio.CancelledError
        yield item
