"""Publications, facts about models, facts about the ledger, and its health."""

import sqlite3

import pytest

from memoryd.ledger import facts, health, meta, publications
from memoryd.ledger.facts import Fact
from memoryd.ledger.publications import NewPublication, PublicationState
from tests.ledger.factories import NOW


def test_a_decision_waits_until_it_is_in_place(conn: sqlite3.Connection) -> None:
    publication_id = publications.decide(conn, NewPublication("c0ffee", None), attempt_id=4, now=NOW)
    decided = publications.pending(conn)
    assert decided is not None
    assert (decided.id, decided.state, decided.base) == (publication_id, PublicationState.DECIDED, None)
    assert decided.published_at is None

    assert publications.mark_published(conn, publication_id, NOW + 5)

    assert publications.pending(conn) is None
    latest = publications.latest(conn)
    assert latest is not None
    assert (latest.state, latest.published_at) == (PublicationState.PUBLISHED, int(NOW) + 5)


def test_putting_in_place_twice_is_recorded_once(conn: sqlite3.Connection) -> None:
    publication_id = publications.decide(conn, NewPublication("c0ffee", "ba5e"), attempt_id=4, now=NOW)
    publications.mark_published(conn, publication_id, NOW + 5)

    assert not publications.mark_published(conn, publication_id, NOW + 9)
    latest = publications.latest(conn)
    assert latest is not None
    assert latest.published_at == int(NOW) + 5


def test_the_newest_decision_is_the_latest(conn: sqlite3.Connection) -> None:
    assert publications.latest(conn) is None
    for commit in ("a", "b"):
        publications.mark_published(
            conn, publications.decide(conn, NewPublication(commit, "x"), attempt_id=1, now=NOW), NOW
        )

    latest = publications.latest(conn)
    assert latest is not None
    assert latest.commit == "b"


def test_one_decision_at_a_time(conn: sqlite3.Connection) -> None:
    publications.decide(conn, NewPublication("a", "x"), attempt_id=1, now=NOW)

    with pytest.raises(sqlite3.IntegrityError):
        publications.decide(conn, NewPublication("b", "x"), attempt_id=1, now=NOW)


def test_what_is_learned_of_a_model_is_kept_for_that_model(conn: sqlite3.Connection) -> None:
    facts.put_bytes_per_token(conn, "openai", "gpt", 3.7, now=NOW)
    facts.put_bytes_per_token(conn, "openai", "gpt", 3.9, now=NOW)
    facts.put(conn, "openai", "gpt", Fact.STRUCTURE, "json_object", now=NOW)

    assert facts.bytes_per_token(conn, "openai", "gpt") == 3.9
    assert facts.get(conn, "openai", "gpt", Fact.STRUCTURE) == "json_object"
    assert facts.bytes_per_token(conn, "openai", "other") is None


def test_the_first_start_is_set_once(conn: sqlite3.Connection) -> None:
    assert meta.first_start(conn, 5.9) == 5
    assert meta.first_start(conn, 99.0) == 5


def test_the_latest_value_of_a_key_stands(conn: sqlite3.Connection) -> None:
    meta.put(conn, "colour", "green")
    meta.put(conn, "colour", "red")

    assert (meta.get(conn, "colour"), meta.get(conn, "shape")) == ("red", None)


def test_a_sound_file_has_a_size_and_no_complaints(conn: sqlite3.Connection) -> None:
    assert health.database_size(conn) > 4096
    assert health.quick_check(conn) == ()
    assert health.sqlite_version() == sqlite3.sqlite_version


def test_a_damaged_row_is_a_complaint(conn: sqlite3.Connection) -> None:
    conn.executescript(
        "CREATE TABLE lax (x NOT NULL); INSERT INTO lax VALUES (1); CREATE TABLE other (x);"
        "PRAGMA writable_schema = ON;"
        "UPDATE sqlite_schema SET sql = 'CREATE TABLE other (x NOT NULL)' WHERE name = 'other';"
        "INSERT INTO other VALUES (NULL); PRAGMA writable_schema = RESET;"
    )

    assert health.quick_check(conn) == ("NULL value in other.x",)
