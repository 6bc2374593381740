"""I9: no cap is passed, and every request is accounted for."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.errors import BudgetSpent
from memoryd.ledger import attempts, queries, spend
from memoryd.ledger.spend import Caps, Purpose, Spend
from memoryd.ledger.states import JobKind
from tests.ledger.factories import NOW, THREAD, a_lease

MIDNIGHT = 1_700_006_400.0  # 2023-11-15T00:00:00Z, the next one after NOW
ROOMY = Caps(requests_per_day=100, tokens_per_day=1_000_000, cost_per_day=100.0)
PURPOSE = Purpose(JobKind.STAGE1, THREAD)


def _reserve(
    conn: sqlite3.Connection,
    *,
    now: float = NOW,
    tokens: int = 100,
    cost: float = 1.0,
    caps: Caps = ROOMY,
    purpose: Purpose = PURPOSE,
) -> int:
    return spend.reserve(
        conn,
        now=now,
        purpose=purpose,
        provider="openai",
        model="gpt",
        estimated_tokens=tokens,
        estimated_cost=cost,
        caps=caps,
    )


def _settle(
    conn: sqlite3.Connection,
    request_id: int,
    *,
    tokens: tuple[int | None, int | None, int | None] = (70, 20, 10),
    cost: float | None = 0.5,
    outcome: str = "ok",
) -> bool:
    return spend.settle(
        conn,
        request_id,
        now=NOW + 3,
        outcome=outcome,
        tokens_in=tokens[0],
        tokens_out=tokens[1],
        tokens_cached=tokens[2],
        cost=cost,
        duration_ms=3000,
    )


def test_nothing_is_spent_on_a_new_day(conn: sqlite3.Connection) -> None:
    assert spend.today(conn, NOW) == Spend(0, 0, 0.0)


def test_a_reservation_counts_with_its_estimate(conn: sqlite3.Connection) -> None:
    _reserve(conn)

    assert spend.today(conn, NOW) == Spend(1, 100, 1.0)


def test_a_settled_request_counts_with_what_it_took(conn: sqlite3.Connection) -> None:
    assert _settle(conn, _reserve(conn))

    assert spend.today(conn, NOW) == Spend(1, 90, 0.5)


def test_what_the_server_did_not_say_counts_as_estimated(conn: sqlite3.Connection) -> None:
    _settle(conn, _reserve(conn), tokens=(None, None, None), cost=None, outcome="unreachable")

    assert spend.today(conn, NOW) == Spend(1, 100, 1.0)


def test_a_request_is_settled_once(conn: sqlite3.Connection) -> None:
    request = _reserve(conn)
    _settle(conn, request)

    assert not _settle(conn, request, tokens=(1, 1, 1))
    assert not _settle(conn, 999)
    assert spend.today(conn, NOW) == Spend(1, 90, 0.5)


def test_the_sums_of_a_run_grow_with_its_requests(conn: sqlite3.Connection) -> None:
    lease = a_lease(conn)
    purpose = Purpose(JobKind.STAGE1, THREAD, lease.attempt_id, "repair")
    for _ in range(2):
        _settle(conn, _reserve(conn, purpose=purpose))

    (run,) = attempts.of_job(conn, JobKind.STAGE1, THREAD)
    assert (run.requests, run.tokens_in, run.tokens_out, run.tokens_cached, run.cost) == (2, 140, 40, 20, 1.0)
    assert (run.provider, run.model) == ("openai", "gpt")
    assert [(row.reference, row.outcome) for row in spend.of_attempt(conn, lease.attempt_id)] == [("repair", "ok")] * 2


@pytest.mark.parametrize(
    ("caps", "name"),
    [
        (Caps(1, 1000, 0), "requests_per_day = 1"),
        (Caps(10, 199, 0), "tokens_per_day = 199"),
        (Caps(10, 1000, 1.5), "cost_per_day = 1.5"),
    ],
)
def test_a_request_that_would_pass_a_cap_is_not_recorded_and_says_when(
    conn: sqlite3.Connection, caps: Caps, name: str
) -> None:
    _reserve(conn, caps=caps)

    with pytest.raises(BudgetSpent, match=name) as caught:
        _reserve(conn, caps=caps)

    assert caught.value.retry_at == MIDNIGHT
    assert "2023-11-14" in caught.value.message
    assert spend.today(conn, NOW).requests == 1


def test_a_cap_may_be_reached_exactly(conn: sqlite3.Connection) -> None:
    caps = Caps(requests_per_day=2, tokens_per_day=200, cost_per_day=2.0)
    _reserve(conn, caps=caps)
    _reserve(conn, caps=caps)

    assert spend.today(conn, NOW) == Spend(2, 200, 2.0)


def test_a_request_larger_than_a_cap_waits_for_a_person(conn: sqlite3.Connection) -> None:
    with pytest.raises(BudgetSpent, match=r"raise limits\.tokens_per_day") as caught:
        _reserve(conn, caps=Caps(10, 99, 0))

    assert caught.value.retry_at is None


def test_counts_are_spelled_out_in_the_refusal(conn: sqlite3.Connection) -> None:
    with pytest.raises(BudgetSpent, match=r"tokens_per_day = 5000000 would .* \(0 spent .*, 6000000 more needed\)"):
        _reserve(conn, tokens=6_000_000, caps=Caps(10, 5_000_000, 0))


def test_a_cost_cap_of_zero_is_off_and_other_caps_of_zero_forbid(conn: sqlite3.Connection) -> None:
    _reserve(conn, cost=1e9, caps=Caps(1, 100, 0))

    with pytest.raises(BudgetSpent):
        _reserve(conn, caps=Caps(0, 100, 0))


def test_the_next_utc_day_starts_anew(conn: sqlite3.Connection) -> None:
    caps = Caps(1, 1000, 0)
    _reserve(conn, now=MIDNIGHT - 1, caps=caps)

    _reserve(conn, now=MIDNIGHT, caps=caps)

    assert spend.today(conn, MIDNIGHT) == Spend(1, 100, 1.0)


def test_a_clock_set_back_does_not_hide_what_was_spent(conn: sqlite3.Connection) -> None:
    _reserve(conn, now=MIDNIGHT + 5)

    assert spend.today(conn, NOW).requests == 1


@given(
    requests=st.lists(st.tuples(st.integers(0, 60), st.floats(0, 3), st.booleans(), st.integers(0, 60)), max_size=25)
)
def test_i9_no_sequence_of_honest_estimates_passes_a_cap(requests: list[tuple[int, float, bool, int]]) -> None:
    caps = Caps(requests_per_day=10, tokens_per_day=300, cost_per_day=9.0)
    conn = sqlite3.connect(":memory:", isolation_level=None)
    try:
        conn.executescript(queries.read("schema.sql"))
        for tokens, cost, settle, used in requests:
            try:
                request = _reserve(conn, tokens=tokens, cost=cost, caps=caps)
            except BudgetSpent:
                continue
            if settle:
                _settle(conn, request, tokens=(min(used, tokens), 0, 0), cost=cost / 2)
            total = spend.today(conn, NOW)
            assert total.requests <= 10
            assert total.tokens <= 300
            assert total.cost <= 9.0 + 1e-9
    finally:
        conn.close()
