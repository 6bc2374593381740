"""One contract for every reader: what memoryd's tools, commands and files said in a session is no evidence of it.

However an agent names the tools of a server (by prefixes, namespaces, fields of their own), the call and its answer
go, and do not make the session polluted; a call of another server beside it stays, and does.
"""

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memoryd.pipeline.evidence import Evidence, gather
from memoryd.redact import Redactor
from memoryd.sources.readers import READERS
from tests.contracts.test_session_readers import SAMPLES
from tests.support.sessions import Command, Turn

HOME = Path("/home/u/.memoryd")
REMEMBERED = "remembered: tabs in the Makefile"
ASKED = "which-indentation"
LINE = "PUT-A-COMMAND-HERE"


@dataclass(frozen=True)
class Named:
    """A tool as an agent records it: its name, and what else of the record says whose it is."""

    name: str
    more: Mapping[str, str] = ()  # type: ignore[assignment]  # nothing


def tools(agent: str, server: str) -> list[Named]:
    """Return how an agent has recorded the search of a server, in its versions."""
    return {
        "codex": [
            Named(f"mcp__{server}__search"),
            Named("search", {"namespace": f"mcp__{server}__"}),
            Named("search", {"namespace": f"mcp__{server}"}),
        ],
        "claude": [Named(f"mcp__{server}__search"), Named(f"mcp__plugin_memory_{server}__search")],
        "opencode": [Named(f"{server}_search")],
        "gemini": [
            Named(f"mcp_{server}_search"),
            Named(f"{server}__search"),
            Named("search", {"displayName": f"search ({server} MCP Server)"}),
        ],
        "qwen": [Named(f"mcp__{server}__search")],
        "copilot": [
            Named(f"{server}-search", {"mcpServerName": server, "mcpToolName": "search"}),
            Named("search", {"mcpServerName": server}),
        ],
        "generic": [Named(f"mcp__{server}__search"), Named(f"mcp__{server}.search")],
    }[agent]


LOOKS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "codex": [("read_mcp_resource", {"server": "memoryd", "uri": "x"})],
    "claude": [
        ("Read", {"file_path": f"{HOME}/memories/MEMORY.md"}),
        ("Grep", {"pattern": "tabs", "path": f"{HOME}/memories"}),
        ("Skill", {"skill": "memoryd"}),
        ("Read", {"file_path": "/home/u/.claude/skills/memoryd/SKILL.md"}),
        ("ToolSearch", {"query": "select:mcp__memoryd__search"}),
    ],
    "opencode": [("read", {"filePath": f"{HOME}/memories/MEMORY.md"}), ("skill", {"name": "memoryd"})],
    "gemini": [
        ("read_file", {"absolute_path": f"{HOME}/memories/MEMORY.md"}),
        ("search_file_content", {"pattern": "tabs", "path": f"{HOME}/memories"}),
    ],
    "qwen": [("read_file", {"file_path": f"{HOME}/recall/everywhere.md"}), ("skill", {"skill": "memoryd"})],
    "copilot": [("view", {"path": f"{HOME}/memories/MEMORY.md"}), ("skill", {"skill": "memoryd"})],
    "generic": [
        ("read", {"path": f"{HOME}/memories/MEMORY.md"}),
        ("use_mcp_tool", {"server_name": "memoryd", "tool_name": "search"}),
    ],
}
COMMANDS = [
    "memoryd search 'which-indentation'",
    "cd /home/dev/shop && memoryd read MEMORY.md | head",
    f"{HOME}/bin/memoryd why which-indentation",
    '"$HOME/.memoryd/bin/memoryd" search --any which-indentation',
    f"cat {HOME}/memories/MEMORY.md # which-indentation",
]


def evidence_of(agent: str, home: Path, change: Callable[[Any], None] | None = None, line: str = LINE) -> Evidence:
    """Write a session with one command, change its record into another call, and read it."""
    talk = Turn("Indent the rule, please.", "Done.", commands=(Command(line, REMEMBERED, 0),))
    path = SAMPLES[agent].write(home, [talk])
    if change is not None:
        _rewrite(path, change)
    (file,) = READERS[agent].find([home])
    with READERS[agent].read(file) as items:
        return gather(items, redactor=Redactor(), private_tags=(), home=HOME, budget_tokens=10_000)


def _rewrite(path: Path, change: Callable[[Any], None]) -> None:
    store, mark, _ = str(path).partition("#")
    if not mark:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row in rows:
            change(row)
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return
    with closing(sqlite3.connect(store)) as connection, connection:
        for key, data in connection.execute("SELECT id, data FROM part").fetchall():
            part = json.loads(data)
            change(part)
            connection.execute("UPDATE part SET data = ? WHERE id = ?", (json.dumps(part), key))


def call_of(agent: str, tool: Named, arguments: Mapping[str, Any]) -> Callable[[Any], None]:
    """Return what turns the record of a shell's command into that of a call of this tool."""

    def change(found: Any) -> None:
        if isinstance(found, list):
            for each in found:
                change(each)
        if not isinstance(found, dict):
            return
        for each in found.values():
            change(each)
        _renamed(agent, found, tool, arguments)

    return change


def _renamed(agent: str, found: dict[str, Any], tool: Named, arguments: Mapping[str, Any]) -> None:
    more = dict(tool.more or {})
    match agent:
        case "codex" if found.get("type") == "function_call":
            found.update(name=tool.name, arguments=json.dumps(arguments), **more)
        case "claude" if found.get("type") == "tool_use":
            found.update(name=tool.name, input=arguments)
        case "opencode" if found.get("type") == "tool":
            found["tool"] = tool.name
            found["state"]["input"] = arguments
            found["state"]["metadata"] = {}
        case "gemini" if "args" in found:
            found.update(name=tool.name, args=arguments, **{"displayName": tool.name, **more})
        case "qwen" if "args" in found:
            found.update(name=tool.name, args=arguments)
        case "gemini" | "qwen" if "response" in found:
            found.update(name=tool.name, response={"output": REMEMBERED})
        case "copilot" if found.get("toolName"):
            found.update(toolName=tool.name, arguments=arguments, **more)
        case "generic" if found.get("type") == "tool_call":
            found.update(tool=tool.name, text="", arguments=arguments)


def told(agent: str, evidence: Evidence) -> None:
    """Say what is left of a session in which nothing but memory was looked at."""
    assert REMEMBERED not in evidence.text, agent
    assert ASKED not in evidence.text
    assert "Indent the rule, please." in evidence.text
    assert "Done." in evidence.text
    assert evidence.dropped["own_call"] == 1
    assert not evidence.external


AGENTS = sorted(READERS)


@pytest.mark.parametrize(
    ("agent", "number"), [(agent, number) for agent in AGENTS for number in range(len(tools(agent, "x")))]
)
def test_calls_of_memoryds_tools_are_neither_evidence_nor_pollution(tmp_path: Path, agent: str, number: int) -> None:
    arguments = {"query": ASKED}
    own = evidence_of(agent, tmp_path / "own", call_of(agent, tools(agent, "memoryd")[number], arguments))
    told(agent, own)
    assert own.dropped["own_output"] == 1
    other = evidence_of(agent, tmp_path / "other", call_of(agent, tools(agent, "tickets")[number], arguments))
    assert REMEMBERED in other.text
    assert ASKED in other.text
    assert other.external


@pytest.mark.parametrize(
    ("agent", "number"), [(agent, number) for agent in AGENTS for number in range(len(LOOKS[agent]))]
)
def test_reading_the_home_or_the_skill_by_the_agents_own_tools_is_no_evidence(
    tmp_path: Path, agent: str, number: int
) -> None:
    tool, arguments = LOOKS[agent][number]
    told(agent, evidence_of(agent, tmp_path, call_of(agent, Named(tool), {**arguments, "why": ASKED})))


@pytest.mark.parametrize("agent", AGENTS)
def test_commands_of_memoryd_and_what_they_print_are_no_evidence(tmp_path: Path, agent: str) -> None:
    for number, line in enumerate(COMMANDS):
        evidence = evidence_of(agent, tmp_path / str(number), line=line)
        told(agent, evidence)
        assert evidence.dropped["own_output"] == 1
    assert REMEMBERED in evidence_of(agent, tmp_path / "other", line="git log --oneline").text
