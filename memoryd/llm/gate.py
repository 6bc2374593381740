"""Whether a provider may be asked at all just now: its limits, its pause after a refusal, and its breakers by model."""

from memoryd.clock import Clock
from memoryd.errors import ModelError, ModelUnavailable, Overloaded, RateLimited
from memoryd.llm.breaker import Breaker, Held, knock, record_answer, record_failure
from memoryd.llm.limits import LimitSnapshot, RefusedUntil, may_ask

PAUSE_BASE_SECONDS = 1.0
PAUSE_CAP_SECONDS = 6 * 3_600.0


class Gate:
    """What is remembered of one provider between requests; it lives as long as the client and is not stored."""

    def __init__(self, provider: str, clock: Clock, *, min_remaining_percent: float) -> None:
        self._provider = provider
        self._clock = clock
        self._min_remaining_percent = min_remaining_percent
        self._breakers: dict[str, Breaker] = {}
        self._refusals = 0
        self._paused_until = 0.0
        self.snapshot: LimitSnapshot | None = None

    def enter(self, model: str) -> None:
        """Pass, or raise the ModelUnavailable that says why not and when to come back. Nothing is sent or spent."""
        now = self._clock.now()
        permission = may_ask(self.snapshot, self._min_remaining_percent, now)
        if isinstance(permission, RefusedUntil):
            raise RateLimited(
                f"{self._provider} was not asked: its {permission.reason}",
                retry_after=permission.until - now,
                remedy="lower min_remaining_percent in [limits] to use more of it",
            )
        monotonic = self._clock.monotonic()
        if monotonic < self._paused_until:
            wait = self._paused_until - monotonic
            raise RateLimited(f"{self._provider} was not asked: it wants a pause", retry_after=wait)
        answer = knock(self._breakers.get(model, Breaker()), monotonic)
        if isinstance(answer, Held):
            raise answer.error
        self._breakers[model] = answer.breaker

    def record_answer(self, model: str) -> None:
        """Remember that the model answered."""
        self._refusals = 0
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
            pause = pause_seconds(self._refusals, error.retry_after)
            self._paused_until = max(self._paused_until, monotonic + pause)


def pause_seconds(refusals: int, retry_after: float | None) -> float:
    """Return how long a provider is left alone after so many refusals in a row: what it asks for, our own at least."""
    own = PAUSE_BASE_SECONDS * float(1 << min(refusals - 1, 20))
    return min(PAUSE_CAP_SECONDS, max(retry_after or 0.0, own))
