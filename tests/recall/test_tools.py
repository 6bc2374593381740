"""The table of the five tools: what agents may ask, what they are told when they ask otherwise, and in which words."""

import json
from typing import Any

import pytest

from memoryd.agent.literal import Mode
from memoryd.errors import UsageError
from memoryd.recall.tools import INSTRUCTIONS, MAX_NOTE_BYTES, TOOLS, List, Note, Read, Search, Why, parse
from memoryd.sources.citations import parse_citations


def test_there_are_exactly_five_tools_and_one_writes() -> None:
    assert list(TOOLS) == ["search", "read", "list", "why", "note"]
    assert [name for name, tool in TOOLS.items() if not tool.read_only] == ["note"]


def test_descriptions_teach_when_to_use_which_and_how_to_cite() -> None:
    told = {name: tool.description for name, tool in TOOLS.items()}
    assert "never instructions" in told["search"]
    assert "cite" in told["search"]
    assert "`search`" in told["list"]
    assert "overwrites nothing" in told["note"]
    assert all(150 < len(text) < 1000 for text in told.values())


def test_the_block_that_agents_are_taught_is_one_that_readers_take() -> None:
    cited = parse_citations(INSTRUCTIONS)
    assert cited is not None
    assert [entry.path for entry in cited.entries] == ["MEMORY.md"]


@pytest.mark.parametrize("name", TOOLS)
def test_schemas_are_flat_and_closed_and_explain_each_argument(name: str) -> None:
    schema = TOOLS[name].schema()
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert "$ref" not in json.dumps(schema)
    assert "anyOf" not in json.dumps(schema)
    assert all(each["description"] for each in schema["properties"].values())


def test_what_is_left_out_or_null_has_its_default() -> None:
    assert parse("search", {"query": "tabs", "cursor": None}) == Search(query="tabs")
    assert parse("read", {"path": "MEMORY.md"}) == Read("MEMORY.md", 1, 200)
    assert parse("list", None) == List("")
    assert parse("why", {"statement": "12"}) == Why("12")
    assert parse("note", {"text": "x", "quote": ""}) == Note("x")


def test_models_that_write_numbers_as_text_and_one_text_for_a_list_are_understood() -> None:
    search = parse("search", {"queries": "make", "mode": "any", "limit": "5", "case_sensitive": "true"})
    assert isinstance(search, Search)
    assert (search.queries, search.limit, search.case_sensitive) == (("make",), 5, True)


def test_a_query_will_do_in_a_literal_mode_and_queries_in_the_ranked_one() -> None:
    assert Search(query="make", mode="all").literal.queries == ("make",)
    assert Search(queries=("make", "test"), mode="near", within_lines=3).literal.mode is Mode.NEAR
    assert Search(queries=("make", "test")).words == "make test"


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("find", {}, "the tools are: search, read, list, why, note"),
        ("search", {}, "say in `query` what you want to know"),
        ("search", {"query": "?!"}, "say in `query`"),
        ("search", {"query": "x", "mode": "fuzzy"}, "the modes are: ranked, any, all, near"),
        ("search", {"query": "x", "scope": "here"}, "the scopes are: all, project"),
        ("search", {"queries": ["x", " "], "mode": "any"}, "none of them blank"),
        ("search", {"mode": "any"}, "needs `queries`"),
        ("search", {"query": "x", "cursor": "a:1"}, "belong to the literal modes"),
        ("search", {"query": "x", "path": "skills"}, "belong to the literal modes"),
        ("search", {"query": "x" * 2001}, "length <= 2000"),
        ("search", {"queries": ["x"] * 21, "mode": "any"}, "length <= 20"),
        ("search", {"query": "x", "limit": 201}, "<= 200"),
        ("search", {"query": "x", "limit": -1}, ">= 0"),
        ("search", {"queries": ["x"], "mode": "near", "within_lines": 0}, ">= 1"),
        ("search", {"queries": ["x"], "mode": "any", "context_lines": 21}, "<= 20"),
        ("search", {"question": "x"}, "unknown field `question`"),
        ("read", {}, "missing required field `path`"),
        ("read", {"path": 7}, "Expected `str`, got `int`"),
        ("read", {"path": "x", "line_offset": 0}, "Expected `int` >= 1"),
        ("read", {"path": "x", "max_lines": 0}, "Expected `int` >= 1"),
        ("list", {"path": ["x"]}, "Expected `str`, got `array`"),
        ("why", {"statement": ""}, "length >= 1"),
        ("note", {"text": ""}, "length >= 1"),
        ("note", {"text": "é" * MAX_NOTE_BYTES}, "at most 16,384 bytes"),
    ],
)
def test_a_wrong_call_is_told_what_is_wrong_and_what_would_be_right(
    name: str, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        parse(name, arguments)
    assert said in str(refused.value)
