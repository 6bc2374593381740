"""What a request costs and under which word it is counted."""

import pytest

from memoryd.config import Prices
from memoryd.errors import (
    AuthRefused,
    BadReply,
    ContextOverflow,
    MalformedReply,
    ModelError,
    Overloaded,
    RateLimited,
    RequestRefused,
    StructureUnsupported,
    UnknownModel,
    Unreachable,
)
from memoryd.llm.question import Usage
from memoryd.llm.spend import RequestOutcome, cost_of, outcome_of, usage_of_failure


def test_cost_counts_cached_input_and_output_at_their_own_prices() -> None:
    usage = Usage(input=1_000_000, cached=400_000, output=100_000)
    assert cost_of(usage, Prices(input=2.0, cached=0.5, output=8.0)) == pytest.approx(1.2 + 0.2 + 0.8)


def test_cached_input_without_a_price_costs_what_other_input_costs() -> None:
    assert cost_of(Usage(input=1_000_000, cached=1_000_000), Prices(input=2.0)) == pytest.approx(2.0)


def test_more_cached_than_sent_is_no_discount() -> None:
    assert cost_of(Usage(input=10, cached=2_000_000), Prices(input=2.0, cached=1.0)) == pytest.approx(1e-5)


def test_what_is_written_to_a_cache_costs_a_quarter_more() -> None:
    usage = Usage(input=1_000_000, cached=200_000, written=400_000)
    assert cost_of(usage, Prices(input=2.0, cached=0.5)) == pytest.approx(1.6 + 0.1 + 0.2)


def test_without_prices_nothing_costs_anything() -> None:
    assert cost_of(Usage(input=10, output=10), Prices()) == 0


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (RateLimited("x"), RequestOutcome.RATE_LIMITED),
        (Overloaded("x"), RequestOutcome.OVERLOADED),
        (Unreachable("x"), RequestOutcome.UNREACHABLE),
        (AuthRefused("x"), RequestOutcome.AUTH_REFUSED),
        (UnknownModel("x"), RequestOutcome.UNKNOWN_MODEL),
        (ContextOverflow("x"), RequestOutcome.CONTEXT_OVERFLOW),
        (StructureUnsupported("x"), RequestOutcome.STRUCTURE_UNSUPPORTED),
        (MalformedReply("x"), RequestOutcome.MALFORMED),
        (BadReply("x"), RequestOutcome.MALFORMED),
        (RequestRefused("x"), RequestOutcome.REFUSED),
    ],
)
def test_every_error_is_counted_under_its_word(error: ModelError, outcome: RequestOutcome) -> None:
    assert outcome_of(error) is outcome


@pytest.mark.parametrize(
    ("error", "sent", "usage"),
    [
        (Unreachable("no such host"), False, Usage()),
        (Unreachable("time-out"), True, None),
        (RequestRefused("no", status=400), True, Usage()),
        (Overloaded("busy", status=503), True, Usage()),
        (Overloaded("gateway lost patience", status=504), True, None),
        (RateLimited("a sentence", status=200), True, Usage()),
        (MalformedReply("html", status=200), True, None),
    ],
)
def test_a_failed_request_costs_nothing_only_where_that_is_known(
    error: ModelError, sent: bool, usage: Usage | None
) -> None:
    assert usage_of_failure(error, sent=sent) == usage
