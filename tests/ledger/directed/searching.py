"""Of what search finds: one file's entries change, and nothing else does."""

import sqlite3
from collections.abc import Callable

from memoryd.ledger import search
from memoryd.ledger.search import Change, Filters, NewEntry


def an_entry(text: str, line: int = 1) -> NewEntry:
    return NewEntry(line, line, "bullet", "global", "stated", "s", (), 5, 1, text, text, text, "", "")


def a_change_of_one_file_leaves_the_entries_of_others(conn: sqlite3.Connection) -> None:
    _put(conn, {"a": [an_entry("one"), an_entry("two", 2)], "b": [an_entry("three")], "c": [an_entry("four")]})
    _put(conn, {"a": [an_entry("two", 7), an_entry("five", 8)]})

    assert _all(conn) == [("a", 7, "two"), ("a", 8, "five"), ("b", 1, "three"), ("c", 1, "four")]
    assert [len(search.rank(conn, word, Filters(), limit=9)) for word in ("one", "two", "three", "five")] == [
        0,
        1,
        1,
        1,
    ]


def a_file_that_is_gone_takes_its_entries_along_and_no_others(conn: sqlite3.Connection) -> None:
    _put(conn, {"a": [an_entry("one")], "b": [an_entry("three")]})
    search.replace_entries(conn, Change({"a": None}, {}), made_as="1")

    assert _all(conn) == [("b", 1, "three")]
    assert search.known_files(conn, made_as="1") == {"b": (1, 1)}
    assert search.rank(conn, "one", Filters(), limit=9) == []


def _put(conn: sqlite3.Connection, entries: dict[str, list[NewEntry]]) -> None:
    search.replace_entries(conn, Change(dict.fromkeys(entries, (1, 1)), entries), made_as="1")


def _all(conn: sqlite3.Connection) -> list[tuple[str, int, str]]:
    ids = [row[0] for row in conn.execute("SELECT id FROM search_entries")]
    return sorted((each.path, each.line, search.text_of(conn, each.id)) for each in search.found(conn, ids).values())


SCHEDULES: tuple[Callable[[sqlite3.Connection], None], ...] = (
    a_change_of_one_file_leaves_the_entries_of_others,
    a_file_that_is_gone_takes_its_entries_along_and_no_others,
)
