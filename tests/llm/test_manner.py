"""What a server refuses by name is given up step by step, once, and never more than it named."""

import httpx
import pytest

from memoryd.errors import (
    EffortUnsupported,
    MalformedReply,
    ModelError,
    OutputLimitTooLarge,
    OutputLimitUnsupported,
    RequestRefused,
    StructureUnsupported,
)
from memoryd.llm.anthropic import Anthropic
from memoryd.llm.client import LadderMemory
from memoryd.llm.codec import Codec, Structure
from memoryd.llm.manner import Manner, encoded, first_manner, manner_in_words, manner_of_words, stepped_down
from memoryd.llm.openai_chat import OpenAIChat
from memoryd.llm.openai_responses import OpenAIResponses
from tests.llm.asking import PURPOSE, SCHEMA, Book, a_client, a_question, a_refusal, sent_body
from tests.support.clock import FakeClock

CHAT = OpenAIChat()
QUESTION = a_question(schema=SCHEMA, effort="low", max_output_tokens=4_096)


def steps(codec: Codec, *errors: ModelError) -> Manner | None:
    manner: Manner | None = first_manner(codec)
    for error in errors:
        assert manner is not None
        manner = stepped_down(codec, QUESTION, manner, error)
    return manner


def test_the_structure_goes_down_its_ladder_to_the_prompt_and_no_further() -> None:
    refusals = [StructureUnsupported("no")] * 4
    rungs = [getattr(steps(CHAT, *refusals[:count]), "structure", None) for count in range(5)]
    assert rungs == [*CHAT.ladder, None]


@pytest.mark.parametrize(
    ("codec", "names"),
    [
        (CHAT, ["max_tokens", "max_completion_tokens", None]),
        (OpenAIResponses(), ["max_output_tokens", None]),
        (Anthropic(), ["max_tokens"]),
    ],
)
def test_a_limit_is_called_by_its_next_name_and_left_out_only_where_the_format_allows(
    codec: Codec, names: list[str | None]
) -> None:
    sent = []
    manner: Manner | None = first_manner(codec)
    while manner is not None:
        body = encoded(codec, QUESTION, manner, stream=False)
        limits = [name for name in ("max_tokens", "max_completion_tokens", "max_output_tokens") if name in body]
        assert [body[name] for name in limits] == [4_096] * len(limits)
        sent.append(limits[0] if limits else None)
        manner = stepped_down(codec, QUESTION, manner, OutputLimitUnsupported("no"))
    assert sent == names


def test_a_limit_that_is_too_large_is_halved_until_it_would_hold_no_memory() -> None:
    too_large = OutputLimitTooLarge("no")
    halved = steps(CHAT, too_large, too_large)
    assert halved is not None
    assert encoded(CHAT, QUESTION, halved, stream=False)["max_tokens"] == 1_024
    assert stepped_down(CHAT, QUESTION, halved, too_large) is None


@pytest.mark.parametrize("error", [MalformedReply("no"), RequestRefused("no")])
def test_nothing_else_makes_a_step(error: ModelError) -> None:
    assert steps(CHAT, error) is None


def test_what_was_not_asked_for_cannot_be_given_up() -> None:
    bare = a_question()
    for error in (
        StructureUnsupported("x"),
        EffortUnsupported("x"),
        OutputLimitUnsupported("x"),
        OutputLimitTooLarge("x"),
    ):
        assert stepped_down(CHAT, bare, first_manner(CHAT), error) is None


def test_a_stream_is_asked_for_with_its_usage() -> None:
    body = encoded(CHAT, QUESTION, first_manner(CHAT), stream=True)
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


async def test_a_model_that_knows_the_limit_by_its_new_name_is_asked_so_from_then_on(clock: FakeClock) -> None:
    """I9: what is reserved for an answer is what the server is told."""
    limits: list[tuple[object, object]] = []
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."

    def respond(request: httpx.Request) -> httpx.Response:
        body = sent_body(request)
        limits.append((body.get("max_tokens"), body.get("max_completion_tokens")))
        if "max_tokens" in body:
            return a_refusal(400, words, param="max_tokens", code="unsupported_parameter")
        message = {"role": "assistant", "content": "fine"}
        return httpx.Response(200, json={"choices": [{"message": message, "finish_reason": "stop"}]})

    book = Book()
    async with a_client(clock=clock, book=book, kind="openai-chat", respond=respond) as client:
        for _ in range(2):
            await client.ask(a_question(max_output_tokens=500), PURPOSE)
    assert limits == [(500, None), (None, 500), (None, 500)]
    assert [plan.max_output_tokens for plan in book.plans] == [500] * 3


async def test_a_model_that_cannot_say_so_much_is_asked_for_half_and_half_is_reserved(clock: FakeClock) -> None:
    words = "max_tokens: 16384 > 8192, which is the maximum allowed number of output tokens for m-1"
    message = {"content": [{"type": "text", "text": "fine"}], "stop_reason": "end_turn"}

    def respond(request: httpx.Request) -> httpx.Response:
        if sent_body(request)["max_tokens"] > 8_192:
            return httpx.Response(
                400, json={"type": "error", "error": {"type": "invalid_request_error", "message": words}}
            )
        return httpx.Response(200, json=message)

    book = Book()
    async with a_client(clock=clock, book=book, kind="anthropic", respond=respond) as client:
        for _ in range(2):
            await client.ask(a_question(max_output_tokens=16_384), PURPOSE)
    assert [plan.max_output_tokens for plan in book.plans] == [16_384, 8_192, 8_192]


async def test_the_persons_own_limit_of_an_answer_is_what_is_sent(clock: FakeClock) -> None:
    book = Book()
    message = {"content": [{"type": "text", "text": "fine"}], "stop_reason": "end_turn"}
    async with a_client(
        clock=clock,
        book=book,
        kind="anthropic",
        respond=lambda _request: httpx.Response(200, json=message),
        max_output_tokens=2_000,
    ) as client:
        await client.ask(a_question(max_output_tokens=16_384), PURPOSE)
        await client.ask(a_question(), PURPOSE)
    assert [plan.max_output_tokens for plan in book.plans] == [2_000, 2_000]


def test_a_first_manner_can_begin_on_a_lower_rung() -> None:
    assert first_manner(CHAT, Structure.PROMPT).structure is Structure.PROMPT


@pytest.mark.parametrize(
    "manner",
    [
        first_manner(CHAT),
        Manner(Structure.PROMPT, "max_completion_tokens"),
        Manner(Structure.JSON_OBJECT, None, with_effort=False, most_output_tokens=2_048),
    ],
)
def test_what_was_found_out_outlives_the_process(manner: Manner) -> None:
    assert manner_of_words(CHAT, manner_in_words(manner)) == manner


@pytest.mark.parametrize("text", ["", "json_schema", "next_years_structure limit=next_years_name most=x colour=blue"])
def test_words_that_say_nothing_are_the_first_manner(text: str) -> None:
    assert manner_of_words(CHAT, text) == first_manner(CHAT)


def test_a_format_that_must_have_its_limit_keeps_it_whatever_was_written() -> None:
    assert manner_of_words(Anthropic(), "prompt limit=") == Manner(Structure.PROMPT, "max_tokens")


async def test_a_restart_asks_for_nothing_that_was_refused_before(clock: FakeClock) -> None:
    kept: dict[str, str] = {}

    async def load(key: str) -> str | None:
        return kept.get(key)

    async def store(key: str, manner: str) -> None:
        kept[key] = manner

    refused: list[str] = []

    def respond(request: httpx.Request) -> httpx.Response:
        body = sent_body(request)
        for name in ("max_tokens", "reasoning_effort", "response_format"):
            if name in body:
                refused.append(name)
                return a_refusal(400, f"Unsupported parameter: '{name}'", param=name)
        message = {"role": "assistant", "content": "fine"}
        return httpx.Response(200, json={"choices": [{"message": message, "finish_reason": "stop"}]})

    for _ in range(2):
        async with a_client(
            clock=clock, kind="openai-chat", respond=respond, ladder=LadderMemory(load, store)
        ) as client:
            await client.ask(QUESTION, PURPOSE)
    assert refused == ["max_tokens", "reasoning_effort", *["response_format"] * 3]
    assert list(kept.values()) == ["prompt limit=max_completion_tokens no-effort"]
