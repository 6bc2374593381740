"""The Responses codec: what is particular to its wire format (the common contract is in tests/contracts)."""

from typing import Any

import pytest

from memoryd.errors import MalformedReply
from memoryd.llm.codec import Structure
from memoryd.llm.openai_responses import OpenAIResponses
from memoryd.llm.question import ModelTurn, Stop, ToolCall, ToolResult, ToolTurn, Usage, UserTurn
from tests.llm.asking import SCHEMA, TOOL, a_question

CODEC = OpenAIResponses()


def message(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": list(parts),
        **fields,
    }


def said(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [{"type": "url_citation"}], "logprobs": []}


def reply(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"status": "completed", "model": "m-1-2026", "output": list(output), **fields}


REASONING: dict[str, Any] = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "encrypted_content": "sealed",
    "status": None,
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "list_files",
    "arguments": "{}",
    "status": "completed",
}


def test_a_question_is_stateless_and_asks_for_its_schema_and_sealed_reasoning() -> None:
    body = CODEC.encode(a_question(schema=SCHEMA, effort="low", max_output_tokens=9), Structure.JSON_SCHEMA)
    assert body == {
        "model": "m-1",
        "instructions": "Read the session.",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "what did it teach?"}]}
        ],
        "store": False,
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content"],
        "text": {"format": {"type": "json_schema", "name": "stage1", "strict": True, "schema": SCHEMA.schema}},
        "max_output_tokens": 9,
    }


def test_nothing_is_said_of_what_was_not_asked_for() -> None:
    assert set(CODEC.encode(a_question(), Structure.JSON_SCHEMA)) == {"model", "instructions", "input", "store"}


def test_the_lower_rungs_ask_for_any_object_or_for_nothing() -> None:
    question = a_question(schema=SCHEMA)
    assert CODEC.encode(question, Structure.JSON_OBJECT)["text"] == {"format": {"type": "json_object"}}
    assert "text" not in CODEC.encode(question, Structure.PROMPT)


def test_tools_are_strict_functions() -> None:
    expected = {
        "type": "function",
        "name": "list_files",
        "description": TOOL.description,
        "parameters": TOOL.parameters,
        "strict": True,
    }
    assert CODEC.encode(a_question(tools=(TOOL,)), Structure.JSON_SCHEMA)["tools"] == [expected]


def test_an_answer_joins_the_parts_of_all_messages_and_ignores_unknown_items() -> None:
    unknown: dict[str, Any] = {"type": "hologram", "content": [{"type": "output_text", "text": "no"}]}
    body = reply(REASONING, message(said("a"), {"type": "sound"}, said("b")), unknown, message(said("c")))
    answer = CODEC.decode(body)
    assert (answer.text, answer.stop, answer.calls, answer.model) == ("abc", Stop.COMPLETE, (), "m-1-2026")
    assert answer.raw == tuple(body["output"])


def test_calls_are_read_with_text_beside_them() -> None:
    answer = CODEC.decode(reply(message(said("looking")), CALL))
    assert (answer.text, answer.stop) == ("looking", Stop.TOOL_CALLS)
    assert answer.calls == (ToolCall("call_1", "list_files", "{}"),)


def test_arguments_that_came_as_an_object_become_text() -> None:
    (call,) = CODEC.decode(reply({**CALL, "arguments": {"path": "ä"}})).calls
    assert call.arguments == '{"path": "ä"}'


def test_a_call_without_a_call_id_goes_by_its_own_id() -> None:
    (call,) = CODEC.decode(reply({**CALL, "call_id": None})).calls
    assert call.call_id == "fc_1"


@pytest.mark.parametrize(
    ("fields", "stop"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, Stop.LENGTH),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, Stop.REFUSAL),
        ({"status": "incomplete", "incomplete_details": None}, Stop.LENGTH),
        ({"status": None}, Stop.COMPLETE),
    ],
)
def test_an_unfinished_answer_says_why(fields: dict[str, Any], stop: Stop) -> None:
    assert CODEC.decode(reply(message(said("half")), **fields)).stop is stop


def test_a_refusal_is_the_text_of_a_refused_answer() -> None:
    answer = CODEC.decode(reply(message({"type": "refusal", "refusal": "I cannot"})))
    assert (answer.text, answer.stop) == ("I cannot", Stop.REFUSAL)


def test_an_empty_output_is_an_empty_answer() -> None:
    answer = CODEC.decode(reply())
    assert (answer.text, answer.stop, answer.raw) == ("", Stop.COMPLETE, ())


@pytest.mark.parametrize(
    "body", [{}, {"output": None}, {"output": "text"}, reply(status="failed"), reply(status="in_progress")]
)
def test_what_holds_no_answer_is_malformed(body: dict[str, Any]) -> None:
    with pytest.raises(MalformedReply):
        CODEC.decode(body)


def test_usage_is_read_with_its_details() -> None:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60},
        "output_tokens": 30,
        "output_tokens_details": {"reasoning_tokens": 10},
    }
    assert CODEC.usage(reply(usage=usage)) == Usage(100, 30, 60, 10)


def test_without_usage_there_is_none_and_the_answer_says_that_it_is_not_measured() -> None:
    assert CODEC.usage(reply()) is None
    assert CODEC.decode(reply()).usage == Usage(measured=False)


def inputs(*turns: Any) -> Any:
    return CODEC.encode(a_question(UserTurn("go"), *turns), Structure.PROMPT)["input"]


def test_an_answer_goes_back_with_its_sealed_reasoning_and_no_field_that_an_input_may_not_have() -> None:
    answer = CODEC.decode(reply(REASONING, message(said("hm"), phase="commentary"), CALL))
    assert inputs(answer.as_turn(), ToolTurn((ToolResult("call_1", "MEMORY.md"),)))[1:] == [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
        {
            "type": "message",
            "id": "msg_1",
            "phase": "commentary",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "hm", "annotations": []}],
        },
        {"type": "function_call", "call_id": "call_1", "name": "list_files", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "MEMORY.md"},
    ]


def test_reasoning_that_is_not_sealed_and_what_hangs_on_it_goes_back_as_plain_text_and_calls() -> None:
    answer = CODEC.decode(reply({"type": "reasoning", "id": "rs_1", "summary": []}, message(said("hm")), CALL))
    assert inputs(answer.as_turn())[1:] == [
        {"type": "message", "role": "assistant", "content": "hm"},
        {"type": "function_call", "call_id": "call_1", "name": "list_files", "arguments": "{}"},
    ]


def test_a_turn_without_wire_items_goes_back_as_plain_text() -> None:
    assert inputs(ModelTurn("before"))[1:] == [{"type": "message", "role": "assistant", "content": "before"}]


def test_unknown_items_and_parts_are_not_sent_back() -> None:
    turn = ModelTurn(raw=({"type": "hologram"}, message({"type": "sound"}, {"type": "refusal", "refusal": "no"})))
    (item,) = inputs(turn)[1:]
    assert item["content"] == [{"type": "refusal", "refusal": "no"}]


def test_a_summary_of_the_reasoning_goes_back_with_it() -> None:
    item = {**REASONING, "summary": [{"type": "summary_text", "text": "thought", "extra": 1}]}
    assert inputs(ModelTurn(raw=(item,)))[1]["summary"] == [{"type": "summary_text", "text": "thought"}]
