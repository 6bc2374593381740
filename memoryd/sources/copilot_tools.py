"""Tool calls and outputs of a Copilot CLI session: which ran, how they ended, and what the person answered."""

import re

from msgspec import Raw

from memoryd.sources.calls import brings_outside_words, call_text
from memoryd.sources.codex_tools import Call, OpenCalls
from memoryd.sources.copilot_records import UsualData
from memoryd.sources.items import HUMAN, TOOL_CALL, TOOL_OUTPUT, Item
from memoryd.sources.parts import Spot
from memoryd.sources.rawjson import as_fields, as_int, as_list, as_number, as_text, is_true

QUESTION_TOOL = "ask_user"
INTENT_TOOL = "report_intent"  # a caption for the screen, called beside nearly every other tool
SERVER_KEY = "mcpServerName"
_TRAILER_CHARACTERS = 200
_TRAILER = re.compile(
    r"\n?<(?:shellId: \S+ completed with|exited with|command completed with) exit code (-?\d{1,9})>\s*\Z"
)
_ANSWER = re.compile(r"\AUser (?:responded|selected|answered|chose)(?: [a-z]+)?: ")
_NOBODY_THERE = "The user is not available to respond"
_MEDIA = frozenset({"image", "audio"})


def call_item(data: dict[str, Raw], spot: Spot, calls: OpenCalls) -> Item | None:
    """Read a tool.execution_start; None for a caption."""
    tool, call_id = as_text(data.get("toolName")) or "tool", as_text(data.get("toolCallId"))
    return _call_item(tool, call_id, data.get("arguments"), spot, calls, server=data.get(SERVER_KEY))


def usual_call(data: UsualData, spot: Spot, calls: OpenCalls) -> Item | None:
    """Read the same from data that is decoded already."""
    return _call_item(data.tool or "tool", data.call_id, data.arguments, spot, calls, server=data.server or None)


def usual_output(data: UsualData, spot: Spot, calls: OpenCalls) -> Item | None:
    """Read the same as `output_item` from data that is decoded already; None for what wants a closer look.

    Usual is a command's text and exit code, and nothing beside them.
    """
    call, result, exit_code = calls.answer(data.call_id), data.result, data.shell.exit_code
    if call is None or exit_code is None or call.tool in (QUESTION_TOOL, INTENT_TOOL):
        return None
    if result.contents or result.binary or not result.content or result.content.isspace():
        return None
    text, _ = _unwrap(result.content)
    return Item(TOOL_OUTPUT, text, spot.ordinal, spot.at, spot.cwd, call.tool, data.call_id, exit_code, call.external)


def _call_item(
    named: str, call_id: str | None, arguments: Raw | None, spot: Spot, calls: OpenCalls, *, server: Raw | None
) -> Item | None:
    external = server is not None or brings_outside_words(named)
    of = as_text(server) or ""
    tool = named if not of or of in named else f"{of}/{named}"
    calls.open(call_id, Call(tool, external, arguments if tool == QUESTION_TOOL else None))
    if tool == INTENT_TOOL:
        return None
    text = call_text(tool, arguments)
    return Item(TOOL_CALL, text, spot.ordinal, spot.at, spot.cwd, tool, call_id, None, external)


def output_item(data: dict[str, Raw], spot: Spot, calls: OpenCalls) -> tuple[Item | None, int]:
    """Read a tool.execution_complete and the number of images left out of it; None when it says nothing.

    The answer to a question is the human speaking.
    """
    call_id = as_text(data.get("toolCallId"))
    call = calls.answer(call_id) or Call(as_text(data.get("toolName")) or "tool", external=False, arguments=None)
    if call.tool == INTENT_TOOL:
        return None, 0
    result = as_fields(data.get("result"))
    text, said_code = _unwrap(as_text(result.get("content")) or "")
    exit_code = _exit_code(data, result)
    kind, exit_code = TOOL_OUTPUT, said_code if exit_code is None else exit_code
    if not text:
        text = as_text(as_fields(data.get("error")).get("message")) or ""
    if call.tool == QUESTION_TOOL and is_true(data.get("success")) and (answer := _answer(call.arguments, text)):
        kind, text = HUMAN, answer
    images = _media(result)
    if not text.strip() and exit_code is None:
        return None, images
    item = Item(
        kind,
        text,
        spot.ordinal,
        spot.at,
        spot.cwd,
        tool=call.tool,
        call_id=call_id,
        exit_code=exit_code,
        external=call.external,
    )
    return item, images


def _unwrap(text: str) -> tuple[str, int | None]:
    """Take off the line in which the shell tools tell how a command ended."""
    end = text[-_TRAILER_CHARACTERS:]
    trailer = _TRAILER.search(end) if end.rstrip().endswith(">") else None
    if trailer is None:
        return text, None
    return text[: len(text) - len(trailer.group())], int(trailer.group(1))


def _exit_code(data: dict[str, Raw], result: dict[str, Raw]) -> int | None:
    """Return what the event itself says; older versions say it among the blocks or in the telemetry."""
    for holder in (as_fields(data.get("shellExecution")), *map(as_fields, as_list(result.get("contents"))), data):
        if (code := as_int(holder.get("exitCode"))) is not None:
            return code
    metrics = as_fields(as_fields(data.get("toolTelemetry")).get("metrics"))
    code_there = as_number(metrics.get("exit_code"))
    return None if code_there is None else int(code_there)


def _media(result: dict[str, Raw]) -> int:
    if "contents" not in result and "binaryResultsForLlm" not in result:
        return 0
    blocks = [as_text(as_fields(raw).get("type")) for raw in as_list(result.get("contents"))]
    return sum(kind in _MEDIA for kind in blocks) + len(as_list(result.get("binaryResultsForLlm")))


def _answer(question: Raw | None, text: str) -> str:
    """Render a question with its answer; empty when nobody was there to answer."""
    words = _ANSWER.sub("", text, count=1).strip()
    if not words or words.startswith(_NOBODY_THERE):
        return ""
    asked = as_text(as_fields(question).get("question"))
    return f"Asked: {asked}\nAnswered: {words}" if asked else words
