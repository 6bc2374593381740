"""A tool call as a person would read it."""

import json
from typing import Any

import pytest
from msgspec import Raw

from memoryd.sources.calls import brings_outside_words, call_text

PATCH = "*** Begin Patch\n*** End Patch"


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("bash", {"command": "ls -l", "description": "list"}, "ls -l"),
        ("functions.bash", {"command": "ls"}, "ls"),
        ("run_shell_command", {"command": "ls"}, "ls"),
        ("exec_command", {"cmd": "ls"}, "ls"),
        ("shell", {"command": ["bash", "-lc", "a && b"]}, "a && b"),
        ("shell", {"command": ["git", "commit", "-m", "two words"]}, "git commit -m 'two words'"),
        ("bash", '{"command": "ls"}', "ls"),
        ("bash", {"shellId": "0"}, 'bash {"shellId":"0"}'),
        ("str_replace_editor", {"command": "view", "path": "/x"}, 'str_replace_editor {"command":"view","path":"/x"}'),
        ("apply_patch", PATCH, PATCH),
        ("apply_patch", {"input": PATCH}, PATCH),
        ("apply_patch", {"patch": PATCH}, PATCH),
        ("look", "at the sky", "look at the sky"),
        ("look", {}, "look {}"),
        ("look", None, "look"),
    ],
)
def test_a_call_reads_as_a_person_would_write_it(tool: str, arguments: Any, expected: str) -> None:
    raw = None if arguments is None else Raw(json.dumps(arguments).encode())
    assert call_text(tool, raw) == expected


@pytest.mark.parametrize(
    ("tool", "external"),
    [("web_search", True), ("WebFetch", True), ("mcp__jira__get", True), ("bash", False), ("view", False)],
)
def test_tools_that_go_outside_are_known_by_name(tool: str, external: bool) -> None:
    assert brings_outside_words(tool) is external
