"""The seven tools: what a model is told, and how its arguments are read."""

import json

import pytest

from memoryd.agent.refusals import RefusalKind, RefusedError
from memoryd.agent.tools import (
    DeleteFile,
    EditFile,
    Finish,
    ListFiles,
    ReadFile,
    SearchFiles,
    ToolRequest,
    WriteFile,
    parse_call,
    tool_specs,
)
from memoryd.llm.question import ToolCall
from tests.agent.factories import a_call


def test_the_tools_have_the_names_and_arguments_of_the_contract() -> None:
    told = {spec.name: list(spec.parameters["properties"]) for spec in tool_specs()}  # type: ignore[call-overload]  # a JSON object of ours
    assert told == {
        "list_files": ["path"],
        "read_file": ["path", "line_offset", "max_lines"],
        "search_files": ["queries", "path"],
        "write_file": ["path", "content"],
        "edit_file": ["path", "old", "new"],
        "delete_file": ["path"],
        "finish": ["summary"],
    }


@pytest.mark.parametrize("spec", tool_specs(), ids=lambda spec: str(spec.name))
def test_each_schema_is_strict_and_plain_json(spec: object) -> None:
    parameters = json.loads(json.dumps(spec.parameters))  # type: ignore[attr-defined]  # a ToolSpec
    assert parameters["type"] == "object"
    assert parameters["additionalProperties"] is False
    assert parameters["required"] == list(parameters["properties"])
    assert all(described["description"] for described in parameters["properties"].values())


@pytest.mark.parametrize(
    ("name", "arguments", "request_"),
    [
        ("list_files", {"path": ""}, ListFiles("")),
        ("read_file", {"path": "a", "line_offset": 3, "max_lines": 9}, ReadFile("a", 3, 9)),
        ("search_files", {"queries": ["x", "y"], "path": ""}, SearchFiles(("x", "y"), "")),
        ("write_file", {"path": "a", "content": ""}, WriteFile("a", "")),
        ("edit_file", {"path": "a", "old": "x", "new": ""}, EditFile("a", "x", "")),
        ("delete_file", {"path": "a"}, DeleteFile("a")),
        ("finish", {"summary": "ok"}, Finish("ok")),
    ],
)
def test_well_formed_arguments_become_a_request(name: str, arguments: dict[str, object], request_: ToolRequest) -> None:
    assert parse_call(a_call(name, arguments)) == request_


@pytest.mark.parametrize("left_out", [{}, {"line_offset": None, "max_lines": None}])
def test_a_read_without_its_range_starts_at_the_beginning(left_out: dict[str, object]) -> None:
    assert parse_call(a_call("read_file", {"path": "a", **left_out})) == ReadFile("a", 1, 2000)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("read_file", "{not json", "no valid JSON"),
        ("read_file", "", "no valid JSON"),
        ("read_file", "[" * 100_000, "no valid JSON"),
        ("read_file", "[]", "no JSON object"),
        ("read_file", {}, '"path" is missing'),
        ("write_file", {"path": "a"}, '"content" is missing'),
        ("write_file", {"path": "a", "content": None}, '"content" is missing'),
        ("write_file", {"path": "a", "content": 5}, '"content" must be a string'),
        ("write_file", {"path": "a", "content": "x", "mode": "a"}, 'unknown argument "mode"'),
        ("read_file", {"path": "a", "line_offset": "1"}, '"line_offset" must be a whole number'),
        ("read_file", {"path": "a", "line_offset": True}, '"line_offset" must be a whole number'),
        ("read_file", {"path": "a", "line_offset": 1.5}, '"line_offset" must be a whole number'),
        ("read_file", {"path": "a", "line_offset": 0}, "at least 1"),
        ("read_file", {"path": "a", "max_lines": -1}, "at least 1"),
        ("search_files", {"queries": "x", "path": ""}, '"queries" must be a list'),
        ("search_files", {"queries": [], "path": ""}, "1 to 20 strings"),
        ("search_files", {"queries": ["x", " "], "path": ""}, "none of them blank"),
        ("search_files", {"queries": ["x", 5], "path": ""}, "1 to 20 strings"),
        ("search_files", {"queries": ["x"] * 21, "path": ""}, "1 to 20 strings"),
    ],
)
def test_wrong_arguments_are_refused_with_what_was_expected(
    name: str, arguments: dict[str, object] | str, said: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        parse_call(a_call(name, arguments))
    assert refused.value.kind is RefusalKind.BAD_ARGUMENTS
    assert said in refused.value.text
    assert f"{name}: " in refused.value.text
    assert 'expected {"' in refused.value.text


def test_an_unknown_tool_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(RefusedError, match=r'no tool "shell"; the tools are list_files, .*finish') as refused:
        parse_call(ToolCall("1", "shell", "{}"))
    assert refused.value.kind is RefusalKind.UNKNOWN_TOOL
