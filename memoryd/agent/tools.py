"""The seven tools as one table: what the model is told of each, and how its arguments become a value."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from memoryd.agent.refusals import RefusalKind, RefusedError
from memoryd.llm.question import JsonObject, ToolCall, ToolSpec
from memoryd.text import first_line

DEFAULT_MAX_LINES = 2000
MAX_QUERIES = 20


@dataclass(frozen=True, slots=True)
class ListFiles:
    """Name what lies in a folder."""

    path: str


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Show lines of a file; `line_offset` is the 1-based first line."""

    path: str
    line_offset: int
    max_lines: int


@dataclass(frozen=True, slots=True)
class SearchFiles:
    """Show the lines below a path that hold any of the queries."""

    queries: tuple[str, ...]
    path: str


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Create a file or replace the whole of it."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class EditFile:
    """Replace the one occurrence of `old` in a file by `new`."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """Remove a file."""

    path: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Ask for the result to be accepted."""

    summary: str


Look: TypeAlias = ListFiles | ReadFile | SearchFiles
Change: TypeAlias = WriteFile | EditFile | DeleteFile
ToolRequest: TypeAlias = Look | Change | Finish


class _Kind(Enum):
    TEXT = "string"
    COUNT = "integer"
    TEXTS = "array"


@dataclass(frozen=True, slots=True)
class _Argument:
    kind: _Kind
    description: str
    default: int | None = None  # the schema requires every argument; a model that leaves this one out gets the default


@dataclass(frozen=True, slots=True)
class _Tool:
    name: str
    description: str
    arguments: Mapping[str, _Argument]
    build: Callable[..., ToolRequest]


_FILE = _Argument(_Kind.TEXT, 'Path of a file, relative to the memory folder, such as "MEMORY.md".')
_FOLDER = _Argument(_Kind.TEXT, 'Path of a folder, relative to the memory folder; "" is the memory folder itself.')
_WRITABLE_FILE = _Argument(
    _Kind.TEXT, '"MEMORY.md", "memory_summary.md", or a path of the form "skills/<name>/SKILL.md".'
)

_TABLE = (
    _Tool(
        "list_files",
        "List what a folder holds, one path a line, folders with a trailing slash. Not recursive.",
        {"path": _FOLDER},
        ListFiles,
    ),
    _Tool(
        "read_file",
        "Read lines of a text file. A long answer is cut, and says at which line to go on.",
        {
            "path": _FILE,
            "line_offset": _Argument(_Kind.COUNT, "First line to read; the first line of a file is 1.", 1),
            "max_lines": _Argument(_Kind.COUNT, "How many lines to read at most, such as 2000.", DEFAULT_MAX_LINES),
        },
        ReadFile,
    ),
    _Tool(
        "search_files",
        "Find the lines that hold any of the queries, ignoring case, as path:line: text. At most 200 lines.",
        {
            "queries": _Argument(_Kind.TEXTS, "Plain texts to look for; a line with any of them is a match."),
            "path": _Argument(_Kind.TEXT, 'A file or folder to search below; "" is the whole memory folder.'),
        },
        SearchFiles,
    ),
    _Tool(
        "write_file",
        "Create a file, or replace the whole of it, with the content exactly as given.",
        {"path": _WRITABLE_FILE, "content": _Argument(_Kind.TEXT, "The whole new content of the file.")},
        WriteFile,
    ),
    _Tool(
        "edit_file",
        "Replace one passage of a file. The passage must occur exactly once, white space included.",
        {
            "path": _WRITABLE_FILE,
            "old": _Argument(_Kind.TEXT, "The passage as it stands in the file, long enough to occur only once."),
            "new": _Argument(_Kind.TEXT, "What takes its place; an empty text removes it."),
        },
        EditFile,
    ),
    _Tool("delete_file", "Delete a file.", {"path": _WRITABLE_FILE}, DeleteFile),
    _Tool(
        "finish",
        "Hand in the result. It is checked: the answer is accepted, or rejected with one complaint a line to repair.",
        {"summary": _Argument(_Kind.TEXT, "One or two sentences: what changed in the memory, and why.")},
        Finish,
    ),
)
_TOOLS = {tool.name: tool for tool in _TABLE}


def tool_specs() -> tuple[ToolSpec, ...]:
    """Return the seven tools as a model is told of them."""
    return tuple(ToolSpec(tool.name, tool.description, _schema(tool)) for tool in _TABLE)


def parse_call(call: ToolCall) -> ToolRequest:
    """Turn a model's call into a value; raises RefusedError naming what is wrong and what was expected."""
    tool = _TOOLS.get(call.name)
    if tool is None:
        raise RefusedError(
            RefusalKind.UNKNOWN_TOOL,
            f'there is no tool "{first_line(call.name, 80)}"; the tools are {", ".join(_TOOLS)}',
        )
    given = _decode(tool, call.arguments)
    unknown = sorted(key for key in given if key not in tool.arguments)
    if unknown:
        raise _bad(tool, f'unknown argument "{first_line(unknown[0], 80)}"')
    return tool.build(**{name: _value(tool, name, argument, given) for name, argument in tool.arguments.items()})


def _schema(tool: _Tool) -> JsonObject:
    return {
        "type": "object",
        "properties": {name: _property(argument) for name, argument in tool.arguments.items()},
        "required": list(tool.arguments),
        "additionalProperties": False,
    }


def _property(argument: _Argument) -> JsonObject:
    described: dict[str, object] = {"type": argument.kind.value, "description": argument.description}
    if argument.kind is _Kind.TEXTS:
        described["items"] = {"type": "string"}
    return described


def _decode(tool: _Tool, arguments: str) -> dict[str, object]:
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        raise _bad(tool, "the arguments are no valid JSON") from None
    if not isinstance(given, dict):
        raise _bad(tool, "the arguments are no JSON object")
    return given


def _value(tool: _Tool, name: str, argument: _Argument, given: Mapping[str, object]) -> object:
    value = given.get(name)
    if value is None:
        if argument.default is None:
            raise _bad(tool, f'"{name}" is missing')
        return argument.default
    match argument.kind:
        case _Kind.TEXT if isinstance(value, str):
            return value
        case _Kind.COUNT if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        case _Kind.TEXTS if isinstance(value, list):
            return _queries(tool, value)
        case _:
            raise _bad(tool, f'"{name}" must be {_EXPECTED[argument.kind]}')


_EXPECTED = {
    _Kind.TEXT: "a string",
    _Kind.COUNT: "a whole number of at least 1",
    _Kind.TEXTS: "a list of strings",
}


def _queries(tool: _Tool, values: list[object]) -> tuple[str, ...]:
    texts = tuple(value for value in values if isinstance(value, str) and value.strip())
    if len(texts) < len(values) or not 1 <= len(texts) <= MAX_QUERIES:
        raise _bad(tool, f'"queries" must hold 1 to {MAX_QUERIES} strings, none of them blank')
    return texts


def _bad(tool: _Tool, problem: str) -> RefusedError:
    return RefusedError(RefusalKind.BAD_ARGUMENTS, f"{tool.name}: {problem}; expected {_signature(tool)}")


def _signature(tool: _Tool) -> str:
    return "{" + ", ".join(f'"{name}": {_EXPECTED[argument.kind]}' for name, argument in tool.arguments.items()) + "}"
