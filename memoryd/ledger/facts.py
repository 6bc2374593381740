"""What was learned about a model or a provider, so that it is learned once."""

import sqlite3
from enum import StrEnum

from memoryd.ledger import queries
from memoryd.ledger.rows import change

_SQL = queries.load("facts")


class Fact(StrEnum):
    """What can be known: of a model, of a provider (model empty), of an agent's limits (provider `agent:NAME`)."""

    BYTES_PER_TOKEN = "bytes_per_token"  # noqa: S105 - a token of text, not of access
    STRUCTURE = "structure"
    GATE = "gate"
    LIMITS = "limits"


def put(conn: sqlite3.Connection, provider: str, model: str, key: Fact, value: str, *, now: float) -> None:
    """Record a fact; the latest stands."""
    parameters = {"provider": provider, "model": model, "key": key, "value": value, "now": int(now)}
    change(conn, _SQL["put_fact"], parameters)


def get(conn: sqlite3.Connection, provider: str, model: str, key: Fact) -> str | None:
    """Return a fact, None when it is not known."""
    row = conn.execute(_SQL["find_fact"], {"provider": provider, "model": model, "key": key}).fetchone()
    return None if row is None else str(row[0])


def put_bytes_per_token(conn: sqlite3.Connection, provider: str, model: str, ratio: float, *, now: float) -> None:
    """Record how many bytes of our input make a token of this model."""
    put(conn, provider, model, Fact.BYTES_PER_TOKEN, repr(ratio), now=now)


def bytes_per_token(conn: sqlite3.Connection, provider: str, model: str) -> float | None:
    """Return the learned ratio, None when it is not known."""
    value = get(conn, provider, model, Fact.BYTES_PER_TOKEN)
    return None if value is None else float(value)


def put_agent_limits(conn: sqlite3.Connection, agent: str, limit_id: str, value: str, *, seen_at: float) -> bool:
    """Record the limits that an agent wrote down at `seen_at`; the newest stand, whenever they are read.

    The answer tells whether these are they.
    """
    parameters = {
        "provider": _of_agent(agent),
        "model": limit_id,
        "key": Fact.LIMITS,
        "value": value,
        "now": int(seen_at),
    }
    return change(conn, _SQL["put_newer_fact"], parameters) == 1


def agent_limits(conn: sqlite3.Connection, agent: str) -> list[tuple[str, str]]:
    """Return what is known of an agent's limits, newest first: id of the limit, and what was recorded."""
    parameters = {"provider": _of_agent(agent), "key": Fact.LIMITS}
    return [(str(limit_id), str(value)) for limit_id, value in conn.execute(_SQL["list_facts"], parameters).fetchall()]


def _of_agent(agent: str) -> str:
    return f"agent:{agent}"
