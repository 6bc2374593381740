"""What models cost: every request leaves a row before it is sent, and no cap of a job or a UTC day is passed."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from memoryd.clock import utc_day
from memoryd.errors import BudgetSpent, JobCapReached
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
class JobCaps:
    """What one run of a job may take; `section` names the settings that say so."""

    section: str
    max_requests: int
    max_tokens: int


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
    tokens_reasoning: int | None


class By(StrEnum):
    """What requests are summed up by."""

    DAY = "day"
    JOB = "job"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Requests of one group: `label` is a UTC day, `kind key` of a job or `provider model`.

    Tokens and cost of a request whose server did not say them count as estimated, in `tokens` and `cost`; so many
    requests are `estimated`. `outcomes` counts how they ended; `pending` ones are under way or were cut off by a kill.
    """

    label: str
    requests: int
    estimated: int
    tokens: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    tokens_reasoning: int
    cost: float
    duration_ms: int
    outcomes: Mapping[str, int]


def reserve(  # noqa: PLR0913 - the columns of one row, and what bounds it
    conn: sqlite3.Connection,
    *,
    now: float,
    purpose: Purpose,
    provider: str,
    model: str,
    estimated_tokens: int,
    estimated_cost: float,
    caps: Caps,
    job_caps: JobCaps | None = None,
) -> int:
    """Record a request that is about to be sent and return its id.

    Raises JobCapReached when it could pass a cap of its run, BudgetSpent when it could pass one of this UTC day; then
    nothing is recorded.
    """
    planned = Spend(1, estimated_tokens, estimated_cost)
    if job_caps is not None and purpose.attempt_id is not None:
        _refuse_over_job_cap(_spent_by(conn, purpose.attempt_id), planned, job_caps)
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
    tokens_reasoning: int | None = None,
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
        "tokens_reasoning": tokens_reasoning,
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


def usage(conn: sqlite3.Connection, *, by: By, since: float) -> list[UsageRow]:
    """Return what was asked since an instant, summed up; days in order, else what took most first."""
    return fetch_all(conn, _SQL["sum_requests"], {"by": by, "since": int(since)}, _make_usage)


def check_day(conn: sqlite3.Connection, *, now: float, caps: Caps) -> None:
    """Raise BudgetSpent when not even the smallest request may be sent on this UTC day."""
    _refuse_over_cap(today(conn, now), Spend(1, 1, 0.0), caps, now)


def of_attempt(conn: sqlite3.Connection, attempt_id: int) -> list[RequestRow]:
    """Return the requests of one run, oldest first."""
    return fetch_all(conn, _SQL["list_of_attempt"], {"attempt_id": attempt_id}, RequestRow)


def _make_usage(*, outcomes: str, **columns: object) -> UsageRow:
    return UsageRow(outcomes=MappingProxyType(json.loads(outcomes)), **columns)  # type: ignore[arg-type]  # columns


def _spent_by(conn: sqlite3.Connection, attempt_id: int) -> Spend:
    requests, tokens = conn.execute(_SQL["sum_of_attempt"], {"attempt_id": attempt_id}).fetchone()
    return Spend(int(requests), int(tokens))


def _refuse_over_job_cap(spent: Spend, planned: Spend, caps: JobCaps) -> None:
    for name, used, more, cap in (
        ("max_requests", spent.requests, planned.requests, caps.max_requests),
        ("max_tokens", spent.tokens, planned.tokens, caps.max_tokens),
    ):
        if used + more > cap:
            raise JobCapReached(
                f"request not sent: {caps.section}.{name} = {cap} would be passed by this run"
                f" ({used} used, {more} more needed)",
                remedy=f"raise {caps.section}.{name} if the work is worth it",
            )


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
                f"request not sent: limits.{name} = {_amount(cap)} would be passed"
                f" ({_amount(used)} spent on {utc_day(now)} UTC, {_amount(more)} more needed)",
                remedy=f"raise limits.{name}" if for_ever else f"wait for the next UTC day or raise limits.{name}",
                retry_at=None if for_ever else float(midnight),
            )


def _amount(number: float) -> str:
    """Spell a count out as settings do, `5000000` and not `5e+06`; dollars to six digits."""
    return str(number) if isinstance(number, int) else f"{number:g}"
