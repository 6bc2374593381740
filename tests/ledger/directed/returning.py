"""Of what a person takes back or refuses: states that are kept out, and results that wait for a word."""

import sqlite3
from collections.abc import Callable

from memoryd.ledger import holds, outputs, proposals
from memoryd.ledger.holds import Because, Hold, Holding
from memoryd.ledger.outputs import Snapshot
from memoryd.ledger.proposals import NewProposal, ProposalState
from tests.ledger.factories import NOW, an_output

BOTH = ("a", "b")


def the_very_state_of_the_one_session_is_kept_out(conn: sqlite3.Connection) -> None:
    for thread in BOTH:
        outputs.store(conn, an_output(thread, source_updated_at=5), now=NOW)
    _hold(conn, Hold("a", 4, None))
    assert _held(conn) == []
    _hold(conn, Hold("a", 5, None))

    assert _held(conn) == ["a"]
    assert _selected(conn) == ["b"]


def what_is_wanted_again_is_let_go_and_nothing_else(conn: sqlite3.Connection) -> None:
    for thread in BOTH:
        outputs.store(conn, an_output(thread, source_updated_at=5), now=NOW)
        _hold(conn, Hold(thread, 5, None))
    holds.apply_holding(conn, Holding((), ("a",)), because=Because.UNDONE, now=NOW)

    assert _held(conn) == ["b"]
    assert _selected(conn) == ["a"]


def the_folder_holds_the_one_session_at_its_earlier_state(conn: sqlite3.Connection) -> None:
    for thread in BOTH:
        outputs.store(conn, an_output(thread, source_updated_at=5), now=NOW)
    holds.mark_standing(conn, {"a": 3})

    assert [(row.thread_id, row.source_updated_at) for row in outputs.previously_selected(conn)] == [("a", 3)]


def what_stands_in_for_a_row_counts_as_consumed_for_its_own_session_and_state(conn: sqlite3.Connection) -> None:
    for thread in BOTH:
        outputs.store(conn, an_output(thread, source_updated_at=5), now=NOW)
    _hold(conn, Hold("a", 5, 3))

    assert outputs.mark_consumed(conn, [Snapshot("a", 3)]) == 1
    assert outputs.mark_consumed(conn, [Snapshot("a", 2)]) == 0
    assert outputs.mark_consumed(conn, [Snapshot("b", 3)]) == 0


def a_proposal_is_answered_by_its_number_and_once(conn: sqlite3.Connection) -> None:
    first = _propose(conn, "c1")
    second = _propose(conn, "c2")
    assert proposals.end(conn, first, ProposalState.ACCEPTED, now=NOW) is None
    waiting = proposals.waiting(conn)
    assert waiting is not None
    assert waiting.id == second
    assert proposals.end(conn, second, ProposalState.REJECTED, now=NOW) is not None
    assert proposals.end(conn, second, ProposalState.ACCEPTED, now=NOW) is None


def what_a_person_said_is_not_taken_back_by_a_later_proposal(conn: sqlite3.Connection) -> None:
    first = _propose(conn, "c1")
    proposals.end(conn, first, ProposalState.REJECTED, now=NOW)
    _propose(conn, "c2")

    told = proposals.get(conn, first)
    assert told is not None
    assert told.state is ProposalState.REJECTED


def _hold(conn: sqlite3.Connection, hold: Hold) -> None:
    holds.apply_holding(conn, Holding((hold,), ()), because=Because.UNDONE, now=NOW)


def _held(conn: sqlite3.Connection) -> list[str]:
    """Whatever is kept, also of a state that no row has."""
    return [thread for (thread,) in conn.execute("SELECT thread_id FROM held_outputs ORDER BY thread_id")]


def _selected(conn: sqlite3.Connection) -> list[str]:
    found = outputs.select_for_consolidation(conn, now=NOW, max_raw_memories=9, max_unused=NOW)
    return [row.thread_id for row in found]


def _propose(conn: sqlite3.Connection, commit: str) -> int:
    return proposals.propose(conn, NewProposal(commit, None, None, commit), attempt_id=1, now=NOW)


SCHEDULES: tuple[Callable[[sqlite3.Connection], None], ...] = (
    the_very_state_of_the_one_session_is_kept_out,
    what_is_wanted_again_is_let_go_and_nothing_else,
    the_folder_holds_the_one_session_at_its_earlier_state,
    what_stands_in_for_a_row_counts_as_consumed_for_its_own_session_and_state,
    a_proposal_is_answered_by_its_number_and_once,
    what_a_person_said_is_not_taken_back_by_a_later_proposal,
)
