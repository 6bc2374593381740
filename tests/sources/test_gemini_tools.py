"""Tool calls in Gemini form as a person reads them."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from memoryd.sources.gemini_tools import (
    MAX_OPEN_CALLS,
    OpenCalls,
    call_item,
    is_external,
    parse_call,
    response_item,
    shell_output,
)
from memoryd.sources.items import Item, ItemKind
from memoryd.sources.parts import Spot

SPOT = Spot(1, 2.0, "/x")
SHELL = "run_shell_command"


def raw(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))


def called(tool: str, arguments: Any = None, calls: OpenCalls | None = None) -> Item:
    call = parse_call(raw({"id": "c", "name": tool, "args": arguments}))
    if calls is not None:
        calls.open(call)
    return call_item(call, SPOT)


def answered(tool: str, response: Any, calls: OpenCalls | None = None) -> tuple[Item | None, str | None]:
    part = raw({"id": "c", "name": tool, "response": response})
    return response_item(part, SPOT, calls or OpenCalls())


def output(tool: str, response: Any) -> tuple[str, int | None] | None:
    item, _ = answered(tool, response)
    return None if item is None else (item.text, item.exit_code)


def test_a_shell_call_is_its_command_line() -> None:
    item = called(SHELL, {"command": "git diff | head", "description": "look"})
    assert (item.text, item.tool, item.call_id) == ("git diff | head", SHELL, "c")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"file_path": "a.py", "limit": 5}, 'read_file {"file_path":"a.py","limit":5}'),
        ({}, "read_file"),
        (None, "read_file"),
        ([1], "read_file"),
    ],
)
def test_any_other_call_is_its_name_and_arguments(arguments: Any, text: str) -> None:
    assert called("read_file", arguments).text == text


def test_a_shell_call_without_a_command_is_its_name() -> None:
    assert [called(SHELL, arguments).text for arguments in ({}, {"command": ""})] == [SHELL, SHELL]


def test_a_call_without_a_name_is_a_tool() -> None:
    assert call_item(parse_call(raw({})), SPOT).text == "tool"


@pytest.mark.parametrize(
    ("tool", "external"),
    [
        ("google_web_search", True),
        ("web_fetch", True),
        ("web_search", True),
        ("tool_search", True),
        ("mcp__github__list_issues", True),
        ("mcp_github_list_issues", True),
        ("github__list_issues", True),
        (SHELL, False),
        ("read_file", False),
        ("save_memory", False),
    ],
)
def test_words_from_outside_the_machine_are_external(tool: str, external: bool) -> None:
    assert is_external(tool) is external
    item, _ = answered(tool, {"output": "x"})
    assert item is not None
    assert (called(tool).external, item.external) == (external, external)


REJECTED = "Command rejected because it could not be parsed safely"
BACKGROUND = "Command moved to background (PID: 7). Output hidden."
GROUP = "\nProcess Group PGID: 7"
OLDER = (
    "Command: if x\nthen y\nDirectory: src\nStdout: a\nStderr: (empty)\nError: (none)\nExit Code: 127\nSignal: (none)"
)
QWEN = "Command: ls\nDirectory: (root)\nOutput: a\nError: (none)\nExit Code: 0\nSignal: (none)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Output: ok{GROUP}", ("ok", 0)),
        (f"Output: a\nb\nExit Code: 1{GROUP}", ("a\nb", 1)),
        (f"Output: (empty){GROUP}", ("", 0)),
        (f"Output: (empty)\nExit Code: 2{GROUP}", ("", 2)),
        (f"Output: x\nSignal: 9{GROUP}", ("x", None)),
        (f"Output: x\nError: spawn failed{GROUP}", ("x\nError: spawn failed", None)),
        (f"Output: x\nBackground PIDs: 4, 5{GROUP}", ("x", 0)),
        (f"{QWEN}{GROUP}", ("a", 0)),
        (f"{OLDER}\nBackground PIDs: (none){GROUP}", ("a", 127)),
        ("Output: x\nExit Code: (none)\nSignal: 15", ("x", None)),
        (f"Output: the log says\nExit Code: 5\nand goes on{GROUP}", ("the log says\nExit Code: 5\nand goes on", 0)),
        (REJECTED, (REJECTED, None)),
        (BACKGROUND, (BACKGROUND, None)),
        ("", ("", None)),
    ],
)
def test_what_a_command_printed_is_told_without_the_programs_wrapping(
    text: str, expected: tuple[str, int | None]
) -> None:
    assert shell_output(text) == expected


def test_an_untrusted_output_is_unwrapped() -> None:
    wrapped = "<untrusted_context>\nOutput: ok\nProcess Group PGID: 7\n</untrusted_context>"
    assert output(SHELL, {"output": wrapped}) == ("ok", 0)
    assert output("web_fetch", {"output": "<untrusted_context>\npage\n</untrusted_context>"}) == ("page", None)


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ({"output": "fine"}, "fine"),
        ({"error": "broken"}, "broken"),
        ({"output": {"a": 1}}, '{"a":1}'),
        ({"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}, "one\ntwo"),
        ({"anything": [1]}, '{"anything":[1]}'),
        ("bare", "bare"),
    ],
)
def test_an_output_is_whatever_the_response_tells(response: Any, text: str) -> None:
    assert output("read_file", response) == (text, None)


@pytest.mark.parametrize("response", [None, {}, {"output": ""}, {"output": " \n"}, 7])
def test_an_output_that_says_nothing_is_none(response: Any) -> None:
    assert output("read_file", response) is None


def test_a_command_that_printed_nothing_still_has_its_exit_code() -> None:
    assert output(SHELL, {"output": "Output: (empty)\nProcess Group PGID: 7"}) == ("", 0)


def test_what_the_record_says_of_an_exit_code_counts_more_than_the_text() -> None:
    part = raw({"name": SHELL, "response": {"output": "cut off"}})
    item, _ = response_item(part, SPOT, OpenCalls(), 3)
    assert item is not None
    assert item.exit_code == 3


def test_the_text_of_a_skill_is_dropped() -> None:
    assert answered("activate_skill", {"output": "<activated_skill>how to</activated_skill>"}) == (None, "skill")


def test_an_output_is_told_once() -> None:
    calls = OpenCalls()
    assert answered("read_file", {"output": "a"}, calls)[0] is not None
    assert answered("read_file", {"output": "a"}, calls) == (None, None)


def test_an_output_is_that_of_its_call() -> None:
    calls = OpenCalls()
    called("google_web_search", {"query": "x"}, calls)
    item, _ = answered("something", {"output": "a"}, calls)
    assert item is not None
    assert (item.tool, item.external) == ("google_web_search", True)


def test_outputs_without_an_id_are_all_told() -> None:
    calls = OpenCalls()
    for _ in range(2):
        item, _ = response_item(raw({"name": "a", "response": {"output": "b"}}), SPOT, calls)
        assert item is not None


# questions to the person


@pytest.mark.parametrize("answers", [{"0": "Postgres"}, {"0": ["Postgres"]}])
def test_an_answer_to_a_question_is_the_human_speaking(answers: Any) -> None:
    calls = OpenCalls()
    called("ask_user", {"questions": [{"question": "Which store?", "header": "Store"}]}, calls)
    item, _ = answered("ask_user", {"output": msgspec.json.encode({"answers": answers}).decode()}, calls)
    assert item is not None
    assert (item.kind, item.text) == (ItemKind.HUMAN, "Asked: Which store?\nAnswered: Postgres")


def test_an_answer_without_its_question_stands_alone() -> None:
    item, _ = answered("ask_user", {"output": '{"answers": {"9": "yes", "x": "no"}}'})
    assert item is not None
    assert (item.kind, item.text) == (ItemKind.HUMAN, "yes\nno")


def test_an_answer_may_come_as_prose() -> None:
    item, _ = answered(
        "ask_user_question", {"output": "User has provided the following answers:\n\n**Store**: Postgres"}
    )
    assert item is not None
    assert (item.kind, item.text) == (ItemKind.HUMAN, "**Store**: Postgres")


def test_a_question_that_was_dismissed_is_answered_by_nobody() -> None:
    item, _ = answered("ask_user", {"output": "User dismissed ask_user dialog without answering."})
    assert item is not None
    assert item.kind is ItemKind.TOOL_OUTPUT


# bounds


def test_the_oldest_calls_are_forgotten() -> None:
    calls = OpenCalls()
    for number in range(MAX_OPEN_CALLS + 1):
        assert calls.open(parse_call(raw({"id": f"{number}", "name": "a"})))
        assert calls.answer(f"{number}")
    assert calls.find("0") is None
    assert calls.find(f"{MAX_OPEN_CALLS}") is not None
    assert (calls.answer("0"), calls.answer(f"{MAX_OPEN_CALLS}")) == (True, False)
