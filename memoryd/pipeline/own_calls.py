"""Which calls in a session are of memoryd itself: its tools, its commands, its folder. They are no evidence.

What the memory says must not come back as something that a session showed. So a command line that may have asked the
memory is taken for one that did; what a person said around it stays.
"""

import os.path
import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Final

from memoryd.sources.claude_words import SHELL_MARK
from memoryd.sources.items import Item, ItemKind


class Part(StrEnum):
    """What of a call an item is."""

    CALL = "call"
    OUTPUT = "output"


_COMMAND_START = (
    r"(?:\A|[\n;&|({`]|\$\(|-\w{0,4}c[ \t]{1,4}\\{0,3}[\"']"
    r"|\"(?:cmd|command|script|input)\"\s{0,4}:\s{0,4}\[?\s{0,4}\")"
)
_WRAPPERS = (
    r"(?:(?:sudo|env|exec|nohup|time|command|if|then|else|while|until|do|!|timeout[ \t]+[\w.]{1,12}"
    r"|xargs(?:[ \t]+-\S{1,20}){0,4}|uvx(?:[ \t]+--from[ \t]+\S{1,200})?|uv[ \t]+run|pipx[ \t]+run"
    r"|[A-Z_][A-Z0-9_]{0,60}=[^\s;&|]{0,200})[ \t]+){0,4}"
)
_PROGRAM = (
    r"(?:\\{0,3}[\"'])?(?:[\w.~/${}-]{0,200}/)?(?:python[\d.]{0,8}[ \t]+(?:-[A-Zb-ln-z]{1,8}[ \t]+){0,4}-m[ \t]+)?"
    r"memoryd(?:\.control\.main)?(?=[\s;&|)\"'`\\]|\Z)"
)
_RUNS_MEMORYD = re.compile(rf"{_COMMAND_START}[ \t]{{0,8}}{_WRAPPERS}{_PROGRAM}")
_SHOWING: Final = "search|read|list|why|note|recall|history|memories|review|explain|export|mcp"
"""The commands that print what is remembered."""
_ASKS_MEMORYD = re.compile(
    r"(?<![\w.@-])memoryd(?:\.exe|\.control\.main)?(?:[\"'`)\]]{0,3}[\s,\"'\\]{1,8})"
    rf"(?:--?[a-z][\w-]{{0,30}}(?:[= ]\S{{1,300}})?\s{{1,4}}){{0,4}}(?:{_SHOWING})(?![\w.-])"
    r"|\bmemoryd\.control\.main\s{1,4}import\b"
)
"""However a program is started (by another one, in a script's words, on another machine), it is named before what is
asked of it."""
_CALLS_IT = re.compile(
    r"\b(?P<name>[A-Za-z_]\w{0,40})=[\"'`]?(?:\$\()?(?:which |command -v |type -p )?(?:[\w.~/${}-]{0,200}/)?"
    r"memoryd(?=[\s;&|)\"'`]|\Z)"
)
"""Another name that a shell is given for it."""
_SPILLS = re.compile(r"(?:(?:\d|&)?>{1,2}\|?[ \t]{0,4}|\btee[ \t]+(?:-a[ \t]+)?)[\"']?(?P<file>[\w.~/${}-]{3,200})")
_STARTED = re.compile(r"\b(?:session|background)[\w ]{0,20}\bID:?\s{1,4}(?P<id>[\w-]{1,60})", re.IGNORECASE)
"""How Claude Code and Codex name a command that goes on, and whose output later calls ask for."""
_WAITS_FOR = r'"(?:bash_?id|task_?id|session_?id|shell_?id|process_?id)"\s{0,4}:\s{0,4}"?(?:%s)(?![\w-])'
_MOST_KEPT: Final = 100
_OWN_TOOL = re.compile(r"(?:\A|[_./:-])memoryd(?:\Z|[_./:-])", re.IGNORECASE)
_NAMES_TOOL = re.compile(
    r"(?:mcp__|(?<![\w/-]))memoryd(?:__|[_.])\w{1,40}[\"'\]\s]{0,4}\("  # a program of the model's that calls tools
    r'|"\w{0,20}(?:server|mcp|namespace|plugin)\w{0,20}"\s{0,4}:\s{0,4}"(?:[\w.:/-]{0,40}[_./:-])?memoryd"'
    r'|"\w{1,40}"\s{0,4}:\s{0,4}"(?:[\w.:/-]{0,40}[_./:-])?memoryd[_./:-]{1,2}(?:search|read|list|why|note)"'
    r"|(?<![\w-])skills/memoryd/",
    re.IGNORECASE,
)
"""How a call by which other things are called, or read, says that they are memoryd's: its tools, its skill."""
_TYPED: Final = (SHELL_MARK.lower(), "<user_shell_command", "i ran the following shell command")
"""How the command that a person ran in a session begins: Claude Code, Codex, Gemini CLI and Qwen Code."""
_LOOKING_TOOLS: Final = frozenset({"skill", "activate_skill", "toolsearch", "tool_search"})
"""Tools that load a skill or look for tools: what they are asked for is a name."""


class OwnCalls:
    """Remembers which calls were memoryd's own, so that their outputs go with them."""

    def __init__(self, home: Path) -> None:
        self._homes = tuple({home, Path(os.path.realpath(home))})
        self._names_home = re.compile("|".join(map(_home_source, self._homes)))
        self._calls: set[str] = set()
        self._names: set[str] = set()
        self._files: set[str] = set()
        self._started: set[str] = set()
        self._unnamed = False
        self._typed = False

    def judge(self, item: Item) -> Part | None:
        """Return why `item` goes, None when it stays."""
        if item.kind is ItemKind.HARNESS_CONTEXT:
            return self._judge_typed(item)
        self._typed = False
        if item.kind is ItemKind.TOOL_CALL:
            if not self._is_own(item):
                self._unnamed = False
                return None
            self._keep(self._files, (each["file"] for each in _SPILLS.finditer(item.text)))
            if item.call_id is None:
                self._unnamed = True
            else:
                self._calls.add(item.call_id)
            return Part.CALL
        if item.kind is ItemKind.TOOL_OUTPUT and self._answers_own(item):
            self._keep(self._started, (each["id"] for each in _STARTED.finditer(item.text[:2_000])))
            return Part.OUTPUT
        return None

    def _judge_typed(self, item: Item) -> Part | None:
        """A person may run a command in the session; what it printed stands with it, or in the next items."""
        if item.text.lstrip().lower().startswith(_TYPED):
            is_own = self._runs_own(item.text.replace(SHELL_MARK, "\n", 1))
            self._typed = is_own and item.text.startswith(SHELL_MARK)
            return Part.CALL if is_own else None
        return Part.OUTPUT if self._typed else None

    def _keep(self, known: set[str], found: Iterable[str]) -> None:
        known.update(each for each in found if len(known) < _MOST_KEPT and not each.startswith("/dev/"))

    def _goes_on(self, call: str) -> bool:
        """Say whether a call reads what a call of memoryd wrote to a file, or goes on printing."""
        if any(re.search(rf"(?<![\w.-]){re.escape(file)}(?![\w.-])", call) for file in self._files if file in call):
            return True
        waits_for = _WAITS_FOR % "|".join(map(re.escape, self._started))
        return bool(self._started) and re.search(waits_for, call, re.IGNORECASE) is not None

    def _runs_by_name(self, command: str) -> bool:
        self._keep(self._names, (each["name"] for each in _CALLS_IT.finditer(command) if "memoryd" in command))
        if not self._names:
            return False
        names = "|".join(self._names)
        return (
            re.search(rf"{_COMMAND_START}[ \t]{{0,8}}[\"']?(?:{names}|\$\{{?(?:{names})\}}?)(?=[\s\"'])", command)
            is not None
        )

    def _runs_own(self, command: str) -> bool:
        return bool(
            ("memoryd" in command and (_RUNS_MEMORYD.search(command) or _ASKS_MEMORYD.search(command)))
            or self._runs_by_name(command)
            or self._names_home.search(command)
            or self._names_home.search(_plainly_spelled(command))
        )

    def _answers_own(self, item: Item) -> bool:
        if item.tool is not None and _OWN_TOOL.search(item.tool):
            return True  # whatever became of its call
        if item.call_id is not None:
            return item.call_id in self._calls
        answers, self._unnamed = self._unnamed, False
        return answers

    def _is_own(self, call: Item) -> bool:
        if call.tool is not None and _OWN_TOOL.search(call.tool):
            return True
        if call.cwd is not None and any(Path(call.cwd).is_relative_to(home) for home in self._homes):
            return True
        names = "memoryd" in call.text and _names_memoryd(call)
        return names or self._runs_own(call.text) or self._goes_on(call.text)


def _names_memoryd(call: Item) -> bool:
    if call.tool is not None and call.tool.lower() in _LOOKING_TOOLS:
        return True
    return _NAMES_TOOL.search(call.text) is not None


def _plainly_spelled(command: str) -> str:
    """Write paths the shortest way: without quotes and backslashes in them, `//`, `/./` and `x/../`."""
    path = _DETOUR.sub("/", _QUOTING.sub("", command))
    for _ in range(_MOST_DETOURS):
        path, turns = _RETURN.subn("/", path)
        if not turns:
            break
    return path


_QUOTING: Final = re.compile(r"[\"'\\]")
_DETOUR: Final = re.compile(r"/(?:\.?/)+")
_RETURN: Final = re.compile(r"/(?!\.\./)[^/\s]{1,100}/\.\./")
_MOST_DETOURS: Final = 8


MIN_NAME: Final = 4


def _home_source(home: Path) -> str:
    """Match the spellings of memoryd's home in a command: absolute, from ~ or $HOME, by variable, by inner files."""
    spellings = [re.escape(str(home)), r"\$\{?MEMORYD_HOME\b"]
    parts = home.parts
    depth = 2 if parts[1:2] == ("root",) else 3
    if parts[1:2] in (("home",), ("Users",), ("root",)) and len(parts) > depth:
        spellings.append(r"(?:~[\w-]{0,32}|\$HOME|\$\{HOME\})/" + re.escape("/".join(parts[depth:])))
    inner = r"(?<![\w.-])" + re.escape(home.name)
    if home.name.startswith(".") and len(home.name) > MIN_NAME:
        begun = "|".join(re.escape(home.name[:length]) for length in range(2, len(home.name)))
        inner = rf"{inner}(?![\w-])|(?<![\w.-])(?:{begun})[*?\[{{]"  # a hidden name is nobody else's, also a pattern's
    else:
        inner += r"/(?:memories|recall|staging|ledger\.sqlite3)(?![\w-])"
    return rf"(?:{'|'.join(spellings)})(?![\w-])|{inner}"
