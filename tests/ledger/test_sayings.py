import sqlite3

from memoryd.ledger import outputs, sayings
from memoryd.ledger.outputs import NewOutput
from memoryd.ledger.sayings import NOTHING_KNOWN, Said
from tests.ledger.factories import NOW, THREAD

SAID = Said(human=frozenset({b"a", b"b"}), tool=frozenset({b"c"}))


def _store(conn: sqlite3.Connection, said: Said, updated_at: int = 5) -> bool:
    return outputs.store(conn, NewOutput(THREAD, updated_at, "m", "s", None, said=said), now=NOW)


def test_sayings_come_with_the_output_and_are_replaced_with_it(conn: sqlite3.Connection) -> None:
    _store(conn, SAID)
    assert sayings.of_threads(conn, [THREAD, "nobody"]) == {THREAD: SAID}

    _store(conn, NOTHING_KNOWN)
    assert sayings.of_threads(conn, [THREAD]) == {}


def test_sayings_of_an_output_that_was_not_stored_are_not_kept(conn: sqlite3.Connection) -> None:
    _store(conn, SAID)

    assert not _store(conn, NOTHING_KNOWN, updated_at=4)

    assert sayings.of_threads(conn, [THREAD]) == {THREAD: SAID}


def test_sayings_go_with_the_output(conn: sqlite3.Connection) -> None:
    _store(conn, SAID)

    outputs.remove(conn, THREAD)

    assert conn.execute("SELECT count(*) FROM sayings").fetchone() == (0,)


def test_what_the_person_said_is_not_a_tools(conn: sqlite3.Connection) -> None:
    _store(conn, Said(human=frozenset({b"a"}), tool=frozenset({b"a", b"c"})))

    assert sayings.of_threads(conn, [THREAD])[THREAD].tool == {b"c"}
