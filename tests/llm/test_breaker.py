"""The circuit breaker, instant by instant."""

import pytest

from memoryd.errors import AuthRefused, ModelUnavailable, Overloaded, UnknownModel, Unreachable
from memoryd.llm.breaker import PROBE_SECONDS, Breaker, Held, Pass, knock, record_answer, record_failure


@pytest.mark.parametrize("error", [AuthRefused("key", status=401, remedy="set it"), UnknownModel("model", status=404)])
def test_a_refused_key_or_an_unknown_model_opens_it_at_once(error: ModelUnavailable) -> None:
    breaker = record_failure(Breaker(), error, 0.0)
    held = knock(breaker, 10.0)
    assert isinstance(held, Held)
    assert type(held.error) is type(error)
    assert held.error.retry_after == PROBE_SECONDS - 10
    assert (held.error.status, held.error.remedy) == (error.status, error.remedy)
    assert error.message in held.error.message


def test_one_broken_connection_is_forgiven_and_two_in_a_row_are_not() -> None:
    once = record_failure(Breaker(), Unreachable("down"), 0.0)
    assert knock(once, 0.0) == Pass(once)
    assert isinstance(knock(record_failure(once, Unreachable("down"), 1.0), 1.0), Held)


def test_an_open_breaker_lets_one_probe_a_minute_pass() -> None:
    breaker = record_failure(Breaker(), AuthRefused("key"), 0.0)
    probe = knock(breaker, PROBE_SECONDS)
    assert isinstance(probe, Pass)
    assert isinstance(knock(probe.breaker, PROBE_SECONDS), Held)
    assert isinstance(knock(probe.breaker, 2 * PROBE_SECONDS), Pass)


def test_an_answer_closes_it() -> None:
    assert knock(record_answer(), 0.0) == Pass(Breaker())


def test_a_busy_server_says_nothing_of_a_refused_key() -> None:
    breaker = record_failure(Breaker(), AuthRefused("key"), 0.0)
    assert record_failure(breaker, Overloaded("busy"), 1.0) == breaker


def test_a_busy_server_is_a_reachable_one() -> None:
    breaker = record_failure(Breaker(), Unreachable("down"), 0.0)
    assert record_failure(breaker, Overloaded("busy"), 1.0) == Breaker()


def test_a_failure_of_another_kind_counts_from_one() -> None:
    refused = record_failure(Breaker(), AuthRefused("key"), 0.0)
    assert record_failure(refused, Unreachable("down"), 1.0).failures == 1
