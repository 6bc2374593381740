"""What sessions taught: one row per session, which of them the memory is made of, and how often they are used."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from memoryd.ledger import queries
from memoryd.ledger.active_days import unused_before
from memoryd.ledger.rows import change, fetch_all, fetch_one
from memoryd.ledger.sayings import NOTHING_KNOWN, Said, replace_sayings

_SQL = queries.load("outputs")


@dataclass(frozen=True, slots=True)
class NewOutput:
    """An answer of stage 1 about the state of a session at `source_updated_at`.

    `stem` names the session's summary file, unless an earlier output has fixed the name. `said` tells who spoke the
    words of its preference signals.
    """

    thread_id: str
    source_updated_at: int
    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None
    stem: str | None = None
    said: Said = NOTHING_KNOWN


@dataclass(frozen=True, slots=True)
class ImportedOutput:
    """A row of the published columns that another program wrote; `generated_at` and `last_usage` are its own."""

    thread_id: str
    source_updated_at: int
    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None
    generated_at: int
    usage_count: int | None
    last_usage: int | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An output at the state in which a consolidation took it in."""

    thread_id: str
    source_updated_at: int


@dataclass(frozen=True, slots=True)
class PreviousSnapshot:
    """A snapshot that the memory folder is made of, and the stem of its summary file."""

    thread_id: str
    source_updated_at: int
    stem: str | None


@dataclass(frozen=True, slots=True)
class SelectedOutput:
    """An output with what is known of its session, as files are made of it; None where the session is not known."""

    thread_id: str
    updated_at: int
    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None
    generated_at: int
    usage_count: int
    last_usage: int | None
    selected_for_phase2: bool
    selected_for_phase2_source_updated_at: int | None
    agent: str | None
    cwd: str | None
    git_branch: str | None
    rollout_path: str | None
    stem: str | None
    started_at: int | None
    standing_updated_at: int | None = None
    """The row is kept out (holds.py), and the folder holds the session at this earlier state instead."""

    @property
    def source_updated_at(self) -> int:
        """The column's own name of `updated_at`."""
        return self.updated_at

    @property
    def snapshot(self) -> Snapshot:
        """Return what a consolidation that takes this in has consumed."""
        return Snapshot(self.thread_id, self.updated_at)


def _make(*, selected_for_phase2: int, **columns: object) -> SelectedOutput:
    return SelectedOutput(selected_for_phase2=bool(selected_for_phase2), **columns)  # type: ignore[arg-type]  # columns of the view


def store(conn: sqlite3.Connection, output: NewOutput, *, now: float) -> bool:
    """Insert or replace the output of a session; False when the stored one is of a later state and stays.

    How often it was used and whether it is selected are kept.
    """
    parameters = {
        "thread_id": output.thread_id,
        "source_updated_at": output.source_updated_at,
        "raw_memory": output.raw_memory,
        "rollout_summary": output.rollout_summary,
        "rollout_slug": output.rollout_slug,
        "generated_at": int(now),
    }
    if change(conn, _SQL["insert_output"], parameters):
        if output.said != NOTHING_KNOWN:
            replace_sayings(conn, output.thread_id, output.said)
        return True
    if not change(conn, _SQL["replace_output"], parameters):
        return False
    replace_sayings(conn, output.thread_id, output.said)
    return True


def take_over(conn: sqlite3.Connection, output: ImportedOutput) -> bool:
    """Insert or replace a row as another program has it; False when the stored one is of as late a state and stays."""
    if change(conn, _SQL["import_output"], asdict(output)) == 0:
        return False
    replace_sayings(conn, output.thread_id, NOTHING_KNOWN)
    return True


def is_any(conn: sqlite3.Connection) -> bool:
    """Tell whether anything was learned yet."""
    return bool(conn.execute(_SQL["find_any"]).fetchone()[0])


def remove(conn: sqlite3.Connection, thread_id: str) -> bool:
    """Delete the output of a session; True when there was one."""
    return change(conn, _SQL["delete_output"], {"thread_id": thread_id}) > 0


def select_for_consolidation(
    conn: sqlite3.Connection, *, now: float, max_raw_memories: int, max_unused: float
) -> list[SelectedOutput]:
    """Return the outputs that the memory is to be made of, in thread-id order.

    Not empty, of sessions that may be remembered, used (or, if never used, recorded) within `max_unused` seconds of
    active days; the most used, then the latest, at most `max_raw_memories`.
    """
    parameters = {"unused_before": unused_before(conn, now=now, max_unused=max_unused), "limit": max_raw_memories}
    return fetch_all(conn, _SQL["select_for_consolidation"], parameters, _make)


def previously_selected(conn: sqlite3.Connection) -> list[PreviousSnapshot]:
    """Return the snapshots that the last consolidation consumed, in thread-id order."""
    return fetch_all(conn, _SQL["list_selected"], {}, PreviousSnapshot)


def get(conn: sqlite3.Connection, thread_id: str) -> SelectedOutput | None:
    """Return the output of a session."""
    return fetch_one(conn, _SQL["find_output"], {"thread_id": thread_id}, _make)


def mark_consumed(conn: sqlite3.Connection, consumed: Sequence[Snapshot]) -> int:
    """Mark exactly these snapshots as selected and no other row; the answer is how many still stand as consumed."""
    change(conn, _SQL["clear_selection"], {})
    return sum(
        change(
            conn,
            _SQL["mark_selected"],
            {"thread_id": snapshot.thread_id, "source_updated_at": snapshot.source_updated_at},
        )
        for snapshot in consumed
    )


def prune(conn: sqlite3.Connection, *, now: float, max_unused: float, limit: int = 200) -> int:
    """Delete unselected outputs that nobody used for `max_unused` seconds of active days, stalest first.

    Watermarks stay.
    """
    before = unused_before(conn, now=now, max_unused=max_unused)
    return change(conn, _SQL["prune_outputs"], {"unused_before": before, "limit": limit})


def cite(conn: sqlite3.Connection, thread_ids: Iterable[str], message_key: str, now: float) -> int:
    """Count a citing message once for each known thread that it names; the answer is how many counts are new.

    Use moves what is selected, and says nothing of how fresh or how true something is. Unknown ids are only counted.
    """
    counted = 0
    for place, thread_id in enumerate(dict.fromkeys(thread_ids)):
        parameters = {"thread_id": thread_id, "message_key": message_key, "now": int(now)}
        if change(conn, _SQL["insert_usage_event"], parameters):
            counted += change(conn, _SQL["count_usage"], parameters)
        else:
            change(conn, _SQL["insert_unknown_citation"], {**parameters, "place": place})
    return counted


def unknown_citations(conn: sqlite3.Connection) -> int:
    """Return how many ids were cited that are of no session that taught anything."""
    (count,) = conn.execute(_SQL["count_unknown_citations"]).fetchone()
    return int(count)


def usage_by_stem(conn: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    """Return how often, and when last, the sessions of the memory were used, by the stems of their summary files."""
    return {stem: (count, last) for stem, count, last in conn.execute(_SQL["list_usage"], {}).fetchall()}


@dataclass(frozen=True, slots=True)
class Memory:
    """What one session taught, as a person is told of it; `excluded` and `held_because` say why it stays out."""

    thread_id: str
    agent: str | None
    cwd: str | None
    slug: str | None
    summary: str
    source_updated_at: int
    usage_count: int
    last_usage: int | None
    is_selected: bool
    is_wanted: bool
    excluded: str | None
    held_because: str | None

    @property
    def needed_at(self) -> int:
        """When it was used last, or, never used, recorded."""
        return self.source_updated_at if self.last_usage is None else self.last_usage


def list_memories(conn: sqlite3.Connection) -> list[Memory]:
    """Return what was learned, the most used first, then the latest."""
    return fetch_all(conn, _SQL["list_memories"], {}, _memory)


def _memory(*, is_selected: int, is_wanted: int, **columns: object) -> Memory:
    return Memory(is_selected=bool(is_selected), is_wanted=bool(is_wanted), **columns)  # type: ignore[arg-type]  # columns of the view
