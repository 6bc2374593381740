"""The memory's tools over the Model Context Protocol, on standard input and output, with the official package.

The only module that imports `mcp`, which takes a second and 65 MB: no command but `memoryd mcp` imports this one.
Nothing but the protocol goes to standard output. A tool that fails answers with isError and a sentence.
"""

import asyncio
import errno
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any, Final, cast

import anyio
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
    jsonrpc_message_adapter,
)

from memoryd.errors import MemorydError, StorageError
from memoryd.recall.mcp_lines import Line, has_odd_id, lines_of, mended, refusal
from memoryd.recall.tools import INSTRUCTIONS, TOOLS

NAME: Final = "memoryd"
WAITING_LINES: Final = 64
MOST_OPEN: Final = 1_000
"""Requests that are taken in before the answers to earlier ones have been written."""
GRACE_SECONDS: Final = 5.0
"""How long an answer may take to be written to a client that does not read, once the end has been asked for."""

Answer = Callable[[str, dict[str, Any], str], str]
"""Carries out a call: the tool's name, its arguments, the client's name. Blocking; raises MemorydError and no other."""


async def serve(answer: Answer, *, version: str) -> None:
    """Serve until standard input ends, or SIGTERM or SIGINT comes, or nobody reads; a call that runs is finished first.

    What was asked before standard input ended is answered. Raises StorageError where answers cannot be written.
    """
    loop, current = asyncio.get_running_loop(), asyncio.current_task()
    assert current is not None
    ending = asyncio.Event()

    def end() -> None:
        ending.set()
        loop.call_later(GRACE_SECONDS, os._exit, 0)
        current.cancel()

    server = make_server(answer, version=version)
    source, target = _taken(0), _taken(1)
    wire = _Wire(target, end)
    stdin = cast("anyio.AsyncFile[str]", wire.messages(_lines_of_stdin(loop, source)))
    stdout = cast("anyio.AsyncFile[str]", wire)
    try:
        with _ended_by_signals(loop, end):
            async with stdio_server(stdin=stdin, stdout=stdout) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
    except asyncio.CancelledError:
        if not ending.is_set():  # a signal, or that nobody reads, has asked for the end; anybody else is to hear of it
            raise
    except ExceptionGroup as group:
        if group.split((anyio.BrokenResourceError, anyio.ClosedResourceError))[1] is not None:
            raise  # a message that was handed on at the end found nobody to take it: that is no fault
    if wire.fault is not None and wire.fault.errno != errno.EPIPE:
        reason = wire.fault.strerror or str(wire.fault)
        raise StorageError(f"cannot write answers to standard output: {reason}") from wire.fault


@contextmanager
def _ended_by_signals(loop: asyncio.AbstractEventLoop, end: Callable[[], None]) -> Iterator[None]:
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, end)
    try:
        yield
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


class _Wire:
    """Standard input and output as the package takes them: a file whose lines are messages, and one to write to.

    A line that is no message is answered here, since the package drops it. Which requests are unanswered is known, so
    that the end of standard input can wait for them, and one that never reads is not read from for ever.
    """

    def __init__(self, target: int, end: Callable[[], None]) -> None:
        self.fault: OSError | None = None
        self._target = target
        self._end = end
        self._writing = asyncio.Lock()
        self._open: set[str] = set()
        self._settled = asyncio.Event()

    async def messages(self, lines: AsyncIterator[Line]) -> AsyncIterator[str]:
        """Yield the lines that are messages; end when the lines have, and each request has its answer."""
        async for line in lines:
            text, message = line.text, None if line.is_cut else _message(line.text)
            if message is None and not line.is_cut and (better := mended(line.text)) is not None:
                text, message = better, _message(better)
            if message is None:
                await self._refuse(line)
                continue
            await self._fewer_open_than(MOST_OPEN)
            self._keep_count(message)
            yield text
        await self._fewer_open_than(1)

    async def write(self, text: str) -> None:
        """Write a line whole. Raises anyio.ClosedResourceError, at which the package stops, where nobody reads."""
        data = text.encode("utf-8", "replace")
        async with self._writing:
            try:
                await anyio.to_thread.run_sync(_write_all, self._target, data)
            except OSError as error:
                self.fault = self.fault or error
                self._end()
                raise anyio.ClosedResourceError from error
        self._settle(str(_decode_head(data).id))

    async def flush(self) -> None:
        """Nothing is kept back."""

    async def _refuse(self, line: Line) -> None:
        if (refused := refusal(line)) is not None:
            fault = ErrorData(code=refused.code, message=refused.why)
            said = JSONRPCError(jsonrpc="2.0", id=refused.id, error=fault)
            await self.write(said.model_dump_json(by_alias=True, exclude_unset=True) + "\n")

    def _keep_count(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            self._open.add(str(message.id))
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._settle(str((message.params or {}).get("requestId")))

    def _settle(self, number: str) -> None:
        self._open.discard(number)
        self._settled.set()

    async def _fewer_open_than(self, number: int) -> None:
        while len(self._open) >= number:
            self._settled.clear()
            await self._settled.wait()


class _Head(msgspec.Struct, gc=False):
    """Of a message, what tells which request it answers."""

    id: str | int | None = None


_decode_head = msgspec.json.Decoder(_Head).decode


def _message(text: str) -> JSONRPCMessage | None:
    """Return the message that the package would make of a line; a request with an odd id is none, and no notification.

    None where there is none.
    """
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return None
    if isinstance(message, JSONRPCNotification) and '"id"' in text and has_odd_id(text):
        return None
    return message


def _write_all(target: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(target, left) :]


def _taken(descriptor: int) -> int:
    """Return another descriptor of standard input or output, in whose place then stands what is not ours.

    So no program that is started meanwhile reads what a client writes, and nothing but the protocol reaches it.
    """
    ours = os.dup(descriptor)
    instead = os.open(os.devnull, os.O_RDONLY) if descriptor == 0 else os.dup(2)
    os.dup2(instead, descriptor)
    os.close(instead)
    return ours


def _lines_of_stdin(loop: asyncio.AbstractEventLoop, source: int) -> AsyncIterator[Line]:
    """Read standard input in a thread that nobody waits for: a read that blocks must not hold up the end."""
    queue: asyncio.Queue[Line | None] = asyncio.Queue(WAITING_LINES)

    def hand_over(line: Line | None) -> None:
        putting = queue.put(line)
        try:
            asyncio.run_coroutine_threadsafe(putting, loop).result()
        except RuntimeError:
            putting.close()
            raise

    def pump() -> None:
        with suppress(RuntimeError, CancelledError):  # the loop has ended meanwhile
            with suppress(OSError):  # what cannot be read has ended
                for line in lines_of(source):
                    hand_over(line)
            hand_over(None)

    async def lines() -> AsyncIterator[Line]:
        while (line := await queue.get()) is not None:
            yield line

    threading.Thread(target=pump, name="stdin", daemon=True).start()
    return lines()
