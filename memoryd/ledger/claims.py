"""Provenance: what the handbook claims, on whose evidence, since when and until when."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memoryd.ledger import queries
from memoryd.ledger.rows import change, fetch_all

_SQL = queries.load("claims")


@dataclass(frozen=True, slots=True)
class NewClaim:
    """A bullet of the accepted handbook; the same text in the same section and scope is the same claim."""

    text: str
    section: str
    scope: str
    status: str
    thread_ids: tuple[str, ...]

    @property
    def place(self) -> tuple[str, str, str]:
        """Return what makes two claims the same one."""
        return (self.scope, self.section, self.text)


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim as the ledger keeps it; `invalidated_at` None: it stands in the handbook."""

    id: int
    text: str
    section: str
    scope: str
    status: str
    valid_from: int
    invalidated_at: int | None
    thread_ids: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[str, str, str]:
        """Return what makes two claims the same one."""
        return (self.scope, self.section, self.text)


def replace_claims(conn: sqlite3.Connection, claims: Sequence[NewClaim], *, now: float) -> None:
    """Make the valid claims exactly these: those that persist keep valid_from, those that vanished are closed."""
    wanted = _merged(claims)
    standing = {row.place: row for row in fetch_all(conn, _SQL["list_valid"], {}, ClaimRow)}
    for place, row in standing.items():
        if place not in wanted:
            change(conn, _SQL["invalidate_claim"], {"id": row.id, "now": int(now)})
    for place, claim in wanted.items():
        claim_id = _keep(conn, standing[place], claim) if place in standing else _insert(conn, claim, now)
        change(conn, _SQL["delete_claim_threads"], {"claim_id": claim_id})
        for thread_id in claim.thread_ids:
            change(conn, _SQL["insert_claim_thread"], {"claim_id": claim_id, "thread_id": thread_id})


def valid(conn: sqlite3.Connection) -> list[ClaimRow]:
    """Return the claims that stand, oldest first, each with its supporting threads."""
    return _with_threads(conn, fetch_all(conn, _SQL["list_valid"], {}, ClaimRow))


def of_thread(conn: sqlite3.Connection, thread_id: str) -> list[ClaimRow]:
    """Return the claims that a thread supports or supported, oldest first."""
    return _with_threads(conn, fetch_all(conn, _SQL["list_of_thread"], {"thread_id": thread_id}, ClaimRow))


def _merged(claims: Sequence[NewClaim]) -> dict[tuple[str, str, str], NewClaim]:
    """Join bullets that say the same in the same place: their evidence adds up, the first status stands."""
    merged: dict[tuple[str, str, str], NewClaim] = {}
    for claim in claims:
        earlier = merged.get(claim.place)
        threads = dict.fromkeys((earlier.thread_ids if earlier else ()) + claim.thread_ids)
        merged[claim.place] = replace(earlier or claim, thread_ids=tuple(threads))
    return merged


def _keep(conn: sqlite3.Connection, row: ClaimRow, claim: NewClaim) -> int:
    if row.status != claim.status:
        change(conn, _SQL["set_claim_status"], {"id": row.id, "status": claim.status})
    return row.id


def _insert(conn: sqlite3.Connection, claim: NewClaim, now: float) -> int:
    parameters = {
        "text": claim.text,
        "section": claim.section,
        "scope": claim.scope,
        "status": claim.status,
        "now": int(now),
    }
    (claim_id,) = conn.execute(_SQL["insert_claim"], parameters).fetchone()
    return int(claim_id)


def _with_threads(conn: sqlite3.Connection, rows: list[ClaimRow]) -> list[ClaimRow]:
    return [
        replace(row, thread_ids=tuple(t for (t,) in conn.execute(_SQL["list_claim_threads"], {"claim_id": row.id})))
        for row in rows
    ]
