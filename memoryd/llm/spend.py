"""What a request is for and what it costs: the values that pass between the client and whoever counts.

The client reserves before it sends and settles afterwards, whatever happens; the counting itself is the ledger's, and
reaches this room as two callables.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from memoryd.config import Prices
from memoryd.errors import (
    AuthRefused,
    BadReply,
    ContextOverflow,
    ModelError,
    Overloaded,
    RateLimited,
    StructureUnsupported,
    UnknownModel,
    Unreachable,
)
from memoryd.llm.question import Usage

TOKENS_PER_PRICE = 1_000_000
CACHE_WRITE_SURCHARGE = 0.25
"""What writing to a cache costs above the price of input, as a share of it (Anthropic, and OpenAI's newer models)."""
MAYBE_CHARGED_STATUSES = frozenset({408, 504, 524})


@dataclass(frozen=True, slots=True)
class Purpose:
    """The job on whose account a request goes; `reference` is free text for a person, never content."""

    kind: str
    job_key: str
    attempt_id: int | None = None
    reference: str = ""


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """A request about to be sent. Tokens are estimates; `estimated_cost` is in US dollars, 0 without known prices."""

    provider: str
    model: str
    purpose: Purpose
    estimated_input_tokens: int
    max_output_tokens: int
    estimated_cost: float


class RequestOutcome(StrEnum):
    """How a request ended."""

    ANSWERED = "answered"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    UNREACHABLE = "unreachable"
    AUTH_REFUSED = "auth_refused"
    UNKNOWN_MODEL = "unknown_model"
    CONTEXT_OVERFLOW = "context_overflow"
    STRUCTURE_UNSUPPORTED = "structure_unsupported"
    REFUSED = "refused"
    MALFORMED = "malformed"
    UNSENT = "unsent"
    UNKNOWN = "unknown"


OUTCOME_OF_ERROR: dict[type[ModelError], RequestOutcome] = {
    RateLimited: RequestOutcome.RATE_LIMITED,
    Overloaded: RequestOutcome.OVERLOADED,
    Unreachable: RequestOutcome.UNREACHABLE,
    AuthRefused: RequestOutcome.AUTH_REFUSED,
    UnknownModel: RequestOutcome.UNKNOWN_MODEL,
    ContextOverflow: RequestOutcome.CONTEXT_OVERFLOW,
    StructureUnsupported: RequestOutcome.STRUCTURE_UNSUPPORTED,
    BadReply: RequestOutcome.MALFORMED,
}


@dataclass(frozen=True, slots=True)
class RequestResult:
    """How a reserved request ended. `usage` and `cost` are None when nobody knows: then the estimate stands."""

    outcome: RequestOutcome
    usage: Usage | None
    cost: float | None
    duration_ms: int


Reserve: TypeAlias = Callable[[RequestPlan], Awaitable[int]]
"""Count a request before it is sent and return its number. Raises BudgetSpent when a cap would be passed."""

Settle: TypeAlias = Callable[[int, RequestResult], Awaitable[None]]
"""Replace a reservation by what really happened."""


def cost_of(usage: Usage, prices: Prices) -> float:
    """Return US dollars for a request's tokens. A price for cached input that is not set is that of other input."""
    cached = min(usage.cached, usage.input)
    fresh = usage.input - cached + min(usage.written, usage.input) * CACHE_WRITE_SURCHARGE
    dollars = fresh * prices.input + cached * (prices.cached or prices.input) + usage.output * prices.output
    return dollars / TOKENS_PER_PRICE


def outcome_of(error: ModelError) -> RequestOutcome:
    """Return under which word an error is counted."""
    return next(
        (outcome for kind, outcome in OUTCOME_OF_ERROR.items() if isinstance(error, kind)), RequestOutcome.REFUSED
    )


def usage_of_failure(error: ModelError, *, sent: bool) -> Usage | None:
    """Return what a failed request used: nothing when it was not sent or was turned away, None when nobody knows.

    A transfer that broke, a gateway that lost patience and a reply that cannot be read may all have been charged.
    """
    if error.spent is not None:
        return Usage(*error.spent, measured=False)
    if not sent:
        return Usage()
    turned_away = error.status is not None and error.status >= 300 and error.status not in MAYBE_CHARGED_STATUSES
    return Usage() if turned_away or isinstance(error, RateLimited) else None
