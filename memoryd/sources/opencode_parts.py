"""Parts of OpenCode's messages as items: what the person typed, what the model said, and what its tools did."""

from collections import Counter
from functools import lru_cache

import msgspec
from msgspec import Raw

from memoryd.sources.items import HUMAN, TOOL_CALL, TOOL_OUTPUT, Item
from memoryd.sources.opencode_records import fields_of
from memoryd.sources.parts import Spot
from memoryd.sources.rawjson import (
    MAX_TEXT_BYTES,
    UNREADABLE,
    as_fields,
    as_int,
    as_list,
    as_number,
    as_text,
    command_in,
    compact,
    is_text,
    is_true,
)

SHELL, QUESTION = "bash", "question"
WEB_TOOLS = frozenset({"webfetch", "websearch", "codesearch"})
# Those of the agent itself that have an underscore; any other such name is `<server>_<tool>` of an MCP server. A
# plug-in's tool may be named alike: it counts as external, too.
OWN_TOOLS = frozenset({"apply_patch", "plan_enter", "plan_exit", "lsp_hover", "lsp_diagnostics", "todo_write"})
REMINDER_OPEN, REMINDER_CLOSE = "<system-reminder>", "</system-reminder>"
# known, and no evidence; those with a reason are counted
NOISE: dict[str, str | None] = {
    "reasoning": "reasoning",
    "compaction": "compaction",
    "subtask": "subtask",
    "step-start": None,
    "step-finish": None,
    "patch": None,
    "snapshot": None,
    "agent": None,
    "retry": None,
}


class PartTimes(msgspec.Struct, frozen=True, gc=False):
    """When something began and ended, in milliseconds."""

    start: float | None = None
    end: float | None = None


class ToolMetadata(msgspec.Struct, frozen=True, gc=False):
    """What a tool tells besides its output; the rest of it repeats the output, or holds diffs."""

    exit: int | None = None
    answers: Raw = Raw()


class ToolState(msgspec.Struct, frozen=True, gc=False):
    """How far a tool has come."""

    input: Raw = Raw()
    output: str | None = None
    error: str | None = None
    metadata: ToolMetadata = ToolMetadata()
    time: PartTimes = PartTimes()
    attachments: Raw = Raw()


class PartRow(msgspec.Struct, gc=False):
    """A part as all known versions write it: what is asked of any of its types, and no data URL."""

    type: str
    tool: str | None = None
    callID: str | None = None  # noqa: N815 - the store's own spelling
    state: ToolState = ToolState()
    text: str | None = None
    time: PartTimes = PartTimes()
    synthetic: bool = False
    ignored: bool = False
    mime: str | None = None


_part_rows = msgspec.json.Decoder(PartRow)


def parse_part(data: bytes | None) -> PartRow | None:
    """Read a part's JSON, its texts cut where it is very long; None when it is no JSON object."""
    if data is None:
        return None
    try:
        if len(data) <= MAX_TEXT_BYTES:
            return _part_rows.decode(data)
    except UNREADABLE:
        pass
    return _mended_row(fields_of(data))


def spoken_text(part: PartRow, dropped: Counter[str]) -> str:
    """Return a text part's words, empty when they are the harness's own (counted) or none."""
    text = part.text or ""
    if part.synthetic or part.ignored:
        dropped["reminder" if text.lstrip().startswith(REMINDER_OPEN) else "harness"] += 1
        return ""
    if REMINDER_OPEN in text and text.lstrip().startswith(REMINDER_OPEN) and text.rstrip().endswith(REMINDER_CLOSE):
        dropped["reminder"] += 1
        return ""
    return "" if text.isspace() else text


def as_typed(text: str) -> str:
    """Take off what `opencode run` adds: a last line feed, and quotes around an argument that has a space in it.

    It writes `"` within as `\\"`; what was piped in follows on the next line.
    """
    text = text.removesuffix("\n")
    end = text.find('"', 1) if text.startswith('"') else -1
    while 0 <= end < len(text) - 1 and text[end - 1] == "\\":
        end = text.find('"', end + 1)
    argument, rest = text[1:end], text[end + 1 :]
    if end < 0 or " " not in argument or (rest and not rest.startswith("\n")):
        return text
    return argument.replace('\\"', '"') + rest


def attachment_reason(mime: str | None) -> str:
    """Return why a file is left out; its data URL is never built."""
    return "image" if (mime or "").startswith("image/") else "attachment"


def tool_items(part: PartRow, spot: Spot, dropped: Counter[str]) -> list[Item]:
    """Return a tool's call, and its output once there is one; the answers to a question are the human speaking."""
    tool, state, call_id = part.tool or "tool", part.state, part.callID
    external = is_external(tool)
    began = seconds(state.time.start) or spot.at
    ended = seconds(state.time.end) or began
    text = _call_text(tool, state.input)
    items = [Item(TOOL_CALL, text, spot.ordinal, began, spot.cwd, tool, call_id, None, external)]
    for file in as_list(state.attachments):
        dropped[attachment_reason(as_text(as_fields(file).get("mime")))] += 1
    output, exit_code = state.output or state.error or "", state.metadata.exit
    if tool == QUESTION and (answer := _answers(state.input, state.metadata.answers)):
        items.append(Item(HUMAN, answer, spot.ordinal, ended, spot.cwd, tool, call_id))
    elif exit_code is not None or (output and not output.isspace()):
        kind = TOOL_OUTPUT
        items.append(Item(kind, output, spot.ordinal, ended, spot.cwd, tool, call_id, exit_code, external))
    return items


@lru_cache(maxsize=256)  # a session has few tools, and many calls of each
def is_external(tool: str) -> bool:
    """Say whether a tool brings in words from outside the machine: the web, MCP."""
    return tool in WEB_TOOLS or ("_" in tool and tool not in OWN_TOOLS)


def seconds(milliseconds: float | None) -> float | None:
    """Return epoch seconds."""
    return None if milliseconds is None else milliseconds / 1000


def _call_text(tool: str, given: Raw | None) -> str:
    if tool == SHELL and (command := command_in(given)) and not command.isspace():
        return command
    # an input that was cut in the store is a text
    arguments = as_text(given) if given and is_text(given) else compact(given)
    return f"{tool} {arguments or ''}".rstrip()


def _answers(given: Raw | None, answers: Raw | None) -> str:
    """Render each answered question with its answer; empty when nothing was answered."""
    asked = [as_text(as_fields(raw).get("question")) for raw in as_list(as_fields(given).get("questions"))]
    lines: list[str] = []
    for position, raw in enumerate(as_list(answers)):
        words = ", ".join(word for label in as_list(raw) if (word := as_text(label)))
        question = asked[position] if position < len(asked) else None
        if words:
            lines.append(f"Asked: {question}\nAnswered: {words}" if question else words)
    return "\n".join(lines)


def _mended_row(fields: dict[str, Raw]) -> PartRow | None:
    """Take what can be had of a part that is very long, or whose members are not of the types they should have."""
    if not fields:
        return None
    state = as_fields(fields.get("state"))
    metadata = as_fields(state.get("metadata"))
    return PartRow(
        as_text(fields.get("type")) or "",
        as_text(fields.get("tool")),
        as_text(fields.get("callID")),
        ToolState(
            state.get("input", Raw()),
            as_text(state.get("output")),
            as_text(state.get("error")),
            ToolMetadata(as_int(metadata.get("exit")), metadata.get("answers", Raw())),
            _times(state.get("time")),
            state.get("attachments", Raw()),
        ),
        as_text(fields.get("text")),
        _times(fields.get("time")),
        is_true(fields.get("synthetic")),
        is_true(fields.get("ignored")),
        as_text(fields.get("mime")),
    )


def _times(raw: Raw | None) -> PartTimes:
    fields = as_fields(raw)
    return PartTimes(as_number(fields.get("start")), as_number(fields.get("end")))
