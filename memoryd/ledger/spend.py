"""What models cost: every request leaves a row before it is sent, and no cap of a UTC day is passed."""

import sqlite3
from dataclasses import dataclass

from memoryd.clock import utc_day
from memoryd.errors import BudgetSpent
from memoryd.ledger import queries
from memoryd.ledger.rows import change, fetch_all

_SQL = queries.load("spend")
_ATTEMPTS = queries.load("attempts")

_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Caps:
    """What a UTC day may cost; a cost of 0 means no cap on money, 0 requests or tokens mean none at all."""

    requests_per_day: int
    tokens_per_day: int
    cost_per_day: float = 0.0


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a request is for; `reference` names it further, such as a step of the agent."""

    kind: str
    job_key: str
    attempt_id: int | None = None
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Spend:
    """What has been spent or is reserved: requests, tokens (in and out) and US dollars."""

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One row of `requests`; `settled_at` None: sent or about to be, outcome not known."""

    id: int
    at: int
    kind: str
    job_key: str
    attempt_id: int | None
    reference: str | None
    provider: str
    model: str
    estimated_tokens: int
    estimated_cost: float
    settled_at: int | None
    outcome: str | None
    tokens_in: int | None
    tokens_out: int | None
    tokens_cached: int | None
    cost: float | None
    duration_ms: int | None


def reserve(
    conn: sqlite3.Connection,
    *,
    now: float,
    purpose: Purpose,
    provider: str,
    model: str,
    estimated_tokens: int,
    estimated_cost: float,
    caps: Caps,
) -> int:
    """Record a request that is about to be sent and return its id.

    Raises BudgetSpent, with nothing recorded, when it could pass a cap of this UTC day.
    """
    planned = Spend(1, estimated_tokens, estimated_cost)
    _refuse_over_cap(today(conn, now), planned, caps, now)
    parameters = {
        "now": int(now),
        "kind": purpose.kind,
        "job_key": purpose.job_key,
        "attempt_id": purpose.attempt_id,
        "reference": purpose.reference,
        "provider": provider,
        "model": model,
        "estimated_tokens": estimated_tokens,
        "estimated_cost": estimated_cost,
    }
    (request_id,) = conn.execute(_SQL["insert_request"], parameters).fetchone()
    return int(request_id)


def settle(  # noqa: PLR0913 - the columns of one row
    conn: sqlite3.Connection,
    request_id: int,
    *,
    now: float,
    outcome: str,
    tokens_in: int | None,
    tokens_out: int | None,
    tokens_cached: int | None,
    cost: float | None,
    duration_ms: int | None,
) -> bool:
    """Record how a request ended and add it to the sums of its run; False when that was recorded already.

    Tokens or cost None: the server did not say, and the estimate goes on counting.
    """
    parameters = {
        "id": request_id,
        "now": int(now),
        "outcome": outcome,
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "tokens_cached": tokens_cached,
        "cost": cost,
        "duration_ms": duration_ms,
    }
    settled = fetch_all(conn, _SQL["settle_request"], parameters, RequestRow)
    for row in settled:
        sums = {
            "id": row.attempt_id,
            "provider": row.provider,
            "model": row.model,
            "tokens_in": row.tokens_in or 0,
            "tokens_out": row.tokens_out or 0,
            "tokens_cached": row.tokens_cached or 0,
            "cost": row.cost or 0.0,
        }
        change(conn, _ATTEMPTS["add_request"], sums)
    return bool(settled)


def today(conn: sqlite3.Connection, now: float) -> Spend:
    """Return what the UTC day of `now` has cost so far, reservations included."""
    midnight = int(now) - int(now) % _DAY
    requests, tokens, cost = conn.execute(_SQL["sum_since"], {"midnight": midnight}).fetchone()
    return Spend(int(requests), int(tokens), float(cost))


def of_attempt(conn: sqlite3.Connection, attempt_id: int) -> list[RequestRow]:
    """Return the requests of one run, oldest first."""
    return fetch_all(conn, _SQL["list_of_attempt"], {"attempt_id": attempt_id}, RequestRow)


def _refuse_over_cap(spent: Spend, planned: Spend, caps: Caps, now: float) -> None:
    rows = (
        ("requests_per_day", spent.requests, planned.requests, caps.requests_per_day, True),
        ("tokens_per_day", spent.tokens, planned.tokens, caps.tokens_per_day, True),
        ("cost_per_day", spent.cost, planned.cost, caps.cost_per_day, caps.cost_per_day > 0),
    )
    midnight = int(now) - int(now) % _DAY + _DAY
    for name, used, more, cap, active in rows:
        if active and used + more > cap:
            for_ever = more > cap
            raise BudgetSpent(
                f"request not sent: limits.{name} = {cap:g} would be passed"
                f" ({used:g} spent on {utc_day(now)} UTC, {more:g} more needed)",
                remedy=f"raise limits.{name}" if for_ever else f"wait for the next UTC day or raise limits.{name}",
                retry_at=None if for_ever else float(midnight),
            )
