"""What the looking tools answer: bounded plain text that says where it was cut and how to go on (FORMATS.md 7)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from memoryd.agent.files import Entry, Folder, Parts
from memoryd.agent.paths import components
from memoryd.agent.refusals import RefusalKind, RefusedError
from memoryd.agent.tools import ListFiles, Look, ReadFile, SearchFiles
from memoryd.text import byte_length, truncate_bytes

READ_BYTES = 80_000  # 20,000 tokens at 4 bytes each
LINE_BYTES = 600
MAX_ENTRIES = 2000
MAX_MATCHES = 200
MAX_SEARCHED_BYTES = 64 << 20
MIN_NORMALISED = 3  # shorter remainders of a query would match nearly every line

_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")


def look(folder: Folder, request: Look) -> str:
    """Answer a request that changes nothing; raises RefusedError."""
    match request:
        case ListFiles():
            return list_files(folder, request)
        case ReadFile():
            return read_file(folder, request)
        case SearchFiles():
            return search_files(folder, request)


def list_files(folder: Folder, request: ListFiles) -> str:
    """Name the visible entries of one folder, a path a line, folders with a trailing slash."""
    parts = components(request.path, folder=True)
    entries = folder.entries(parts)
    lines = ["/".join((*parts, entry.name)) + ("/" if entry.is_folder else "") for entry in entries[:MAX_ENTRIES]]
    if len(entries) > MAX_ENTRIES:
        lines.append(f"[{MAX_ENTRIES} of {len(entries)} entries shown]")
    return "\n".join(lines) or "[empty folder]"


def read_file(folder: Folder, request: ReadFile) -> str:
    """Show lines of one text file, cut at READ_BYTES."""
    lines = split_lines(decode(folder.read(components(request.path)), request.path))
    if not lines:
        return "[empty file]"
    if request.line_offset > len(lines):
        raise RefusedError(
            RefusalKind.PAST_END, f"line_offset {request.line_offset} is past the end: the file has {len(lines)} lines"
        )
    return excerpt(lines, first=request.line_offset, count=request.max_lines)


def search_files(folder: Folder, request: SearchFiles) -> str:
    """Show the lines below a path that hold any query, letter case aside or alphanumerics only, sorted by path."""
    parts = components(request.path, folder=True)
    files = _files(folder, parts)
    found = list(islice(_matches(folder, files, _Needles.of(request.queries)), MAX_MATCHES + 1))
    lines = found[:MAX_MATCHES]
    if len(found) > MAX_MATCHES:
        lines.append(
            f"[the first {MAX_MATCHES} matches shown: search for something narrower, or below a narrower path]"
        )
    return "\n".join(lines) or "[no match]"


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


def excerpt(lines: list[str], *, first: int, count: int) -> str:
    """Join lines from the 1-based `first` on, at most `count` and READ_BYTES of them, and say what is left."""
    shown: list[str] = []
    size, cut = 0, False
    for line in lines[first - 1 : first - 1 + count]:
        size += byte_length(line) + 1
        if size > READ_BYTES:
            if not shown:
                shown.append(truncate_bytes(line, READ_BYTES))
                cut = True
            break
        shown.append(line)
    if cut:
        shown.append(f"[line {first} is cut: it is longer than {READ_BYTES} bytes]")
    following = first + max(1, len(shown) - cut)
    if following <= len(lines):
        shown.append(f"[... truncated: continue with line_offset={following}]")
    return "\n".join(shown)


@dataclass(frozen=True, slots=True)
class _Needles:
    """The queries of a search, casefolded, and those of them that are long enough to compare alphanumerics only."""

    folded: tuple[str, ...]
    normalised: tuple[str, ...]

    @classmethod
    def of(cls, queries: tuple[str, ...]) -> "_Needles":
        folded = tuple(query.casefold() for query in queries)
        normalised = (_NOT_ALPHANUMERIC.sub("", query) for query in folded)
        return cls(folded, tuple(query for query in normalised if len(query) >= MIN_NORMALISED))

    def are_in(self, line: str) -> bool:
        folded = line.casefold()
        if any(query in folded for query in self.folded):
            return True
        if not self.normalised:
            return False
        normalised = _NOT_ALPHANUMERIC.sub("", folded)
        return any(query in normalised for query in self.normalised)


def _files(folder: Folder, parts: Parts) -> list[tuple[Parts, Entry | None]]:
    if not folder.is_folder(parts):
        return [(parts, None)]
    return sorted(folder.walk(parts), key=lambda found: "/".join(found[0]))


def _matches(folder: Folder, files: list[tuple[Parts, Entry | None]], needles: _Needles) -> Iterator[str]:
    searched = 0
    for parts, entry in files:
        searched += entry.size if entry else 0
        path = "/".join(parts)
        if searched > MAX_SEARCHED_BYTES:
            yield f"[too much to search: stopped before {path}, search below a narrower path]"
            return
        try:
            lines = split_lines(decode(folder.read(parts), path))
        except RefusedError:
            if entry is None:
                raise
            continue
        for number, line in enumerate(lines, start=1):
            if needles.are_in(line):
                yield f"{path}:{number}: {_shortened(line)}"


def _shortened(line: str) -> str:
    return line if byte_length(line) <= LINE_BYTES else truncate_bytes(line, LINE_BYTES) + " [line cut]"
