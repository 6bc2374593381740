"""What nobody uses ages by the days on which any session was recorded."""

import sqlite3

import pytest

from memoryd.ledger import outputs, sessions
from memoryd.ledger.active_days import DAY_SECONDS, EVER, days_since, unused_before
from tests.ledger.factories import NOW, OTHER, THREAD, a_session, an_output, recorded_every_day

MONTH = 30 * DAY_SECONDS
TODAY = int(NOW // DAY_SECONDS)


@pytest.mark.parametrize("max_unused", [100, DAY_SECONDS, 2.5 * DAY_SECONDS, MONTH])
def test_where_sessions_are_recorded_every_day_an_age_is_an_age(conn: sqlite3.Connection, max_unused: float) -> None:
    recorded_every_day(conn)

    assert unused_before(conn, now=NOW, max_unused=max_unused) == NOW - max_unused


def test_a_holiday_makes_nothing_older(conn: sqlite3.Connection) -> None:
    recorded_every_day(conn, until=NOW - 100 * DAY_SECONDS)
    before = unused_before(conn, now=NOW - 100 * DAY_SECONDS, max_unused=MONTH)

    assert unused_before(conn, now=NOW, max_unused=MONTH) <= before + DAY_SECONDS  # the last day came to its end


def test_each_day_without_a_session_puts_the_limit_a_day_earlier(conn: sqlite3.Connection) -> None:
    recorded_every_day(conn)
    conn.execute("DELETE FROM active_days WHERE day BETWEEN ? AND ?", (TODAY - 12, TODAY - 3))

    assert unused_before(conn, now=NOW, max_unused=MONTH) == NOW - MONTH - 10 * DAY_SECONDS


def test_while_there_are_fewer_days_than_that_nothing_is_too_old(conn: sqlite3.Connection) -> None:
    recorded_every_day(conn, days=20)

    assert unused_before(conn, now=NOW, max_unused=MONTH) == EVER


def test_days_that_are_still_to_come_count_for_nothing(conn: sqlite3.Connection) -> None:
    recorded_every_day(conn, until=NOW + 300 * DAY_SECONDS, days=300)

    assert unused_before(conn, now=NOW, max_unused=MONTH) == EVER
    assert days_since(conn, NOW - MONTH, now=NOW) == 0


def test_every_session_and_each_later_day_of_it_counts(conn: sqlite3.Connection) -> None:
    a_session(conn, THREAD, updated_at=int(NOW) - 3 * DAY_SECONDS)
    a_session(conn, THREAD, updated_at=int(NOW))
    a_session(conn, OTHER, updated_at=int(NOW))
    sessions.set_excluded(conn, OTHER, "excluded_cwd")
    outputs.store(conn, an_output("imported", source_updated_at=int(NOW) - 9 * DAY_SECONDS), now=NOW)

    days = [TODAY - day for (day,) in conn.execute("SELECT day FROM active_days ORDER BY day DESC")]

    assert days == [0, 3, 9]
    assert days_since(conn, NOW - 3 * DAY_SECONDS, now=NOW) == 1


def test_unknown_ids_are_counted_once_and_not_kept(conn: sqlite3.Connection) -> None:
    outputs.store(conn, an_output(THREAD), now=NOW)
    for _ in range(3):
        outputs.cite(conn, ["made-up", THREAD, "another"], "message", NOW)

    assert outputs.unknown_citations(conn) == 2
    assert not conn.execute("SELECT 1 FROM usage_events WHERE thread_id || message_key LIKE '%made-up%'").fetchall()
    (row,) = outputs.list_memories(conn)
    assert (row.usage_count, row.needed_at) == (1, int(NOW))
