"""What forgetting does to rows, and the row that says which forgetting is under way until all of it is done.

Every function is one step of a transaction. What is deleted here is overwritten in its pages (secure_delete); the
log beside them, and copies of the ledger, are a matter of scrubbing.py.
"""

import json
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Final

from memoryd.ledger import claims, meta, proposals, queries
from memoryd.ledger.enqueueing import enqueue_consolidation, request_cancel
from memoryd.ledger.policy import ConsolidateTiming
from memoryd.ledger.rows import change
from memoryd.ledger.states import GLOBAL_KEY, JobKind

_SQL = queries.load("forgetting")
_CONNECTION = queries.load("connection")

UNDER_WAY: Final = "forgetting"
"""The key under which stands what is being forgotten."""
UNTIDY: Final = "untidy"
"""The key under which stand the sessions that are to be consolidated anew, because code alone has cleaned up."""
RESET_AT: Final = "reset_at"
"""The key of the instant before which nothing is learned any more."""
TAKEN_OUT: Final = "its words were taken out when something was forgotten"


class Deed(StrEnum):
    """FORGET: what only these sessions support goes. PURGE: and from history and copies. RESET: everything goes."""

    FORGET = "forget"
    PURGE = "purge"
    RESET = "reset"


class Step(StrEnum):
    """What is done already: the rows are marked; the folder is cleaned; nothing but what is written anew is left."""

    MARKED = "marked"
    CLEANED = "cleaned"
    REWRITTEN = "rewritten"


@dataclass(frozen=True, slots=True)
class Forgetting:
    """A forgetting that is under way. `removed` counts the statements that left the memory."""

    deed: Deed
    threads: tuple[str, ...] = ()
    step: Step = Step.MARKED
    removed: int = 0

    @property
    def rewrites(self) -> bool:
        """History and copies go as well."""
        return self.deed is not Deed.FORGET


def under_way(conn: sqlite3.Connection) -> Forgetting | None:
    """Return the forgetting that is not done yet."""
    text = meta.get(conn, UNDER_WAY)
    if text is None:
        return None
    told = json.loads(text)
    return Forgetting(Deed(told["deed"]), tuple(told["threads"]), Step(told["step"]), int(told["removed"]))


def proceed(conn: sqlite3.Connection, forgetting: Forgetting) -> None:
    """Record how far it has come."""
    meta.put(conn, UNDER_WAY, json.dumps(asdict(forgetting)))


def finish(conn: sqlite3.Connection) -> None:
    """Record that it is done."""
    change(conn, _SQL["delete_meta"], {"key": UNDER_WAY})


def begin(
    conn: sqlite3.Connection,
    threads: Sequence[str],
    *,
    purge: bool,
    now: float,
    timing: ConsolidateTiming,
    max_attempts: int,
) -> Forgetting:
    """Mark sessions as forgotten, delete what they taught, ask whoever works on it to stop; from here on it is certain.

    A forgetting that is under way already is joined. What others support stays; with `purge` every claim goes that
    rests on one of the sessions.
    """
    conn.execute(_CONNECTION["secure_delete"])
    earlier = under_way(conn) or Forgetting(Deed.FORGET)
    both = tuple(dict.fromkeys([*earlier.threads, *threads]))
    deed = earlier.deed if earlier.deed is Deed.RESET else Deed.PURGE if purge or earlier.rewrites else Deed.FORGET
    forgetting = Forgetting(deed, both)
    proceed(conn, forgetting)
    for thread_id in threads:
        parameters = {"thread_id": thread_id}
        change(conn, _SQL["forget_session"], parameters)
        change(conn, _SQL["delete_output"], parameters)
        change(conn, _SQL["delete_usage"], parameters)
        request_cancel(conn, kind=JobKind.STAGE1, job_key=thread_id)
        change(conn, _SQL["delete_idle_job"], parameters)
        _silence(conn, JobKind.STAGE1, thread_id)
    _silence(conn, JobKind.CONSOLIDATE, GLOBAL_KEY)
    named = {"threads": json.dumps(list(threads))}
    change(conn, _SQL["delete_shared_claims" if purge else "delete_lonely_claims"], named)
    change(conn, _SQL["withdraw_support"], named)
    claims.erase_earlier_texts(conn, threads)
    proposals.supersede(conn, now=now)
    request_cancel(conn, kind=JobKind.CONSOLIDATE, job_key=GLOBAL_KEY)
    enqueue_consolidation(conn, now=now, timing=timing, max_attempts=max_attempts, reason="forgotten")
    return forgetting


def begin_reset(conn: sqlite3.Connection, *, now: float, relearn: bool) -> Forgetting:
    """Delete everything that was learned; sessions, modes and what was spent stay.

    Afterwards only what is recorded after `now` is learned; with `relearn` everything that is not forgotten, anew.
    """
    conn.execute(_CONNECTION["secure_delete"])
    forgetting = Forgetting(Deed.RESET)
    proceed(conn, forgetting)
    names = ["delete_all_outputs", "delete_all_usage", "delete_all_claims", "delete_all_jobs", "clear_all_problems"]
    names += ["clear_all_attempt_errors", "delete_all_publications", "delete_proposals"]
    names += ["delete_imports", "reopen_all_sessions" if relearn else "settle_all_sessions"]
    for name in names:
        change(conn, _SQL[name], {})
    change(conn, _SQL["delete_meta"], {"key": UNTIDY})
    if relearn:
        change(conn, _SQL["delete_meta"], {"key": RESET_AT})
    else:
        meta.put(conn, RESET_AT, str(int(now)))
    return forgetting


def end_jobs(conn: sqlite3.Connection, forgetting: Forgetting) -> None:
    """Delete the jobs of forgotten sessions that ran when it began, and what came of that in the last moment."""
    conn.execute(_CONNECTION["secure_delete"])
    for thread_id in forgetting.threads:
        change(conn, _SQL["delete_job"], {"thread_id": thread_id})
        change(conn, _SQL["delete_output"], {"thread_id": thread_id})
        _silence(conn, JobKind.STAGE1, thread_id)
    _silence(conn, JobKind.CONSOLIDATE, GLOBAL_KEY)


def reset_at(conn: sqlite3.Connection) -> int | None:
    """Return the instant before which nothing is learned any more, None when there is none."""
    text = meta.get(conn, RESET_AT)
    return None if text is None else int(text)


def mark_untidy(conn: sqlite3.Connection, threads: Collection[str]) -> None:
    """Ask the next consolidation to look again, and at these sessions anew, though nothing else has changed."""
    meta.put(conn, UNTIDY, json.dumps(sorted({*(untidy(conn) or ()), *threads})))


def untidy(conn: sqlite3.Connection) -> tuple[str, ...] | None:
    """Return the sessions that are to be consolidated anew; None when the memory needs no second look."""
    text = meta.get(conn, UNTIDY)
    return None if text is None else tuple(json.loads(text))


def tidied(conn: sqlite3.Connection) -> None:
    """Record that a consolidation has looked."""
    change(conn, _SQL["delete_meta"], {"key": UNTIDY})


def with_step(forgetting: Forgetting, step: Step, *, removed: int = 0) -> Forgetting:
    """Return a forgetting that has come so far."""
    return replace(forgetting, step=step, removed=forgetting.removed + removed)


def drop_publications(conn: sqlite3.Connection) -> None:
    """Delete what was published or proposed: its commits are gone."""
    change(conn, _SQL["delete_published"], {})
    change(conn, _SQL["delete_proposals"], {})


def _silence(conn: sqlite3.Connection, kind: JobKind, job_key: str) -> None:
    """Take the words out of what went wrong with a job: complaints and refusals quote."""
    parameters = {"kind": kind.value, "job_key": job_key}
    change(conn, _SQL["clear_attempt_errors"], parameters)
    change(conn, _SQL["clear_job_error"], parameters | {"instead": TAKEN_OUT})
