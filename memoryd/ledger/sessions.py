"""What discovery knows of each recorded session, what has been extracted of it, and who may be remembered."""

import sqlite3
from dataclasses import dataclass, fields
from enum import StrEnum

from memoryd.errors import UsageError
from memoryd.ledger import queries
from memoryd.ledger.rows import change, fetch_all, fetch_one

_SQL = queries.load("sessions")

VANISHED = "vanished"
"""The finding of a session whose file was gone when it was to be read."""
FORGOTTEN = "forgotten"
"""Reason of exclusion that only the person's own `enabled` lifts."""


class UserMode(StrEnum):
    """The person's own choice about a session; it wins over what the agent recorded."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    NO_RECALL = "no-recall"


@dataclass(frozen=True, slots=True)
class Covered:
    """How far a session was read: time of its last record (epoch seconds) and bytes of its records."""

    updated_at: int
    record_bytes: int


@dataclass(frozen=True, slots=True)
class Sighting:
    """What one look at a session's file showed; `read_error` says why a part of it is missing.

    `timed` False: the format has no times, and `updated_at` is the file's, which a touch changes.
    """

    thread_id: str
    agent: str
    path: str
    cwd: str | None
    git_branch: str | None
    parent_id: str | None
    kind: str
    originator: str | None
    started_at: int | None
    size: int
    mtime_ns: int
    updated_at: int
    record_bytes: int
    memory_mode: str = "enabled"
    read_error: str | None = None
    timed: bool = True
    ephemeral: bool = False
    lineage: str | None = None


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One row of `sessions`; see schema.sql for what the columns mean."""

    thread_id: str
    agent: str
    path: str
    cwd: str | None
    git_branch: str | None
    parent_id: str | None
    kind: str
    originator: str | None
    started_at: int | None
    size: int
    mtime_ns: int
    updated_at: int
    record_bytes: int
    memory_mode: str
    user_mode: UserMode | None
    polluted_at: int | None
    excluded: str | None
    covered_updated_at: int | None
    covered_bytes: int | None
    queued_updated_at: int | None
    queued_bytes: int | None
    first_seen_at: int
    read_error: str | None
    stem: str | None
    remembers: bool
    is_open: bool
    ephemeral: bool
    lineage: str | None
    seniority: str | None
    finding: str | None

    @property
    def is_withheld(self) -> bool:
        """Nothing of it may be remembered: a rule, the agent, our finding or the person says so."""
        return self.excluded is not None or not self.remembers


def _make(*, user_mode: str | None, remembers: int, is_open: int, ephemeral: int, **columns: object) -> SessionRow:
    return SessionRow(
        user_mode=UserMode(user_mode) if user_mode else None,
        remembers=bool(remembers),
        is_open=bool(is_open),
        ephemeral=bool(ephemeral),
        **columns,  # type: ignore[arg-type]  # columns of SELECT *
    )


def known_files(conn: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    """Return (size, mtime_ns) of every file that was looked at, by path; only others need a look."""
    return {path: (size, mtime_ns) for path, size, mtime_ns in conn.execute(_SQL["list_files"]).fetchall()}


def upsert(conn: sqlite3.Connection, sighting: Sighting, now: float) -> SessionRow:
    """Record a look at a session's file and return the session as it stands now.

    A second file of the same session takes over only when its records reach at least as far. Exclusion, the person's
    choice and what is covered are kept.
    """
    parameters = {field.name: getattr(sighting, field.name) for field in fields(sighting)} | {"now": int(now)}
    change(conn, _SQL["keep_former_file"], parameters)
    if fetch_one(conn, _SQL["upsert_session"], parameters, _make) is None:
        remember_file(
            conn,
            path=sighting.path,
            size=sighting.size,
            mtime_ns=sighting.mtime_ns,
            now=now,
            thread_id=sighting.thread_id,
            problem="copy",
            agent=sighting.agent,
        )
    row = get_exact(conn, sighting.thread_id)
    assert row is not None  # upserted above
    if row.path == sighting.path:
        change(conn, _SQL["drop_other_file"], parameters)
    return row


def remember_file(
    conn: sqlite3.Connection,
    *,
    path: str,
    size: int,
    mtime_ns: int,
    now: float,
    thread_id: str | None = None,
    problem: str | None = None,
    agent: str | None = None,
) -> None:
    """Record a file that is no session's own file, so that it is looked at again only when it changes."""
    parameters = {
        "path": path,
        "size": size,
        "mtime_ns": mtime_ns,
        "thread_id": thread_id,
        "problem": problem,
        "agent": agent,
        "now": int(now),
    }
    change(conn, _SQL["upsert_other_file"], parameters)


def problem_files(conn: sqlite3.Connection, *, limit: int = 100) -> list[tuple[str, str]]:
    """Return (path, problem) of files that could not be read as sessions; second copies are no problem."""
    return [(path, problem) for path, problem in conn.execute(_SQL["list_problems"], {"limit": limit}).fetchall()]


def copies(conn: sqlite3.Connection, thread_id: str) -> list[tuple[str, str | None]]:
    """Return (path, agent) of the session's other files; the agent is None where an older memoryd saw the file."""
    return [(path, agent) for path, agent in conn.execute(_SQL["list_copies"], {"thread_id": thread_id}).fetchall()]


def family(conn: sqlite3.Connection, row: SessionRow) -> list[SessionRow]:
    """Return the sessions whose rows this one may share, itself included, by seniority; none without a lineage."""
    if row.lineage is None:
        return []
    parameters = {"agent": row.agent, "lineage": row.lineage, "parent_id": row.parent_id}
    return fetch_all(conn, _SQL["list_family"], parameters, _make)


def due(
    conn: sqlite3.Connection, *, idle_before: float, newest_from: float | None, limit: int = 1000
) -> list[SessionRow]:
    """Return sessions that hold something neither extracted nor enqueued, newest first.

    Only those not excluded, allowed to be remembered, idle since `idle_before` and not older than `newest_from` (None:
    however old).
    """
    parameters = {"idle_before": idle_before, "newest_from": newest_from or 0, "limit": limit}
    return fetch_all(conn, _SQL["list_due"], parameters, _make)


def get_exact(conn: sqlite3.Connection, thread_id: str) -> SessionRow | None:
    """Return the session with exactly this thread id."""
    return fetch_one(conn, _SQL["find_session"], {"thread_id": thread_id}, _make)


def get(conn: sqlite3.Connection, thread_id: str) -> SessionRow | None:
    """Return the session that a person means by a thread id, its bare form, or the beginning of either.

    Raises UsageError when several sessions fit.
    """
    exact = get_exact(conn, thread_id)
    if exact is not None or not thread_id:
        return exact
    found = fetch_all(conn, _SQL["list_by_prefix"], {"prefix": thread_id, "limit": 6}, _make)
    if len(found) > 1:
        names = ", ".join(row.thread_id for row in found[:5])
        raise UsageError(f"{thread_id} fits several sessions: {names}", remedy="give more of the id")
    return found[0] if found else None


def by_path(conn: sqlite3.Connection, path: str) -> SessionRow | None:
    """Return the session that a file belongs to, second copies included; the newest if there are several."""
    return fetch_one(conn, _SQL["find_by_path"], {"path": path}, _make)


def list_sessions(conn: sqlite3.Connection, *, limit: int = 1000) -> list[SessionRow]:
    """Return sessions, last record newest first."""
    return fetch_all(conn, _SQL["list_sessions"], {"limit": limit}, _make)


def list_left_out(conn: sqlite3.Connection, reason: str, *, limit: int = 1000) -> list[SessionRow]:
    """Return the sessions that a rule (excluded) or a finding of this name keeps out, last record newest first."""
    return fetch_all(conn, _SQL["list_left_out"], {"reason": reason, "limit": limit}, _make)


def set_finding(conn: sqlite3.Connection, thread_id: str, read: Covered, finding: str | None) -> None:
    """Record why reading this state of a session gave no evidence, or that it gave some (None)."""
    change(conn, _SQL["set_finding"], _pair(thread_id, read) | {"finding": finding})


def vanished_paths(conn: sqlite3.Connection) -> list[str]:
    """Return the files that were gone when they were to be read: one that is back is news, though nothing changed."""
    return [path for (path,) in conn.execute(_SQL["list_vanished"]).fetchall()]


def forget_finding(conn: sqlite3.Connection, thread_id: str) -> None:
    """Let a session be read again, as it is."""
    change(conn, _SQL["forget_finding"], {"thread_id": thread_id})
    forget_queued(conn, thread_id)


def set_memory_mode(conn: sqlite3.Connection, thread_id: str, memory_mode: str) -> None:
    """Record the agent's own word about remembering a session."""
    change(conn, _SQL["set_memory_mode"], {"thread_id": thread_id, "memory_mode": memory_mode})


def set_excluded(conn: sqlite3.Connection, thread_id: str, reason: str | None) -> None:
    """Record why a session is left out, or that it no longer is: then it is due again, unless it was extracted.

    What was forgotten stays so.
    """
    change(conn, _SQL["set_excluded"], {"thread_id": thread_id, "reason": reason, "forgotten": FORGOTTEN})
    if reason is None:
        forget_queued(conn, thread_id)


def forget_queued(conn: sqlite3.Connection, thread_id: str) -> None:
    """Let a session be enqueued again as it is, unless that state was extracted."""
    change(conn, _SQL["forget_queued"], {"thread_id": thread_id})


def excluded_counts(conn: sqlite3.Connection) -> dict[str, int]:
    """Return the number of sessions by what keeps them out: the rule, else what reading them found."""
    return {reason: number for reason, number in conn.execute(_SQL["count_excluded"]).fetchall()}  # noqa: C416 - typed


def set_user_mode(conn: sqlite3.Connection, thread_id: str, mode: UserMode | None) -> bool:
    """Record the person's choice; True when the memory changes by it, so that consolidation must be enqueued.

    `ENABLED` also lifts an exclusion (forgotten included) and clears a pollution.
    """
    return _change_mode(conn, "set_user_mode", thread_id, {"mode": mode})


def without_recall(conn: sqlite3.Connection) -> list[str]:
    """Return the sessions of which the person said that they be given nothing."""
    return [str(thread_id) for (thread_id,) in conn.execute(_SQL["list_without_recall"], {}).fetchall()]


def mark_polluted(conn: sqlite3.Connection, thread_id: str, now: float) -> bool:
    """Record that a session took in external content; True when the memory changes by it (enqueue consolidation)."""
    return _change_mode(conn, "mark_polluted", thread_id, {"now": int(now)})


def fix_stem(conn: sqlite3.Connection, thread_id: str, stem: str) -> str:
    """Give the session's summary file its name, once: the answer is the name that stands."""
    kept = conn.execute(_SQL["fix_stem"], {"thread_id": thread_id, "stem": stem}).fetchone()
    return stem if kept is None else str(kept[0])


def record_queued(conn: sqlite3.Connection, thread_id: str, pair: Covered) -> None:
    """Record the state of the session that was enqueued last."""
    change(conn, _SQL["record_queued"], _pair(thread_id, pair))


def is_queued(conn: sqlite3.Connection, thread_id: str, pair: Covered) -> bool:
    """Tell whether this state of the session is the one that was enqueued last."""
    return conn.execute(_SQL["find_queued"], _pair(thread_id, pair)).fetchone() is not None


def record_covered(conn: sqlite3.Connection, thread_id: str, pair: Covered) -> None:
    """Record the state of the session that has been extracted.

    Comes after the job's own end. While the job goes on, the enqueued state stays; once it is done nothing is enqueued,
    so that a file which has returned to what was enqueued before is due. What is known of the file may also be older
    than what was read of it (it grew meanwhile): the scan that would enqueue it looks at the file first.
    """
    change(conn, _SQL["record_covered"], _pair(thread_id, pair))


def _pair(thread_id: str, pair: Covered) -> dict[str, object]:
    return {"thread_id": thread_id, "updated_at": pair.updated_at, "record_bytes": pair.record_bytes}


def _change_mode(conn: sqlite3.Connection, statement: str, thread_id: str, parameters: dict[str, object]) -> bool:
    before = get_exact(conn, thread_id)
    if before is None:
        raise UsageError(
            f"cannot change the mode of {thread_id}: no such session", remedy="`memoryd sessions` lists them"
        )
    change(conn, _SQL[statement], parameters | {"thread_id": thread_id})
    after = get_exact(conn, thread_id)
    assert after is not None
    if before.remembers == after.remembers:
        return False
    found = conn.execute(_SQL["find_selection"], {"thread_id": thread_id}).fetchone()
    return found is not None and (after.remembers or bool(found[0]))
