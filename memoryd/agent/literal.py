"""Literal search below a folder: any query, all on one line, or all within a few lines.

Matches come sorted by path, then line. Files that are no text are passed over, and no more than a bound is read.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from memoryd.agent.files import Folder
from memoryd.agent.paths import components
from memoryd.agent.refusals import RefusalKind, RefusedError
from memoryd.text import byte_length, truncate_bytes

LINE_BYTES: Final = 600
MAX_MATCHES: Final = 200
MAX_SEARCHED_BYTES: Final = 64 << 20
MIN_NORMALISED: Final = 3  # shorter remainders of a query would match nearly every line

_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")


class Mode(StrEnum):
    """Where the queries have to stand."""

    ANY = "any"
    ALL = "all"
    NEAR = "near"


@dataclass(frozen=True, slots=True)
class Literal:
    """What is looked for: any of `queries`, all of them on one line, or all within `within_lines` lines.

    `normalised`: letters and digits alone are compared as well, so that spaces and punctuation do not matter.
    """

    queries: tuple[str, ...]
    mode: Mode = Mode.ANY
    within_lines: int = 1
    case_sensitive: bool = False
    normalised: bool = True


@dataclass(frozen=True, slots=True)
class Match:
    """Lines `line` to `end_line` (1-based) of a file; `shown` are they and what stands around them, from `first` on."""

    path: str
    line: int
    end_line: int
    first: int
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TooMuch:
    """The search ended before this file: more than MAX_SEARCHED_BYTES lie below the path."""

    path: str

    def __str__(self) -> str:
        return f"[too much to search: stopped before {self.path}, search below a narrower path]"


def find(
    folder: Folder,
    path: str,
    literal: Literal,
    *,
    context: int = 0,
    after: tuple[str, int] = ("", 0),
    clean: Callable[[list[str]], list[str]] | None = None,
) -> Iterator[Match | TooMuch]:
    """Yield the matches below a path behind the position `after` (path and line); raises RefusedError.

    `clean` takes out of a file's lines what may not be seen: what is gone then is not found either.
    """
    parts = components(path, folder=True)
    named = not folder.is_folder(parts)
    files = [(parts, 0)] if named else [(below, entry.size) for below, entry in folder.walk(parts)]
    needles, searched = _Needles.of(literal), 0
    for below, size in sorted(files, key=lambda found: "/".join(found[0])):
        name = "/".join(below)
        if name < after[0]:
            continue
        searched += size
        if searched > MAX_SEARCHED_BYTES:
            yield TooMuch(name)
            return
        try:
            data = folder.read(below, listed=not named)
            lines = _searched_lines(decode(data, name), needles, clean)
        except RefusedError:
            if named:
                raise
            continue
        for start, end in _spans(lines, needles, literal):
            first = max(1, start - context)
            if (name, start) > after:
                shown = tuple(shortened(line) for line in lines[first - 1 : end + context])
                yield Match(name, start, end, first, shown)


def decode(data: bytes, path: str) -> str:
    """Decode a file as UTF-8 text; raises RefusedError when it is none."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError(RefusalKind.NOT_TEXT, f'"{path}" is no UTF-8 text') from None


def split_lines(text: str) -> list[str]:
    """Split at line feeds only, so that a line's number is the one that every other tool gives it."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def shortened(line: str) -> str:
    """Cut a line that is too long to be shown whole, and say so."""
    return line if byte_length(line) <= LINE_BYTES else truncate_bytes(line, LINE_BYTES) + " [line cut]"


def _searched_lines(text: str, needles: "_Needles", clean: Callable[[list[str]], list[str]] | None) -> list[str]:
    """Return the lines of a text, cleaned where any of them is asked for at all."""
    lines = split_lines(text)
    if clean is not None and any(needles.in_line(line) for line in lines):
        return clean(lines)
    return lines


@dataclass(frozen=True, slots=True)
class _Needles:
    """The queries as they are compared: as they are, and reduced to letters and digits ("": too short for that)."""

    plain: tuple[str, ...]
    reduced: tuple[str, ...]
    case_sensitive: bool

    @classmethod
    def of(cls, literal: Literal) -> "_Needles":
        plain = tuple(query if literal.case_sensitive else query.casefold() for query in literal.queries)
        reduced = tuple(_NOT_ALPHANUMERIC.sub("", query) if literal.normalised else "" for query in plain)
        kept = tuple(query if len(query) >= MIN_NORMALISED else "" for query in reduced)
        return cls(plain, kept, literal.case_sensitive)

    def in_line(self, line: str) -> list[int]:
        """Return which queries a line holds."""
        text = line if self.case_sensitive else line.casefold()
        found = [index for index, query in enumerate(self.plain) if query in text]
        if len(found) == len(self.plain) or not any(self.reduced):
            return found
        bare = _NOT_ALPHANUMERIC.sub("", text)
        return [
            index
            for index, (query, reduced) in enumerate(zip(self.plain, self.reduced, strict=True))
            if query in text or (reduced and reduced in bare)
        ]


def _spans(lines: Sequence[str], needles: _Needles, literal: Literal) -> Iterator[tuple[int, int]]:
    """Yield the first and last lines (1-based) of the matches of a file.

    Of windows that lie in each other only the innermost counts.
    """
    wanted = len(literal.queries)
    last: dict[int, int] = {}
    latest = 0
    for number, line in enumerate(lines, start=1):
        found = needles.in_line(line)
        if literal.mode is not Mode.NEAR:
            if found and (literal.mode is Mode.ANY or len(found) == wanted):
                yield number, number
            continue
        last.update(dict.fromkeys(found, number))
        start = min(last.values()) if found and len(last) == wanted else 0
        if start > latest and number - start < literal.within_lines:
            yield start, number
            latest = start
