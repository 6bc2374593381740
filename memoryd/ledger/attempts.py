"""One row per run of a job: who ran it, how it ended, what it cost."""

import sqlite3
from dataclasses import dataclass
from typing import Final, NamedTuple, TypedDict

from memoryd.ledger import queries
from memoryd.ledger.rows import change, fetch_all
from memoryd.ledger.states import Outcome

_SQL = queries.load("attempts")

SHOWN: Final = 50
"""Runs of a job that are shown, newest first; so many are kept however old they are."""


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One row of `attempts`; `outcome` None: it runs, or nobody has noticed yet that it crashed."""

    id: int
    kind: str
    job_key: str
    epoch: int
    worker_id: str
    input_watermark: int
    started_at: int
    ended_at: int | None
    duration_ms: int | None
    outcome: Outcome | None
    error_class: str | None
    error: str | None
    provider: str | None
    model: str | None
    fingerprint: str | None
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost: float
    requests: int


class Ending(NamedTuple):
    """How a run ended. `started` is the exact instant of the claim, None when nobody knows it any more (a crash)."""

    outcome: Outcome
    started: float | None = None
    error_class: str | None = None
    error: str | None = None


def _make(*, outcome: str | None, **columns: object) -> AttemptRow:
    return AttemptRow(outcome=Outcome(outcome) if outcome else None, **columns)  # type: ignore[arg-type]  # columns of SELECT *


class WorkedBy(NamedTuple):
    """Which model works on a run; `fingerprint` names program, model and prompts."""

    provider: str | None = None
    model: str | None = None
    fingerprint: str | None = None


NO_MODEL = WorkedBy()


class Beginning(TypedDict):
    """A run that has just been claimed, as the claim's row tells it."""

    id: int
    kind: str
    job_key: str
    epoch: int
    worker_id: str
    input_watermark: int
    started_at: int
    provider: str | None
    model: str | None
    fingerprint: str | None


def begin(conn: sqlite3.Connection, beginning: Beginning) -> None:
    """Record that a job runs."""
    change(conn, _SQL["insert_attempt"], beginning)


def end(conn: sqlite3.Connection, attempt_id: int | None, ending: Ending, *, now: float) -> None:
    """Record how a run ended; a run that has ended already keeps its first outcome."""
    duration = None if ending.started is None else max(0, round((now - ending.started) * 1000))
    change(
        conn,
        _SQL["end_attempt"],
        {
            "id": attempt_id,
            "now": int(now),
            "duration_ms": duration,
            "outcome": ending.outcome.value,
            "error_class": ending.error_class,
            "error": ending.error,
        },
    )


def of_job(conn: sqlite3.Connection, kind: str, job_key: str, *, limit: int = SHOWN) -> list[AttemptRow]:
    """Return the runs of a job, newest first."""
    return fetch_all(conn, _SQL["list_attempts"], {"kind": kind, "job_key": job_key, "limit": limit}, _make)
