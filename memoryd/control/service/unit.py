"""The text of systemd's unit: rendered from the one that is shipped, and read back. Pure."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from memoryd.control.service.ground import Wish, words_of
from memoryd.errors import UsageError

ENV: Final = "/usr/bin/env"
_ODD_IN_PROGRAM: Final = frozenset("\\\"'$")
"""systemd refuses a program whose path holds a quote or a backslash, and expands no `$$` there: env starts it."""
_WORD: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
_SPECIFIER: Final = re.compile(r"%([%h])")


def render_unit(template: str, wish: Wish) -> str:
    """Return the unit: the shipped one with what holds on this machine. Raises UsageError for what no unit can hold."""
    own = [
        *(f"Environment={quoted(f'{name}={value}')}" for name, value in wish.environment.items()),
        *(f"LoadCredential={name}:{_plain(str(path))}" for name, path in wish.credentials.items()),
        f"ExecStart={command_line(words_of(wish.interpreter))}",
    ]
    lines = []
    for line in template.splitlines():
        lines += own if line.startswith("ExecStart=") else [line]
    return "\n".join([*lines, ""])


def command_line(words: Sequence[str]) -> str:
    """Return a command as ExecStart takes it: each word quoted, nothing in it expanded."""
    program = [ENV, words[0]] if _ODD_IN_PROGRAM & set(words[0]) else [words[0]]
    return " ".join([quoted(program[0]), *(quoted(word, in_command=True) for word in [*program[1:], *words[1:]])])


def quoted(text: str, *, in_command: bool = False) -> str:
    r"""Return a text as one word of a unit: \, ", % and, where variables are expanded (arguments), $ escaped."""
    escaped = _plain(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped.replace("$", "$$") if in_command else escaped}"'


def read_unit(text: str, user_home: Path) -> Wish | None:
    """Return what a unit of ours says, also one that was copied by hand; None without a command."""
    interpreter: Path | None = None
    environment: dict[str, str] = {}
    credentials: dict[str, Path] = {}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key == "ExecStart":
            words = [word.replace("$$", "$") for word in _words(value, user_home)]
            program = words[1:2] if words[:1] == [ENV] else words[:1]
            interpreter = Path(program[0]) if program else None
        elif key == "Environment":
            environment.update(_pair(word) for word in _words(value, user_home))
        elif key == "LoadCredential":
            name, _, path = value.partition(":")
            credentials[name] = Path(_expanded(path, user_home))
    return None if interpreter is None else Wish(interpreter, environment, credentials)


def _pair(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name, value


def _plain(text: str) -> str:
    """Return a text with % escaped, which no place of a unit takes as it is."""
    if any(ord(char) < 32 or ord(char) == 127 or "\ud800" <= char <= "\udfff" for char in text):
        raise UsageError(
            f"{text!r} holds a character that a unit cannot hold", remedy="choose a path of printable characters"
        )
    return text.replace("%", "%%")


def _words(value: str, user_home: Path) -> list[str]:
    found = [re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else match[2] for match in _WORD.finditer(value)]
    return [_expanded(word, user_home) for word in found]


def _expanded(text: str, user_home: Path) -> str:
    return _SPECIFIER.sub(lambda match: "%" if match[1] == "%" else str(user_home), text)
