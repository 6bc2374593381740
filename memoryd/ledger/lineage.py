"""Which sessions hold rows that a session has copied: the older ones of its lineage."""

import sqlite3
from collections.abc import Sequence

from memoryd.ledger import sessions
from memoryd.ledger.sessions import SessionRow

NO_OWNERS = frozenset({"subagent", "memory_run"})
"""Kinds of sessions that never own rows: what they share with a person's session is the person's."""


def older_relatives(conn: sqlite3.Connection, row: SessionRow) -> list[SessionRow]:
    """Return the sessions whose rows, where this one has them too, are theirs or nobody's; the oldest first."""
    ordered = in_order(sessions.family(conn, row))
    names = [relative.thread_id for relative in ordered]
    if row.thread_id not in names:
        return []
    return [relative for relative in ordered[: names.index(row.thread_id)] if relative.kind not in NO_OWNERS]


def in_order(family: Sequence[SessionRow]) -> list[SessionRow]:
    """Order a family (given by seniority) so that a named parent stands before its children.

    The order is total, so that no two sessions each leave the rows they share to the other.
    """
    by_id = {row.thread_id: row for row in family}
    placed: dict[str, SessionRow] = {}
    for row in family:
        chain: dict[str, SessionRow] = {}
        link: SessionRow | None = row
        while link is not None and link.thread_id not in placed and link.thread_id not in chain:
            chain[link.thread_id] = link
            link = by_id.get(link.parent_id or "")
        placed.update(reversed(chain.items()))
    return list(placed.values())
