"""Asking: one reservation and one settlement for each request, whatever happens; steps down the ladder."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from memoryd.config import Prices
from memoryd.errors import (
    AuthRefused,
    BudgetSpent,
    ConfigError,
    MalformedReply,
    ModelError,
    RateLimited,
    RequestRefused,
    StorageError,
    StructureUnsupported,
    Unreachable,
)
from memoryd.llm.client import ASSUMED_OUTPUT_TOKENS, LadderMemory
from memoryd.llm.codec import Structure
from memoryd.llm.question import Stop, Usage, UserTurn
from memoryd.llm.spend import RequestOutcome
from tests.llm.asking import PURPOSE, SCHEMA, Book, a_client, a_question, a_refusal, a_response, never, sent_body
from tests.support.clock import FakeClock
from tests.support.model_replies import Hang, Status
from tests.support.model_server import ModelServer

Respond = Callable[[httpx.Request], httpx.Response]


def in_turn(*answers: httpx.Response | Exception) -> Respond:
    """Give each answer once, in order."""
    left = list(answers)

    def respond(_request: httpx.Request) -> httpx.Response:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return respond


async def test_an_answer_is_returned_and_its_request_counted(clock: FakeClock) -> None:
    book = Book()
    async with a_client(
        clock=clock, book=book, respond=in_turn(a_response("fine")), prices=Prices(input=1, output=2)
    ) as client:
        answer = await client.ask(a_question(max_output_tokens=50), PURPOSE)
    assert (answer.text, answer.stop, answer.usage) == ("fine", Stop.COMPLETE, Usage(100, 20))
    (plan,) = book.plans
    assert (plan.provider, plan.model, plan.purpose, plan.max_output_tokens) == ("main", "m-1", PURPOSE, 50)
    assert plan.estimated_input_tokens > 30
    # All of the input may be charged as written to a cache.
    assert plan.estimated_cost == pytest.approx((1.25 * plan.estimated_input_tokens + 2 * 50) / 1e6)
    (result,) = book.results
    assert (result.outcome, result.usage, result.duration_ms) == (RequestOutcome.ANSWERED, Usage(100, 20), 0)
    assert result.cost == pytest.approx(140 / 1e6)


async def test_without_a_limit_of_its_own_an_answer_is_reserved_generously(clock: FakeClock) -> None:
    book = Book()
    async with a_client(clock=clock, book=book, respond=in_turn(a_response())) as client:
        await client.ask(a_question(), PURPOSE)
    assert book.plans[0].max_output_tokens == ASSUMED_OUTPUT_TOKENS


@pytest.mark.parametrize(("output", "stop"), [(20, Stop.LENGTH), (19, Stop.COMPLETE), (21, Stop.COMPLETE)])
async def test_an_answer_of_all_the_tokens_that_it_might_have_was_cut_whatever_its_server_says(
    clock: FakeClock, output: int, stop: Stop
) -> None:
    """Some servers count thoughts beyond the limit: only the limit itself tells."""
    async with a_client(clock=clock, respond=lambda _request: a_response("half", usage=(9, output))) as client:
        assert (await client.ask(a_question(max_output_tokens=20), PURPOSE)).stop is stop


async def test_usage_that_a_server_does_not_report_is_estimated_and_marked(clock: FakeClock) -> None:
    book = Book()
    async with a_client(clock=clock, book=book, respond=in_turn(a_response("x" * 300, usage=None))) as client:
        answer = await client.ask(a_question(), PURPOSE)
    assert answer.usage == Usage(book.plans[0].estimated_input_tokens, 100, measured=False)
    assert book.results[0].usage == answer.usage


@pytest.mark.parametrize(
    ("answer", "error", "outcome", "usage"),
    [
        (a_refusal(401), AuthRefused, RequestOutcome.AUTH_REFUSED, Usage()),
        (a_refusal(400, "bad temperature"), RequestRefused, RequestOutcome.REFUSED, Usage()),
        (httpx.ConnectError("down"), Unreachable, RequestOutcome.UNREACHABLE, Usage()),
        (httpx.ReadTimeout("slow"), Unreachable, RequestOutcome.UNREACHABLE, None),
        (httpx.Response(200, text="<html>"), MalformedReply, RequestOutcome.MALFORMED, None),
        (httpx.Response(200, json={"usage": {"input_tokens": 5}}), MalformedReply, RequestOutcome.MALFORMED, Usage(5)),
        (a_response("You've hit your usage limit"), RateLimited, RequestOutcome.RATE_LIMITED, Usage(100, 20)),
    ],
)
async def test_a_failed_request_is_settled_with_what_is_known_of_it(
    clock: FakeClock,
    answer: httpx.Response | Exception,
    error: type[ModelError],
    outcome: RequestOutcome,
    usage: Usage | None,
) -> None:
    book = Book()
    async with a_client(clock=clock, book=book, respond=in_turn(answer)) as client:
        with pytest.raises(error):
            await client.ask(a_question(), PURPOSE)
    (result,) = book.results
    assert (result.outcome, result.usage) == (outcome, usage)
    assert (result.cost is None) == (usage is None)


async def test_a_spent_budget_sends_nothing(clock: FakeClock) -> None:
    async def refuse() -> None:
        raise BudgetSpent("no requests left today")

    book = Book(on_reserve=refuse)
    async with a_client(clock=clock, book=book, respond=in_turn()) as client:
        with pytest.raises(BudgetSpent):
            await client.ask(a_question(), PURPOSE)
    assert book.plans == []


async def test_a_cancelled_request_is_settled_as_unknown(clock: FakeClock) -> None:
    book = Book()
    with ModelServer() as server:
        server.reply_with(Hang())
        async with a_client(clock=clock, book=book, base_url=server.base_url) as client:
            task = asyncio.create_task(client.ask(a_question(), PURPOSE))
            await asyncio.to_thread(server.wait_for, 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    (result,) = book.results
    assert (result.outcome, result.usage, result.cost) == (RequestOutcome.UNKNOWN, None, None)


async def test_a_cancelled_reservation_is_settled_as_never_sent(clock: FakeClock) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def slowly() -> None:
        reached.set()
        await go_on.wait()

    book = Book(on_reserve=slowly)
    async with a_client(clock=clock, book=book, respond=in_turn()) as client:
        task = asyncio.create_task(client.ask(a_question(), PURPOSE))
        await reached.wait()
        task.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    (result,) = book.results
    assert (result.outcome, result.usage) == (RequestOutcome.UNSENT, Usage())


async def test_a_cancelled_reservation_that_fails_leaves_nothing_to_settle(clock: FakeClock) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def fail() -> None:
        reached.set()
        await go_on.wait()
        raise BudgetSpent("no")

    book = Book(on_reserve=fail)
    async with a_client(clock=clock, book=book, respond=in_turn()) as client:
        task = asyncio.create_task(client.ask(a_question(), PURPOSE))
        await reached.wait()
        task.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert book.results == []


async def test_a_settlement_is_finished_however_often_its_task_is_cancelled(clock: FakeClock) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def slowly() -> None:
        reached.set()
        await go_on.wait()

    book = Book(on_settle=slowly)
    async with a_client(clock=clock, book=book, respond=in_turn(a_response())) as client:
        task = asyncio.create_task(client.ask(a_question(), PURPOSE))
        await reached.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert book.results[0].outcome is RequestOutcome.ANSWERED


async def test_a_settlement_that_cannot_be_written_is_an_error(clock: FakeClock) -> None:
    async def fail() -> None:
        raise StorageError("disk full")

    async with a_client(clock=clock, book=Book(on_settle=fail), respond=in_turn(a_response())) as client:
        with pytest.raises(StorageError):
            await client.ask(a_question(), PURPOSE)


def picky(*accepted: str | None) -> tuple[Respond, list[str | None]]:
    """A server that takes only these formats of the answer; and the formats that it was asked for."""
    asked: list[str | None] = []

    def respond(request: httpx.Request) -> httpx.Response:
        form = sent_body(request).get("text", {}).get("format", {}).get("type")
        asked.append(form)
        return a_response() if form in accepted else a_refusal(400, "not supported", param="text.format")

    return respond, asked


async def test_a_refused_structure_steps_down_and_is_remembered_for_the_model(clock: FakeClock) -> None:
    book = Book()
    respond, asked = picky(None)
    async with a_client(clock=clock, book=book, respond=respond) as client:
        await client.ask(a_question(schema=SCHEMA), PURPOSE)
        await client.ask(a_question(schema=SCHEMA), PURPOSE)
        await client.ask(a_question(schema=SCHEMA, model="other"), PURPOSE)
    assert asked == ["json_schema", "json_object", None, None, "json_schema", "json_object", None]
    refused = [result.outcome is RequestOutcome.STRUCTURE_UNSUPPORTED for result in book.results]
    assert refused == [True, True, False, False, True, True, False]


async def test_what_worked_is_kept_by_the_composer_and_used_after_a_restart(clock: FakeClock) -> None:
    kept: dict[str, str] = {}

    async def load(key: str) -> str | None:
        return kept.get(key)

    async def store(key: str, manner: str) -> None:
        kept[key] = manner

    ladder = LadderMemory(load, store)
    respond, asked = picky("json_object")
    for _ in range(2):
        async with a_client(clock=clock, respond=respond, ladder=ladder) as client:
            await client.ask(a_question(schema=SCHEMA), PURPOSE)
    assert asked == ["json_schema", "json_object", "json_object"]
    assert kept == {"main http://127.0.0.1:9/v1 m-1": "json_object limit=max_output_tokens"}


async def test_a_kept_rung_that_the_format_does_not_know_is_ignored(clock: FakeClock) -> None:
    async def load(_key: str) -> str:
        return Structure.JSON_OBJECT_SCHEMA.value

    async def store(_key: str, _manner: str) -> None:
        raise AssertionError("nothing was learned")

    respond, asked = picky("json_schema")
    async with a_client(clock=clock, respond=respond, ladder=LadderMemory(load, store)) as client:
        await client.ask(a_question(schema=SCHEMA), PURPOSE)
    assert asked == ["json_schema"]


async def test_a_step_down_that_does_not_help_is_not_remembered(clock: FakeClock) -> None:
    respond, asked = picky()
    async with a_client(clock=clock, respond=respond) as client:
        for _ in range(2):
            with pytest.raises(StructureUnsupported):
                await client.ask(a_question(schema=SCHEMA), PURPOSE)
    assert asked == ["json_schema", "json_object", None] * 2


async def test_a_question_without_a_schema_has_nothing_to_step_down_from(clock: FakeClock) -> None:
    respond = in_turn(a_refusal(400, "response_format?"))
    async with a_client(clock=clock, respond=respond) as client:
        with pytest.raises(StructureUnsupported):
            await client.ask(a_question(), PURPOSE)


async def test_a_bad_answer_never_steps_down(clock: FakeClock) -> None:
    book = Book()
    async with a_client(clock=clock, book=book, respond=in_turn(a_response("no json at all"))) as client:
        answer = await client.ask(a_question(schema=SCHEMA), PURPOSE)
    assert (answer.text, len(book.plans)) == ("no json at all", 1)


async def test_a_refused_effort_is_given_up_and_remembered(clock: FakeClock) -> None:
    efforts: list[Any] = []

    def respond(request: httpx.Request) -> httpx.Response:
        efforts.append(sent_body(request).get("reasoning"))
        refusal = a_refusal(400, "Unsupported parameter: 'reasoning.effort'", param="reasoning.effort")
        return refusal if efforts[-1] else a_response()

    async with a_client(clock=clock, respond=respond) as client:
        for _ in range(2):
            await client.ask(a_question(effort="low"), PURPOSE)
    assert efforts == [{"effort": "low"}, None, None]


async def test_words_about_reasoning_without_an_effort_are_a_refusal(clock: FakeClock) -> None:
    async with a_client(clock=clock, respond=in_turn(a_refusal(400, "reasoning item missing"))) as client:
        with pytest.raises(RequestRefused, match="reasoning item missing"):
            await client.ask(a_question(), PURPOSE)


async def test_a_refused_key_is_not_tried_again_within_a_minute(clock: FakeClock) -> None:
    book = Book()
    respond = in_turn(a_refusal(401), a_response())
    async with a_client(clock=clock, book=book, respond=respond) as client:
        for _ in range(3):
            with pytest.raises(AuthRefused):
                await client.ask(a_question(), PURPOSE)
        await clock.advance(60)
        await client.ask(a_question(), PURPOSE)
    assert len(book.plans) == 2


async def test_a_limit_in_the_headers_holds_the_next_request_back(clock: FakeClock) -> None:
    headers = {"x-codex-primary-used-percent": "99", "x-codex-primary-reset-after-seconds": "600"}
    book = Book()
    async with a_client(clock=clock, book=book, respond=in_turn(a_response(headers=headers))) as client:
        await client.ask(a_question(), PURPOSE)
        assert client.limits is not None
        with pytest.raises(RateLimited, match="99 % used"):
            await client.ask(a_question(), PURPOSE)
    assert len(book.plans) == 1


async def test_neither_the_key_nor_the_session_reaches_an_error(clock: FakeClock) -> None:
    key, secret_text = "key-without-a-known-shape", "we rename the invoice table tonight"
    with ModelServer() as server:
        server.then(Status(401, f"Incorrect API key: {key}"), Status(400, f"cannot parse: {secret_text}"))
        for _ in range(2):
            async with a_client(clock=clock, base_url=server.base_url, key=key) as client:
                with pytest.raises(ModelError) as caught:
                    await client.ask(a_question(UserTurn(f"[human user] {secret_text}")), PURPOSE)
                assert key not in str(caught.value)
                assert secret_text not in str(caught.value)


@pytest.mark.parametrize("key", ["two words", "new\nline", "schlüssel"])
async def test_a_key_that_cannot_be_sent_is_a_wrong_setting(clock: FakeClock, key: str) -> None:
    book = Book()
    async with a_client(clock=clock, book=book, key=key, respond=in_turn()) as client:
        with pytest.raises(ConfigError) as caught:
            await client.ask(a_question(), PURPOSE)
    assert key not in str(caught.value)
    assert book.plans == []


async def test_a_key_is_read_anew_and_without_its_line_end(clock: FakeClock) -> None:
    seen: list[str | None] = []

    def respond(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization"))
        return a_response()

    async with a_client(clock=clock, key=" abc\n", respond=respond) as client:
        await client.ask(a_question(), PURPOSE)
    async with a_client(clock=clock, key=None, respond=respond) as client:
        await client.ask(a_question(), PURPOSE)
    assert seen == ["Bearer abc", None]


async def test_a_lone_surrogate_in_a_session_is_sent_as_a_question_mark(clock: FakeClock) -> None:
    bodies: list[dict[str, Any]] = []

    def respond(request: httpx.Request) -> httpx.Response:
        bodies.append(sent_body(request))
        return a_response()

    async with a_client(clock=clock, respond=respond) as client:
        await client.ask(a_question(UserTurn("a \ud800 b")), PURPOSE)
    assert bodies[0]["input"][0]["content"][0]["text"] == "a ? b"


async def test_a_cancelled_reservation_that_never_ends_is_the_callers_to_end(clock: FakeClock) -> None:
    async with a_client(clock=clock, book=Book(on_reserve=never), respond=in_turn()) as client:
        task = asyncio.create_task(client.ask(a_question(), PURPOSE))
        await asyncio.sleep(0)
        inner = next(each for each in asyncio.all_tasks() if each not in (task, asyncio.current_task()))
        inner.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
