"""The search index in the ledger: what is there already is not written again, and nothing of what is deleted stays."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memoryd.ledger import claims, migrations, scrubbing, search
from memoryd.ledger.claims import NewClaim
from memoryd.ledger.database import Ledger
from memoryd.ledger.search import Change, Filters, NewEntry
from tests.ledger.factories import NOW, THREAD
from tests.ledger.plans import plan_of
from tests.support.clock import FakeClock

SECRETIVE = "zwiebelfisch"


def an_entry(text: str = "tabs", line: int = 1, *, kind: str = "bullet", **fields: object) -> NewEntry:
    known: dict[str, object] = {
        "scope": "/src/shop",
        "mark": "stated" if kind == "bullet" else None,
        "section": None,
        "threads": (THREAD,),
        "updated_at": 100,
        "context": "",
        "handles": "",
    } | fields
    return NewEntry(
        line=line,
        end_line=line,
        kind=kind,
        text=text,
        opening=1,
        rows_digest=text,
        digest=repr((text, known)),
        **known,  # type: ignore[arg-type]  # fields of it
    )


def put(conn: sqlite3.Connection, *entries: NewEntry, path: str = "MEMORY.md", made_as: str = "1") -> int:
    return search.replace_entries(conn, Change({path: (1, 2)}, {path: entries}), made_as=made_as)


def matches(conn: sqlite3.Connection, /, word: str, **asked: object) -> list[str]:
    filters = Filters(**asked)  # type: ignore[arg-type]  # fields of it
    ids = [entry_id for entry_id, _ in search.rank(conn, f'"{word}"', filters, limit=99)]
    return [search.text_of(conn, entry_id) for entry_id in ids]


def test_what_is_there_already_keeps_its_number_and_is_not_written(conn: sqlite3.Connection) -> None:
    put(conn, an_entry("one"), an_entry("two", 2), an_entry("two", 3))
    before = dict(conn.execute("SELECT id, rows_digest FROM search_entries").fetchall())

    assert put(conn, an_entry("two", 2), an_entry("two", 9), an_entry("three", 4)) == 2

    after = dict(conn.execute("SELECT id, rows_digest FROM search_entries").fetchall())
    kept = {number: text for number, text in before.items() if text == "two"}
    assert kept.items() <= after.items()
    assert sorted(after.values()) == ["three", "two", "two"]
    assert sorted(line for (line,) in conn.execute("SELECT line FROM search_entries")) == [2, 4, 9]


def test_a_file_is_known_as_it_was_when_its_entries_were_made(conn: sqlite3.Connection) -> None:
    put(conn, an_entry())

    assert search.known_files(conn, made_as="1") == {"MEMORY.md": (1, 2)}
    assert search.state_of(conn, "MEMORY.md") == (1, 2)
    assert search.state_of(conn, "other.md") is None


def test_an_index_that_was_made_in_another_way_is_made_anew(conn: sqlite3.Connection) -> None:
    put(conn, an_entry("one"))

    assert search.known_files(conn, made_as="2") == {}
    assert search.indexed_paths(conn) == {"MEMORY.md"}
    assert put(conn, an_entry("two"), made_as="2") == 2
    assert search.known_files(conn, made_as="2") == {"MEMORY.md": (1, 2)}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, {"tabs a", "tabs b", "tabs c", "tabs d"}),
        ({"kinds": {"bullet"}}, {"tabs a", "tabs b", "tabs d"}),
        ({"kinds": {"summary", "task"}}, {"tabs c"}),
        ({"marks": {"verified"}}, {"tabs b"}),
        ({"scopes": {"/src/shop"}}, {"tabs a", "tabs c"}),
        ({"scopes": {"/src/shop", "global"}}, {"tabs a", "tabs c", "tabs d"}),
        ({"scopes": {"/src"}}, set()),
        ({"since": 100}, {"tabs a", "tabs b"}),
        ({"since": 101}, {"tabs b"}),
        ({"kinds": {"bullet"}, "marks": {"stated"}, "scopes": {"global"}}, {"tabs d"}),
        ({"kinds": set()}, set()),
        ({"marks": set()}, set()),
    ],
)
def test_what_is_asked_for_alone_is_found(conn: sqlite3.Connection, asked: dict[str, object], found: set[str]) -> None:
    put(
        conn,
        an_entry("tabs a"),
        an_entry("tabs b", mark="verified", scope="/src/bank", updated_at=200),
        an_entry("tabs c", kind="summary", updated_at=99),
        an_entry("tabs d", scope="global", updated_at=None),
    )

    assert set(matches(conn, "tabs", **asked)) == found


def test_a_place_is_never_found_by_its_words(conn: sqlite3.Connection) -> None:
    put(conn, an_entry("one"))
    (place,) = conn.execute("SELECT place FROM search_words").fetchone()

    assert [matches(conn, word) for word in place.split()] == [[], [], []]


def test_scopes_are_each_named_once(conn: sqlite3.Connection) -> None:
    assert search.scopes(conn) == []
    put(conn, *(an_entry(str(number), scope=f"/src/{number % 3}") for number in range(9)), an_entry(scope="global"))

    assert search.scopes(conn) == ["/src/0", "/src/1", "/src/2", "global"]


def test_claims_that_stand_tell_since_when_and_where(conn: sqlite3.Connection) -> None:
    claims.replace_claims(
        conn, [NewClaim("a", "s", "/x", "stated", ()), NewClaim("b", "s", "/x", "stated", ())], now=NOW
    )
    claims.replace_claims(conn, [NewClaim("a", "s", "/x", "stated", ())], now=NOW + 5)

    assert search.valid_from(conn) == {("s", "a"): [("/x", int(NOW))]}


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("list_entries_of", "SEARCH search_entries USING INDEX search_entries_path (path=?)"),
        ("find_file", "SEARCH search_files USING PRIMARY KEY (path=?)"),
        ("move_entry", "SEARCH search_entries USING INTEGER PRIMARY KEY (rowid=?)"),
        ("delete_entry", "SEARCH search_entries USING INTEGER PRIMARY KEY (rowid=?)"),
        ("list_found", "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)"),
        ("list_scopes", "SEARCH e USING COVERING INDEX search_entries_scope (scope>?)"),
        ("rank_recent_matches", "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)"),
    ],
)
def test_no_entry_is_found_by_looking_at_all(conn: sqlite3.Connection, name: str, step: str) -> None:
    plan = plan_of(conn, "search", name)

    assert step in plan
    assert not any(each.startswith("SCAN search_entries") for each in plan)


@pytest.mark.parametrize("name", ["rank_matches", "rank_recent_matches", "count_matches", "find_text", "delete_words"])
def test_words_are_found_by_their_index(conn: sqlite3.Connection, name: str) -> None:
    (step,) = [each for each in plan_of(conn, "search", name) if each.startswith("SCAN")]

    assert "VIRTUAL TABLE INDEX" in step
    assert not step.endswith("INDEX 0:")  # which would be every row of it


def test_an_older_ledger_gets_an_empty_index_and_keeps_what_it_holds(tmp_path: Path) -> None:
    steps = migrations.shipped()
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None)) as conn:
        migrations.migrate(conn, tmp_path / "ledger.sqlite3", version=0, migrations=steps[:8], now=NOW)
        claims.replace_claims(conn, [NewClaim("a", "s", "/x", "stated", (THREAD,))], now=NOW)
        migrations.migrate(conn, tmp_path / "ledger.sqlite3", version=8, migrations=steps[:9], now=NOW)

        assert search.is_empty(conn)
        assert [row.text for row in claims.valid(conn)] == ["a"]
        assert put(conn, an_entry()) == 1


def _replaced(conn: sqlite3.Connection) -> None:
    put(conn, an_entry("tabs"))


def _removed(conn: sqlite3.Connection) -> None:
    search.replace_entries(conn, Change({"MEMORY.md": None}, {}), made_as="1")


@pytest.mark.parametrize("deleted", [_replaced, _removed])
async def test_after_a_scrub_no_byte_of_a_deleted_entry_is_in_the_file_i12(
    path: Path, ledger: Ledger, deleted: Callable[[sqlite3.Connection], None]
) -> None:
    words = an_entry(f"never say {SECRETIVE}", context=f"about {SECRETIVE}", handles=f"{SECRETIVE} maxCount")
    await ledger.write(put, *(an_entry(f"noise {number}", number + 1) for number in range(200)), words)
    await ledger.write(deleted)
    await ledger.apart(scrubbing.scrub, path)

    assert _files_with(path, SECRETIVE[1:-1]) == []
    assert await ledger.read(matches, SECRETIVE) == []
    await ledger.apart(lambda conn: conn.execute("INSERT INTO search_words (search_words) VALUES ('integrity-check')"))


async def test_other_rules_of_what_is_secret_leave_no_byte_once_the_log_is_cut_i6(path: Path, ledger: Ledger) -> None:
    many = [an_entry(f"noise {number}", number + 1) for number in range(200)]
    await ledger.write(put, *many, an_entry(f"the key is {SECRETIVE}", 999), made_as="old rules")
    await ledger.write(put, *many, an_entry("the key is [REDACTED_SECRET]", 999), made_as="new rules")
    await ledger.close()

    assert _files_with(path, SECRETIVE[1:-1]) == []


async def test_the_index_can_be_read_beside_the_daemon_and_from_a_read_only_ledger(
    path: Path, ledger: Ledger, clock: FakeClock
) -> None:
    await ledger.write(put, an_entry("tabs"))
    async with await Ledger.open(path, clock=clock, read_only=True) as reader:
        assert await reader.read(matches, "tabs") == ["tabs"]


def _files_with(path: Path, text: str) -> list[str]:
    """The files of a ledger in which a text stands; of a word, the index keeps at least its middle in one piece."""
    return [file.name for file in path.parent.iterdir() if text.encode() in file.read_bytes().lower()]
