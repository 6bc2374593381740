"""Tool calls read as a person would type them, and outputs come without their wrapping."""

import json
from typing import Any

import pytest

from memoryd.sources.codex_tools import (
    MAX_OPEN_CALLS,
    Call,
    OpenCalls,
    call_item,
    output_item,
    tool_search_output_item,
)
from memoryd.sources.items import Item, ItemKind
from memoryd.sources.parts import Spot
from memoryd.sources.rawjson import as_fields

SPOT = Spot(7, 50.0, "/home/dev/shop")


def called(calls: OpenCalls | None = None, **fields: Any) -> Item:
    return call_item(as_fields(json.dumps(fields).encode()), SPOT, calls or OpenCalls())


def answered(output: Any, calls: OpenCalls | None = None, call_id: str = "c1") -> Item | None:
    payload = {"type": "function_call_output", "call_id": call_id, "output": output}
    return output_item(as_fields(json.dumps(payload).encode()), SPOT, calls or OpenCalls())[0]


def a_function(name: str, arguments: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "name": name, "arguments": json.dumps(arguments), "call_id": "c1"} | fields


@pytest.mark.parametrize(
    ("call", "tool", "text"),
    [
        (a_function("exec_command", {"cmd": "ls -la | head"}), "exec_command", "ls -la | head"),
        (a_function("shell", {"command": ["bash", "-lc", "cd x && make"]}), "shell", "cd x && make"),
        (a_function("shell", {"command": ["/bin/zsh", "-c", "make"]}), "shell", "make"),
        (a_function("shell", {"command": ["git", "commit", "-m", "two words"]}), "shell", "git commit -m 'two words'"),
        (a_function("shell", {"command": ["bash", "-x", "a.sh"]}), "shell", "bash -x a.sh"),
        (a_function("shell", {"command": []}), "shell", 'shell {"command":[]}'),
        (a_function("shell_command", {"command": "make test"}), "shell_command", "make test"),
        (a_function("apply_patch", {"input": "*** Begin Patch"}), "apply_patch", "*** Begin Patch"),
        (a_function("update_plan", {"plan": [{"step": "a"}]}), "update_plan", 'update_plan {"plan":[{"step":"a"}]}'),
        (
            a_function("spawn_agent", {"message": "look"}, namespace="multi_agent_v1"),
            "multi_agent_v1.spawn_agent",
            'multi_agent_v1.spawn_agent {"message":"look"}',
        ),
        (
            {"type": "function_call", "name": "broken", "arguments": "{not json", "call_id": "c1"},
            "broken",
            "broken {not json",
        ),
        ({"type": "function_call", "name": "odd", "arguments": {"a": 1}, "call_id": "c1"}, "odd", 'odd {"a":1}'),
        ({"type": "function_call", "call_id": "c1"}, "function", "function"),
        (
            {"type": "local_shell_call", "call_id": "c1", "action": {"type": "exec", "command": ["ls", "-l"]}},
            "local_shell",
            "ls -l",
        ),
        ({"type": "local_shell_call", "call_id": "c1"}, "local_shell", ""),
        (
            {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin Patch\n+x"},
            "apply_patch",
            "*** Begin Patch\n+x",
        ),
        ({"type": "custom_tool_call", "call_id": "c1", "name": "js", "input": "1 + 1"}, "js", "js 1 + 1"),
        ({"type": "custom_tool_call", "call_id": "c1", "input": {"a": 1}}, "custom", 'custom {"a":1}'),
    ],
)
def test_a_local_call_reads_as_typed(call: dict[str, Any], tool: str, text: str) -> None:
    expected = Item(ItemKind.TOOL_CALL, text, 7, 50.0, "/home/dev/shop", tool=tool, call_id="c1")
    assert called(**call) == expected


@pytest.mark.parametrize(
    ("call", "tool", "text"),
    [
        ({"type": "web_search_call", "action": {"type": "search", "query": "uv lock"}}, "web_search", "uv lock"),
        (
            {"type": "web_search_call", "action": {"type": "find_in_page", "url": "https://a.b", "pattern": "x"}},
            "web_search",
            "https://a.b x",
        ),
        ({"type": "web_search_call", "action": {"type": "other"}}, "web_search", '{"type":"other"}'),
        ({"type": "tool_search_call", "arguments": {"query": "mail"}}, "tool_search", '{"query":"mail"}'),
        ({"type": "tool_search_call", "arguments": "mail"}, "tool_search", "mail"),
        (
            a_function("mcp__docs__search", {"cmd": "not a shell"}),
            "mcp__docs__search",
            'mcp__docs__search {"cmd":"not a shell"}',
        ),
        (a_function("search", {"q": 1}, namespace="mcp__docs__"), "mcp__docs__search", 'mcp__docs__search {"q":1}'),
    ],
)
def test_searches_and_mcp_calls_are_external(call: dict[str, Any], tool: str, text: str) -> None:
    item = called(**call)
    assert (item.tool, item.text, item.external) == (tool, text, True)


def test_the_output_of_an_external_call_is_external_and_named() -> None:
    calls = OpenCalls()
    called(calls, **a_function("mcp__docs__search", {}))
    item = answered("found", calls)
    assert item is not None
    assert (item.tool, item.external, item.text) == ("mcp__docs__search", True, "found")


def test_the_tools_that_a_search_found_are_named() -> None:
    payload = {"type": "tool_search_output", "call_id": "c1", "tools": [{"name": "mail"}, {"kind": "x"}]}
    item = tool_search_output_item(as_fields(json.dumps(payload).encode()), SPOT)
    assert (item.kind, item.text, item.external) == (ItemKind.TOOL_OUTPUT, 'mail, {"kind":"x"}', True)


@pytest.mark.parametrize(
    ("output", "text", "exit_code"),
    [
        ('{"output":"AGENTS.md\\n","metadata":{"exit_code":1,"duration_seconds":0.1}}', "AGENTS.md\n", 1),
        ('{"output":"x","metadata":{}}', "x", None),
        ('{"output":"part of a file"}', '{"output":"part of a file"}', None),
        ('{"agent_id":"x"}', '{"agent_id":"x"}', None),
        ("{ not json", "{ not json", None),
        (
            "Chunk ID: 138ae8\nWall time: 0.0 s\nProcess exited with code 0\nOriginal token count: 2\nOutput:\na\n",
            "a\n",
            0,
        ),
        ("Exit code: -1\nWall time: 2 seconds\nTotal output lines: 9\nOutput:\nboom", "boom", -1),
        ("Chunk ID: 1\nProcess running with session ID 7\nOutput:\nwaiting", "waiting", None),
        ("Wall time: 2.8 seconds\naborted by user", "Wall time: 2.8 seconds\naborted by user", None),
        ("Output:\nof a person's program", "Output:\nof a person's program", None),
        ("plain", "plain", None),
        ([{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "x"}], "a", None),
        ({"content": "old form", "success": True}, "old form", None),
    ],
)
def test_an_output_comes_without_its_wrapping(output: Any, text: str, exit_code: int | None) -> None:
    item = answered(output)
    assert item is not None
    assert (item.kind, item.text, item.exit_code) == (ItemKind.TOOL_OUTPUT, text, exit_code)


def test_an_output_that_says_nothing_is_none_but_a_silent_success_is_kept() -> None:
    assert answered("") is None
    assert answered(None) is None
    assert answered([{"type": "input_image", "image_url": "x"}]) is None
    silent = answered('{"output":"","metadata":{"exit_code":0}}')
    assert silent is not None
    assert (silent.text, silent.exit_code) == ("", 0)


def a_question(calls: OpenCalls) -> None:
    called(
        calls,
        **a_function(
            "request_user_input", {"questions": [{"id": "fmt", "question": "Which formatter?", "options": []}]}
        ),
    )


def test_an_answered_question_is_the_human_speaking() -> None:
    calls = OpenCalls()
    a_question(calls)
    item = answered('{"answers":{"fmt":{"answers":["ruff","user_note: never black"]}}}', calls)
    assert item is not None
    assert item.kind is ItemKind.HUMAN
    assert item.text == "Asked: Which formatter?\nAnswered: ruff, user_note: never black"
    assert item.tool == "request_user_input"


def test_an_answer_whose_question_is_unknown_stands_alone() -> None:
    calls = OpenCalls()
    a_question(calls)
    item = answered('{"answers":{"other":"yes","none":{"answers":[]}}}', calls)
    assert item is not None
    assert item.text == "yes"


def test_a_question_that_nobody_answered_is_only_tool_output() -> None:
    calls = OpenCalls()
    a_question(calls)
    for output in ("request_user_input is unavailable", '{"answers":{}}'):
        item = answered(output, calls)
        assert item is not None
        assert item.kind is ItemKind.TOOL_OUTPUT


def test_the_oldest_open_calls_are_forgotten_when_there_are_too_many() -> None:
    calls = OpenCalls()
    for number in range(MAX_OPEN_CALLS + 1):
        calls.open(str(number), Call("shell", external=False, arguments=None))
    calls.open(None, Call("shell", external=False, arguments=None))
    assert calls.answer("0") is None
    assert calls.answer(str(MAX_OPEN_CALLS)) is not None
    assert calls.answer(None) is None
