"""When a provider may be asked: limits, pauses and breakers together."""

import pytest

from memoryd.errors import AuthRefused, ContextOverflow, Overloaded, RateLimited, UnknownModel
from memoryd.llm.gate import PAUSE_CAP_SECONDS, Gate, pause_seconds
from memoryd.llm.limits import LimitSnapshot, LimitWindow
from tests.support.clock import FakeClock


@pytest.fixture
def gate(clock: FakeClock) -> Gate:
    return Gate("main", clock, min_remaining_percent=25)


async def test_a_pause_holds_for_every_model_of_the_provider(gate: Gate, clock: FakeClock) -> None:
    gate.record_failure("a", RateLimited("slow down", retry_after=30))
    with pytest.raises(RateLimited) as held:
        gate.enter("b")
    assert held.value.retry_after == 30
    await clock.advance(30)
    gate.enter("b")


async def test_a_full_window_is_not_asked_before_its_reset(gate: Gate, clock: FakeClock) -> None:
    gate.snapshot = LimitSnapshot((LimitWindow("primary", 80, clock.now() + 50),), clock.now())
    with pytest.raises(RateLimited, match="primary limit is 80 % used") as held:
        gate.enter("a")
    assert held.value.retry_after == 50
    await clock.advance(50)
    gate.enter("a")


def test_an_overload_pauses_only_when_it_says_for_how_long(gate: Gate) -> None:
    gate.record_failure("a", Overloaded("busy"))
    gate.enter("a")
    gate.record_failure("a", Overloaded("busy", retry_after=5))
    with pytest.raises(RateLimited):
        gate.enter("a")


def test_breakers_are_kept_by_model(gate: Gate) -> None:
    gate.record_failure("a", UnknownModel("no such model"))
    gate.enter("b")
    with pytest.raises(UnknownModel):
        gate.enter("a")


def test_a_refused_request_shows_that_key_and_model_are_good(gate: Gate) -> None:
    gate.record_failure("a", AuthRefused("key"))
    gate.record_failure("a", ContextOverflow("too long"))
    gate.enter("a")


@pytest.mark.parametrize(
    ("refusals", "asked_for", "pause"),
    [
        (1, None, 1.0),
        (3, None, 4.0),
        (1, 30.0, 30.0),
        (6, 1.0, 32.0),
        (90, None, PAUSE_CAP_SECONDS),
        (1, 1e9, PAUSE_CAP_SECONDS),
    ],
)
def test_the_pause_is_what_is_asked_for_but_at_least_our_own(
    refusals: int, asked_for: float | None, pause: float
) -> None:
    assert pause_seconds(refusals, asked_for) == pause
