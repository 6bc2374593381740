"""States of outputs that a person took back or refused: they stay out of the memory until their session grows."""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from memoryd.ledger import queries
from memoryd.ledger.outputs import Snapshot
from memoryd.ledger.rows import change, fetch_all

_SQL = queries.load("holds")


class Because(StrEnum):
    """UNDONE: the consolidation that took it in was undone. REJECTED: a person refused the proposal that did."""

    UNDONE = "undone"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Hold:
    """One state that is kept out; `standing_updated_at`: the earlier one that the folder holds, None: it has none."""

    thread_id: str
    source_updated_at: int
    standing_updated_at: int | None


@dataclass(frozen=True, slots=True)
class HeldRow:
    """A hold as the ledger keeps it."""

    thread_id: str
    source_updated_at: int
    standing_updated_at: int | None
    because: str
    held_at: int


@dataclass(frozen=True, slots=True)
class Holding:
    """What a return to another version means for each session: kept out, wanted again."""

    holds: tuple[Hold, ...]
    let_go: tuple[str, ...]


def decide_holding(
    rows: Iterable[Snapshot], *, left: Mapping[str, int], restored: Mapping[str, int], held: Iterable[str] = ()
) -> Holding:
    """Decide what a return from the version `left` to the one `restored` keeps out (thread id: state in its evidence).

    Kept out: a state that the version left holds and the one restored does not. Wanted again: one that is restored.
    What neither has is new input, or is held already.
    """
    rows = list(rows)
    states = {row.thread_id: row.source_updated_at for row in rows}
    holds = tuple(
        Hold(thread, state, restored.get(thread))
        for thread, state in states.items()
        if left.get(thread) == state != restored.get(thread)
    )
    wanted = {thread for thread, state in states.items() if restored.get(thread) == state}
    return Holding(holds, tuple(sorted(wanted & set(held))))


def apply_holding(conn: sqlite3.Connection, holding: Holding, *, because: Because, now: float) -> None:
    """Keep out and let go what was decided; part of the transaction that decides the change."""
    for thread_id in holding.let_go:
        change(conn, _SQL["let_go"], {"thread_id": thread_id})
    for hold in holding.holds:
        parameters = {
            "thread_id": hold.thread_id,
            "source_updated_at": hold.source_updated_at,
            "standing_updated_at": hold.standing_updated_at,
            "because": because.value,
            "now": int(now),
        }
        change(conn, _SQL["hold_output"], parameters)


def held(conn: sqlite3.Connection) -> list[HeldRow]:
    """Return what is kept out now, in thread-id order."""
    return fetch_all(conn, _SQL["list_held"], {}, HeldRow)


def remembered(conn: sqlite3.Connection) -> list[Snapshot]:
    """Return the states of all outputs whose sessions may be remembered, in thread-id order."""
    return fetch_all(conn, _SQL["list_remembered"], {}, Snapshot)


def mark_standing(conn: sqlite3.Connection, standing: Mapping[str, int]) -> None:
    """Record that the folder holds these sessions at these states, which need not be those of the rows."""
    for thread_id, source_updated_at in standing.items():
        change(conn, _SQL["mark_standing"], {"thread_id": thread_id, "source_updated_at": source_updated_at})
