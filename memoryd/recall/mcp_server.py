"""The memory's tools over the Model Context Protocol, on standard input and output, with the official package.

The only module that imports `mcp`, which takes a second and 65 MB: no command but `memoryd mcp` imports this one.
Nothing but the protocol goes to standard output. A tool that fails answers with isError and a sentence.
"""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final, cast

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from memoryd.errors import MemorydError
from memoryd.recall.tools import INSTRUCTIONS, TOOLS

NAME: Final = "memoryd"
MAX_LINE_BYTES: Final = 4 << 20
"""No request of ours is longer than some kilobytes; what is longer is cut, and so refused as no JSON."""
READ_BYTES: Final = 1 << 16
WAITING_LINES: Final = 64
GRACE_SECONDS: Final = 5.0
"""How long an answer may take to be written to a client that does not read, once the end has been asked for."""

Answer = Callable[[str, dict[str, Any], str], str]
"""Carries out a call: the tool's name, its arguments, the client's name. Blocking; raises MemorydError and no other."""


async def serve(answer: Answer, *, version: str) -> None:
    """Serve until standard input ends, or SIGTERM or SIGINT comes; a call that runs is finished first."""
    loop, current = asyncio.get_running_loop(), asyncio.current_task()
    assert current is not None

    def end() -> None:
        loop.call_later(GRACE_SECONDS, os._exit, 0)
        current.cancel()

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, end)
    server = make_server(answer, version=version)
    lines = cast("anyio.AsyncFile[str]", _lines_of_stdin(loop))
    try:
        async with stdio_server(stdin=lines) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    except asyncio.CancelledError:
        return  # this is the process's own task, and a signal has asked for its end
    finally:
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)


def make_server(answer: Answer, *, version: str) -> Server[Any]:
    """Return a server of the five tools, whatever it is connected by. Calls are carried out one after the other."""
    one_at_a_time = anyio.CapacityLimiter(1)

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=tools())

    async def call_tool(context: ServerRequestContext[Any], called: CallToolRequestParams) -> CallToolResult:
        def run() -> CallToolResult:
            return carried_out(answer, called.name, called.arguments or {}, _client_of(context))

        return await anyio.to_thread.run_sync(run, limiter=one_at_a_time)

    return Server(NAME, version=version, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool)


def tools() -> list[Tool]:
    """Return the tools as clients are told of them."""
    return [
        Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=tool.schema(),
            annotations=ToolAnnotations(
                title=tool.title,
                read_only_hint=tool.read_only,
                destructive_hint=False,
                idempotent_hint=tool.read_only,
                open_world_hint=False,
            ),
        )
        for tool in TOOLS.values()
    ]


def carried_out(answer: Answer, name: str, arguments: dict[str, Any], client: str) -> CallToolResult:
    """Carry out a call; what goes wrong becomes a sentence that the model can act on, never a traceback."""
    try:
        return _said(answer(name, arguments, client))
    except MemorydError as error:
        return _said(str(error), is_error=True)


def _said(text: str, *, is_error: bool = False) -> CallToolResult:
    plain = text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate could not be written
    return CallToolResult(content=[TextContent(type="text", text=plain)], is_error=is_error)


def _client_of(context: ServerRequestContext[Any]) -> str:
    known = context.session.client_params
    return known.client_info.name if known is not None else ""


def _lines_of_stdin(loop: asyncio.AbstractEventLoop) -> AsyncIterator[str]:
    """Read standard input in a thread that nobody waits for: a read that blocks must not hold up the end.

    The descriptor itself then leads nowhere, so that no program that is started meanwhile reads what is ours.
    """
    source, nowhere = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    queue: asyncio.Queue[str | None] = asyncio.Queue(WAITING_LINES)

    def hand_over(line: bytes | None) -> None:
        text = None if line is None else line.decode("utf-8", "replace")
        asyncio.run_coroutine_threadsafe(queue.put(text), loop).result()

    def pump() -> None:
        try:
            for line in _lines_of(source):
                hand_over(line)
            hand_over(None)
        except RuntimeError:
            return  # the loop has ended meanwhile

    async def lines() -> AsyncIterator[str]:
        while (line := await queue.get()) is not None:
            yield line

    threading.Thread(target=pump, name="stdin", daemon=True).start()
    return lines()


def _lines_of(source: int) -> Iterator[bytes]:
    """Yield the lines of a descriptor, each cut at MAX_LINE_BYTES."""
    rest = bytearray()
    while piece := os.read(source, READ_BYTES):
        *whole, last = piece.split(b"\n")
        for part in whole:
            yield bytes(rest + part)[:MAX_LINE_BYTES]
            rest.clear()
        rest += last[: MAX_LINE_BYTES - len(rest)]
    if rest:
        yield bytes(rest)
