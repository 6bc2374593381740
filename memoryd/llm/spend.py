"""What a request is for and what it costs: the values that pass between the client and whoever counts.

The client reserves before it sends and settles afterwards, whatever happens; the counting itself is the ledger's, and
reaches this room as two callables.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from memoryd.llm.question import Usage


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
