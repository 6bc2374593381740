"""What discovery writes, a batch at a time: looks at sessions with their exclusion, and the jobs that are due."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace

from memoryd.ledger import outputs, sessions
from memoryd.ledger.enqueueing import enqueue_consolidation, enqueue_stage1
from memoryd.ledger.policy import ConsolidateTiming
from memoryd.ledger.sessions import SessionRow, Sighting

Judge = Callable[[SessionRow], str | None]
"""Names the rule that leaves a session out, None when it may become a memory."""


def record(
    conn: sqlite3.Connection,
    sightings: Sequence[Sighting],
    judge: Judge,
    *,
    now: float,
    timing: ConsolidateTiming,
    max_attempts: int,
) -> None:
    """Record looks at sessions; one whose memory stands but that may not be remembered now dirties consolidation."""
    withdrawn = False
    for sighting in sightings:
        before = sessions.get_exact(conn, sighting.thread_id)
        after = sessions.upsert(conn, _untouched(sighting, before), now)
        reconsider(conn, after, judge)
        changed = before is not None and before.remembers != after.remembers
        withdrawn = withdrawn or (changed and outputs.get(conn, sighting.thread_id) is not None)
    if withdrawn:
        enqueue_consolidation(conn, now=now, timing=timing, max_attempts=max_attempts, reason="memory_mode")


def _untouched(sighting: Sighting, before: SessionRow | None) -> Sighting:
    """Where a format has no times, the same bytes are the same session, whatever the file's time says (I4)."""
    if sighting.timed or before is None or before.record_bytes != sighting.record_bytes:
        return sighting
    return replace(sighting, updated_at=before.updated_at)


def reconsider(conn: sqlite3.Connection, row: SessionRow, judge: Judge) -> bool:
    """Judge one known session; tell whether its exclusion changed. What the person had forgotten stays so."""
    reason = judge(row)
    if row.excluded in {reason, sessions.FORGOTTEN}:
        return False
    sessions.set_excluded(conn, row.thread_id, reason)
    return True


def reconsider_all(conn: sqlite3.Connection, judge: Judge) -> int:
    """Judge every known session by the settings of this start; return how many changed."""
    rows = sessions.list_sessions(conn, limit=1_000_000)
    return sum(reconsider(conn, row, judge) for row in rows)


def enqueue_due(conn: sqlite3.Connection, due: Sequence[SessionRow], *, now: float, max_attempts: int) -> int:
    """Enqueue stage 1 for sessions as they stand; return how many jobs that changed."""
    return sum(
        enqueue_stage1(
            conn,
            thread_id=row.thread_id,
            updated_at=row.updated_at,
            record_bytes=row.record_bytes,
            now=now,
            max_attempts=max_attempts,
        )
        for row in due
    )
