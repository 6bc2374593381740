"""Who answers the questions: grep, plain BM25 in three ways, and memoryd; each gives places, the likeliest first."""

import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from memoryd.ledger import queries
from memoryd.ledger import search as index
from memoryd.ledger.search import Change, NewEntry
from memoryd.recall.entries import MADE_AS, Source, entries_of
from memoryd.recall.search import Question, search
from memoryd.recall.search_refresh import states_of
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import MEMORY_FILE, Home, prepare
from tests.bench.search.questions import Asked
from tests.bench.search.world import NOW, World

LIMIT: Final = 10
Span: TypeAlias = tuple[str, int, int]
"""A file, and the first and last line of what is shown of it."""
Contender: TypeAlias = Callable[[Asked], list[Span]]

_SMALL_WORDS: Final = """
the and for are was with what which how does did has have who whom where when why that this from into its can you should
still there any not but
"""
_GREP_STOPS: Final = frozenset(_SMALL_WORDS.split())
"""What nobody would grep for."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """The folder on disk, its entries, and the ledger that indexes it."""

    home: Home
    conn: sqlite3.Connection
    entries: dict[str, list[NewEntry]]


def put_on_disk(world: World, folder: Path) -> Indexed:
    """Write the folder, and index it as the daemon does; the handbook is larger than a real one may be."""
    home = Home(folder)
    prepare(home)
    for path, text in world.files.items():
        (home.memories / path).parent.mkdir(exist_ok=True)
        (home.memories / path).write_text(text)
    states = states_of(home)
    rows = {path: text.split("\n") for path, text in world.files.items()}
    entries = entries_of(Source(Folder(world.files), rows, {}, {}), list(states))
    conn = sqlite3.connect(home.ledger_file, isolation_level=None)
    conn.executescript(queries.read("schema.sql"))
    conn.execute("BEGIN")
    index.replace_entries(conn, Change(states, entries), made_as=MADE_AS)
    conn.execute("COMMIT")
    conn.close()
    return Indexed(
        home, sqlite3.connect(f"{home.ledger_file.as_uri()}?mode=ro", uri=True, isolation_level=None), entries
    )


def grep(world: World) -> Contender:
    """The lines with the most different words of the question, letter case aside; the handbook's come first."""
    order = sorted(world.files, key=lambda path: (path != MEMORY_FILE, path))
    lines = [
        (path, number, row.lower())
        for path in order
        for number, row in enumerate(world.files[path].split("\n"), start=1)
    ]

    def answer(asked: Asked) -> list[Span]:
        words = {word for word in re.findall(r"[\w./-]{3,}", asked.words.lower()) if word not in _GREP_STOPS}
        counted = [(-sum(word in row for word in words), place) for place, (_, _, row) in enumerate(lines)]
        best = sorted(pair for pair in counted if pair[0])[:LIMIT]
        return [(lines[place][0], lines[place][1], lines[place][1]) for _, place in best]

    return answer


def plain_bm25(indexed: Indexed, *, with_headings: bool, in_scope: bool) -> Contender:
    """FTS5 as it comes: one column, every word of the question, nothing left out, nothing stemmed."""
    conn = sqlite3.connect(":memory:", isolation_level=None)
    conn.execute("CREATE VIRTUAL TABLE words USING fts5(text, scope UNINDEXED)")
    spans: list[Span] = []
    for path, entries in indexed.entries.items():
        for entry in entries:
            text = f"{entry.context}\n{entry.text}" if with_headings else entry.text
            conn.execute("INSERT INTO words (rowid, text, scope) VALUES (?, ?, ?)", (len(spans), text, entry.scope))
            spans.append((path, entry.line, entry.end_line))

    def answer(asked: Asked) -> list[Span]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", asked.words))
        scope = asked.cwd if in_scope else None
        rows = conn.execute(
            "SELECT rowid FROM words WHERE words MATCH ? AND (? IS NULL OR scope = ?) ORDER BY rank LIMIT ?",
            (words, scope, scope, LIMIT),
        )
        return [spans[row] for (row,) in rows.fetchall()]

    return answer


def memoryd(indexed: Indexed) -> Contender:
    """The product's own search, with the directory that is asked from."""

    def answer(asked: Asked) -> list[Span]:
        question = Question(asked.words, cwd=asked.cwd, limit=LIMIT)
        hits = search(indexed.conn, indexed.home, question, now=NOW.timestamp())
        return [(hit.path, hit.line, hit.end_line) for hit in hits]

    return answer


def first_right(spans: Sequence[Span], places: frozenset[tuple[str, int]]) -> int | None:
    """Return at which place (from 1) something is shown that holds one of these lines."""
    for rank, (path, line, end_line) in enumerate(spans, start=1):
        if any(path == where and line <= number <= end_line for where, number in places):
            return rank
    return None
