"""Tool calls and outputs in Gemini form as a person would read them, for Gemini CLI and Qwen Code."""

import re
from functools import lru_cache

import msgspec
from msgspec import Raw

from memoryd.sources.forgetting import forget_oldest
from memoryd.sources.gemini_parts import Answered, UsualAnswer, UsualCall, parse_content
from memoryd.sources.items import HUMAN, TOOL_CALL, TOOL_OUTPUT, Item
from memoryd.sources.parts import Spot
from memoryd.sources.rawjson import UNREADABLE, as_fields, as_list, as_text, command_in, compact

SHELLS = frozenset({"run_shell_command", "shell", "run_terminal_cmd"})
QUESTION_TOOLS = frozenset({"ask_user", "ask_user_question"})
SKILL_TOOLS = frozenset({"activate_skill", "skill"})
EXTERNAL_TOOLS = frozenset({"google_web_search", "web_search", "web_fetch", "tool_search"})
MCP_PREFIXES = ("mcp__", "mcp_")
MCP_DISPLAY = "MCP Server)"  # how Gemini CLI shows the tools of a server, whatever it calls them
MAX_OPEN_CALLS = 4096

UNTRUSTED_OPEN, UNTRUSTED_CLOSE = "<untrusted_context>", "</untrusted_context>"
_OUTPUT = "Output: "  # how what a command printed nearly always begins
# a line that the program puts after what a command printed, and how such lines begin
_TRAILERS = ("Exit Code: ", "Signal: ", "Process Group PGID: ", "Background PIDs: ", "Stderr: ", "Error: ")
_TRAILER = re.compile(
    r"(?P<code>Exit Code: (-?\d{1,9}))|(?P<failed>Exit Code: .*|Signal: .*)|(?P<ended>Process Group PGID: .*)"
    r"|Background PIDs: .*|Stderr: \(empty\)|Error: \(none\)"
)
_SHORT = 64  # more white space around nothing is not looked through
_HEADER = re.compile(r"(?:Command: .*?\nDirectory: [^\n]*\n)?(?:Output|Stdout): ?", re.DOTALL)
_ANSWERED = re.compile(r"\AUser has provided the following answers:\s*", re.IGNORECASE)


class Call(msgspec.Struct, frozen=True, gc=False):
    """A call: `arguments` are still raw, and what else a recorded call tells: its result, and when it had that."""

    call_id: str | None
    tool: str
    arguments: Raw
    external: bool
    result: Raw | None = None
    timestamp: Raw | None = None


class _Fields(msgspec.Struct):
    id: Raw = Raw()
    name: Raw = Raw()
    args: Raw = Raw()
    response: Raw = Raw()
    result: Raw = Raw()
    timestamp: Raw = Raw()
    display_name: Raw = msgspec.field(default=Raw(), name="displayName")


_fields = msgspec.json.Decoder(_Fields)


class OpenCalls:
    """What outputs need to know of their calls; of very many the oldest are forgotten."""

    def __init__(self) -> None:
        self._calls: dict[str | None, Call] = {}
        self.answered: dict[str | None, None] = {}
        self.find = self._calls.get  # the call of an output

    def open(self, call: Call) -> bool:
        """Remember a call; False when it is known already (a session may hold a call in two forms)."""
        call_id = call.call_id
        if call_id is None:
            return True
        if call_id in self._calls:
            return False
        # only a question's own arguments are needed again; others may be megabytes
        kept = call.arguments if call.tool in QUESTION_TOOLS else Raw()
        self._calls[call_id] = Call(call_id, call.tool, kept, call.external)
        if len(self._calls) > MAX_OPEN_CALLS:
            forget_oldest(self._calls, MAX_OPEN_CALLS)
        return True

    def answer(self, call_id: str | None) -> bool:
        """Note that a call has its output; False when it had one before."""
        if call_id is None:
            return True
        if call_id in self.answered:
            return False
        self.answered[call_id] = None
        if len(self.answered) > MAX_OPEN_CALLS:
            forget_oldest(self.answered, MAX_OPEN_CALLS)
        return True


def parse_call(raw: Raw) -> Call:
    """Read a functionCall part, or a recorded tool call."""
    fields = _decode(raw)
    tool, external = tool_of(as_text(fields.name) or "tool", as_text(fields.display_name) or "")
    return Call(as_text(fields.id) or None, tool, fields.args, external, fields.result, fields.timestamp)


def usual_call(called: UsualCall, display_name: str) -> Call:
    """Return a call whose members are decoded already."""
    tool, external = tool_of(called.name or "tool", display_name)
    return Call(called.id or None, tool, called.args, external)


@lru_cache(maxsize=256)  # a session has few tools, and many calls of each
def tool_of(named: str, display_name: str) -> tuple[str, bool]:
    """Return a tool's name with that of its server, and whether it brings in words from outside the machine.

    Versions that did not name the server show it, `search (memoryd MCP Server)`.
    """
    tool, external = named, is_external(named, display_name)
    if display_name.endswith(MCP_DISPLAY):
        server = display_name.rpartition("(")[2].removesuffix(MCP_DISPLAY).strip()
        tool = named if not server or server in named else f"{server}__{named}"
    return tool, external


def is_external(tool: str, display_name: str = "") -> bool:
    """Say whether a tool brings in words from outside the machine: web search and fetch, tool search, MCP."""
    return tool in EXTERNAL_TOOLS or tool.startswith(MCP_PREFIXES) or "__" in tool or display_name.endswith(MCP_DISPLAY)


def call_item(call: Call, spot: Spot) -> Item:
    """Render a call: a shell's command line as it would be typed, any other tool with its arguments."""
    text = command_in(call.arguments) if call.tool in SHELLS else None
    if text is None:
        text = f"{call.tool} {compact(call.arguments) if as_fields(call.arguments) else ''}".rstrip()
    return Item(
        TOOL_CALL,
        text or call.tool,
        spot.ordinal,
        spot.at,
        spot.cwd,
        call.tool,
        call.call_id,
        None,
        call.external,
    )


def response_item(
    raw: Answered, spot: Spot, calls: OpenCalls, exit_code: int | None = None
) -> tuple[Item | None, str | None]:
    """Read a functionResponse; an output that is none comes with the reason for leaving it out, if there is one.

    `exit_code` is what the record says of a command's beside the text; else the text may tell.
    The answer to a question that the agent asked is the human speaking.
    """
    response: Raw | UsualAnswer
    if isinstance(raw, Raw):
        fields = _decode(raw)
        call_id, name, response = as_text(fields.id), as_text(fields.name), fields.response
    else:
        call_id, name, response = raw.id, raw.name, raw.response
    call_id = call_id or None
    call = calls.find(call_id)
    tool = call.tool if call else name or "tool"
    if not calls.answer(call_id):
        return None, None
    if tool in SKILL_TOOLS:
        return None, "skill"
    text = _response_text(response) if isinstance(response, Raw) else _unwrapped(response.text() or "")
    if tool in QUESTION_TOOLS and (said := _answer(call.arguments if call else None, text)):
        return Item(HUMAN, said, spot.ordinal, spot.at, spot.cwd, tool=tool, call_id=call_id), None
    if tool in SHELLS:
        text, told = shell_output(text)
        exit_code = told if exit_code is None else exit_code
    if exit_code is None and (not text or text.isspace()):
        return None, None
    external = call.external if call else is_external(tool)
    return Item(TOOL_OUTPUT, text, spot.ordinal, spot.at, spot.cwd, tool, call_id, exit_code, external), None


def shell_output(text: str) -> tuple[str, int | None]:
    """Take the program's wrapping off what a command printed; the exit code is None where nothing tells it.

    Newer versions of Gemini CLI name the exit code only where it is not 0.
    """
    if text.startswith(_OUTPUT):
        start = len(_OUTPUT)
    elif header := _HEADER.match(text):
        start = header.end()
    else:
        return text, None
    end, exit_code = len(text), None
    kinds: list[str | None] = []
    rest = len(text.rstrip()) if text[-1:].isspace() else end
    while rest > start:  # from the last line to the first
        line = text.rfind("\n", start, rest) + 1 or start
        if not text.startswith(_TRAILERS, line) or not (trailer := _TRAILER.fullmatch(text, line, rest)):
            break
        kind = trailer.lastgroup
        if kind == "code" and exit_code is None:
            exit_code = int(trailer[2])
        kinds.append(kind)
        end = rest = line - 1 if line > start else start
    printed = text[start:end]
    if exit_code is None and "ended" in kinds and "failed" not in kinds:
        exit_code = None if printed.startswith("Error: ", printed.rfind("\n") + 1) else 0
    return "" if end - start < _SHORT and printed.strip() == "(empty)" else printed, exit_code


def _response_text(raw: Raw | None) -> str:
    fields = as_fields(raw)
    for key in ("output", "error"):
        value = fields.get(key)
        if value:
            text = as_text(value)
            return compact(value) if text is None else _unwrapped(text)
    content = "\n".join(parse_content(fields.get("content")).texts)
    return content or as_text(raw) or (compact(raw) if fields else "")


def _unwrapped(text: str) -> str:
    first = text[:1]
    if (first != "<" and not first.isspace()) or text.find(UNTRUSTED_OPEN, 0, 200) < 0:
        return text  # as nearly all
    trimmed = text.strip()
    if not trimmed.startswith(UNTRUSTED_OPEN) or not trimmed.endswith(UNTRUSTED_CLOSE):
        return text
    inner = trimmed[len(UNTRUSTED_OPEN) : -len(UNTRUSTED_CLOSE)]
    return inner.removeprefix("\n").removesuffix("\n")


def _answer(arguments: Raw | None, output: str) -> str:
    """Render each answered question with its answer; empty when nothing was answered."""
    if prose := _ANSWERED.match(output):
        return output[prose.end() :].strip()
    answers = as_fields(as_fields(output.encode("utf-8", "replace")).get("answers"))
    asked = [as_text(as_fields(raw).get("question")) for raw in as_list(as_fields(arguments).get("questions"))]
    lines: list[str] = []
    for key, raw in answers.items():
        words = as_text(raw) or ", ".join(text for value in as_list(raw) if (text := as_text(value)))
        question = asked[int(key)] if key.isdecimal() and len(key) < 3 and int(key) < len(asked) else None
        if words:
            lines.append(f"Asked: {question}\nAnswered: {words}" if question else words)
    return "\n".join(lines)


def _decode(raw: Raw) -> _Fields:
    try:
        return _fields.decode(raw)
    except UNREADABLE:
        return _Fields()
