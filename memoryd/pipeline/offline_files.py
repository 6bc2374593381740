"""Files and directories that mattered in a session: those it edited, and those it named again and again."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from memoryd.pipeline.offline_text import is_quotable
from memoryd.sources.items import Item, ItemKind

MAX_FILES: Final = 8
MAX_DIRECTORIES: Final = 3
MIN_MENTIONS: Final = 2
MIN_FILES_OF_A_DIRECTORY: Final = 3
MAX_SCANNED_CHARS: Final = 20_000
"""Paths are looked for in the beginning of a long text only."""

_PATCHED: Final = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (\S+)[ \t]*$", re.MULTILINE)
_ARGUMENT: Final = re.compile(r'"(?:file_?path|path|filename|notebook_path)"\s*:\s*"([^"\\\n]{1,200})"', re.IGNORECASE)
_EDITING_TOOL: Final = re.compile(r"edit|write|patch|replace|create", re.IGNORECASE)
_IN_PLACE: Final = re.compile(r"\bsed\s+(?:-\w+\s+)*-i\S*\s.{0,200}?(\S{1,200}\.\w{1,8})\s*(?:$|&&|;|\|)", re.MULTILINE)
_REDIRECTED: Final = re.compile(r"(?<![0-9&>-])>{1,2}\s*([\w~./@-]+\.\w{1,8})\b")
_EXTENSION: Final = (
    r"(?:py|pyi|ts|tsx|js|jsx|mjs|cjs|json|jsonl|toml|ya?ml|md|rst|txt|cfg|ini|sql|sh|bash|tf|tfvars|hcl|css"
    r"|scss|html|vue|svelte|go|rs|rb|java"
    r"|kt|c|h|cc|cpp|hpp|cs|php|swift|lock|env|proto|graphql|xml|csv|service|plist|conf|nix|lua|dockerfile)"
)
_PATH: Final = re.compile(
    r"(?<![\w/.:@~+-])((?:[~.]{0,2}/)?(?:[\w.@+-]+/)*(?:[\w@+-][\w.@+-]*\."
    + _EXTENSION
    + r"|Dockerfile|Makefile|Justfile))(?![\w/-]|\.\w)"
)


@dataclass(frozen=True, slots=True)
class Places:
    """Paths as the session wrote them, most important first."""

    edited: tuple[str, ...]
    named: tuple[str, ...]
    directories: tuple[str, ...]


def places_of(items: Sequence[Item], *, cwd: str | None) -> Places:
    """Return the edited files, the files named at least twice, and directories that hold several of either."""
    edited: Counter[str] = Counter()
    named: Counter[str] = Counter()
    for item in items:
        within = {_relative(path, cwd) for path in edited_paths((item,))}
        edited.update(within)
        if item.kind in (ItemKind.HUMAN, ItemKind.ASSISTANT_FINAL, ItemKind.TOOL_CALL):
            named.update({_relative(path, cwd) for path in named_paths(item.text)} - within)
    repeated = [path for path, count in _ranked(named) if count >= MIN_MENTIONS and path not in edited]
    mattering = [*(path for path, _ in _ranked(edited)), *repeated]
    return Places(
        edited=tuple(path for path, _ in _ranked(edited))[:MAX_FILES],
        named=tuple(repeated)[:MAX_FILES],
        directories=_directories(mattering),
    )


def edited_paths(items: Iterable[Item]) -> list[str]:
    """Return the paths that tool calls of `items` wrote, in order, each once."""
    found: dict[str, None] = {}
    for item in items:
        if item.kind is not ItemKind.TOOL_CALL:
            continue
        paths = _PATCHED.findall(item.text)
        if item.tool and _EDITING_TOOL.search(item.tool) and not paths:
            paths = _ARGUMENT.findall(item.text)
        head = item.text[:MAX_SCANNED_CHARS]
        paths = [*paths, *_IN_PLACE.findall(head), *_REDIRECTED.findall(head)]
        found.update(dict.fromkeys(path for path in paths if is_quotable(path) and not path.startswith("/dev/")))
    return list(found)


def is_edit(call: Item) -> bool:
    """Whether a tool call writes files itself, rather than running a command."""
    return bool(call.tool and _EDITING_TOOL.search(call.tool)) or call.text.startswith("*** Begin Patch")


def named_paths(text: str) -> list[str]:
    """Return what looks like a file's path in a text, each once."""
    return list(dict.fromkeys(_PATH.findall(text[:MAX_SCANNED_CHARS])))


def _relative(path: str, cwd: str | None) -> str:
    """Drop the session's own directory, so that both spellings of a file count together."""
    inside = path.removeprefix(cwd.rstrip("/") + "/") if cwd else path
    return inside.removeprefix("./") or path


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))


def _directories(paths: Iterable[str]) -> tuple[str, ...]:
    counts = Counter(path.rsplit("/", 1)[0] + "/" for path in paths if "/" in path.strip("/"))
    return tuple(name for name, count in _ranked(counts) if count >= MIN_FILES_OF_A_DIRECTORY)[:MAX_DIRECTORIES]
