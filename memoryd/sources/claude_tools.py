"""Tool calls and results of a Claude Code session as a person would read them."""

import re
from collections import Counter

from msgspec import Raw

from memoryd.sources.claude_messages import Block, ResultPart, ToolResult
from memoryd.sources.claude_words import without_reminders, words_of_rejection
from memoryd.sources.forgetting import forget_oldest
from memoryd.sources.items import HUMAN, TOOL_CALL, TOOL_OUTPUT, Item
from memoryd.sources.parts import Spot
from memoryd.sources.rawjson import as_fields, as_list, as_text, compact, is_text

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
        self._tools: dict[str | None, str] = {}
        self.tool = self._tools.get  # the tool that a result belongs to

    def open(self, call_id: str | None, tool: str) -> None:
        """Remember a call."""
        if call_id is None:
            return
        self._tools[call_id] = tool
        if len(self._tools) > MAX_OPEN_CALLS:
            forget_oldest(self._tools, MAX_OPEN_CALLS)


def is_external(tool: str) -> bool:
    """Say whether a tool brings in words from outside the machine: web search and fetch, tool search, MCP."""
    return tool in EXTERNAL or tool.startswith(MCP_PREFIX)


def call_item(block: Block, spot: Spot, calls: OpenCalls) -> Item:
    """Read a `tool_use` or `server_tool_use` block."""
    tool = block.name or "tool"
    calls.open(block.id, tool)
    text = _call_text(tool, block.input)
    return Item(TOOL_CALL, text, spot.ordinal, spot.at, spot.cwd, tool, block.id, None, is_external(tool))


def result_item(block: Block, result: ToolResult, spot: Spot, calls: OpenCalls, dropped: Counter[str]) -> Item | None:
    """Read a `tool_result` block; `result` is the row's own account of it. None where it says nothing.

    An answered question of AskUserQuestion is the human speaking, and so are the words with which a person turned a
    call down.
    """
    call_id = block.call_id
    tool = calls.tool(call_id) or "tool"
    text = _result_text(block.content, dropped)
    if tool == QUESTION_TOOL and (answer := _answer(result, text)):
        return _said(answer, spot, tool, call_id)
    code, text = _exit_code(tool, text, block, result)
    if words := words_of_rejection(text):
        return _said(words, spot, tool, call_id)
    if not text and code is None:
        return None
    return Item(TOOL_OUTPUT, text, spot.ordinal, spot.at, spot.cwd, tool, call_id, code, is_external(tool))


def _said(text: str, spot: Spot, tool: str, call_id: str | None) -> Item:
    return Item(HUMAN, text, spot.ordinal, spot.at, spot.cwd, tool=tool, call_id=call_id)


def _call_text(tool: str, raw: Raw | None) -> str:
    if tool in SHELLS or tool in TELLING:
        fields = as_fields(raw)
        words = [as_text(fields.get(key)) for key in TELLING.get(tool, ("command",))]
        if text := " ".join(word for word in words if word):
            return text
    return f"{tool} {compact(raw)}".rstrip()


def _result_text(content: str | list[ResultPart] | None, dropped: Counter[str]) -> str:
    if isinstance(content, str):
        return without_reminders(content, dropped).rstrip()
    texts: list[str] = []
    for part in content or ():
        if part.type in MEDIA:
            dropped[MEDIA[part.type]] += 1
        else:
            texts.append(_part_text(part))
    return without_reminders("\n".join(text for text in texts if text), dropped).rstrip()


def _part_text(part: ResultPart) -> str:
    if part.type == "tool_reference":
        return part.tool_name or ""
    if part.type == "web_search_result":
        return " ".join(filter(None, (part.title, part.url)))
    return part.text or ""


def _exit_code(tool: str, text: str, block: Block, result: ToolResult) -> tuple[int | None, str]:
    """Return a command's exit code, if the format tells one, and its output without the line that says so.

    Since 2.0 a failed command begins with its code; one that is no error ended with 0 unless the row says that it was
    stopped, went to the background, or ended with another code that is no failure (grep).
    """
    if tool not in SHELLS:
        return None, text
    if header := _EXIT_CODE.match(text):
        return int(header.group(1)), text[header.end() :]
    is_open = result.interrupted or result.background
    is_success = block.is_error is False and not is_open and result.code_meaning is None
    return (0 if is_success else None), text


def _answer(result: ToolResult, text: str) -> str:
    """Render each answered question with its answer; empty when nothing was answered."""
    notes = as_fields(result.annotations)
    lines: list[str] = []
    for question, raw in as_fields(result.answers).items():
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
