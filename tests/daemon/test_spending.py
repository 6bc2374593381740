from pathlib import Path

import pytest

from memoryd.config import Limits
from memoryd.daemon.spending import Spending
from memoryd.errors import BudgetSpent
from memoryd.ledger import spend
from memoryd.ledger.spend import Spend
from memoryd.llm.question import Usage
from memoryd.llm.spend import Purpose, RequestOutcome, RequestPlan, RequestResult
from memoryd.pipeline.context import Context
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in

PLAN = RequestPlan(
    provider="scripted",
    model="model-1",
    purpose=Purpose("memory_stage1", "a-thread", None, "a reference"),
    estimated_input_tokens=900,
    max_output_tokens=100,
    estimated_cost=0.25,
)
ANSWERED = RequestResult(RequestOutcome.ANSWERED, Usage(input=500, output=20, cached=100), cost=0.125, duration_ms=42)


def spending(context: Context, **limits: float) -> Spending:
    return Spending(context.ledger, context.clock, Limits(**limits))  # type: ignore[arg-type]  # keys of [limits]


async def today(context: Context) -> Spend:
    return await context.ledger.read(spend.today, now=context.clock.now())


async def test_a_request_counts_with_its_estimate_until_it_is_settled(tmp_path: Path, clock: FakeClock) -> None:
    """I9: nothing is sent that is not in the ledger."""
    async with a_house(settings_in(tmp_path), clock) as context:
        account = spending(context)
        number = await account.reserve(PLAN)
        assert await today(context) == Spend(1, 1000, 0.25)

        await account.settle(number, ANSWERED)

        assert await today(context) == Spend(1, 520, 0.125)


async def test_what_nobody_knows_stays_at_the_estimate(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        account = spending(context)
        number = await account.reserve(PLAN)
        await account.settle(number, RequestResult(RequestOutcome.UNREACHABLE, None, None, 10))
        assert await today(context) == Spend(1, 1000, 0.25)


@pytest.mark.parametrize("cap", [{"requests_per_day": 1}, {"tokens_per_day": 1999}, {"cost_per_day": 0.3}])
async def test_no_request_passes_a_cap_before_the_next_utc_day(
    tmp_path: Path, clock: FakeClock, cap: dict[str, float]
) -> None:
    """I9."""
    async with a_house(settings_in(tmp_path), clock) as context:
        account = spending(context, **cap)
        await account.reserve(PLAN)

        with pytest.raises(BudgetSpent) as caught:
            await account.reserve(PLAN)

        assert (await today(context)).requests == 1
        midnight = caught.value.retry_at
        assert midnight is not None
        assert midnight > clock.now()
        assert midnight % 86_400 == 0
        clock.jump(midnight - clock.now())
        await account.reserve(PLAN)


async def test_how_an_endpoint_takes_questions_is_remembered_over_restarts(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        assert await spending(context).known_manner("here model-1") is None
        await spending(context).keep_manner("here model-1", "json_object no-effort")
    async with a_house(settings_in(tmp_path), clock) as context:
        assert await spending(context).known_manner("here model-1") == "json_object no-effort"
        assert await spending(context).known_manner("there model-1") is None
