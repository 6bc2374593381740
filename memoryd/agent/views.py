"""What the looking tools answer: bounded plain text that says where it was cut and how to go on."""

from itertools import islice
from typing import Final

from memoryd.agent import literal
from memoryd.agent.files import Folder
from memoryd.agent.literal import MAX_MATCHES, Literal, Match, decode, split_lines
from memoryd.agent.paths import components
from memoryd.agent.refusals import RefusalKind, RefusedError
from memoryd.agent.tools import ListFiles, Look, ReadFile, SearchFiles
from memoryd.text import byte_length, truncate_bytes

READ_BYTES: Final = 80_000  # 20,000 tokens at 4 bytes each
MAX_ENTRIES: Final = 2000
LINE_OFFSET: Final = "line_offset="
"""How the tools name the argument that goes on behind a cut."""


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
    paths = paths_in(folder, request.path)
    lines = paths[:MAX_ENTRIES]
    if len(paths) > MAX_ENTRIES:
        lines.append(f"[{MAX_ENTRIES} of {len(paths)} entries shown]")
    return "\n".join(lines) or "[empty folder]"


def paths_in(folder: Folder, path: str) -> list[str]:
    """Return the paths of the visible entries of one folder, folders with a trailing slash; raises RefusedError."""
    parts = components(path, folder=True)
    return ["/".join((*parts, entry.name)) + ("/" if entry.is_folder else "") for entry in folder.entries(parts)]


def read_file(folder: Folder, request: ReadFile) -> str:
    """Show lines of one text file, cut at READ_BYTES."""
    lines = split_lines(decode(folder.read(components(request.path)), request.path))
    return window(lines, first=request.line_offset, count=request.max_lines)


def window(lines: list[str], *, first: int, count: int, go_on: str = LINE_OFFSET) -> str:
    """Show lines from the 1-based `first` on, at most `count`; raises RefusedError past the end.

    `go_on`: what the caller puts before the number of the line to go on at.
    """
    if not lines:
        return "[empty file]"
    if first > len(lines):
        raise RefusedError(
            RefusalKind.PAST_END, f"line_offset {first} is past the end: the file has {len(lines)} lines"
        )
    return excerpt(lines, first=first, count=count, go_on=go_on)


def search_files(folder: Folder, request: SearchFiles) -> str:
    """Show the lines below a path that hold any query, letter case aside or alphanumerics only, sorted by path."""
    found = list(islice(literal.find(folder, request.path, Literal(request.queries)), MAX_MATCHES + 1))
    lines = [
        f"{each.path}:{each.line}: {each.shown[0]}" if isinstance(each, Match) else str(each)
        for each in found[:MAX_MATCHES]
    ]
    if len(found) > MAX_MATCHES:
        lines.append(
            f"[the first {MAX_MATCHES} matches shown: search for something narrower, or below a narrower path]"
        )
    return "\n".join(lines) or "[no match]"


def excerpt(lines: list[str], *, first: int, count: int, go_on: str = LINE_OFFSET) -> str:
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
        shown.append(f"[... truncated: continue with {go_on}{following}]")
    return "\n".join(shown)
