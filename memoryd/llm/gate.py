"""Whether a provider may be asked at all just now: its limits, its pause after a refusal, and its breakers by model.

What was found out outlives the process: a restart neither forgets a pause of hours nor asks a dead endpoint anew. It is
forgotten when the address, the source of the key or the key's file changes: then another answer may be expected.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from memoryd.clock import Clock
from memoryd.errors import ModelError, ModelUnavailable, Overloaded, RateLimited, Unreachable
from memoryd.llm.breaker import Breaker, Held, knock, record_answer, record_failure
from memoryd.llm.gate_state import GateState, read_state, written_state
from memoryd.llm.limits import LimitSnapshot, RefusedUntil, may_ask

PAUSE_BASE_SECONDS = 1.0
PAUSE_CAP_SECONDS = 6 * 3_600.0


@dataclass(frozen=True, slots=True)
class GateMemory:
    """Where what a gate knows is kept, by the provider's name, and who is told that a provider answers again."""

    load: Callable[[str], Awaitable[str | None]]
    store: Callable[[str, str], Awaitable[None]]
    recovered: Callable[[str], Awaitable[object]]


Recorded = Callable[[], Awaitable[LimitSnapshot | None]]
"""The limits that an agent recorded by itself, for a provider that runs this very agent."""


class Gate:
    """What is remembered of one provider between requests.

    `stamp` names what the answers so far depended on: address, source of the key, state of the key's file. Without a
    `memory` everything lasts as long as the gate.
    """

    def __init__(
        self,
        provider: str,
        clock: Clock,
        *,
        min_remaining_percent: float,
        memory: GateMemory | None = None,
        recorded: Recorded | None = None,
        stamp: Callable[[], str] = str,
    ) -> None:
        self.provider = provider
        self._clock = clock
        self._min_remaining_percent = min_remaining_percent
        self._memory = memory
        self._recorded = recorded
        self._stamp = stamp
        self._stamped: str | None = None
        self._recalling = asyncio.Lock()
        self._breakers: dict[str, Breaker] = {}
        self._refusals = 0
        self._paused_until = 0.0
        self._paused_by: ModelUnavailable | None = None
        self._agents: LimitSnapshot | None = None
        self._kept = ""
        self._recovered = False
        self.snapshot: LimitSnapshot | None = None

    async def admit(self, model: str) -> None:
        """Pass with a request, or raise what `enter` raises; what another process knew counts too."""
        await self._look()
        self.enter(model)

    async def check(self, model: str) -> None:
        """Raise what `admit` would raise now, without taking the probe of an open breaker."""
        await self._look()
        error = self._refusal(model)
        if error is not None:
            raise error

    async def keep(self) -> None:
        """Write down what a later process must know, if that changed; say so if the provider answers again."""
        if self._memory is None or self._stamped is None:
            return
        text = written_state(self._state(), self._clock)
        if text != self._kept:
            self._kept = text
            await self._memory.store(self.provider, text)
        if self._recovered:
            self._recovered = False
            await self._memory.recovered(self.provider)

    def enter(self, model: str) -> None:
        """Pass, or raise the ModelUnavailable that says why not and when to come back. Nothing is sent or spent."""
        error = self._refusal(model)
        if error is not None:
            raise error
        answer = knock(self._breakers.get(model, Breaker()), self._clock.monotonic())
        if not isinstance(answer, Held):
            self._breakers[model] = answer.breaker

    def record_answer(self, model: str) -> None:
        """Remember that the model answered."""
        self._refusals = 0
        before = self._breakers.get(model, Breaker())
        self._recovered = self._recovered or before.is_open
        self._breakers[model] = record_answer()

    def record_failure(self, model: str, error: ModelError) -> None:
        """Remember what an error says of the provider. A refused or unreadable request says that it is there."""
        if not isinstance(error, ModelUnavailable):
            self.record_answer(model)
            return
        monotonic = self._clock.monotonic()
        self._breakers[model] = record_failure(self._breakers.get(model, Breaker()), error, monotonic)
        if isinstance(error, RateLimited) or (isinstance(error, Overloaded) and error.retry_after is not None):
            self._refusals += 1
            until = monotonic + pause_seconds(self._refusals, error.retry_after)
            if until >= self._paused_until:
                self._paused_until, self._paused_by = until, error

    def network_changed(self) -> None:
        """Let the next request probe a provider that could not be reached: the machine is connected in another way."""
        for model, breaker in self._breakers.items():
            if isinstance(breaker.failure, Unreachable):
                self._breakers[model] = replace(breaker, next_probe_at=self._clock.monotonic())

    def forgive(self) -> None:
        """Forget pauses, limits and failures: a person asks to try again, and may know better."""
        self._take(GateState())

    async def rearm(self) -> bool:
        """Forget everything if what it depended on has changed, since an earlier process too; tell whether it has."""
        async with self._recalling:
            stamp = self._stamp()
            changed = self._stamped != stamp
            if self._stamped is None:
                changed = await self._recall(stamp)
            elif changed:
                self._take(GateState())
            self._stamped = stamp
            return changed

    async def _recall(self, stamp: str) -> bool:
        text = await self._memory.load(self.provider) if self._memory is not None else None
        state = read_state(text, self._clock, longest_pause=PAUSE_CAP_SECONDS) if text else GateState(stamp)
        if state.stamp == stamp:
            self._take(state)
        self._kept = text or written_state(GateState(stamp), self._clock)
        return state.stamp != stamp

    async def _look(self) -> None:
        await self.rearm()
        if self._recorded is not None:
            self._agents = await self._recorded()

    def _take(self, state: GateState) -> None:
        self._breakers = dict(state.breakers)
        self._refusals, self.snapshot = state.refusals, state.snapshot
        self._paused_until, self._paused_by = state.paused_until, state.paused_by

    def _state(self) -> GateState:
        """Return what matters to a later process: limits only while they forbid something."""
        refusal = may_ask(self.snapshot, self._min_remaining_percent, self._clock.now())
        return GateState(
            stamp=self._stamped or "",
            refusals=self._refusals,
            paused_until=self._paused_until,
            paused_by=self._paused_by,
            snapshot=self.snapshot if isinstance(refusal, RefusedUntil) else None,
            breakers=self._breakers,
        )

    def _refusal(self, model: str) -> ModelUnavailable | None:
        now, monotonic = self._clock.now(), self._clock.monotonic()
        for snapshot in (self.snapshot, self._agents):
            permission = may_ask(snapshot, self._min_remaining_percent, now)
            if isinstance(permission, RefusedUntil):
                return RateLimited(
                    f"{self.provider} was not asked: its {permission.reason}",
                    retry_after=permission.until - now,
                    remedy="lower min_remaining_percent in [limits] to use more of it",
                )
        if monotonic < self._paused_until:
            return _paused(self.provider, self._paused_by, self._paused_until - monotonic)
        answer = knock(self._breakers.get(model, Breaker()), monotonic)
        return answer.error if isinstance(answer, Held) else None


def _paused(provider: str, cause: ModelUnavailable | None, seconds: float) -> ModelUnavailable:
    """Return why a provider is not asked during its pause: for the reason of the answer that asked for it."""
    message = f"{provider} was not asked: it wants a pause"
    if cause is None:
        return RateLimited(message, retry_after=seconds)
    return type(cause)(f"{message}, since {cause.message}", remedy=cause.remedy, retry_after=seconds)


def pause_seconds(refusals: int, retry_after: float | None) -> float:
    """Return how long a provider is left alone after so many refusals in a row: what it asks for, our own at least."""
    own = PAUSE_BASE_SECONDS * float(1 << min(refusals - 1, 20))
    return min(PAUSE_CAP_SECONDS, max(retry_after or 0.0, own))
