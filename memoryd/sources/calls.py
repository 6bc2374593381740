"""A tool call as a person would read it, from its name and its arguments: for formats that keep both as JSON."""

import re
from functools import lru_cache

import msgspec
from msgspec import Raw

from memoryd.sources.codex_tools import COMMAND_KEYS, command_line, is_external
from memoryd.sources.rawjson import UNREADABLE, as_fields, as_text, compact, is_text

SHELL_TOOLS = re.compile(
    r"(?:.*[./])?(?:bash|sh|zsh|shell|powershell|terminal|exec|(?:local_)?shell(?:_command)?"
    r"|(?:run|exec|execute)_(?:shell_)?(?:command|cmd|bash)|run_in_terminal|run_terminal_cmd)",
    re.IGNORECASE,
)
PATCH_TOOL = "apply_patch"
PATCH_KEYS = ("input", "patch")
FETCHING_TOOLS = frozenset({"web_fetch", "webfetch", "websearch", "fetch_webpage", "google_web_search"})


class _UsualArguments(msgspec.Struct, gc=False):
    cmd: str | None = None
    command: str | None = None


_usual = msgspec.json.Decoder(_UsualArguments)


def call_text(tool: str, arguments: Raw | None) -> str:
    """Return a shell's command line, a patch, or the tool's name with its arguments as compact JSON.

    The arguments are an object, or (as the chat completions API gives them) a string that holds one.
    """
    if runs_commands(tool) and (line := _command_line(arguments)) is not None:
        return line
    source = as_text(arguments) if arguments and is_text(arguments) else None
    plain = arguments if source is None else Raw(source.encode("utf-8", "replace"))
    fields = as_fields(plain)
    shell = [command_line(fields.get(key)) for key in COMMAND_KEYS] if runs_commands(tool) else []
    patch = [as_text(fields.get(key)) for key in PATCH_KEYS] if tool == PATCH_TOOL else []
    if tool == PATCH_TOOL and not fields:
        patch = [source]  # a custom tool: its argument is the patch itself
    readable = next((text for text in (*shell, *patch) if text is not None), None)
    if readable is not None:
        return readable
    return f"{tool} {source if source is not None and not fields else compact(plain)}".rstrip()


def _command_line(arguments: Raw | None) -> str | None:
    """Return the command line of arguments as they nearly always are: an object in which it is a text."""
    try:
        found = _usual.decode(arguments or b"")
    except UNREADABLE:
        return None
    return found.command if found.cmd is None else found.cmd


@lru_cache(maxsize=256)  # a session has few tools, and many calls of each
def runs_commands(tool: str) -> bool:
    """Say whether a tool is a shell."""
    return SHELL_TOOLS.fullmatch(tool) is not None


@lru_cache(maxsize=256)
def brings_outside_words(tool: str) -> bool:
    """Say whether a tool brings in words from outside the machine: web, MCP, tool search."""
    return is_external(tool) or tool.lower() in FETCHING_TOOLS
