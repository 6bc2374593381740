"""What the handbook claims, since when and until when."""

import sqlite3

from memoryd.ledger import claims
from memoryd.ledger.claims import NewClaim
from tests.ledger.factories import NOW

UV = NewClaim("use uv", "User preferences", "global", "stated", ("a", "b"))
PG = NewClaim("postgres runs on 5433", "Reusable knowledge", "/home/dev/shop", "verified", ("a",))


def _all(conn: sqlite3.Connection) -> list[tuple[str, int, int | None]]:
    rows = conn.execute("SELECT text, valid_from, invalidated_at FROM claims ORDER BY id").fetchall()
    return [(text, valid_from - int(NOW), None if end is None else end - int(NOW)) for text, valid_from, end in rows]


def test_new_claims_are_valid_from_the_decision(conn: sqlite3.Connection) -> None:
    claims.replace_claims(conn, [UV, PG], now=NOW)

    assert [(row.place, row.status, row.thread_ids) for row in claims.valid(conn)] == [
        (UV.place, "stated", ("a", "b")),
        (PG.place, "verified", ("a",)),
    ]
    assert _all(conn) == [("use uv", 0, None), ("postgres runs on 5433", 0, None)]


def test_a_claim_that_persists_keeps_its_beginning_and_takes_new_evidence(conn: sqlite3.Connection) -> None:
    claims.replace_claims(conn, [UV], now=NOW)

    claims.replace_claims(conn, [NewClaim(UV.text, UV.section, UV.scope, "verified", ("c",))], now=NOW + 9)

    (row,) = claims.valid(conn)
    assert (row.valid_from, row.status, row.thread_ids) == (int(NOW), "verified", ("c",))


def test_a_claim_that_vanished_is_closed_not_erased(conn: sqlite3.Connection) -> None:
    claims.replace_claims(conn, [UV, PG], now=NOW)

    claims.replace_claims(conn, [PG], now=NOW + 9)

    assert _all(conn) == [("use uv", 0, 9), ("postgres runs on 5433", 0, None)]
    assert [row.invalidated_at for row in claims.of_thread(conn, "b")] == [int(NOW) + 9]


def test_a_claim_that_returns_begins_anew(conn: sqlite3.Connection) -> None:
    for seconds, standing in ((0, [UV]), (5, []), (9, [UV])):
        claims.replace_claims(conn, standing, now=NOW + seconds)

    assert _all(conn) == [("use uv", 0, 5), ("use uv", 9, None)]


def test_the_same_words_elsewhere_are_another_claim(conn: sqlite3.Connection) -> None:
    elsewhere = NewClaim(UV.text, UV.section, "/home/dev/shop", "stated", ("a",))
    claims.replace_claims(conn, [UV, elsewhere], now=NOW)

    assert len(claims.valid(conn)) == 2


def test_the_same_bullet_twice_is_one_claim_with_the_evidence_of_both(conn: sqlite3.Connection) -> None:
    again = NewClaim(UV.text, UV.section, UV.scope, "inferred", ("b", "z"))

    claims.replace_claims(conn, [UV, again], now=NOW)

    assert [(row.status, row.thread_ids) for row in claims.valid(conn)] == [("stated", ("a", "b", "z"))]


def test_the_claims_of_a_thread_are_found(conn: sqlite3.Connection) -> None:
    claims.replace_claims(conn, [UV, PG], now=NOW)

    assert [row.text for row in claims.of_thread(conn, "b")] == ["use uv"]
    assert claims.of_thread(conn, "nobody") == []
