"""Streams: what they add up to, and everything that can go wrong inside one."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.errors import AuthRefused, MalformedReply, ModelError, Overloaded, RateLimited, Unreachable
from memoryd.llm.anthropic import Anthropic
from memoryd.llm.codec import Codec
from memoryd.llm.openai_chat import OpenAIChat
from memoryd.llm.openai_responses import OpenAIResponses
from memoryd.llm.question import Answer, Stop, ToolCall, Usage
from memoryd.llm.spend import RequestOutcome
from memoryd.llm.stream import events_in, is_stream
from tests.llm.asking import PURPOSE, SCHEMA, TOOL, Book, a_client, a_question
from tests.support.clock import FakeClock
from tests.support.model_replies import Call, Drop, HalfStream, Raw, Reply, Scripted
from tests.support.model_server import ModelServer

CODECS: dict[str, Codec] = {"openai": OpenAIResponses(), "openai-chat": OpenAIChat(), "anthropic": Anthropic()}
EVENTS = {"Content-Type": "text/event-stream"}
OVERLOADED = 'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n'
NO_KEY = 'data: {"error": {"code": "invalid_api_key", "message": "no"}}\n\n'


@pytest.fixture(params=sorted(CODECS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


async def asked(
    server: ModelServer, clock: FakeClock, kind: str, answer: Scripted, *, book: Book | None = None, **fields: Any
) -> Answer:
    server.then(answer)
    given: dict[str, Any] = {"stream": True} | fields
    async with a_client(clock=clock, book=book, kind=kind, base_url=server.base_url, **given) as client:
        return await client.ask(a_question(schema=SCHEMA, max_output_tokens=5_000), PURPOSE)


async def test_a_streamed_answer_is_the_answer_with_its_usage(server: ModelServer, clock: FakeClock, kind: str) -> None:
    book = Book()
    answer = await asked(server, clock, kind, Reply("hé 😀 hello", tokens=(70, 50), cached=30), book=book)
    assert (answer.text, answer.stop) == ("hé 😀 hello", Stop.COMPLETE)
    assert answer.usage == book.results[0].usage == Usage(input=70, output=50, cached=30)
    assert server.requests[0].body["stream"] is True


async def test_streamed_calls_arrive_whole_in_parallel_and_broken_ones_as_they_are(
    server: ModelServer, clock: FakeClock, kind: str
) -> None:
    server.then(Reply(calls=(Call("read_file", {"path": "a" * 50}), Call("finish", "{not json"))))
    async with a_client(clock=clock, kind=kind, base_url=server.base_url, stream=True) as client:
        answer = await client.ask(a_question(tools=(TOOL,)), PURPOSE)
    assert answer.calls == (
        ToolCall("call_1_1", "read_file", json.dumps({"path": "a" * 50})),
        ToolCall("call_1_2", "finish", "{not json"),
    )


async def test_a_stream_that_nobody_asked_for_is_read_too(server: ModelServer, clock: FakeClock, kind: str) -> None:
    answer = await asked(server, clock, kind, Reply("hello", streamed=True), stream=False)
    assert answer.text == "hello"


async def test_a_stream_called_json_is_read_too(server: ModelServer, clock: FakeClock, kind: str) -> None:
    wrong = Reply("hello", streamed=True, headers={"Content-Type": "application/json"})
    assert (await asked(server, clock, kind, wrong)).text == "hello"


async def test_a_whole_body_where_a_stream_was_asked_for_is_read_too(
    server: ModelServer, clock: FakeClock, kind: str
) -> None:
    assert (await asked(server, clock, kind, Reply("hello", streamed=False))).text == "hello"
    wrong = Reply("hello", streamed=False, content_type="text/event-stream")
    assert (await asked(server, clock, kind, wrong)).text == "hello"


@pytest.mark.parametrize(
    ("fault", "error", "outcome"),
    [
        (HalfStream(), Unreachable, RequestOutcome.UNREACHABLE),
        (HalfStream(then='data: {"half": '), Unreachable, RequestOutcome.UNREACHABLE),
        (Drop(), Unreachable, RequestOutcome.UNREACHABLE),
        (HalfStream(then=OVERLOADED), Overloaded, RequestOutcome.OVERLOADED),
        (HalfStream(then="event: error\ndata: too many requests\n\n"), RateLimited, RequestOutcome.RATE_LIMITED),
        (HalfStream(then=NO_KEY), AuthRefused, RequestOutcome.AUTH_REFUSED),
        (Reply("You've hit your usage limit. Try again in 2 hours."), RateLimited, RequestOutcome.RATE_LIMITED),
        (Raw(200, b"You've hit your usage limit.", EVENTS), RateLimited, RequestOutcome.RATE_LIMITED),
        (Raw(200, b"", EVENTS), MalformedReply, RequestOutcome.MALFORMED),
        (Raw(200, b"data: garbage\n\ndata: {\n\n", EVENTS), MalformedReply, RequestOutcome.MALFORMED),
        (Raw(200, b": alive\n\n" * 500, EVENTS), MalformedReply, RequestOutcome.MALFORMED),
    ],
)
async def test_whatever_goes_wrong_inside_a_stream_is_what_it_is_outside_of_one(
    server: ModelServer,
    clock: FakeClock,
    kind: str,
    fault: Scripted,
    error: type[ModelError],
    outcome: RequestOutcome,
) -> None:
    book = Book()
    with pytest.raises(error):
        await asked(server, clock, kind, fault, book=book)
    assert [result.outcome for result in book.results] == [outcome]


def read(text: str) -> list[Any]:
    return [json.loads(each) for each in events_in(text)]


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ('data: {"a": 1}\n\ndata: {"b": 2}\n\n', [{"a": 1}, {"b": 2}]),
        ('data:{"a": 1}\r\n\r\ndata: {"b":\r\ndata: 2}\r\n\r\n', [{"a": 1}, {"b": 2}]),
        ('\ufeffevent: x\nid: 7\nretry: 5\ndata: {"a": 1}', [{"a": 1}]),
        (": comment\n\ndata: [DONE]\n\n", [{"type": "[DONE]"}]),
        ("event: error\ndata: broken\n\n", [{"error": "broken"}]),
        ("event: ping\n\n", []),
    ],
)
def test_events_are_read_in_every_spelling(text: str, events: list[Any]) -> None:
    assert read(text) == events


@pytest.mark.parametrize(
    ("kind_of_body", "text", "streamed"),
    [
        ("text/event-stream; charset=utf-8", "data: x", True),
        ("text/event-stream", ' {"choices": []}', False),
        ("application/json", "data: {}", True),
        ("application/json", "event: x", True),
        ("application/json", "{}", False),
        ("text/plain", "data are missing", False),
    ],
)
def test_a_stream_is_known_by_what_it_is(kind_of_body: str, text: str, streamed: bool) -> None:
    assert is_stream({"Content-Type": kind_of_body}, text) is streamed


def test_calls_that_a_server_sends_whole_and_without_numbers_are_told_apart_by_their_ids() -> None:
    calls = [{"id": f"c{n}", "function": {"name": "f", "arguments": "{}"}} for n in (1, 2)]
    chunks: list[Any] = [{"choices": [{"delta": {"tool_calls": [call]}}]} for call in calls]
    body = OpenAIChat().assemble([*chunks, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}])
    assert body is not None
    assert [call.call_id for call in OpenAIChat().decode(body).calls] == ["c1", "c2"]


def test_an_end_without_a_reason_is_an_end() -> None:
    body = OpenAIChat().assemble([{"choices": [{"delta": {"content": "hi"}}]}, {"type": "[DONE]"}])
    assert body is not None
    assert OpenAIChat().decode(body).text == "hi"


def test_an_empty_last_event_is_filled_from_the_items_that_were_finished() -> None:
    item = {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}
    body = OpenAIResponses().assemble(
        [
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"status": "completed", "output": []}},
        ]
    )
    assert body is not None
    assert OpenAIResponses().decode(body).text == "hi"


def test_thoughts_are_put_together_with_their_signatures() -> None:
    deltas: list[Any] = [
        {"type": "thinking_delta", "thinking": "h"},
        {"type": "thinking_delta", "thinking": "m"},
        {"type": "signature_delta", "signature": "signed"},
    ]
    body = Anthropic().assemble(
        [
            {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
            *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        ]
    )
    assert body is not None
    assert body["content"] == [{"type": "thinking", "thinking": "hm", "signature": "signed"}]
    assert Anthropic().usage(body) == Usage(input=7, output=9)


KEYS = st.sampled_from(
    ["type", "index", "delta", "message", "content_block", "choices", "tool_calls", "response", "item"]
)
KINDS = st.sampled_from(
    ["content_block_delta", "message_delta", "input_json_delta", "response.completed", "[DONE]", "error"]
)
JSON = st.recursive(
    st.none() | st.integers(-2, 2) | KINDS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(KEYS, JSON, max_size=4), max_size=5), st.sampled_from(sorted(CODECS)))
def test_no_events_break_an_assembly_other_than_as_malformed(events: list[Any], kind: str) -> None:
    codec = CODECS[kind]
    body = codec.assemble(events)
    if body is not None and "error" not in body:
        try:
            codec.decode(body)
        except ModelError:
            pass
