"""Tool calls and results of a Claude Code session as a person would read them."""

import re
from collections import Counter

from msgspec import Raw

from memoryd.sources.claude_messages import Block
from memoryd.sources.claude_words import without_reminders, words_of_rejection
from memoryd.sources.items import Item, ItemKind
from memoryd.sources.parts import Spot
from memoryd.sources.rawjson import as_fields, as_list, as_text, compact, is_text, is_true

SHELLS = frozenset({"Bash", "PowerShell"})
QUESTION_TOOL = "AskUserQuestion"
MCP_PREFIX = "mcp__"
EXTERNAL = frozenset(
    {"WebSearch", "WebFetch", "ToolSearch", "web_search", "web_fetch", "ListMcpResourcesTool", "ReadMcpResourceTool"}
)
MEDIA = {"image": "image", "document": "document", "audio": "audio"}
MAX_OPEN_CALLS = 4096
TELLING = {"WebSearch": ("query",), "web_search": ("query",), "WebFetch": ("url", "prompt"), "web_fetch": ("url",)}

_EXIT_CODE = re.compile(r"\AExit code (-?\d{1,9})(?:\n|\Z)")
_ANSWERED = re.compile(r"\AUser has answered your questions: (.*?)\.? You can now continue", re.DOTALL)


class OpenCalls:
    """The names of the tools that were called, by call id; the oldest are forgotten when there are too many."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}

    def open(self, call_id: str | None, tool: str) -> None:
        """Remember a call."""
        if call_id is None:
            return
        self._tools[call_id] = tool
        if len(self._tools) > MAX_OPEN_CALLS:
            del self._tools[next(iter(self._tools))]

    def tool(self, call_id: str | None) -> str | None:
        """Return the tool that a result belongs to."""
        return self._tools.get(call_id) if call_id is not None else None


def is_external(tool: str) -> bool:
    """Say whether a tool brings in words from outside the machine: web search and fetch, tool search, MCP."""
    return tool in EXTERNAL or tool.startswith(MCP_PREFIX)


def call_item(block: Block, spot: Spot, calls: OpenCalls) -> Item:
    """Read a `tool_use` or `server_tool_use` block."""
    tool = as_text(block.name) or "tool"
    call_id = as_text(block.id)
    calls.open(call_id, tool)
    return Item(
        ItemKind.TOOL_CALL,
        _call_text(tool, block.input),
        spot.ordinal,
        spot.at,
        spot.cwd,
        tool=tool,
        call_id=call_id,
        external=is_external(tool),
    )


def result_items(block: Block, result: Raw | None, spot: Spot, calls: OpenCalls, dropped: Counter[str]) -> list[Item]:
    """Read a `tool_result` block; `result` is the row's own account of it (toolUseResult), which may be huge.

    An answered question of AskUserQuestion is the human speaking, and so are the words with which a person turned a
    call down.
    """
    call_id = as_text(block.call_id)
    tool = calls.tool(call_id) or "tool"
    text = _result_text(block.content, dropped)
    if tool == QUESTION_TOOL and (answer := _answer(result, text)):
        return [_said(answer, spot, tool, call_id)]
    code, text = _exit_code(tool, text, block, result)
    items: list[Item] = []
    if words := words_of_rejection(text):
        items.append(_said(words, spot, tool, call_id))
    elif text or code is not None:
        items.append(
            Item(
                ItemKind.TOOL_OUTPUT,
                text,
                spot.ordinal,
                spot.at,
                spot.cwd,
                tool=tool,
                call_id=call_id,
                exit_code=code,
                external=is_external(tool),
            )
        )
    return items


def _said(text: str, spot: Spot, tool: str, call_id: str | None) -> Item:
    return Item(ItemKind.HUMAN, text, spot.ordinal, spot.at, spot.cwd, tool=tool, call_id=call_id)


def _call_text(tool: str, raw: Raw | None) -> str:
    if tool in SHELLS or tool in TELLING:
        fields = as_fields(raw)
        words = [as_text(fields.get(key)) for key in TELLING.get(tool, ("command",))]
        if text := " ".join(word for word in words if word):
            return text
    return f"{tool} {compact(raw)}".rstrip()


def _result_text(raw: Raw | None, dropped: Counter[str]) -> str:
    if raw and is_text(raw):
        return without_reminders(as_text(raw) or "", dropped).rstrip()
    texts: list[str] = []
    for part in as_list(raw):
        fields = as_fields(part)
        kind = as_text(fields.get("type")) or ""
        if kind in MEDIA:
            dropped[MEDIA[kind]] += 1
        else:
            texts.append(_part_text(kind, fields))
    return without_reminders("\n".join(text for text in texts if text), dropped).rstrip()


def _part_text(kind: str, fields: dict[str, Raw]) -> str:
    if kind == "tool_reference":
        return as_text(fields.get("tool_name")) or ""
    if kind == "web_search_result":
        return " ".join(filter(None, (as_text(fields.get("title")), as_text(fields.get("url")))))
    return as_text(fields.get("text")) or ""


def _exit_code(tool: str, text: str, block: Block, result: Raw | None) -> tuple[int | None, str]:
    """Return a command's exit code, if the format tells one, and its output without the line that says so.

    Since 2.0 a failed command begins with its code; one that is no error ended with 0 unless the row says that it was
    stopped, went to the background, or ended with another code that is no failure (grep).
    """
    if tool not in SHELLS:
        return None, text
    if header := _EXIT_CODE.match(text):
        return int(header.group(1)), text[header.end() :]
    fields = as_fields(result) if result and not is_text(result) else {}
    is_open = is_true(fields.get("interrupted")) or as_text(fields.get("backgroundTaskId"))
    has_other_code = as_text(fields.get("returnCodeInterpretation")) is not None
    is_success = block.is_error is False and not is_open and not has_other_code
    return (0 if is_success else None), text


def _answer(result: Raw | None, text: str) -> str:
    """Render each answered question with its answer; empty when nothing was answered."""
    fields = as_fields(result) if result and not is_text(result) else {}
    notes = as_fields(fields.get("annotations"))
    lines: list[str] = []
    for question, raw in as_fields(fields.get("answers")).items():
        words = _answer_words(raw)
        if note := as_text(as_fields(notes.get(question)).get("notes")):
            words = f"{words} ({note})" if words else note
        if words:
            lines.append(f"Asked: {question}\nAnswered: {words}")
    if lines:
        return "\n".join(lines)
    told = _ANSWERED.match(text)
    return told.group(1).strip() if told else words_of_rejection(text)


def _answer_words(raw: Raw) -> str:
    if is_text(raw):
        return (as_text(raw) or "").strip()
    return ", ".join(text for part in as_list(raw) if (text := as_text(part)))
