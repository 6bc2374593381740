"""The Messages codec: what is particular to its wire format (the common contract is in tests/contracts)."""

from typing import Any

import pytest

from memoryd.errors import ContextOverflow
from memoryd.llm.anthropic import CACHED, REQUIRED_OUTPUT_TOKENS, Anthropic
from memoryd.llm.codec import Structure
from memoryd.llm.question import ModelTurn, Stop, ToolCall, ToolResult, ToolTurn, Turn, Usage, UserTurn
from tests.llm.asking import SCHEMA, TOOL, a_question

CODEC = Anthropic()
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "signed"}
HIDDEN = {"type": "redacted_thinking", "data": "abc"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "list_files", "input": {"path": "ä"}}


def reply(*blocks: dict[str, Any], stop_reason: str | None = "end_turn", **fields: Any) -> dict[str, Any]:
    return {"model": "m-2", "content": list(blocks), "stop_reason": stop_reason, **fields}


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def messages(*turns: Any, **fields: Any) -> Any:
    return CODEC.encode(a_question(*turns, **fields), Structure.JSON_SCHEMA)["messages"]


def test_a_question_is_a_system_text_and_its_turns() -> None:
    body = CODEC.encode(a_question(schema=SCHEMA, effort="low", max_output_tokens=9), Structure.JSON_SCHEMA)
    assert body == {
        "model": "m-1",
        "max_tokens": 9,
        "system": [said("Read the session.")],
        "messages": [{"role": "user", "content": [said("what did it teach?")]}],
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA.schema}},
    }


def test_the_limit_that_the_format_demands_is_there_without_one_of_the_questions_own() -> None:
    body = CODEC.encode(a_question(), Structure.JSON_SCHEMA)
    assert set(body) == {"model", "max_tokens", "messages", "system"}
    assert body["max_tokens"] == REQUIRED_OUTPUT_TOKENS


def test_the_lowest_rung_has_the_schema_in_words() -> None:
    body: Any = CODEC.encode(a_question(schema=SCHEMA), Structure.PROMPT)
    assert "output_config" not in body
    assert '"additionalProperties":false' in body["system"][0]["text"]


@pytest.mark.parametrize(
    ("effort", "sent"), [("minimal", "low"), ("none", "low"), ("medium", "medium"), ("max", "max")]
)
def test_words_for_effort_that_the_format_does_not_know_become_its_lowest(effort: str, sent: str) -> None:
    assert CODEC.encode(a_question(effort=effort), Structure.PROMPT)["output_config"] == {"effort": sent}


def test_the_key_goes_in_a_header_of_its_own_beside_the_version() -> None:
    assert CODEC.headers("k") == {"anthropic-version": "2023-06-01", "x-api-key": "k"}
    assert CODEC.headers(None) == {"anthropic-version": "2023-06-01"}


@pytest.mark.parametrize(
    ("body", "stop"),
    [
        (reply(said("x")), Stop.COMPLETE),
        (reply(said("x"), stop_reason="stop_sequence"), Stop.COMPLETE),
        (reply(said("x"), stop_reason=None), Stop.COMPLETE),
        (reply(said("x"), stop_reason="max_tokens"), Stop.LENGTH),
        (reply(said("x"), stop_reason="pause_turn"), Stop.LENGTH),
        (reply(USE, stop_reason="tool_use"), Stop.TOOL_CALLS),
        (reply(USE), Stop.TOOL_CALLS),
        (reply(USE, stop_reason="max_tokens"), Stop.LENGTH),
        (reply(stop_reason="refusal"), Stop.REFUSAL),
        (reply(said("x"), stop_reason="a reason of next year"), Stop.COMPLETE),
    ],
)
def test_every_reason_to_stop_is_known(body: dict[str, Any], stop: Stop) -> None:
    assert CODEC.decode(body).stop is stop


def test_a_full_window_is_an_overflow() -> None:
    with pytest.raises(ContextOverflow):
        CODEC.decode(reply(said("x"), stop_reason="model_context_window_exceeded"))


def test_a_refusal_says_why_where_the_server_does() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "I cannot"}
    assert CODEC.decode(reply(stop_reason="refusal", stop_details=details)).text == "I cannot"


def test_thoughts_are_no_part_of_the_text_and_parallel_calls_keep_their_order() -> None:
    second = {**USE, "id": "toolu_2", "name": "finish", "input": {}}
    answer = CODEC.decode(reply(THOUGHT, said("a"), USE, said("b"), second, stop_reason="tool_use"))
    assert answer.text == "ab"
    assert answer.calls == (
        ToolCall("toolu_1", "list_files", '{"path": "ä"}'),
        ToolCall("toolu_2", "finish", "{}"),
    )


def test_an_answer_goes_back_unchanged_with_the_signatures_of_its_thoughts() -> None:
    blocks = (THOUGHT, HIDDEN, {**said("on it"), "citations": None}, USE, {"type": "a_block_of_next_year", "x": 1})
    answer = CODEC.decode(reply(*blocks, stop_reason="tool_use"))
    results = ToolTurn((ToolResult("toolu_1", "MEMORY.md"),))
    sent = messages(UserTurn("go"), answer.as_turn(), results)
    assert sent[1:] == [
        {"role": "assistant", "content": list(blocks)},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "MEMORY.md"}],
        },
    ]


@pytest.mark.parametrize("blocks", [(), (said(""),), (THOUGHT,), (said(" \n"), THOUGHT, HIDDEN)])
def test_an_answer_that_said_nothing_leaves_no_message(blocks: tuple[Any, ...]) -> None:
    answer = CODEC.decode(reply(*blocks, stop_reason="max_tokens"))
    assert [each["role"] for each in messages(UserTurn("go"), answer.as_turn(), UserTurn("go on"))] == ["user", "user"]


def test_a_call_whose_input_broke_is_refused_by_its_reader_and_goes_back_as_an_object() -> None:
    answer = CODEC.decode(reply({**USE, "input": '{"path": "x'}, stop_reason="max_tokens"))
    assert answer.calls[0].arguments == '{"path": "x'
    assert messages(UserTurn("go"), answer.as_turn())[1]["content"] == [{**USE, "input": {}}]


def test_a_turn_without_wire_items_goes_back_as_text_and_calls() -> None:
    turn = ModelTurn("before", (ToolCall("c", "f", '{"a": 1}'), ToolCall("d", "f", "{broken")))
    assert messages(UserTurn("go"), turn)[1]["content"] == [
        said("before"),
        {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}},
        {"type": "tool_use", "id": "d", "name": "f", "input": {}},
    ]


def test_a_blank_text_is_sent_as_a_visible_one() -> None:
    assert messages(UserTurn(" "))[0]["content"] == [said("(nothing)")]


def test_a_conversation_with_tools_marks_what_may_be_cached() -> None:
    """Nothing is cached here unless asked for, and a consolidation sends its conversation with each request."""
    turns: list[Turn] = [UserTurn("one"), ModelTurn("a"), UserTurn("two"), ModelTurn("b"), UserTurn("three")]
    body: Any = CODEC.encode(a_question(*turns, tools=(TOOL,)), Structure.PROMPT)
    assert body["system"][0]["cache_control"] == CACHED
    assert body["tools"] == [{"name": TOOL.name, "description": TOOL.description, "input_schema": TOOL.parameters}]
    marked = [each["content"][0]["text"] for each in body["messages"] if "cache_control" in each["content"][-1]]
    assert marked == ["two", "three"]


def test_usage_counts_what_was_read_from_a_cache_and_written_to_it_as_input() -> None:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 30,
        "output_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 5},
    }
    assert CODEC.usage(reply(usage=usage)) == Usage(input=100, output=20, cached=60, reasoning=5, written=30)
