"""I9 as a property: whatever is asked at once, dies or starts again, what was sent never passes a cap."""

import asyncio
import itertools
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.config import Limits, Prices, Provider, ProviderKind
from memoryd.daemon.spending import Spending
from memoryd.errors import BudgetSpent, JobCapReached, ModelError
from memoryd.ledger import spend
from memoryd.ledger.database import Ledger
from memoryd.ledger.spend import JobCaps
from memoryd.llm.client import ModelClient, Wiring
from memoryd.llm.providers import open_client
from memoryd.llm.spend import Purpose
from memoryd.redact import Redactor
from tests.llm.asking import a_question, a_refusal, a_response
from tests.support.clock import FakeClock
from tests.support.wire import Wire

KIND = "memory_stage1"
LIMITS = Limits(requests_per_day=7, tokens_per_day=6_000, cost_per_day=0.006, min_remaining_percent=0)
JOB_CAPS = {KIND: JobCaps("extract", 3, 2_500)}
PRICES = Prices(input=1.0, output=1.0)
MOST_OUTPUT = 400

FATES = ("answered", "answered", "failed", "broken", "killed")


@dataclass(slots=True)
class Server:
    """Counts what reaches it; an answer takes what was reserved for it at the most."""

    fates: Iterator[str]
    sent: int = 0
    tokens: int = 0

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)
        fate = next(self.fates)
        self.sent += 1
        read = len(request.content) // 4
        if fate == "failed":
            return a_refusal(500)
        self.tokens += read + MOST_OUTPUT
        if fate == "broken":
            raise httpx.ReadError("reset")
        if fate == "killed":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)
        return a_response(usage=(read, MOST_OUTPUT))


def a_client(ledger: Ledger, clock: FakeClock, server: Server, *, dies: bool) -> ModelClient:
    spending = Spending(ledger, clock, LIMITS, JOB_CAPS)

    async def settle(number: int, result: object) -> None:
        if not dies:
            await spending.settle(number, result)  # type: ignore[arg-type]  # what the client hands over

    client = open_client(
        "main",
        Provider(kind=ProviderKind.OPENAI, base_url="http://127.0.0.1:9/v1", prices=PRICES),
        api_key=lambda: "sk-local-abcdef",
        wiring=Wiring(clock, Redactor(), spending.reserve, settle, min_remaining_percent=0),
        transport=Wire(server),
    )
    assert client is not None
    return client


async def live(path: Path, lives: list[tuple[int, bool]], server: Server) -> None:
    """Live so many lives on one ledger: so many questions at once in each, then a crash or an orderly stop."""
    clock = FakeClock()
    for asked, dies in lives:
        async with await Ledger.open(path, clock=clock) as ledger, a_client(ledger, clock, server, dies=dies) as client:
            questions = [
                client.ask(
                    a_question(max_output_tokens=MOST_OUTPUT), Purpose(KIND, f"job-{number % 3}", attempt_id=number % 3)
                )
                for number in range(asked)
            ]
            ended = await asyncio.gather(*questions, return_exceptions=True)
            kinds = (BudgetSpent, JobCapReached, ModelError, asyncio.CancelledError)
            assert [each for each in ended if isinstance(each, BaseException) and not isinstance(each, kinds)] == []
            counted = await ledger.read(spend.today, now=clock.now())
            assert server.sent <= counted.requests <= LIMITS.requests_per_day
            assert server.tokens <= counted.tokens <= LIMITS.tokens_per_day
            assert server.tokens / 1e6 <= counted.cost + 1e-12
            assert counted.cost <= LIMITS.cost_per_day + 1e-12
            for attempt in range(3):
                rows = await ledger.read(spend.of_attempt, attempt)
                assert len(rows) <= JOB_CAPS[KIND].max_requests
        await clock.advance(61)


@settings(max_examples=25)
@given(
    fates=st.lists(st.sampled_from(FATES), min_size=1, max_size=6),
    lives=st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=4),
)
def test_i9_no_cap_is_passed_under_concurrency_crashes_and_restarts(
    fates: list[str], lives: list[tuple[int, bool]]
) -> None:
    server = Server(itertools.cycle(fates))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live(Path(folder) / "ledger.sqlite3", lives, server))


async def test_i9_a_run_s_own_caps_count_what_a_crash_left_unsettled(tmp_path: Path, clock: FakeClock) -> None:
    server = Server(itertools.cycle(["answered"]))
    purpose = Purpose(KIND, "a", attempt_id=7)
    for dies in (True, True, True, False):
        async with (
            await Ledger.open(tmp_path / "l", clock=clock) as ledger,
            a_client(ledger, clock, server, dies=dies) as client,
        ):
            if server.sent < 3:
                await client.ask(a_question(max_output_tokens=10), purpose)
                continue
            with pytest.raises(JobCapReached, match=r"extract\.max_requests = 3 would be passed by this run"):
                await client.ask(a_question(max_output_tokens=10), purpose)
    assert server.sent == 3


async def test_i9_the_tokens_of_a_run_are_capped_with_the_cap_named(tmp_path: Path, clock: FakeClock) -> None:
    server = Server(itertools.cycle(["answered"]))
    async with (
        await Ledger.open(tmp_path / "l", clock=clock) as ledger,
        a_client(ledger, clock, server, dies=False) as client,
    ):
        with pytest.raises(JobCapReached, match=r"extract\.max_tokens = 2500"):
            await client.ask(a_question(max_output_tokens=3_000), Purpose(KIND, "a", attempt_id=7))
    assert server.sent == 0
