"""The chat completions codec: what is particular to its wire format (the common contract is in tests/contracts)."""

from typing import Any

import pytest

from memoryd.errors import MalformedReply
from memoryd.llm.codec import Structure
from memoryd.llm.openai_chat import OpenAIChat
from memoryd.llm.question import ModelTurn, Stop, ToolCall, ToolResult, ToolTurn, Usage, UserTurn
from tests.llm.asking import SCHEMA, TOOL, a_question

CODEC = OpenAIChat()
CALL: dict[str, Any] = {"id": "call_1", "type": "function", "function": {"name": "list_files", "arguments": "{}"}}


def reply(message: dict[str, Any] | None, finish_reason: str | None = "stop", **fields: Any) -> dict[str, Any]:
    return {"model": "m-2", "choices": [{"message": message, "finish_reason": finish_reason}], **fields}


def test_a_question_is_a_system_message_and_its_turns() -> None:
    body = CODEC.encode(a_question(schema=SCHEMA, effort="low", max_output_tokens=9), Structure.JSON_SCHEMA)
    assert body == {
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "Read the session."},
            {"role": "user", "content": "what did it teach?"},
        ],
        "reasoning_effort": "low",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "stage1", "strict": True, "schema": SCHEMA.schema},
        },
        "max_tokens": 9,
    }


def test_nothing_is_said_of_what_was_not_asked_for() -> None:
    assert set(CODEC.encode(a_question(), Structure.JSON_SCHEMA)) == {"model", "messages"}


def test_each_rung_asks_for_less() -> None:
    question = a_question(schema=SCHEMA)
    formats = [CODEC.encode(question, rung).get("response_format") for rung in CODEC.ladder[1:]]
    assert formats == [{"type": "json_object", "schema": SCHEMA.schema}, {"type": "json_object"}, None]


def test_tools_are_strict_functions() -> None:
    function = {"name": "list_files", "description": TOOL.description, "parameters": TOOL.parameters, "strict": True}
    body = CODEC.encode(a_question(tools=(TOOL,)), Structure.JSON_SCHEMA)
    assert body["tools"] == [{"type": "function", "function": function}]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "plain"}, "plain"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}, "ab"),
        ({"content": None}, ""),
        ({"role": "assistant"}, ""),
        ({"content": "<think>hm {}</think>\n\nplain"}, "plain"),
        ({"content": "\n<think>never ended"}, "\n<think>never ended"),
        ({"content": "a <think>b</think>"}, "a <think>b</think>"),
    ],
)
def test_content_is_read_in_every_form(message: dict[str, Any], text: str) -> None:
    answer = CODEC.decode(reply(message))
    assert (answer.text, answer.stop, answer.model) == (text, Stop.COMPLETE, "m-2")


@pytest.mark.parametrize(
    ("message", "finish_reason", "stop"),
    [
        ({"content": "x"}, "length", Stop.LENGTH),
        ({"content": "x"}, "content_filter", Stop.REFUSAL),
        ({"content": "x"}, None, Stop.COMPLETE),
        ({"content": None, "refusal": "I cannot"}, "stop", Stop.REFUSAL),
        ({"content": [{"type": "refusal", "refusal": "I cannot"}]}, "stop", Stop.REFUSAL),
        ({"content": None, "tool_calls": [CALL]}, "tool_calls", Stop.TOOL_CALLS),
        ({"content": "x", "tool_calls": [CALL]}, "stop", Stop.TOOL_CALLS),
        ({"content": None, "tool_calls": [CALL]}, "length", Stop.LENGTH),
        ({"content": "x", "tool_calls": None}, "tool_calls", Stop.COMPLETE),
    ],
)
def test_the_reason_for_stopping_is_what_came_not_what_was_claimed(
    message: dict[str, Any], finish_reason: str | None, stop: Stop
) -> None:
    assert CODEC.decode(reply(message, finish_reason)).stop is stop


def test_calls_without_ids_get_their_place_and_arguments_become_text() -> None:
    calls = [{"function": {"name": "a", "arguments": {"n": 1}}}, {"id": "", "function": {"name": "b"}}, {"id": "x"}]
    answer = CODEC.decode(reply({"content": "", "tool_calls": calls}))
    assert answer.calls == (ToolCall("call_1", "a", '{"n": 1}'), ToolCall("call_2", "b", ""))


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": None}, {"choices": ["x"]}, reply(None), reply({})])
def test_what_holds_no_message_is_malformed(body: dict[str, Any]) -> None:
    with pytest.raises(MalformedReply):
        CODEC.decode(body)


def test_usage_is_read_with_its_details() -> None:
    usage = {
        "prompt_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens": 30,
        "completion_tokens_details": {"reasoning_tokens": 10},
    }
    assert CODEC.usage(reply({}, usage=usage)) == Usage(100, 30, 60, 10)


@pytest.mark.parametrize("count", [-1, "many", None, True, float("nan"), float("inf")])
def test_a_count_that_is_none_is_zero(count: Any) -> None:
    assert CODEC.usage(reply({}, usage={"prompt_tokens": 5, "completion_tokens": count})) == Usage(5, 0)


def messages(*turns: Any) -> Any:
    sent: Any = CODEC.encode(a_question(UserTurn("go"), *turns), Structure.PROMPT)["messages"]
    return sent[2:]


def test_an_answer_goes_back_with_its_calls_and_their_results() -> None:
    answer = CODEC.decode(reply({"role": "assistant", "content": None, "tool_calls": [CALL], "annotations": []}))
    assert messages(answer.as_turn(), ToolTurn((ToolResult("call_1", "MEMORY.md"),))) == [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "MEMORY.md"},
    ]


def test_reasoning_goes_back_only_beside_calls() -> None:
    thought = {"reasoning_content": "hm"}
    assert messages(CODEC.decode(reply({"content": "x", **thought})).as_turn()) == [
        {"role": "assistant", "content": "x"}
    ]
    (with_calls,) = messages(CODEC.decode(reply({"content": "x", "tool_calls": [CALL], **thought})).as_turn())
    assert with_calls["reasoning_content"] == "hm"


def test_a_turn_without_wire_items_goes_back_as_a_message() -> None:
    assert messages(ModelTurn("before"), ModelTurn(calls=(ToolCall("c", "f", "{}"),))) == [
        {"role": "assistant", "content": "before"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
    ]
