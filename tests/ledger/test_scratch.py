from memoryd.ledger import sessions
from memoryd.ledger.scratch import scratch
from tests.ledger.factories import a_sighting


def test_a_ledger_of_a_moment_knows_what_it_is_told_and_nothing_of_the_one_before() -> None:
    with scratch() as conn:
        row = sessions.upsert(conn, a_sighting(), 0)
        assert sessions.get_exact(conn, row.thread_id) == row
    with scratch() as conn:
        assert sessions.list_sessions(conn) == []
