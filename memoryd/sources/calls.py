"""A tool call as a person would read it, from its name and its arguments: for formats that keep both as JSON."""

import re
from functools import lru_cache

from msgspec import Raw

from memoryd.sources.codex_tools import COMMAND_KEYS, command_line, is_external
from memoryd.sources.rawjson import as_fields, as_text, compact, is_text

SHELL_TOOLS = re.compile(
    r"(?:.*[./])?(?:bash|sh|zsh|shell|powershell|terminal|exec|(?:local_)?shell(?:_command)?"
    r"|(?:run|exec|execute)_(?:shell_)?(?:command|cmd|bash)|run_in_terminal|run_terminal_cmd)",
    re.IGNORECASE,
)
PATCH_TOOL = "apply_patch"
PATCH_KEYS = ("input", "patch")
FETCHING_TOOLS = frozenset({"web_fetch", "webfetch", "websearch", "fetch_webpage", "google_web_search"})


def call_text(tool: str, arguments: Raw | None) -> str:
    """Return a shell's command line, a patch, or the tool's name with its arguments as compact JSON.

    The arguments are an object, or (as the chat completions API gives them) a string that holds one.
    """
    source = as_text(arguments) if arguments and is_text(arguments) else None
    plain = arguments if source is None else Raw(source.encode("utf-8", "replace"))
    fields = as_fields(plain)
    shell = [command_line(fields.get(key)) for key in COMMAND_KEYS] if SHELL_TOOLS.fullmatch(tool) else []
    patch = [as_text(fields.get(key)) for key in PATCH_KEYS] if tool == PATCH_TOOL else []
    if tool == PATCH_TOOL and not fields:
        patch = [source]  # a custom tool: its argument is the patch itself
    readable = next((text for text in (*shell, *patch) if text is not None), None)
    if readable is not None:
        return readable
    return f"{tool} {source if source is not None and not fields else compact(plain)}".rstrip()


@lru_cache(maxsize=256)  # a session has few tools, and many calls of each
def brings_outside_words(tool: str) -> bool:
    """Say whether a tool brings in words from outside the machine: web, MCP, tool search."""
    return is_external(tool) or tool.lower() in FETCHING_TOOLS
