"""Tries what is given beside the memory: does the skill lie there, does the server answer as its agent starts it."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memoryd.clock import Clock
from memoryd.control.connecting.connect import way_taken
from memoryd.control.connecting.edits import Unusable
from memoryd.control.connecting.files import look
from memoryd.control.connecting.mcp_extra import missing
from memoryd.control.connecting.record import Record
from memoryd.control.connecting.target import MCP, command_of
from memoryd.workspace.layout import Home

TIMEOUT_SECONDS: Final = 20.0
HELLO: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "memoryd-self-test", "version": "1"},
    },
}


@dataclass(frozen=True, slots=True)
class PartTried:
    """What came of one part: `fault` is "" where it works."""

    evidence: str
    fault: str = ""
    remedy: str = ""


async def try_part(kept: Record, home: Home, clock: Clock) -> PartTried:
    """Try the server or the skill of a connected agent."""
    again = f"run `memoryd connect {kept.agent}` again"
    try:
        held = way_taken(kept, home).edit.mine(look(kept.path).text)
    except Unusable as error:
        return PartTried("", f"{kept.path}: {error}", "correct the file")
    if held is None:
        return PartTried("", f"our {kept.part} is no longer in {kept.path}", again)
    if kept.part != MCP:
        return PartTried(f"the skill lies at {kept.path}")
    if (lack := missing()) is not None:
        return PartTried("", lack.what, lack.remedy)
    began = clock.monotonic()
    fault = await _greet(command_of(home))
    took = clock.monotonic() - began
    return (
        PartTried("", fault, again) if fault else PartTried(f"the MCP server answers within {took:.1f} s ({kept.path})")
    )


async def _greet(command: Path) -> str:
    """Start the server as agents do, greet it, let it end; say what went wrong, "" when nothing did."""
    pipe, quiet = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        server = await asyncio.create_subprocess_exec(str(command), "mcp", stdin=pipe, stdout=pipe, stderr=quiet)
    except OSError as error:
        return f"cannot start {command}: {error.strerror}"
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            out, _ = await server.communicate(json.dumps(HELLO).encode() + b"\n")
    except TimeoutError:
        server.kill()
        await server.wait()
        return f"the MCP server did not answer within {TIMEOUT_SECONDS:.0f} s"
    try:
        said: Any = json.loads(out.partition(b"\n")[0])
        known = said["result"]["serverInfo"]["name"]
    except (ValueError, KeyError, TypeError):
        return f"the MCP server ended with {server.returncode} and no answer"
    return "" if known == "memoryd" else f"another server answers: {known}"
