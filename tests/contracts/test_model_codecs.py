"""One suite for every codec: it speaks as the vendor's own types say, and so does the scripted server that tests it.

The types are those of the openai and anthropic packages. They let unknown keys pass, so a body also has to survive them
unchanged. What is streamed has to add up to what is not.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from anthropic.types import Message, RawMessageStreamEvent, message_create_params
from openai.types.chat import ChatCompletion, ChatCompletionChunk, completion_create_params
from openai.types.responses import Response, ResponseStreamEvent, response_create_params
from pydantic import BaseModel, TypeAdapter

from memoryd.agent.tools import tool_specs
from memoryd.errors import MalformedReply
from memoryd.llm.anthropic import Anthropic
from memoryd.llm.codec import Codec, Structure
from memoryd.llm.manner import encoded, first_manner
from memoryd.llm.openai_chat import OpenAIChat
from memoryd.llm.openai_responses import OpenAIResponses
from memoryd.llm.question import (
    Answer,
    JsonObject,
    ModelTurn,
    Question,
    Schema,
    Stop,
    ToolCall,
    ToolResult,
    ToolTurn,
    Usage,
    UserTurn,
)
from memoryd.llm.stream import END, events_in
from memoryd.pipeline.reply import STAGE1_SCHEMA
from tests.support.model_asked import CONSOLIDATION, STAGE1, Recorded
from tests.support.model_replies import Call, Reply, Status, body_of
from tests.support.model_streams import stream_of

SCHEMA = Schema("stage1_reply", STAGE1_SCHEMA)
HISTORY = (
    UserTurn("go"),
    ModelTurn("looking", (ToolCall("c1", "list_files", '{"path": ""}'), ToolCall("c2", "read_file", "{}"))),
    ToolTurn((ToolResult("c1", "MEMORY.md"), ToolResult("c2", "error: no such file"))),
    ModelTurn(calls=(ToolCall("c3", "finish", '{"summary": "done"}'),)),
    ToolTurn((ToolResult("c3", "rejected\nno v1"),)),
    ModelTurn("sorry"),
    UserTurn("go on"),
)


@dataclass(frozen=True, slots=True)
class Wire:
    """A codec with the vendor's types of a request, a request for a stream, a reply and an event of a stream.

    `counts` are the names of the counted tokens, input and output.
    """

    codec: Codec
    request: TypeAdapter[Any]
    streaming: TypeAdapter[Any]
    reply: type[BaseModel]
    event: TypeAdapter[Any]
    counts: tuple[str, str] = ("input_tokens", "output_tokens")


WIRES = {
    "responses": Wire(
        OpenAIResponses(),
        TypeAdapter(response_create_params.ResponseCreateParamsNonStreaming),
        TypeAdapter(response_create_params.ResponseCreateParamsStreaming),
        Response,
        TypeAdapter(ResponseStreamEvent),
    ),
    "chat": Wire(
        OpenAIChat(),
        TypeAdapter(completion_create_params.CompletionCreateParamsNonStreaming),
        TypeAdapter(completion_create_params.CompletionCreateParamsStreaming),
        ChatCompletion,
        TypeAdapter(ChatCompletionChunk),
        ("prompt_tokens", "completion_tokens"),
    ),
    "messages": Wire(
        Anthropic(),
        TypeAdapter(message_create_params.MessageCreateParamsNonStreaming),
        TypeAdapter(message_create_params.MessageCreateParamsStreaming),
        Message,
        TypeAdapter(RawMessageStreamEvent),
    ),
}


@pytest.fixture(params=sorted(WIRES))
def wire(request: pytest.FixtureRequest) -> Wire:
    return WIRES[request.param]


def a_question(**fields: Any) -> Question:
    given: dict[str, Any] = {"model": "m", "effort": None, "instructions": "Be brief.", "turns": (UserTurn("go"),)}
    return Question(**(given | fields))


QUESTIONS: dict[str, Question] = {
    "bare": a_question(),
    "stage 1": a_question(schema=SCHEMA, effort="low"),
    "a consolidation": a_question(tools=tool_specs(), effort="medium", max_output_tokens=4_000, turns=HISTORY),
    "empty texts": a_question(instructions="", turns=(UserTurn(""), ModelTurn(), UserTurn(""))),
}


def plain(value: object) -> object:
    """Turn what validation made lazy back into lists and dicts."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [plain(each) for each in value]
    return value


def assert_speaks(wire: Wire, body: JsonObject) -> None:
    """A typed dictionary keeps only the keys that it knows: what comes out equal had no other."""
    sent = json.loads(json.dumps(body))
    kind = wire.streaming if body.get("stream") else wire.request
    assert plain(kind.validate_python(sent)) == sent


def asked(wire: Wire, question: Question, number: int = 1, structure: Structure = Structure.JSON_SCHEMA) -> Recorded:
    body = json.loads(json.dumps(wire.codec.encode(question, structure)))
    return Recorded(number, "POST", wire.codec.path, {}, body)


def streamed(wire: Wire, question: Question, number: int = 1) -> Recorded:
    body = encoded(wire.codec, question, first_manner(wire.codec), stream=True)
    return Recorded(number, "POST", wire.codec.path, {}, json.loads(json.dumps(body)))


def events_of(asked: Recorded, reply: Reply) -> list[JsonObject]:
    return [json.loads(data) for data in events_in(b"".join(stream_of(asked, reply)).decode())]


def answered(wire: Wire, reply: Reply, question: Question = QUESTIONS["stage 1"]) -> Answer:
    return wire.codec.decode(json.loads(json.dumps(body_of(asked(wire, question), reply))))


def unknown_keys(value: object) -> list[str]:
    """Return the keys of a validated model, at any depth, that its type does not know."""
    if isinstance(value, BaseModel):
        return [*(value.model_extra or {}), *(key for _, each in value for key in unknown_keys(each))]
    return [key for each in value for key in unknown_keys(each)] if isinstance(value, list) else []


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_request_is_one_that_the_vendors_types_know(wire: Wire, name: str) -> None:
    for structure in wire.codec.ladder:
        if structure is not Structure.JSON_OBJECT_SCHEMA:
            assert_speaks(wire, wire.codec.encode(QUESTIONS[name], structure))


def test_the_one_key_that_the_vendor_does_not_know_is_the_schema_of_a_json_object() -> None:
    wire = WIRES["chat"]
    body = dict(wire.codec.encode(QUESTIONS["stage 1"], Structure.JSON_OBJECT_SCHEMA))
    assert body["response_format"] == {"type": "json_object", "schema": STAGE1_SCHEMA}
    assert_speaks(wire, body | {"response_format": {"type": "json_object"}})


def test_an_unknown_key_would_be_found(wire: Wire) -> None:
    with pytest.raises(AssertionError):
        assert_speaks(wire, {**wire.codec.encode(QUESTIONS["bare"], Structure.PROMPT), "colour": "blue"})


REPLIES = {
    "text": Reply("hello"),
    "calls": Reply("on my way", (Call("list_files", {"path": ""}), Call("finish", "{not json"))),
    "a refusal": Reply(refusal="I cannot"),
    "cut": Reply("half", stop="length"),
    "filtered": Reply(stop="content_filter"),
    "empty": Reply(),
}


@pytest.mark.parametrize("name", REPLIES)
def test_every_reply_of_the_scripted_server_is_one_that_the_vendors_types_know(wire: Wire, name: str) -> None:
    for question in (QUESTIONS["stage 1"], QUESTIONS["a consolidation"]):
        body = body_of(asked(wire, question), REPLIES[name])
        assert unknown_keys(wire.reply.model_validate(body, strict=True)) == []


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_request_for_a_stream_is_one_that_the_vendors_types_know(wire: Wire, name: str) -> None:
    assert_speaks(wire, streamed(wire, QUESTIONS[name]).body)


@pytest.mark.parametrize("name", REPLIES)
def test_every_event_of_the_scripted_server_is_one_that_the_vendors_types_know(wire: Wire, name: str) -> None:
    events = events_of(streamed(wire, QUESTIONS["a consolidation"]), REPLIES[name])
    for event in events:
        if event["type" if "type" in event else "id"] not in (END, "ping"):
            assert unknown_keys(wire.event.validate_python(event)) == []


@pytest.mark.parametrize("name", REPLIES)
def test_a_stream_adds_up_to_the_body_that_is_not_streamed(wire: Wire, name: str) -> None:
    question = QUESTIONS["a consolidation"]
    body = wire.codec.assemble(events_of(streamed(wire, question), REPLIES[name]))
    assert body is not None
    assert wire.codec.decode(body) == wire.codec.decode(body_of(streamed(wire, question), REPLIES[name])) or (
        name == "calls" and wire.codec.decode(body).calls[1].arguments == "{not json"
    )


@pytest.mark.parametrize("name", REPLIES)
def test_a_stream_that_ends_anywhere_before_its_end_is_no_answer(wire: Wire, name: str) -> None:
    events = events_of(streamed(wire, QUESTIONS["a consolidation"]), REPLIES[name])
    last = max(place for place, event in enumerate(events) if '_reason": "' in json.dumps(event) or place == 0)
    whole = last if wire is not WIRES["responses"] else len(events) - 1
    assert [wire.codec.assemble(events[:count]) for count in range(whole)] == [None] * whole


@pytest.mark.parametrize("name", REPLIES)
def test_every_answer_goes_back_in_a_form_that_the_vendors_types_know(wire: Wire, name: str) -> None:
    first = QUESTIONS["a consolidation"]
    answer = answered(wire, REPLIES[name], first)
    results = ToolTurn(tuple(ToolResult(call.call_id, "error: no") for call in answer.calls))
    assert_speaks(
        wire, wire.codec.encode(a_question(turns=(*first.turns, answer.as_turn(), results)), Structure.PROMPT)
    )


@pytest.mark.parametrize(
    ("reply", "text", "stop"),
    [
        (Reply("hello"), "hello", Stop.COMPLETE),
        (Reply("", (Call("finish"),)), "", Stop.TOOL_CALLS),
        (Reply("half", stop="length"), "half", Stop.LENGTH),
        (Reply("", stop="content_filter"), "", Stop.REFUSAL),
        (Reply("so", refusal="I cannot"), "I cannot", Stop.REFUSAL),
        (Reply(), "", Stop.COMPLETE),
    ],
)
def test_all_formats_say_the_same(wire: Wire, reply: Reply, text: str, stop: Stop) -> None:
    answer = answered(wire, reply)
    if wire is WIRES["messages"] and reply.refusal:
        text = reply.text  # what was said before a refusal stays beside it
    assert (answer.text, answer.stop, answer.model) == (text, stop, "m")


def test_calls_and_usage_arrive(wire: Wire) -> None:
    answer = answered(
        wire, Reply(calls=(Call("read_file", {"path": "ä"}), Call("finish", "{")), tokens=(7, 5), cached=3)
    )
    broken = "{}" if wire is WIRES["messages"] else "{"  # where inputs are objects, only a stream can break one
    assert answer.calls == (ToolCall("call_1_1", "read_file", '{"path": "ä"}'), ToolCall("call_1_2", "finish", broken))
    assert answer.usage == Usage(input=7, output=5, cached=3)


def usage_of(wire: Wire, tokens_in: object, tokens_out: object) -> Usage | None:
    body = body_of(asked(wire, QUESTIONS["stage 1"]), Reply("so"))
    return wire.codec.usage(body | {"usage": dict(zip(wire.counts, (tokens_in, tokens_out), strict=True))})


@pytest.mark.parametrize("tokens", [(0, 0), (-7, -5), ("many", []), (0, 9)])
def test_usage_without_any_input_is_none(wire: Wire, tokens: tuple[object, object]) -> None:
    """I9: servers that do not count send zeros; the estimate goes on counting then."""
    assert usage_of(wire, *tokens) is None


@pytest.mark.parametrize("tokens", [(10**30, 2**63), (1e300, 1e300)])
def test_counts_beyond_all_measure_are_kept_within_what_can_be_summed(wire: Wire, tokens: tuple[float, float]) -> None:
    assert usage_of(wire, *tokens) == Usage(input=1_000_000_000, output=1_000_000_000)


def test_the_server_tells_stage_1_from_a_consolidation_and_reads_the_conversation_back(wire: Wire) -> None:
    assert asked(wire, QUESTIONS["stage 1"]).kind == STAGE1
    consolidation = asked(wire, QUESTIONS["a consolidation"])
    assert consolidation.kind == CONSOLIDATION
    assert (consolidation.instructions, consolidation.user_texts) == ("Be brief.", ["go", "go on"])
    assert [(each.name, each.arguments, each.output) for each in consolidation.exchanges] == [
        ("list_files", {"path": ""}, "MEMORY.md"),
        ("read_file", {}, "error: no such file"),
        ("finish", {"summary": "done"}, "rejected\nno v1"),
    ]


def test_a_long_conversation_is_replayed_in_order(wire: Wire) -> None:
    """Each answer of the server goes back with the results of its calls, and the server finds all of them again."""
    turns: tuple[Any, ...] = (UserTurn("go"),)
    for number in range(1, 4):
        question = a_question(tools=tool_specs(), effort="low", turns=turns)
        body = body_of(asked(wire, question, number), Reply("hm", (Call("read_file", {"n": number}),)))
        answer = wire.codec.decode(body)
        results = ToolTurn(tuple(ToolResult(call.call_id, f"page {number}") for call in answer.calls))
        turns = (*turns, answer.as_turn(), results)
    last = asked(wire, a_question(tools=tool_specs(), effort="low", turns=turns), 4)
    assert [(each.arguments["n"], each.output) for each in last.exchanges] == [(n, f"page {n}") for n in (1, 2, 3)]


@pytest.mark.parametrize(
    "damage",
    [
        lambda _body: {},
        lambda _body: {"choices": [], "output": None, "content": None},
        lambda _body: {"output": 3, "content": {"type": "text"}, "choices": "no"},
    ],
)
def test_no_damaged_body_breaks_a_codec_other_than_as_malformed(wire: Wire, damage: Callable[[Any], Any]) -> None:
    with pytest.raises(MalformedReply):
        wire.codec.decode(damage(body_of(asked(wire, QUESTIONS["bare"]), Reply("x"))))


def test_the_error_of_the_scripted_server_has_the_vendors_keys() -> None:
    assert set(Status(400).body["error"]) == {"message", "type", "param", "code"}
