"""What the handbook claims, since when and until when."""

import sqlite3
from dataclasses import replace

import pytest

from memoryd.ledger import claims
from memoryd.ledger.claims import UNKNOWN, Author, Circumstances, Closing, NewClaim
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


def _close(conn: sqlite3.Connection, before: list[NewClaim], after: list[NewClaim], known: Circumstances) -> str | None:
    claims.replace_claims(conn, before, now=NOW)
    claims.replace_claims(conn, after, now=NOW + 9, circumstances=known)
    row = claims.get(conn, 1)
    assert row is not None
    return row.closed_because


@pytest.mark.parametrize(
    ("after", "known", "because"),
    [
        ([], Circumstances(live=()), Closing.EVIDENCE_GONE),
        ([], Circumstances(live=("a",)), Closing.DROPPED),
        ([], UNKNOWN, Closing.DROPPED),
        ([NewClaim("postgres listens elsewhere", PG.section, PG.scope, "verified", ("a",))], UNKNOWN, Closing.REPLACED),
        ([NewClaim("tests are slow", PG.section, PG.scope, "verified", ("b",))], UNKNOWN, Closing.DROPPED),
        ([], Circumstances(live=("a",), stood=()), Closing.REMOVED),
        ([], Circumstances(live=("a",), stood=((PG.section, PG.text),)), Closing.DROPPED),
        ([], Circumstances(because=Closing.REMOVED), Closing.REMOVED),
    ],
)
def test_code_says_why_a_claim_no_longer_stands(
    conn: sqlite3.Connection, after: list[NewClaim], known: Circumstances, because: Closing
) -> None:
    assert _close(conn, [PG], after, known) == because


def test_what_rested_on_no_session_was_removed(conn: sqlite3.Connection) -> None:
    noted = NewClaim("deploys are on Fridays", PG.section, "global", "ad-hoc note", (), Author.NOTE)

    assert _close(conn, [noted], [], Circumstances(live=("a",))) == Closing.REMOVED


def test_a_claim_reworded_a_little_keeps_its_identity_and_its_earlier_texts(conn: sqlite3.Connection) -> None:
    texts = ["use uv for every install in the shop", "use uv for each install in the shop", "uv for each shop install"]
    for number, text in enumerate(texts):
        claims.replace_claims(
            conn, [replace(UV, text=text, status=["stated", "inferred", "stated"][number])], now=NOW + number
        )

    (row,) = claims.valid(conn)
    assert (row.id, row.valid_from, row.text) == (1, int(NOW), texts[2])
    assert [(each.text, each.status, each.until - int(NOW)) for each in claims.earlier_texts(conn, 1)] == [
        (texts[0], "stated", 1),
        (texts[1], "inferred", 2),
    ]


def test_a_changed_number_is_another_claim_that_took_the_place(conn: sqlite3.Connection) -> None:
    claims.replace_claims(conn, [PG], now=NOW)

    claims.replace_claims(conn, [replace(PG, text="postgres runs on 5434")], now=NOW + 9)

    old, new = claims.get(conn, 1), claims.get(conn, 2)
    assert old is not None
    assert new is not None
    assert (old.closed_because, old.successor_id, new.invalidated_at) == (Closing.REPLACED, 2, None)
    assert [row.id for row in claims.predecessors(conn, 2)] == [1]


def test_words_of_another_sessions_claim_are_no_rewording(conn: sqlite3.Connection) -> None:
    claims.replace_claims(conn, [PG], now=NOW)

    claims.replace_claims(conn, [replace(PG, text="postgres still runs on 5433", thread_ids=("z",))], now=NOW + 9)

    assert [row.id for row in claims.valid(conn)] == [2]


def test_a_claim_that_turns_out_to_hold_elsewhere_too_stays_the_same(conn: sqlite3.Connection) -> None:
    claims.replace_claims(conn, [PG], now=NOW)

    claims.replace_claims(conn, [replace(PG, scope="global", thread_ids=("a", "c"))], now=NOW + 9)

    assert [(row.id, row.scope, row.thread_ids) for row in claims.valid(conn)] == [(1, "global", ("a", "c"))]


def test_two_claims_may_exchange_their_words(conn: sqlite3.Connection) -> None:
    one, two = replace(PG, text="run make check before each push"), replace(PG, text="run make check after each pull")
    claims.replace_claims(conn, [one, two], now=NOW)

    claims.replace_claims(conn, [two, one], now=NOW + 9)

    assert [row.text for row in claims.valid(conn)] == [one.text, two.text]


def test_a_persons_word_is_kept_as_theirs(conn: sqlite3.Connection) -> None:
    claims.replace_claims(conn, [UV], now=NOW)

    claims.replace_claims(conn, [replace(UV, author=Author.PERSON)], now=NOW + 9)

    assert [row.author for row in claims.valid(conn)] == ["person"]


def test_a_purge_erases_claims_that_it_names_and_what_others_said_before(conn: sqlite3.Connection) -> None:
    """I12: closed claims keep their words otherwise, and so does what a claim said before."""
    first = replace(UV, text="use uv for every install in the shop", thread_ids=())
    claims.replace_claims(conn, [first], now=NOW)
    claims.replace_claims(conn, [replace(first, text="use uv for each install in the shop")], now=NOW + 1)
    assert len(claims.earlier_texts(conn, 1)) == 1

    assert claims.erase_earlier_texts_of(conn, [1, 99]) == 1
    assert claims.earlier_texts(conn, 1) == []
    assert len(claims.valid(conn)) == 1

    claims.replace_claims(conn, [], now=NOW + 2)
    assert claims.erase(conn, [1, 99]) == 1
    assert claims.every(conn, limit=9) == []


def test_an_earlier_text_is_forgotten_with_a_session_that_supported_it_then(conn: sqlite3.Connection) -> None:
    """I12: the claim rests on another session by now, and nothing else links it to the one that is forgotten."""
    first = replace(UV, text="use uv for every install in the shop", thread_ids=("a", "b"))
    claims.replace_claims(conn, [first], now=NOW)
    for number, text in enumerate(
        ("use uv for each install in the shop", "use uv for any install in the shop"), start=1
    ):
        claims.replace_claims(conn, [replace(first, text=text, thread_ids=("b",))], now=NOW + number)

    assert claims.erase_earlier_texts(conn, ["a", "nobody"]) == 1

    assert [each.text for each in claims.earlier_texts(conn, 1)] == ["use uv for each install in the shop"]
    assert len(claims.valid(conn)) == 1
