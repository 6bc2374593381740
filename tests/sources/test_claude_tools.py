"""Tool calls and their results as a person would read them, and the person speaking through a tool."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memoryd.sources.claude_tools import MAX_OPEN_CALLS, OpenCalls, is_external
from memoryd.sources.items import Item, ItemKind
from tests.sources.test_claude_reading import read_rows
from tests.support.claude_sessions import assistant, tool_result, tool_use, user

REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit). "
)


def called(home: Path, name: str, content: Any = "out", *, is_error: bool = False, **fields: Any) -> list[Item]:
    """Read a call of a tool with its result; `arguments` are the call's, other fields the result row's."""
    arguments = fields.pop("arguments", {})
    result = tool_result("c1", content, is_error=is_error, **fields)
    items, reading = read_rows(home, user("x"), assistant(tool_use("c1", name, **arguments)), result)
    assert (reading.unknown, reading.bad_lines) == (Counter(), 0)
    assert all(item.call_id == "c1" and item.tool == name for item in items[1:])
    return items[1:]


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("Bash", {"command": "ls && pwd", "description": "look"}, "ls && pwd"),
        ("PowerShell", {"command": "dir"}, "dir"),
        ("Bash", {}, "Bash {}"),
        ("Read", {"file_path": "/a b.py"}, 'Read {"file_path":"/a b.py"}'),
        ("WebSearch", {"query": "pagination"}, "pagination"),
        ("WebFetch", {"url": "https://a.example", "prompt": "what is it"}, "https://a.example what is it"),
        ("mcp__git__log", {"n": 1}, 'mcp__git__log {"n":1}'),
    ],
)
def test_a_call_reads_as_a_person_would_type_it(
    tmp_path: Path, tool: str, arguments: dict[str, Any], text: str
) -> None:
    call = called(tmp_path, tool, arguments=arguments)[0]
    assert (call.kind, call.text) == (ItemKind.TOOL_CALL, text)


@pytest.mark.parametrize(
    ("content", "is_error", "account", "code", "text"),
    [
        ("ok", False, {"stdout": "ok", "interrupted": False}, 0, "ok"),
        ("", False, {"stdout": ""}, 0, ""),
        ("Exit code 1\nFAILED", True, "Error: Exit code 1\nFAILED", 1, "FAILED"),
        ("Exit code 127", True, "Error: Exit code 127", 127, ""),
        ("FAILED", True, "Error: FAILED", None, "FAILED"),
        ("none", False, {"returnCodeInterpretation": "No matches found"}, None, "none"),
        ("started", False, {"backgroundTaskId": "b1"}, None, "started"),
        ("half", False, {"interrupted": True}, None, "half"),
        ("ok", False, None, 0, "ok"),
    ],
)
def test_a_commands_exit_code_is_told_where_the_format_tells_it(
    tmp_path: Path, content: str, is_error: bool, account: Any, code: int | None, text: str
) -> None:
    output = called(tmp_path, "Bash", content, is_error=is_error, toolUseResult=account)[1]
    assert (output.kind, output.exit_code, output.text) == (ItemKind.TOOL_OUTPUT, code, text)


def test_other_tools_have_no_exit_code(tmp_path: Path) -> None:
    assert called(tmp_path, "Read", "Exit code 1\nx")[1].text == "Exit code 1\nx"
    assert called(tmp_path, "Read", "x")[1].exit_code is None


def test_an_output_that_says_nothing_is_left_out(tmp_path: Path) -> None:
    assert len(called(tmp_path, "Read", "")) == 1
    assert len(called(tmp_path, "Read", [])) == 1


def test_reminders_in_an_output_are_taken_out_and_its_indentation_stays(tmp_path: Path) -> None:
    content = "     1→a\n\n<system-reminder>\nmalware?\n</system-reminder>\n"
    assert called(tmp_path, "Read", content)[1].text == "     1→a"


def test_images_and_documents_in_an_output_are_dropped_and_its_texts_stay(tmp_path: Path) -> None:
    media = [{"type": "image", "source": {"type": "base64", "data": "A" * 1000}}, {"type": "document", "source": {}}]
    result = tool_result("c1", [{"type": "text", "text": "one"}, *media, {"type": "text", "text": "two"}])
    items, reading = read_rows(tmp_path, user("x"), assistant(tool_use("c1", "Read")), result)
    assert items[-1].text == "one\ntwo"
    assert reading.dropped == Counter(image=1, document=1)


@pytest.mark.parametrize(
    ("tool", "external"),
    [
        ("WebSearch", True),
        ("WebFetch", True),
        ("ToolSearch", True),
        ("mcp__x__y", True),
        ("Bash", False),
        ("Task", False),
    ],
)
def test_words_from_outside_the_machine_are_marked(tmp_path: Path, tool: str, external: bool) -> None:
    assert is_external(tool) is external
    assert [item.external for item in called(tmp_path, tool)] == [external, external]


def test_tools_that_run_at_the_server_are_calls_and_outputs_too(tmp_path: Path) -> None:
    call = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "pagination"}}
    pages = [{"type": "web_search_result", "title": "Pages", "url": "https://a.example", "encrypted_content": "A" * 99}]
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": pages}
    items, reading = read_rows(tmp_path, user("x"), assistant(call, result, "Done."))
    assert [(item.kind, item.text, item.external) for item in items[1:3]] == [
        (ItemKind.TOOL_CALL, "pagination", True),
        (ItemKind.TOOL_OUTPUT, "Pages https://a.example", True),
    ]
    assert reading.unknown == Counter()


def test_results_of_parallel_calls_find_their_tools(tmp_path: Path) -> None:
    calls = (tool_use("a", "Read"), tool_use("b", "Grep"))
    results = user([{"type": "tool_result", "tool_use_id": name, "content": name} for name in ("b", "a")])
    items, _ = read_rows(tmp_path, user("x"), assistant(*calls), results)
    assert [(item.tool, item.text) for item in items if item.kind is ItemKind.TOOL_OUTPUT] == [
        ("Grep", "b"),
        ("Read", "a"),
    ]


def test_a_result_without_its_call_has_a_tool_without_a_name(tmp_path: Path) -> None:
    items, _ = read_rows(tmp_path, user("x"), tool_result("gone", "out"))
    assert (items[-1].tool, items[-1].call_id, items[-1].text) == ("tool", "gone", "out")


# the person speaking through a tool

QUESTIONS = [{"question": "Which colour?", "header": "Colour", "options": [{"label": "red"}, {"label": "blue"}]}]


def asked(home: Path, content: str, account: Any = None) -> Item:
    fields = {} if account is None else {"toolUseResult": account}
    return called(home, "AskUserQuestion", content, arguments={"questions": QUESTIONS}, **fields)[-1]


def test_an_answer_to_a_question_is_the_person_speaking(tmp_path: Path) -> None:
    account = {"questions": QUESTIONS, "answers": {"Which colour?": "red", "And?": ["a", "b"], "None?": ""}}
    item = asked(tmp_path, 'User has answered your questions: "Which colour?"="red".', account)
    assert item.kind is ItemKind.HUMAN
    assert item.text == "Asked: Which colour?\nAnswered: red\nAsked: And?\nAnswered: a, b"


def test_what_the_person_notes_beside_an_answer_is_theirs_too(tmp_path: Path) -> None:
    account = {"answers": {"Which colour?": "red"}, "annotations": {"Which colour?": {"notes": "a dark one"}}}
    assert asked(tmp_path, "", account).text == "Asked: Which colour?\nAnswered: red (a dark one)"


def test_an_answer_is_found_in_the_text_where_the_row_does_not_account_for_it(tmp_path: Path) -> None:
    told = 'User has answered your questions: "Which colour?"="red". You can now continue with the answers in mind.'
    item = asked(tmp_path, told)
    assert (item.kind, item.text) == (ItemKind.HUMAN, '"Which colour?"="red"')


def test_a_question_that_nobody_answered_is_an_output(tmp_path: Path) -> None:
    told = "User has answered your questions: . You can now continue with the user's answers in mind."
    assert asked(tmp_path, told, {"answers": {}}).kind is ItemKind.TOOL_OUTPUT


def test_an_answer_begins_no_turn_of_its_own(tmp_path: Path) -> None:
    items, _ = read_rows(
        tmp_path, user("x"), assistant("I ask."), assistant(tool_use("q", "AskUserQuestion", questions=QUESTIONS)),
        tool_result("q", "", toolUseResult={"answers": {"Which colour?": "red"}}), assistant("Red it is."),
    )  # fmt: skip
    assert [item.kind for item in items if item.kind.startswith("assistant")] == [
        ItemKind.ASSISTANT_COMMENTARY,
        ItemKind.ASSISTANT_FINAL,
    ]


def test_the_words_with_which_a_call_is_turned_down_are_the_persons(tmp_path: Path) -> None:
    content = f"{REJECTED}To tell you how to proceed, the user said:\nuse tabs, not spaces"
    item = called(tmp_path, "Edit", content, is_error=True, toolUseResult="User rejected tool use")[-1]
    assert (item.kind, item.text) == (ItemKind.HUMAN, "use tabs, not spaces")


def test_a_call_that_is_turned_down_without_a_word_is_an_output(tmp_path: Path) -> None:
    item = called(tmp_path, "Edit", f"{REJECTED}STOP what you are doing.", is_error=True)[-1]
    assert item.kind is ItemKind.TOOL_OUTPUT


def test_open_calls_are_bounded() -> None:
    calls = OpenCalls()
    for number in range(MAX_OPEN_CALLS + 1):
        calls.open(str(number), "Read")
    assert (calls.tool("0"), calls.tool(str(MAX_OPEN_CALLS)), calls.tool(None)) == (None, "Read", None)
