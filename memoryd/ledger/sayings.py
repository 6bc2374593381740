"""Who spoke the words of an output's preference signals: digests, so that no word is kept a second time."""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from memoryd.ledger import queries
from memoryd.ledger.rows import change

_SQL = queries.load("sayings")


class Speaker(StrEnum):
    """HUMAN: a message of the person holds the words. TOOL: only output of a tool does."""

    HUMAN = "human"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Said:
    """What is known of the words of one session, as digests (workspace/wording.py makes them)."""

    human: frozenset[bytes] = frozenset()
    tool: frozenset[bytes] = frozenset()


NOTHING_KNOWN = Said()


def replace_sayings(conn: sqlite3.Connection, thread_id: str, said: Said) -> None:
    """Keep the sayings of an output instead of the earlier ones; they go when the output goes."""
    change(conn, _SQL["delete_sayings"], {"thread_id": thread_id})
    rows = [(Speaker.HUMAN, digest) for digest in sorted(said.human)]
    rows += [(Speaker.TOOL, digest) for digest in sorted(said.tool - said.human)]
    for speaker, digest in rows:
        change(conn, _SQL["insert_saying"], {"thread_id": thread_id, "digest": digest, "said_by": speaker.value})


def of_threads(conn: sqlite3.Connection, thread_ids: Iterable[str]) -> Mapping[str, Said]:
    """Return the sayings of these sessions; a session of which none are known is left out."""
    found = {}
    for thread_id in thread_ids:
        rows = conn.execute(_SQL["list_sayings"], {"thread_id": thread_id}).fetchall()
        if rows:
            human, tool = (
                frozenset(bytes(digest) for digest, said_by in rows if said_by == speaker.value)
                for speaker in (Speaker.HUMAN, Speaker.TOOL)
            )
            found[thread_id] = Said(human, tool)
    return found
