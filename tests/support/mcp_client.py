"""The official client of the Model Context Protocol on the real `memoryd mcp`, as an agent starts it."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True)
class Answered:
    """What came of one call."""

    text: str
    is_error: bool


@dataclass(frozen=True)
class Session:
    """What a server said of itself, and its answers."""

    name: str
    instructions: str
    tools: list[Any]
    answers: list[Answered]


def environ(home: Path) -> dict[str, str]:
    """The bare environment of an agent."""
    return {"PATH": os.environ["PATH"], "HOME": str(home.parent), "PYTHONPATH": str(ROOT)}


def words(home: Path, *more: str) -> list[str]:
    """The command of the server on a home."""
    return [sys.executable, "-P", "-m", "memoryd.control.main", "--home", str(home), "mcp", *more]


def ask(home: Path, calls: Sequence[tuple[str, Mapping[str, Any]]], *, cwd: Path | None = None) -> Session:
    """Start a server, make the calls one after the other, and let it end."""
    return asyncio.run(_asked(home, calls, cwd or home))


async def _asked(home: Path, calls: Sequence[tuple[str, Mapping[str, Any]]], cwd: Path) -> Session:
    from mcp import Client, StdioServerParameters

    command, *arguments = words(home)
    server = StdioServerParameters(command=command, args=arguments, env=environ(home), cwd=str(cwd))
    async with Client(server, read_timeout_seconds=TIMEOUT_SECONDS) as client:
        tools = (await client.list_tools()).tools
        answers = []
        for name, given in calls:
            result = await client.call_tool(name, dict(given))
            text = "".join(part.text for part in result.content if part.type == "text")
            answers.append(Answered(text, result.is_error))
        name = client.server_info.name if client.server_info else ""
        return Session(name, client.instructions or "", tools, answers)
