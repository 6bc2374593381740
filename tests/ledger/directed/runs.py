"""Of runs, requests and the small tables of what is known once."""

import sqlite3
from collections.abc import Callable

from memoryd.errors import BudgetSpent
from memoryd.ledger import attempts, facts, meta, queries, spend
from memoryd.ledger.attempts import Beginning, Ending
from memoryd.ledger.spend import Caps, Purpose
from memoryd.ledger.states import Outcome
from tests.ledger.factories import NOW

_DAY = 86_400
_CAPS = Caps(requests_per_day=9, tokens_per_day=999)


def the_first_outcome_of_a_run_stands(conn: sqlite3.Connection) -> None:
    _run(conn, 1)
    attempts.end(conn, 1, Ending(Outcome.CRASHED), now=NOW)
    attempts.end(conn, 1, Ending(Outcome.DONE), now=NOW)

    assert [run.outcome for run in attempts.of_job(conn, "k", "key")] == [Outcome.CRASHED]


def a_request_counts_for_its_run_alone_and_once(conn: sqlite3.Connection) -> None:
    _run(conn, 1)
    _run(conn, 2)
    first, second = (_reserve(conn, run, now=NOW) for run in (1, 2))
    assert _settle(conn, second, tokens=7)
    assert not _settle(conn, second, tokens=7)

    assert [run.tokens_in for run in attempts.of_job(conn, "k", "key")] == [7, 0]
    assert [row.settled_at is None for row in spend.of_attempt(conn, 1)] == [True]
    assert _settle(conn, first, tokens=1)


def a_cap_is_of_one_utc_day(conn: sqlite3.Connection) -> None:
    _reserve(conn, 1, now=NOW)

    assert spend.today(conn, NOW).requests == 1
    assert spend.today(conn, NOW + _DAY).requests == 0


def what_is_not_settled_counts_as_estimated_and_what_is_settled_as_it_was(conn: sqlite3.Connection) -> None:
    request = _reserve(conn, 1, now=NOW)
    assert spend.today(conn, NOW).tokens == 100
    _settle(conn, request, tokens=7)
    assert spend.today(conn, NOW).tokens == 7
    unsaid = _reserve(conn, 1, now=NOW)
    _settle(conn, unsaid, tokens=None)
    assert spend.today(conn, NOW).tokens == 107
    try:
        _reserve(conn, 1, now=NOW, caps=Caps(9, 206))
    except BudgetSpent:
        return
    raise AssertionError("a cap was passed")


def a_fact_is_found_by_all_of_its_key(conn: sqlite3.Connection) -> None:
    put, find = queries.load("facts")["put_fact"], queries.load("facts")["find_fact"]
    for values in (
        ("a", "m", "k", "wrong"),
        ("p", "a", "k", "wrong"),
        ("p", "m", "a", "wrong"),
        ("p", "m", "k", "right"),
    ):
        conn.execute(put, dict(zip(("provider", "model", "key", "value"), values, strict=True)) | {"now": 1})

    assert conn.execute(find, {"provider": "p", "model": "m", "key": "k"}).fetchall() == [("right",)]


def the_first_start_is_told_from_other_facts_and_stands(conn: sqlite3.Connection) -> None:
    meta.put(conn, "another", "9")

    assert [meta.first_start(conn, NOW), meta.first_start(conn, NOW + 5)] == [int(NOW), int(NOW)]


def what_was_true_later_stands_whenever_it_is_read(conn: sqlite3.Connection) -> None:
    assert facts.put_agent_limits(conn, "codex", "five hours", "later", seen_at=20)
    assert not facts.put_agent_limits(conn, "codex", "five hours", "earlier", seen_at=10)

    assert facts.agent_limits(conn, "codex") == [("five hours", "later")]


def _run(conn: sqlite3.Connection, number: int) -> None:
    attempts.begin(
        conn,
        Beginning(
            id=number,
            kind="k",
            job_key="key",
            epoch=number,
            worker_id="w",
            input_watermark=1,
            started_at=int(NOW),
            provider="p",
            model="m",
            fingerprint=None,
        ),
    )


def _reserve(conn: sqlite3.Connection, run: int, *, now: float, caps: Caps = _CAPS) -> int:
    return spend.reserve(
        conn,
        now=now,
        purpose=Purpose("k", "key", run),
        provider="p",
        model="m",
        estimated_tokens=100,
        estimated_cost=0.0,
        caps=caps,
    )


def _settle(conn: sqlite3.Connection, request: int, *, tokens: int | None) -> bool:
    return spend.settle(
        conn,
        request,
        now=NOW,
        outcome="ok",
        tokens_in=tokens,
        tokens_out=None,
        tokens_cached=None,
        cost=None,
        duration_ms=None,
    )


SCHEDULES: tuple[Callable[[sqlite3.Connection], None], ...] = (
    the_first_outcome_of_a_run_stands,
    a_request_counts_for_its_run_alone_and_once,
    a_cap_is_of_one_utc_day,
    what_is_not_settled_counts_as_estimated_and_what_is_settled_as_it_was,
    a_fact_is_found_by_all_of_its_key,
    the_first_start_is_told_from_other_facts_and_stands,
    what_was_true_later_stands_whenever_it_is_read,
)
