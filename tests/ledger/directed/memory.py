"""Of what was learned: outputs, claims, decisions."""

import sqlite3
from collections.abc import Callable

from memoryd.ledger import claims, outputs, publications, sayings, sessions
from memoryd.ledger.claims import NewClaim
from memoryd.ledger.outputs import ImportedOutput, Snapshot
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.sayings import Said
from tests.ledger.factories import (
    NOW,
    OTHER,
    THREAD,
    a_session,
    an_output,
)


def claims_that_persist_keep_their_time_and_those_that_vanish_are_closed_once(conn: sqlite3.Connection) -> None:
    claims.replace_claims(conn, [_claim("a"), _claim("b"), _claim("c")], now=NOW)
    claims.replace_claims(conn, [_claim("a", "verified"), _claim("b")], now=NOW + 1)
    claims.replace_claims(conn, [_claim("b")], now=NOW + 2)
    claims.replace_claims(conn, [_claim("b"), _claim("c")], now=NOW + 3)

    rows = {(row.text, row.valid_from): row for row in claims.of_thread(conn, THREAD)}
    closed = {key: None if row.invalidated_at is None else row.invalidated_at - int(NOW) for key, row in rows.items()}
    begun = int(NOW)
    assert closed == {("a", begun): 2, ("b", begun): None, ("c", begun): 1, ("c", begun + 3): None}
    assert [rows[("a", begun)].status, rows[("b", begun)].status] == ["verified", "stated"]
    assert [row.text for row in claims.valid(conn)] == ["b", "c"]


def only_the_session_whose_claim_it_is_supports_it(conn: sqlite3.Connection) -> None:
    claims.replace_claims(conn, [_claim("a"), NewClaim("b", "s", "global", "stated", (OTHER,))], now=NOW)
    claims.replace_claims(conn, [_claim("a"), NewClaim("b", "s", "global", "stated", (OTHER, THREAD))], now=NOW)

    assert [row.thread_ids for row in claims.valid(conn)] == [(THREAD,), (THREAD, OTHER)]


def a_decision_is_published_once_and_alone(conn: sqlite3.Connection) -> None:
    first = publications.decide(conn, NewPublication("c1", None), attempt_id=1, now=NOW)
    assert publications.mark_published(conn, first, NOW)
    assert publications.pending(conn) is None
    second = publications.decide(conn, NewPublication("c2", "c1"), attempt_id=2, now=NOW)
    assert not publications.mark_published(conn, first, NOW + 1)
    waiting = publications.pending(conn)

    assert waiting is not None
    assert waiting.id == second


def an_output_of_an_earlier_state_does_not_replace_a_later_one(conn: sqlite3.Connection) -> None:
    assert outputs.store(conn, an_output(source_updated_at=5, raw_memory="later"), now=NOW)
    assert not outputs.store(conn, an_output(source_updated_at=4, raw_memory="earlier"), now=NOW)

    kept = outputs.get(conn, THREAD)
    assert kept is not None
    assert kept.raw_memory == "later"


def an_imported_row_replaces_only_an_earlier_state(conn: sqlite3.Connection) -> None:
    assert outputs.store(conn, an_output(source_updated_at=5, raw_memory="ours"), now=NOW)
    taken = [outputs.take_over(conn, _imported(updated_at)) for updated_at in (4, 5, 6)]

    kept = outputs.get(conn, THREAD)
    assert kept is not None
    assert (taken, kept.raw_memory) == ([False, False, True], "theirs of 6")


def a_decision_touches_only_rows_whose_selection_changes(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b", "c"):
        outputs.store(conn, an_output(thread, source_updated_at=5), now=NOW)
    outputs.mark_consumed(conn, [Snapshot("a", 5)])
    before = conn.total_changes
    outputs.mark_consumed(conn, [Snapshot("b", 5), Snapshot("c", 4)])

    assert conn.total_changes - before == 2
    assert [row.thread_id for row in outputs.previously_selected(conn)] == ["b"]


def pruning_leaves_what_the_memory_is_made_of(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b", "c"):
        outputs.store(conn, an_output(thread, source_updated_at=5 if thread != "c" else int(NOW)), now=NOW)
    outputs.mark_consumed(conn, [Snapshot("a", 5)])

    assert outputs.prune(conn, now=NOW, max_unused=100) == 1
    assert [outputs.get(conn, thread) is not None for thread in ("a", "b", "c")] == [True, False, True]


def a_selection_leaves_out_the_empty_the_unwanted_and_the_unused(conn: sqlite3.Connection) -> None:
    for thread, raw, at in (("a", "raw", NOW), ("b", " ", NOW), ("c", "raw", NOW - 999), ("d", "raw", NOW)):
        a_session(conn, thread)
        outputs.store(conn, an_output(thread, source_updated_at=int(at), raw_memory=raw, rollout_summary=raw), now=NOW)
    sessions.mark_polluted(conn, "d", NOW)
    a_session(conn, "e")
    outputs.store(conn, an_output("e", source_updated_at=int(NOW)), now=NOW)
    sessions.set_excluded(conn, "e", "excluded_cwd")
    found = outputs.select_for_consolidation(conn, now=NOW, max_raw_memories=9, max_unused=100)

    assert [row.thread_id for row in found] == ["a"]


def a_citing_message_counts_once_and_only_for_whom_it_names(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        outputs.store(conn, an_output(thread), now=NOW)

    assert outputs.cite(conn, ["a", "unknown"], "m", NOW) == 1
    assert outputs.cite(conn, ["a"], "m", NOW) == 0
    counts = [output.usage_count for thread in ("a", "b") if (output := outputs.get(conn, thread)) is not None]
    assert counts == [1, 0]
    assert outputs.cite(conn, ["unknown", "a"], "other", NOW) == 1
    assert outputs.unknown_citations(conn) == 2
    outputs.cite(conn, ["unknown", "a"], "other", NOW)
    assert outputs.unknown_citations(conn) == 2


def one_output_is_removed(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        outputs.store(conn, an_output(thread), now=NOW)

    assert [outputs.remove(conn, "a"), outputs.remove(conn, "a")] == [True, False]
    assert outputs.get(conn, "b") is not None


def what_was_said_is_replaced_with_the_output_that_it_belongs_to(conn: sqlite3.Connection) -> None:
    for thread in ("a", "b"):
        outputs.store(conn, an_output(thread, said=Said(human=frozenset({b"1"}))), now=NOW)
    outputs.store(conn, an_output("a", said=Said(tool=frozenset({b"2"}))), now=NOW)

    kept = sayings.of_threads(conn, ["a", "b"])
    assert kept == {"a": Said(tool=frozenset({b"2"})), "b": Said(human=frozenset({b"1"}))}


def a_closed_claim_names_its_own_successor(conn: sqlite3.Connection) -> None:
    """As the handbook calls it in other words; the claim beside it has none."""
    words = "the tests of the shop run with make check in the folder api"
    claims.replace_claims(conn, [_claim(words), _claim("ports begin at nine thousand")], now=NOW)
    claims.replace_claims(conn, [_claim("the tests of the shop no longer run with make check in api")], now=NOW + 1)

    rows = {row.text: row.successor_id is not None for row in claims.of_thread(conn, THREAD)}
    assert rows[words] is True
    assert list(rows.values()).count(True) == 1


def who_spoke_is_not_looked_for_where_nobody_is_known(conn: sqlite3.Connection) -> None:
    """A statement more for each output of a session, and most have none, though others have."""
    outputs.store(conn, an_output("a", said=Said(human=frozenset({b"1"}))), now=NOW)
    statements: list[str] = []
    conn.set_trace_callback(statements.append)
    outputs.store(conn, an_output("b"), now=NOW)
    conn.set_trace_callback(None)

    assert not any("DELETE FROM sayings" in statement for statement in statements)


def _claim(text: str, status: str = "stated") -> NewClaim:
    return NewClaim(text, "section", "global", status, (THREAD,))


def _imported(updated_at: int) -> ImportedOutput:
    return ImportedOutput(THREAD, updated_at, f"theirs of {updated_at}", "s", None, 1, None, None)


SCHEDULES: tuple[Callable[[sqlite3.Connection], None], ...] = (
    claims_that_persist_keep_their_time_and_those_that_vanish_are_closed_once,
    only_the_session_whose_claim_it_is_supports_it,
    a_decision_is_published_once_and_alone,
    an_output_of_an_earlier_state_does_not_replace_a_later_one,
    an_imported_row_replaces_only_an_earlier_state,
    a_decision_touches_only_rows_whose_selection_changes,
    pruning_leaves_what_the_memory_is_made_of,
    a_selection_leaves_out_the_empty_the_unwanted_and_the_unused,
    a_citing_message_counts_once_and_only_for_whom_it_names,
    one_output_is_removed,
    what_was_said_is_replaced_with_the_output_that_it_belongs_to,
    a_closed_claim_names_its_own_successor,
    who_spoke_is_not_looked_for_where_nobody_is_known,
)
