"""Tool calls and outputs of a Codex session as a person would read them."""

import re
import shlex
from collections.abc import Callable

import msgspec
from msgspec import Raw

from memoryd.sources.codex_messages import MEDIA_PARTS, content_parts, part_text
from memoryd.sources.codex_records import Payload
from memoryd.sources.forgetting import forget_oldest
from memoryd.sources.items import HUMAN, TOOL_CALL, TOOL_OUTPUT, Item
from memoryd.sources.parts import Spot
from memoryd.sources.rawjson import as_fields, as_int, as_list, as_text, compact, is_text

SHELLS = re.compile(r"(?:.*/)?(?:ba|z|da|k|fi)?sh")
SHELL_FLAGS = frozenset({"-c", "-lc", "-ic", "-lic", "-cl"})
COMMAND_KEYS = ("cmd", "command")  # exec_command and shell
QUESTION_TOOL = "request_user_input"
MCP_PREFIX = "mcp__"
WEB_SEARCH, TOOL_SEARCH, LOCAL_SHELL = "web_search", "tool_search", "local_shell"
MAX_OPEN_CALLS = 4096

_HEADER = re.compile(r"\A(?:(?:Chunk ID|Wall time|Exit code|Original token count|Total output lines): [^\n]*\n"
                     r"|Process [^\n]*\n)+Output:\n?")  # fmt: skip
_HEADER_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})$", re.MULTILINE)


class Call(msgspec.Struct, frozen=True, gc=False):
    """What an output needs to know of its call."""

    tool: str
    external: bool
    arguments: Raw | None


class OpenCalls:
    """The calls whose outputs have not come yet, the oldest forgotten when there are too many."""

    def __init__(self) -> None:
        self._calls: dict[str | None, Call] = {}
        # the call that an output belongs to; it stays, since a call may be answered in several pieces
        self.answer = self._calls.get

    def open(self, call_id: str | None, call: Call) -> None:
        """Remember a call."""
        if call_id is None:
            return
        self._calls[call_id] = call
        if len(self._calls) > MAX_OPEN_CALLS:
            forget_oldest(self._calls, MAX_OPEN_CALLS)


def call_item(fields: dict[str, Raw], spot: Spot, calls: OpenCalls) -> Item:
    """Read a call of one of CALL_TYPES."""
    tool, text, arguments = _READERS[as_text(fields.get("type")) or ""](fields)
    return _call_item(tool, text, arguments, as_text(fields.get("call_id")) or as_text(fields.get("id")), spot, calls)


def usual_call(payload: Payload, spot: Spot, calls: OpenCalls) -> Item:
    """Read a `function_call` that is decoded already."""
    tool, text, arguments = _function_call(payload.name, payload.namespace, payload.arguments or "")
    return _call_item(tool, text, arguments, payload.call_id or payload.id, spot, calls)


def _call_item(tool: str, text: str, arguments: Raw | None, call_id: str | None, spot: Spot, calls: OpenCalls) -> Item:
    external = is_external(tool)
    # only a question's own arguments are needed again; others may be megabytes
    calls.open(call_id, Call(tool, external, arguments if tool == QUESTION_TOOL else None))
    return Item(TOOL_CALL, text, spot.ordinal, spot.at, spot.cwd, tool, call_id, None, external)


def output_item(fields: dict[str, Raw], spot: Spot, calls: OpenCalls) -> tuple[Item | None, int]:
    """Read an output and the number of images left out of it; None when it says nothing.

    The answer to a question of `request_user_input` is the human speaking.
    """
    text, exit_code, images = output_text(fields.get("output"))
    return _output_item(text, exit_code, as_text(fields.get("call_id")), spot, calls), images


def usual_output(payload: Payload, spot: Spot, calls: OpenCalls) -> tuple[Item | None, int]:
    """Read an output that is decoded already."""
    output, images = payload.output, 0
    if not isinstance(output, str):
        images = sum(part.type in MEDIA_PARTS for part in output or ())
        output = "\n".join(part.text for part in output or () if part.text and part.type not in MEDIA_PARTS)
    text, exit_code = unwrap(output)
    return _output_item(text, exit_code, payload.call_id, spot, calls), images


def _output_item(text: str, exit_code: int | None, call_id: str | None, spot: Spot, calls: OpenCalls) -> Item | None:
    call = calls.answer(call_id)
    if call is not None and call.tool == QUESTION_TOOL and (answer := _answer(call.arguments, text)):
        kind, text, exit_code = HUMAN, answer, None
    elif not text and exit_code is None:
        return None
    else:
        kind = TOOL_OUTPUT
    tool, external = (call.tool, call.external) if call else (None, False)
    return Item(kind, text, spot.ordinal, spot.at, spot.cwd, tool, call_id, exit_code, external)


def tool_search_output_item(fields: dict[str, Raw], spot: Spot) -> Item:
    """Read the names of the tools that a search found."""
    names = [as_text(as_fields(raw).get("name")) or compact(raw) for raw in as_list(fields.get("tools"))]
    return Item(
        TOOL_OUTPUT,
        ", ".join(names),
        spot.ordinal,
        spot.at,
        spot.cwd,
        tool=TOOL_SEARCH,
        call_id=as_text(fields.get("call_id")),
        external=True,
    )


def is_external(tool: str) -> bool:
    """Say whether a tool brings in words from outside the machine: web search, tool search, MCP."""
    return tool in (WEB_SEARCH, TOOL_SEARCH) or tool.startswith(MCP_PREFIX)


def output_text(raw: Raw | None) -> tuple[str, int | None, int]:
    """Return an output's text without its wrapping, its exit code if it tells one, and how many images it held."""
    images = 0
    texts: list[str] = []
    source = as_fields(raw).get("content", raw) if raw and not is_text(raw) else raw
    for part in content_parts(source):
        text, medium = part_text(part)
        images += medium is not None
        texts.append(text)
    text, exit_code = unwrap("\n".join(text for text in texts if text))
    return text, exit_code, images


def unwrap(text: str) -> tuple[str, int | None]:
    """Take off `{"output", "metadata": {"exit_code"}}` or the header that ends with `Output:`."""
    if text.startswith("{"):
        return _unwrap_json(text)
    header = _HEADER.match(text)
    if header is None:
        return text, None
    code = _HEADER_CODE.search(header.group())
    return text[header.end() :], int(code.group(1)) if code else None


def command_line(raw: Raw | None) -> str | None:
    """Return a command as a person would type it: `bash -lc X` is X, other word lists are quoted."""
    if raw and is_text(raw):
        return as_text(raw)
    words = [as_text(word) or "" for word in as_list(raw)]
    if not words:
        return None
    if len(words) == 3 and SHELLS.fullmatch(words[0]) and words[1] in SHELL_FLAGS:
        return words[2]
    return shlex.join(words)


def _unwrap_json(text: str) -> tuple[str, int | None]:
    fields = as_fields(text.encode("utf-8", "replace"))
    inner = as_text(fields.get("output"))
    if inner is None or "metadata" not in fields:
        return text, None
    return inner, as_int(as_fields(fields.get("metadata")).get("exit_code"))


def _function(fields: dict[str, Raw]) -> tuple[str, str, Raw | None]:
    arguments = fields.get("arguments")
    source = as_text(arguments) if arguments and is_text(arguments) else compact(arguments)
    return _function_call(as_text(fields.get("name")), as_text(fields.get("namespace")), source or "")


def _function_call(named: str | None, namespace: str | None, source: str) -> tuple[str, str, Raw | None]:
    name = named or "function"
    tool = f"{namespace}{'' if namespace.endswith('__') else '.'}{name}" if namespace else name
    inner = as_fields(source.encode("utf-8", "replace"))
    return tool, _function_text(tool, name, source, inner), inner.get("questions")


def _function_text(tool: str, name: str, source: str, inner: dict[str, Raw]) -> str:
    if not is_external(tool):
        for key in COMMAND_KEYS:
            line = command_line(inner.get(key))
            if line is not None:
                return line
        if name == "apply_patch" and (patch := as_text(inner.get("input"))) is not None:
            return patch
    arguments = compact(Raw(source.encode("utf-8", "replace"))) if inner else source
    return f"{tool} {arguments}".rstrip()


def _custom(fields: dict[str, Raw]) -> tuple[str, str, Raw | None]:
    tool = as_text(fields.get("name")) or "custom"
    source = as_text(fields.get("input"))
    text = compact(fields.get("input")) if source is None else source
    return tool, text if tool == "apply_patch" else f"{tool} {text}".rstrip(), None


def _local_shell(fields: dict[str, Raw]) -> tuple[str, str, Raw | None]:
    return LOCAL_SHELL, command_line(as_fields(fields.get("action")).get("command")) or "", None


def _web_search(fields: dict[str, Raw]) -> tuple[str, str, Raw | None]:
    action = as_fields(fields.get("action"))
    words = [as_text(action.get(key)) for key in ("query", "url", "pattern")]
    return WEB_SEARCH, " ".join(word for word in words if word) or compact(fields.get("action")), None


def _tool_search(fields: dict[str, Raw]) -> tuple[str, str, Raw | None]:
    arguments = fields.get("arguments")
    return TOOL_SEARCH, (as_text(arguments) if arguments and is_text(arguments) else compact(arguments)) or "", None


_READERS: dict[str, Callable[[dict[str, Raw]], tuple[str, str, Raw | None]]] = {
    "function_call": _function,
    "custom_tool_call": _custom,
    "local_shell_call": _local_shell,
    "web_search_call": _web_search,
    "tool_search_call": _tool_search,
}
CALL_TYPES = frozenset(_READERS)
OUTPUT_TYPES = frozenset({"function_call_output", "custom_tool_call_output"})


def _answer(questions: Raw | None, output: str) -> str:
    """Render each answered question with its answer; empty when nothing was answered."""
    answers = as_fields(as_fields(output.encode("utf-8", "replace")).get("answers"))
    asked = {as_text(q.get("id")): as_text(q.get("question")) for q in map(as_fields, as_list(questions))}
    lines: list[str] = []
    for question_id, raw in answers.items():
        given = as_fields(raw).get("answers", raw)
        words = ", ".join(text for part in content_parts(given) if (text := as_text(part)))
        if words:
            question = asked.get(question_id)
            lines.append(f"Asked: {question}\nAnswered: {words}" if question else words)
    return "\n".join(lines)
