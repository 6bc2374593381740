"""Provenance: what the handbook claims, on whose evidence, since when, until when and why not any longer."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TypeAlias

from memoryd.ledger import queries
from memoryd.ledger.claim_identity import SUCCESSOR_SHARE, Wordings
from memoryd.ledger.rows import change, fetch_all, fetch_one

_SQL = queries.load("claims")

Place: TypeAlias = tuple[str, str, str]
"""Scope, section and text: what makes two claims the same one without a second look."""


class Author(StrEnum):
    """Whose words a claim is."""

    MEMORYD = "memoryd"
    PERSON = "person"
    NOTE = "note"


class Closing(StrEnum):
    """Why a claim no longer stands.

    EVIDENCE_GONE: none of its sessions is evidence any more. REPLACED: its sessions now support other statements of
    its section. DROPPED: a consolidation left it out although its evidence is there. REMOVED: a person took it out of
    the handbook, asked in a note that it go, or undid the version that brought it; or it rested on no session, as what
    a note says.
    """

    EVIDENCE_GONE = "evidence gone"
    REPLACED = "replaced"
    DROPPED = "dropped"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class NewClaim:
    """A bullet of the accepted handbook."""

    text: str
    section: str
    scope: str
    status: str
    thread_ids: tuple[str, ...]
    author: Author = Author.MEMORYD

    @property
    def place(self) -> Place:
        """Return what makes two claims the same one without a second look."""
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
    author: str = Author.MEMORYD
    closed_because: str | None = None
    successor_id: int | None = None
    thread_ids: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        """Return what makes two claims the same one without a second look."""
        return (self.scope, self.section, self.text)


@dataclass(frozen=True, slots=True)
class EarlierText:
    """What a claim said, and how it was marked, until an instant."""

    text: str
    status: str
    until: int


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What tells why a claim is gone; None: not known.

    `live`: the sessions that are evidence. `stood`: section and text of what the run found, a person's edits included;
    a claim that is not among them was taken out by a person before. `because`: the one reason for all, where the
    change as a whole has it (an undo, a forgetting).
    """

    live: Collection[str] | None = None
    stood: Collection[tuple[str, str]] | None = None
    because: Closing | None = None


UNKNOWN = Circumstances()


def replace_claims(
    conn: sqlite3.Connection, claims: Sequence[NewClaim], *, now: float, circumstances: Circumstances = UNKNOWN
) -> None:
    """Make the valid claims exactly these: what persists keeps its id and valid_from, what vanished is closed.

    A claim persists in the same place; in the same words under another scope; or in other words of the same section
    and scope when both rest on a common session (or on none) and claim_identity calls them one. Earlier texts and
    marks are kept.
    """
    wanted = _merged(claims)
    standing = {row.place: row for row in valid(conn)}
    kept = {place: standing[place] for place in wanted if place in standing}
    gone = {place: row for place, row in standing.items() if place not in wanted}
    fresh = {place: claim for place, claim in wanted.items() if place not in standing}
    for old, new in _persisting(gone, fresh).items():
        kept[new] = gone.pop(old)
        del fresh[new]
    reasons = {row.id: reason for row, reason in _reasons(gone.values(), wanted.values(), circumstances)}
    for claim_id, because in reasons.items():
        change(conn, _SQL["close_claim"], {"id": claim_id, "now": int(now), "because": because.value})
    ids = {place: _keep(conn, row, wanted[place], now) for place, row in kept.items()}
    ids |= {place: _insert(conn, claim, now) for place, claim in fresh.items()}
    replaced = [row for row in gone.values() if reasons[row.id] is not Closing.EVIDENCE_GONE]
    for claim_id, place in _successors(replaced, wanted).items():
        change(conn, _SQL["set_successor"], {"id": claim_id, "successor_id": ids[place]})


def valid(conn: sqlite3.Connection) -> list[ClaimRow]:
    """Return the claims that stand, oldest first, each with its supporting threads."""
    threads: defaultdict[int, list[str]] = defaultdict(list)
    for claim_id, thread_id in conn.execute(_SQL["list_valid_threads"]).fetchall():
        threads[claim_id].append(thread_id)
    rows = fetch_all(conn, _SQL["list_valid"], {}, ClaimRow)
    return [replace(row, thread_ids=tuple(threads[row.id])) for row in rows]


def of_thread(conn: sqlite3.Connection, thread_id: str) -> list[ClaimRow]:
    """Return the claims that a thread supports or supported, oldest first."""
    return [
        _with_threads(conn, row) for row in fetch_all(conn, _SQL["list_of_thread"], {"thread_id": thread_id}, ClaimRow)
    ]


def every(conn: sqlite3.Connection, *, limit: int) -> list[ClaimRow]:
    """Return all claims, closed ones too, newest first and without their threads."""
    return fetch_all(conn, _SQL["list_all"], {"limit": limit}, ClaimRow)


def every_earlier_text(conn: sqlite3.Connection, *, limit: int) -> list[tuple[int, str]]:
    """Return (claim id, text) of what claims said before they were reworded, newest first."""
    return [(int(claim_id), text) for claim_id, text in conn.execute(_SQL["list_all_earlier_texts"], {"limit": limit})]


def get(conn: sqlite3.Connection, claim_id: int) -> ClaimRow | None:
    """Return one claim with its supporting threads, whether it stands or not."""
    row = fetch_one(conn, _SQL["find_claim"], {"id": claim_id}, ClaimRow)
    return None if row is None else _with_threads(conn, row)


def predecessors(conn: sqlite3.Connection, claim_id: int) -> list[ClaimRow]:
    """Return the closed claims whose place this one has taken, oldest first."""
    return fetch_all(conn, _SQL["list_predecessors"], {"id": claim_id}, ClaimRow)


def earlier_texts(conn: sqlite3.Connection, claim_id: int) -> list[EarlierText]:
    """Return what a claim said before, oldest first."""
    return fetch_all(conn, _SQL["list_earlier_texts"], {"claim_id": claim_id}, EarlierText)


def erase_earlier_texts(conn: sqlite3.Connection, thread_ids: Iterable[str]) -> int:
    """Delete what claims said while one of these sessions supported them; part of forgetting the sessions."""
    return change(conn, _SQL["delete_earlier_texts"], {"threads": json.dumps(list(thread_ids))})


def erase(conn: sqlite3.Connection, claim_ids: Iterable[int]) -> int:
    """Delete claims, with what they said before, whether they stand or not; part of a purge."""
    return change(conn, _SQL["delete_claims"], {"ids": json.dumps(list(claim_ids))})


def erase_earlier_texts_of(conn: sqlite3.Connection, claim_ids: Iterable[int]) -> int:
    """Delete what claims said before; what they say now stays. Part of a purge."""
    return change(conn, _SQL["delete_earlier_texts_of"], {"ids": json.dumps(list(claim_ids))})


def _merged(claims: Sequence[NewClaim]) -> dict[Place, NewClaim]:
    """Join bullets that say the same in the same place: their evidence adds up, the first status stands."""
    merged: dict[Place, NewClaim] = {}
    for claim in claims:
        earlier = merged.get(claim.place)
        threads = dict.fromkeys((earlier.thread_ids if earlier else ()) + claim.thread_ids)
        merged[claim.place] = replace(earlier or claim, thread_ids=tuple(threads))
    return merged


def _persisting(gone: Mapping[Place, ClaimRow], fresh: Mapping[Place, NewClaim]) -> dict[Place, Place]:
    """Pair what says the same under another scope, then what is the same claim in other words."""
    by_words: defaultdict[tuple[str, str], list[Place]] = defaultdict(list)
    for place in fresh:
        by_words[place[1:]].append(place)
    moved = {place: by_words[place[1:]].pop(0) for place in gone if by_words[place[1:]]}
    taken = set(moved.values())
    return moved | _reworded(
        {place: row for place, row in gone.items() if place not in moved},
        {place: claim for place, claim in fresh.items() if place not in taken},
    )


def _reworded(gone: Mapping[Place, ClaimRow], fresh: Mapping[Place, NewClaim]) -> dict[Place, Place]:
    """Pair what is the same claim in other words, the most alike pairs first."""
    wordings = _wordings(fresh)
    pairs = [
        (-each.share, number, place, each.key)
        for number, (place, row) in enumerate(gone.items())
        for each in wordings.like(row.text, place[:2], partial(_share_evidence, row, fresh))
        if each.is_same
    ]
    paired: dict[Place, Place] = {}
    used: set[Place] = set()
    for _share, _number, old, new in sorted(pairs, key=lambda pair: pair[:2]):
        if old not in paired and new not in used:
            paired[old] = new
            used.add(new)
    return paired


def _successors(closed: Sequence[ClaimRow], wanted: Mapping[Place, NewClaim]) -> dict[int, Place]:
    """Return, by the id of a closed claim, the one of the same place and evidence that says most nearly the same."""
    if not closed:
        return {}
    wordings = _wordings(wanted)
    found = {}
    for row in closed:
        likest = next(iter(wordings.like(row.text, row.place[:2], partial(_share_evidence, row, wanted))), None)
        if likest is not None and likest.share >= SUCCESSOR_SHARE:
            found[row.id] = likest.key
    return found


def _wordings(claims: Mapping[Place, NewClaim]) -> Wordings[Place]:
    return Wordings({place: claim.text for place, claim in claims.items()}, {place: place[:2] for place in claims})


def _share_evidence(row: ClaimRow, claims: Mapping[Place, NewClaim], place: Place) -> bool:
    """Both rest on a common session, or one of them on none, as a person's line and what a note says."""
    theirs = claims[place].thread_ids
    return not row.thread_ids or not theirs or not set(row.thread_ids).isdisjoint(theirs)


def _reasons(
    gone: Iterable[ClaimRow], wanted: Iterable[NewClaim], circumstances: Circumstances
) -> Iterator[tuple[ClaimRow, Closing]]:
    """Say why each claim is gone."""
    cited: defaultdict[str, set[str]] = defaultdict(set)
    for claim in wanted:
        cited[claim.section].update(claim.thread_ids)
    live, stood = circumstances.live, circumstances.stood
    for row in gone:
        evidence = [thread for thread in row.thread_ids if live is None or thread in live]
        if circumstances.because is not None:
            yield row, circumstances.because
        elif row.thread_ids and not evidence:
            yield row, Closing.EVIDENCE_GONE
        elif not row.thread_ids or (stood is not None and (row.section, row.text) not in stood):
            yield row, Closing.REMOVED
        elif cited[row.section].isdisjoint(evidence):
            yield row, Closing.DROPPED
        else:
            yield row, Closing.REPLACED


def _keep(conn: sqlite3.Connection, row: ClaimRow, claim: NewClaim, now: float) -> int:
    if (row.text, row.status) != (claim.text, claim.status):
        threads = json.dumps(row.thread_ids)
        change(conn, _SQL["insert_earlier_text"], {"id": row.id, "now": int(now), "threads": threads})
    changes = {"text": claim.text, "scope": claim.scope, "status": claim.status, "author": claim.author.value}
    if changes != {name: getattr(row, name) for name in changes}:
        change(conn, _SQL["rewrite_claim"], {"id": row.id, **changes})
    if set(row.thread_ids) != set(claim.thread_ids):
        change(conn, _SQL["delete_claim_threads"], {"claim_id": row.id})
        _add_threads(conn, row.id, claim)
    return row.id


def _insert(conn: sqlite3.Connection, claim: NewClaim, now: float) -> int:
    parameters = {
        "text": claim.text,
        "section": claim.section,
        "scope": claim.scope,
        "status": claim.status,
        "author": claim.author.value,
        "now": int(now),
    }
    (claim_id,) = conn.execute(_SQL["insert_claim"], parameters).fetchone()
    _add_threads(conn, claim_id, claim)
    return int(claim_id)


def _add_threads(conn: sqlite3.Connection, claim_id: int, claim: NewClaim) -> None:
    for thread_id in claim.thread_ids:
        change(conn, _SQL["insert_claim_thread"], {"claim_id": claim_id, "thread_id": thread_id})


def _with_threads(conn: sqlite3.Connection, row: ClaimRow) -> ClaimRow:
    threads = conn.execute(_SQL["list_claim_threads"], {"claim_id": row.id}).fetchall()
    return replace(row, thread_ids=tuple(thread_id for (thread_id,) in threads))
