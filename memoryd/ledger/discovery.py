"""What discovery writes, a batch at a time: looks at sessions with their exclusion, and the jobs that are due."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace

from memoryd.ledger import outputs, policy, sessions
from memoryd.ledger.enqueueing import enqueue_consolidation, enqueue_stage1, request_cancel
from memoryd.ledger.policy import ConsolidateTiming
from memoryd.ledger.sessions import SessionRow, Sighting, UserMode
from memoryd.ledger.states import JobKind

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
        if before is not None and before.finding == sessions.VANISHED:
            sessions.forget_finding(conn, before.thread_id)
        reconsider(conn, sessions.upsert(conn, _untouched(sighting, before), now), judge)
        withdrawn = _came_or_went(conn, before, sighting.thread_id) or withdrawn
    if withdrawn:
        enqueue_consolidation(conn, now=now, timing=timing, max_attempts=max_attempts, reason="memory_mode")


def _came_or_went(conn: sqlite3.Connection, before: SessionRow | None, thread_id: str) -> bool:
    """Tell whether a memory that there is may be part of the folder now and was not before, or the other way round."""
    if before is None:
        return False
    after = sessions.get_exact(conn, thread_id)
    changed = after is not None and before.is_withheld != after.is_withheld
    return changed and outputs.get(conn, thread_id) is not None


def _untouched(sighting: Sighting, before: SessionRow | None) -> Sighting:
    """Where a format has no times, the same bytes are the same session, whatever the file's time says."""
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


def reconsider_all(
    conn: sqlite3.Connection, judge: Judge, *, now: float, timing: ConsolidateTiming, max_attempts: int
) -> int:
    """Judge every known session by the settings of this start; return how many changed.

    A memory whose session is left out from now on leaves the folder, and comes back when the rule is lifted.
    """
    changed = [row for row in sessions.list_sessions(conn, limit=1_000_000) if reconsider(conn, row, judge)]
    if any(_came_or_went(conn, row, row.thread_id) for row in changed):
        enqueue_consolidation(conn, now=now, timing=timing, max_attempts=max_attempts, reason="exclusion")
    return len(changed)


def choose_mode(
    conn: sqlite3.Connection,
    thread_id: str,
    mode: UserMode,
    judge: Judge,
    *,
    now: float,
    timing: ConsolidateTiming,
    max_attempts: int,
) -> SessionRow:
    """Record the person's choice about a session and all that follows from it; return the session as it stands.

    `enabled` lifts what excluded or polluted it: what was not extracted is due again. A choice that takes the session
    out stops its job and takes its memory out of the folder. Raises UsageError when there is no such session.
    """
    before = sessions.get_exact(conn, thread_id)
    sessions.set_user_mode(conn, thread_id, mode)
    after = sessions.get_exact(conn, thread_id)
    assert after is not None  # or the choice could not be recorded
    reconsider(conn, after, judge)
    if before is not None and before.is_withheld:
        sessions.forget_queued(conn, thread_id)
    return _settled(conn, before, thread_id, now=now, timing=timing, max_attempts=max_attempts)


def leave_out(
    conn: sqlite3.Connection,
    thread_id: str,
    reason: str,
    memory_mode: str | None,
    *,
    now: float,
    timing: ConsolidateTiming,
    max_attempts: int,
) -> None:
    """Leave a session out for what reading it showed; `memory_mode` is the agent's word, None for our own finding.

    It is recorded so that it stays: the rules judge a session anew at each start, by what is known of it.
    """
    before = sessions.get_exact(conn, thread_id)
    if memory_mode is None:
        sessions.mark_polluted(conn, thread_id, now)
    else:
        sessions.set_memory_mode(conn, thread_id, memory_mode)
    sessions.set_excluded(conn, thread_id, reason)
    _settled(conn, before, thread_id, now=now, timing=timing, max_attempts=max_attempts, cancel=False)


def _settled(
    conn: sqlite3.Connection,
    before: SessionRow | None,
    thread_id: str,
    *,
    now: float,
    timing: ConsolidateTiming,
    max_attempts: int,
    cancel: bool = True,
) -> SessionRow:
    after = sessions.get_exact(conn, thread_id)
    assert after is not None  # changed in this transaction
    if cancel and after.is_withheld:
        request_cancel(conn, kind=JobKind.STAGE1, job_key=thread_id)
    if _came_or_went(conn, before, thread_id):
        enqueue_consolidation(conn, now=now, timing=timing, max_attempts=max_attempts, reason="memory_mode")
    return after


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
            ready_at=policy.newest_first(now, row.updated_at),
        )
        for row in due
    )
