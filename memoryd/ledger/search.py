"""The search index: what of the memory folder can be found, kept in step with the files, and asked by its words.

An entry is a bullet, a task, a part of a rollout summary or of a skill. Which files the entries were made of is kept
beside them, so that a refresh reads and writes only what differs.
"""

import hashlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from memoryd.ledger import meta, queries
from memoryd.ledger.rows import change, fetch_in_order

_SQL = queries.load("search")
_CONNECTION = queries.load("connection")

FORMAT_KEY: Final = "search_format"
"""Which way of making entries the index was made in."""

NOTHING: Final = '""'
"""The FTS5 expression that holds for no entry."""

State: TypeAlias = tuple[int, int]
"""Size in bytes and modification time in ns of a file."""


@dataclass(frozen=True, slots=True)
class NewEntry:
    """A piece of a file as it is to be found; `digest` is of all of it but its place."""

    line: int
    end_line: int
    kind: str
    scope: str
    mark: str | None
    section: str | None
    threads: tuple[str, ...]
    updated_at: int | None
    opening: int
    rows_digest: str
    digest: str
    text: str
    context: str
    handles: str


@dataclass(frozen=True, slots=True)
class Change:
    """What the entries of files become; a file whose state is None is gone, and so are its entries."""

    states: Mapping[str, State | None]
    entries: Mapping[str, Sequence[NewEntry]]


@dataclass(frozen=True, slots=True)
class Filters:
    """Which entries are asked for; None: all. `since` is epoch seconds: what is older, or of no known time, is not."""

    kinds: Collection[str] | None = None
    marks: Collection[str] | None = None
    scopes: Collection[str] | None = None
    since: float | None = None

    def applied_to(self, words: str) -> str:
        """Return an FTS5 expression that holds for the entries asked for, of those for which `words` holds."""
        asked = (("kind", self.kinds), ("mark", self.marks), ("scope", self.scopes))
        places = [
            [_place_word(name, value) for value in sorted(values)] for name, values in asked if values is not None
        ]
        if not all(places):
            return NOTHING
        parts = [f"place : ({' OR '.join(some)})" for some in places]
        return " AND ".join([*parts, f"{{text context handles}} : ({words})"])


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that was found, as the index knows it."""

    id: int
    path: str
    line: int
    end_line: int
    kind: str
    scope: str
    mark: str | None
    section: str | None
    threads: tuple[str, ...]
    updated_at: int | None
    opening: int
    rows_digest: str


def known_files(conn: sqlite3.Connection, *, made_as: str) -> dict[str, State]:
    """Return the files that the index was made of, none when it was made in another way than `made_as`."""
    if meta.get(conn, FORMAT_KEY) != made_as:
        return {}
    return {path: (size, mtime_ns) for path, size, mtime_ns in conn.execute(_SQL["list_files"], {}).fetchall()}


def state_of(conn: sqlite3.Connection, path: str) -> State | None:
    """Return how a file was when its entries were made."""
    row = conn.execute(_SQL["find_file"], {"path": path}).fetchone()
    return None if row is None else (int(row[0]), int(row[1]))


def replace_entries(conn: sqlite3.Connection, wanted: Change, *, made_as: str) -> int:
    """Make the entries of these files exactly these; what is there already is not written. Return how many changed.

    What is not among `wanted.states` is left alone. Where another way of making them was left, such as other rules of
    what is a secret, no trace of the old words is left in the file; the log beside it holds them until it is cut.
    """
    changed = 0
    is_made_anew = meta.get(conn, FORMAT_KEY) not in {None, made_as}
    if is_made_anew:
        conn.execute(_CONNECTION["secure_delete"])
    for path, state in wanted.states.items():
        changed += _replace(conn, path, wanted.entries.get(path, ()))
        if state is None:
            change(conn, _SQL["delete_file"], {"path": path})
        else:
            change(conn, _SQL["put_file"], {"path": path, "size": state[0], "mtime_ns": state[1]})
    if is_made_anew:
        rebuild(conn)
    meta.put(conn, FORMAT_KEY, made_as)
    return changed


def rebuild(conn: sqlite3.Connection) -> None:
    """Write the index of words anew, so that none of a deleted entry is left in it."""
    change(conn, _SQL["rebuild_words"], {})


def indexed_paths(conn: sqlite3.Connection) -> frozenset[str]:
    """Return every file that the index knows, in whatever way it was made."""
    return frozenset(path for path, _, _ in conn.execute(_SQL["list_files"], {}).fetchall())


def valid_from(conn: sqlite3.Connection) -> dict[tuple[str, str], list[tuple[str, int]]]:
    """Return scope and beginning of the statements that stand, by their section and text."""
    found: defaultdict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for section, text, scope, since in conn.execute(_SQL["list_valid_from"], {}).fetchall():
        found[section, text].append((scope, since))
    return found


def is_empty(conn: sqlite3.Connection) -> bool:
    """Say whether there is nothing to find at all."""
    (is_any,) = conn.execute(_SQL["find_any_entry"], {}).fetchone()
    return not is_any


def scopes(conn: sqlite3.Connection) -> list[str]:
    """Return the directories that entries hold in, and `global` if any does."""
    return [scope for (scope,) in conn.execute(_SQL["list_scopes"], {}).fetchall()]


def count_matches(conn: sqlite3.Connection, words: str) -> int:
    """Return how many entries match an FTS5 expression."""
    (count,) = conn.execute(_SQL["count_matches"], {"words": words}).fetchone()
    return int(count)


def rank(conn: sqlite3.Connection, words: str, filters: Filters, *, limit: int) -> list[tuple[int, float]]:
    """Return (number, BM25 score, larger is better) of the best matches of an FTS5 expression, the best first."""
    parameters = {"words": filters.applied_to(words), "limit": limit}
    if filters.since is None:
        rows = conn.execute(_SQL["rank_matches"], parameters)
    else:
        rows = conn.execute(_SQL["rank_recent_matches"], {**parameters, "since": filters.since})
    return [(entry_id, -score) for entry_id, score in rows.fetchall()]


def found(conn: sqlite3.Connection, ids: Iterable[int]) -> dict[int, Found]:
    """Return what is known of entries, by their numbers."""
    rows = fetch_in_order(conn, _SQL["list_found"], {"ids": json.dumps(list(ids))}, _found)
    return {row.id: row for row in rows}


def text_of(conn: sqlite3.Connection, entry_id: int) -> str:
    """Return what is shown of an entry, empty when it is there no more."""
    row = conn.execute(_SQL["find_text"], {"id": entry_id}).fetchone()
    return "" if row is None else str(row[0])


def usage_of(conn: sqlite3.Connection, threads: Collection[str]) -> dict[str, int]:
    """Return how often sessions were cited, by thread id; what never was is left out."""
    rows = conn.execute(_SQL["list_usage_of"], {"threads": json.dumps(sorted(threads))}).fetchall()
    return {thread_id: int(count) for thread_id, count in rows}


def _found(row: tuple[Any, ...]) -> Found:
    entry_id, path, line, end_line, kind, scope, mark, section, threads, *rest = row
    known_by = tuple(json.loads(threads))
    return Found(entry_id, path, line, end_line, kind, scope, mark, section, known_by, *rest)


def _place_word(name: str, value: str) -> str:
    """Return the one word by which the index knows a kind, a mark or a scope: letters and digits alone."""
    return f"{name}{hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _replace(conn: sqlite3.Connection, path: str, entries: Sequence[NewEntry]) -> int:
    standing: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for entry_id, digest, line, end_line in conn.execute(_SQL["list_entries_of"], {"path": path}).fetchall():
        standing[digest].append((entry_id, line, end_line))
    fresh = []
    for entry in entries:
        same = standing[entry.digest]
        if not same:
            fresh.append(entry)
            continue
        entry_id, line, end_line = same.pop(0)
        if (line, end_line) != (entry.line, entry.end_line):
            place = {"id": entry_id, "line": entry.line, "end_line": entry.end_line}
            change(conn, _SQL["move_entry"], place)
    gone = [entry_id for left in standing.values() for entry_id, _, _ in left]
    for entry_id in gone:
        change(conn, _SQL["delete_entry"], {"id": entry_id})
        change(conn, _SQL["delete_words"], {"id": entry_id})
    for entry in fresh:
        _insert(conn, path, entry)
    return len(gone) + len(fresh)


def _insert(conn: sqlite3.Connection, path: str, entry: NewEntry) -> None:
    row = {
        "path": path,
        "line": entry.line,
        "end_line": entry.end_line,
        "kind": entry.kind,
        "scope": entry.scope,
        "mark": entry.mark,
        "section": entry.section,
        "threads": json.dumps(entry.threads),
        "updated_at": entry.updated_at,
        "opening": entry.opening,
        "rows_digest": entry.rows_digest,
        "digest": entry.digest,
    }
    (entry_id,) = conn.execute(_SQL["insert_entry"], row).fetchone()
    known = (("kind", entry.kind), ("mark", entry.mark), ("scope", entry.scope))
    place = " ".join(_place_word(name, value) for name, value in known if value is not None)
    words = {"id": entry_id, "text": entry.text, "context": entry.context, "handles": entry.handles, "place": place}
    change(conn, _SQL["insert_words"], words)
