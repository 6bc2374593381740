"""Every text of the ledger looked at again: what rules that came later know to be a secret is taken out of old rows."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from memoryd.ledger import queries
from memoryd.ledger.rows import change

_SQL = queries.load("rescanning")
_CONNECTION = queries.load("connection")


class Texts(StrEnum):
    """Where the ledger keeps words that come from sessions, models or servers."""

    OUTPUTS = "outputs"
    SESSIONS = "sessions"
    CLAIMS = "claims"
    CLAIM_TEXTS = "claim_texts"
    JOB_ERRORS = "job_errors"
    ATTEMPT_ERRORS = "attempt_errors"
    PROBLEMS = "problems"


_STATEMENTS: Final[dict[Texts, tuple[str, str]]] = {
    Texts.OUTPUTS: ("list_outputs", "rewrite_output"),
    Texts.SESSIONS: ("list_sessions", "rewrite_session"),
    Texts.CLAIMS: ("list_claims", "rewrite_claim"),
    Texts.CLAIM_TEXTS: ("list_claim_texts", "rewrite_claim_text"),
    Texts.JOB_ERRORS: ("list_job_errors", "rewrite_job_error"),
    Texts.ATTEMPT_ERRORS: ("list_attempt_errors", "rewrite_attempt_error"),
    Texts.PROBLEMS: ("list_problems", "rewrite_problem"),
}


@dataclass(frozen=True, slots=True)
class Rescanned:
    """What became of one batch: how many rows changed, and after which row to go on; `last` None: that was all."""

    changed: int
    last: int | None


def clean_rows(
    conn: sqlite3.Connection, texts: Texts, clean: Callable[[str], str], *, after: int, limit: int
) -> Rescanned:
    """Put every text of at most `limit` rows through `clean`, and rewrite the rows that it changes.

    Old bytes are overwritten in the file; the log beside it still holds them until it is cut.
    """
    listing, rewriting = _STATEMENTS[texts]
    conn.execute(_CONNECTION["secure_delete"])
    cursor = conn.execute(_SQL[listing], {"after": after, "limit": limit})
    names = [column[0] for column in cursor.description]
    changed, last = 0, None
    for row in cursor.fetchall():
        old = dict(zip(names, row, strict=True))
        last = int(old["id"])
        new = {name: clean(value) if isinstance(value, str) else value for name, value in old.items()}
        if new == old:
            continue
        if new.get("rollout_slug") != old.get("rollout_slug"):
            change(conn, _SQL["drop_stem"], {"id": last})
        changed += change(conn, _SQL[rewriting], new)
    return Rescanned(changed, last)
