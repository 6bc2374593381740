"""The caps of a run, as pure counting."""

import pytest

from memoryd.agent.caps import AgentCaps, Tally, total
from memoryd.llm.question import Usage

CAPS = AgentCaps(max_requests=3, max_seconds=60, max_tokens=1000, max_invalid=2, max_idle=4)


def reason(tally: Tally, *, elapsed: float = 0, next_tokens: int = 0) -> str | None:
    return tally.reason_to_stop(CAPS, elapsed_seconds=elapsed, next_tokens=next_tokens)


def test_a_fresh_run_may_ask() -> None:
    assert reason(Tally()) is None


@pytest.mark.parametrize(
    ("tally", "said"),
    [
        (Tally(requests=3), "all 3 requests"),
        (Tally(invalid_in_a_row=2), "2 replies in a row held no valid call"),
        (Tally(idle_in_a_row=4), "4 replies in a row changed nothing"),
        (Tally(usage=Usage(input=900, output=101)), "max_tokens, 1000 (1001 used)"),
    ],
)
def test_a_cap_that_is_reached_is_named(tally: Tally, said: str) -> None:
    assert said in (reason(tally) or "")


def test_the_request_to_come_counts_against_the_tokens() -> None:
    tally = Tally(usage=Usage(input=400, output=100))
    assert reason(tally, next_tokens=500) is None
    assert "max_tokens" in (reason(tally, next_tokens=501) or "")


def test_wall_time_is_a_cap() -> None:
    assert reason(Tally(), elapsed=59.9) is None
    assert "longer than 60 seconds" in (reason(Tally(), elapsed=60) or "")


def test_rows_of_bad_replies_end_with_a_good_one() -> None:
    tally = Tally()
    tally.count_reply(valid=False, progress=False)
    tally.count_reply(valid=True, progress=False)
    assert (tally.invalid_in_a_row, tally.idle_in_a_row) == (0, 2)
    tally.count_reply(valid=True, progress=True)
    assert (tally.invalid_in_a_row, tally.idle_in_a_row) == (0, 0)


def test_usage_adds_up_and_one_estimate_makes_the_sum_an_estimate() -> None:
    assert total(Usage(1, 2, 3, 4), Usage(10, 20, 30, 40, measured=False)) == Usage(11, 22, 33, 44, measured=False)
