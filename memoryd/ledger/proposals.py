"""Accepted results that wait for a person's word: the newest can be accepted or rejected, all others are history."""

import sqlite3
from dataclasses import dataclass
from enum import StrEnum

from memoryd.ledger import queries
from memoryd.ledger.rows import change, fetch_all, fetch_one

_SQL = queries.load("proposals")


class ProposalState(StrEnum):
    """WAITING: for a person. SUPERSEDED: a later run, an undo or a forgetting has made it out of date."""

    WAITING = "waiting"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"


_ANSWERED = frozenset({ProposalState.WAITING, ProposalState.REJECTED})


@dataclass(frozen=True, slots=True)
class NewProposal:
    """A result written as git objects.

    `base` is the copy that it was made from, `accepted` what was published then (None: nothing); `inputs` is a digest
    of what it was made from.
    """

    commit: str
    base: str | None
    accepted: str | None
    inputs: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """One row of `proposals`."""

    id: int
    commit: str
    base: str | None
    accepted: str | None
    inputs: str
    state: ProposalState
    attempt_id: int | None
    made_at: int
    ended_at: int | None


def _make(*, commit_id: str, base_id: str | None, accepted_id: str | None, state: str, **columns: object) -> Proposal:
    return Proposal(commit=commit_id, base=base_id, accepted=accepted_id, state=ProposalState(state), **columns)  # type: ignore[arg-type]  # columns of SELECT *


def propose(conn: sqlite3.Connection, proposal: NewProposal, *, attempt_id: int | None, now: float) -> int:
    """Record a result that waits, in place of any that waited; return its number."""
    supersede(conn, now=now)
    parameters = {
        "commit_id": proposal.commit,
        "base_id": proposal.base,
        "accepted_id": proposal.accepted,
        "inputs": proposal.inputs,
        "attempt_id": attempt_id,
        "now": int(now),
    }
    (number,) = conn.execute(_SQL["insert_proposal"], parameters).fetchone()
    return int(number)


def supersede(conn: sqlite3.Connection, *, now: float) -> bool:
    """Record that what waits is out of date; tell whether something waited. Whatever publishes calls it."""
    return change(conn, _SQL["end_waiting"], {"now": int(now)}) > 0


def end(conn: sqlite3.Connection, number: int, state: ProposalState, *, now: float) -> Proposal | None:
    """Record a person's word on the proposal that waits; None when it does not wait any more."""
    return fetch_one(conn, _SQL["end_proposal"], {"id": number, "state": state.value, "now": int(now)}, _make)


def waiting(conn: sqlite3.Connection) -> Proposal | None:
    """Return the proposal that waits."""
    return fetch_one(conn, _SQL["find_waiting"], {}, _make)


def latest_ended(conn: sqlite3.Connection) -> Proposal | None:
    """Return the newest proposal that does not wait any more."""
    return fetch_one(conn, _SQL["find_latest_ended"], {}, _make)


def is_answered(conn: sqlite3.Connection, inputs: str) -> bool:
    """Tell whether what comes of these inputs waits for a person's word, or was refused last."""
    proposal = waiting(conn) or latest_ended(conn)
    return proposal is not None and proposal.inputs == inputs and proposal.state in _ANSWERED


def get(conn: sqlite3.Connection, number: int) -> Proposal | None:
    """Return a proposal by its number."""
    return fetch_one(conn, _SQL["find_proposal"], {"id": number}, _make)


def every(conn: sqlite3.Connection, *, limit: int = 100) -> list[Proposal]:
    """Return proposals, newest first."""
    return fetch_all(conn, _SQL["list_proposals"], {"limit": limit}, _make)
