"""What has been decided and is being put in place: the point of no return of a consolidation."""

import sqlite3
from dataclasses import dataclass
from enum import StrEnum

from memoryd.ledger import queries
from memoryd.ledger.rows import change, fetch_one

_SQL = queries.load("publications")


class PublicationState(StrEnum):
    """DECIDED: the result stands but may not be in place yet; PUBLISHED: it is in place."""

    DECIDED = "decided"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class NewPublication:
    """A result written as git objects: the commit to put in place, and that of the copy it was made from.

    `base` None: the folder was empty.
    """

    commit: str
    base: str | None


@dataclass(frozen=True, slots=True)
class Publication:
    """One row of `publications`."""

    id: int
    commit: str
    base: str | None
    state: PublicationState
    attempt_id: int | None
    decided_at: int
    published_at: int | None


def _make(*, commit_id: str, base_id: str, state: str, **columns: object) -> Publication:
    return Publication(commit=commit_id, base=base_id, state=PublicationState(state), **columns)  # type: ignore[arg-type]  # columns of SELECT *


def decide(conn: sqlite3.Connection, publication: NewPublication, *, attempt_id: int | None, now: float) -> int:
    """Record a decision; part of the transaction that finishes the job. Refused while another one is not in place.

    `attempt_id` None: no job decided, but a person.
    """
    parameters = {
        "commit_id": publication.commit,
        "base_id": publication.base,
        "attempt_id": attempt_id,
        "now": int(now),
    }
    (publication_id,) = conn.execute(_SQL["insert_publication"], parameters).fetchone()
    return int(publication_id)


def pending(conn: sqlite3.Connection) -> Publication | None:
    """Return the decision that is not known to be in place; it comes before any other use of the folder."""
    return fetch_one(conn, _SQL["find_pending"], {}, _make)


def mark_published(conn: sqlite3.Connection, publication_id: int, now: float) -> bool:
    """Record that a decision is in place; False when that was known."""
    return change(conn, _SQL["mark_published"], {"id": publication_id, "now": int(now)}) > 0


def latest(conn: sqlite3.Connection) -> Publication | None:
    """Return the newest decision, in place or not."""
    return fetch_one(conn, _SQL["find_latest"], {}, _make)
