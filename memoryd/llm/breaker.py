"""The circuit breaker: what one request found out about a key, a model or a network is not found out again at once.

Pure: a state and an instant in, a state and a permission out. Instants are monotonic seconds. A refused key and an
unknown model open it at once, a broken connection at the second time in a row; an open one lets one probe a minute
pass.
"""

from dataclasses import dataclass

from memoryd.errors import AuthRefused, ModelUnavailable, UnknownModel, Unreachable

PROBE_SECONDS = 60.0
FAILURES_TO_OPEN: dict[type[ModelUnavailable], int] = {AuthRefused: 1, UnknownModel: 1, Unreachable: 2}


@dataclass(frozen=True, slots=True)
class Breaker:
    """State for one provider and model: the last failure of a kind that counts, and when the next probe may go."""

    failure: ModelUnavailable | None = None
    failures: int = 0
    next_probe_at: float = 0.0

    @property
    def is_open(self) -> bool:
        """Whether requests are held back."""
        return self.failure is not None and self.failures >= FAILURES_TO_OPEN[type(self.failure)]


@dataclass(frozen=True, slots=True)
class Pass:
    """The request may go; `breaker` is the state while it is under way."""

    breaker: Breaker


@dataclass(frozen=True, slots=True)
class Held:
    """The request may not go; `error` repeats what was found out and says when it may be tried again."""

    error: ModelUnavailable


def knock(breaker: Breaker, now: float) -> Pass | Held:
    """Ask for permission. A permission given by an open breaker is its probe, and the next one is a minute away."""
    if breaker.failure is None or not breaker.is_open:
        return Pass(breaker)
    if now < breaker.next_probe_at:
        return Held(_repeated(breaker.failure, breaker.next_probe_at - now))
    return Pass(Breaker(breaker.failure, breaker.failures, now + PROBE_SECONDS))


def record_failure(breaker: Breaker, error: ModelUnavailable, now: float) -> Breaker:
    """Return the state after a failed request. A server that is busy or limits us is at least connected."""
    if type(error) not in FAILURES_TO_OPEN:
        return Breaker() if isinstance(breaker.failure, Unreachable) else breaker
    again = type(breaker.failure) is type(error)
    return Breaker(error, breaker.failures + 1 if again else 1, now + PROBE_SECONDS)


def record_answer() -> Breaker:
    """Return the state after any answer of the model: closed."""
    return Breaker()


def _repeated(error: ModelUnavailable, wait: float) -> ModelUnavailable:
    return type(error)(error.message, remedy=error.remedy, status=error.status, retry_after=wait)
