"""The read tools of the memory folder: list, read and search, as pure functions of the folder.

They stand on the consolidation agent's confined hands: relative paths only, no `..`, hidden names do not exist,
symlinks are refused. What is shown has a line number, so that it can be cited, and no secret in it.
"""

import difflib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from memoryd.agent import literal, views
from memoryd.agent.files import Folder
from memoryd.agent.literal import MAX_MATCHES, Literal, Match, TooMuch, decode, split_lines
from memoryd.agent.paths import components
from memoryd.agent.refusals import RefusedError
from memoryd.agent.tools import ListFiles
from memoryd.errors import StorageError, UsageError
from memoryd.text import byte_length

PAGE_BYTES: Final = views.READ_BYTES
"""20,000 tokens at 4 bytes each: no answer is longer."""

Clean = Callable[[str], str]
"""Takes secrets out of a text: a person may have written one into the folder, and agents send on what they read."""


@dataclass(frozen=True, slots=True)
class Page:
    """Matches sorted by path, then line; `cursor` goes on behind the last one, None when there are no more."""

    matches: tuple[Match, ...]
    cursor: str | None = None
    stopped: TooMuch | None = None


def list_folder(memories: Path, path: str) -> str:
    """Name what a folder holds, a path a line, folders with a trailing slash. Raises UsageError, StorageError."""
    with _refusals():
        return views.list_files(_folder(memories), ListFiles(path))


def paths_in(memories: Path, path: str) -> list[str]:
    """Return what a folder holds, all of it, folders with a trailing slash. Raises UsageError, StorageError."""
    with _refusals():
        return views.paths_in(_folder(memories), path)


def read_lines(
    memories: Path,
    path: str,
    *,
    line_offset: int,
    max_lines: int,
    clean: Clean,
    numbered: bool = True,
    go_on: str = views.LINE_OFFSET,
) -> str:
    """Show lines of a file from the 1-based `line_offset` on, each behind its number and a tab.

    Cut at PAGE_BYTES, which is said with the line to go on at. Raises UsageError, StorageError.
    """
    with _refusals():
        text = decode(_folder(memories).read(components(path)), path)
        lines = cleaned_lines(split_lines(text), clean)
        if numbered:
            lines = [f"{number}\t{line}" for number, line in enumerate(lines, start=1)]
        return views.window(lines, first=line_offset, count=max_lines, go_on=go_on)


def search_literally(
    memories: Path, wanted: Literal, *, path: str = "", context: int = 0, cursor: str = "", limit: int, clean: Clean
) -> Page:
    """Find lines below a path, at most `limit` matches and PAGE_BYTES of them. Raises UsageError, StorageError."""
    after = _position(cursor)
    matches: list[Match] = []
    size = 0
    with _refusals():
        found = literal.find(
            _folder(memories),
            path,
            wanted,
            context=context,
            after=after,
            clean=lambda lines: cleaned_lines(lines, clean),
        )
        for each in islice(found, min(limit, MAX_MATCHES) + 1):
            if isinstance(each, TooMuch):
                return Page(tuple(matches), stopped=each)
            size += sum(byte_length(line) + byte_length(each.path) + 10 for line in each.shown)
            if len(matches) == min(limit, MAX_MATCHES) or (matches and size > PAGE_BYTES):
                last = matches[-1]
                return Page(tuple(matches), cursor=f"{last.path}:{last.line}")
            matches.append(each)
    return Page(tuple(matches))


def rendered(page: Page, *, go_on: str = "cursor=") -> str:
    """Render matches as `path:line: text`, what stands around them as `path-line- text`, gaps between as `--`."""
    lines = list(_rows(page.matches))
    if page.stopped:
        lines.append(str(page.stopped))
    elif page.cursor:
        lines.append(f"[more matches: go on with {go_on}{page.cursor}]")
    return "\n".join(lines) or "[no match]"


def cleaned_lines(lines: Sequence[str], clean: Clean) -> list[str]:
    """Take secrets out of lines and keep each line's number, also where a secret filled several."""
    before = list(lines)
    after = clean("\n".join(before)).split("\n")
    if len(after) == len(before):
        return after
    kept: list[str] = []
    for _, start, end, first, last in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        piece = after[first:last]
        kept += (piece + [""] * (end - start - len(piece)))[: end - start]
    return kept


def _rows(matches: Sequence[Match]) -> Iterator[str]:
    hit = {(each.path, number) for each in matches for number in range(each.line, each.end_line + 1)}
    has_gaps = any(len(each.shown) > 1 for each in matches)
    path, latest = "", 0
    for each in matches:
        if each.path != path:
            path, before = each.path, latest
            latest = 0
        else:
            before = latest
        if has_gaps and before and (latest == 0 or each.first > latest + 1):
            yield "--"
        for number, line in enumerate(each.shown, start=each.first):
            if number > latest:
                mark = ":" if (path, number) in hit else "-"
                yield f"{path}{mark}{number}{mark} {line}"
                latest = number


def _folder(memories: Path) -> Folder:
    if not memories.is_dir():
        raise StorageError(
            "there is no memory yet",
            remedy="`memoryd sync` makes it from recorded sessions; nothing can be read before",
        )
    if memories.is_symlink():
        raise StorageError(
            f"the memory folder {memories} is a symbolic link, and none is followed",
            remedy="put the folder itself there, or move the whole home: MEMORYD_HOME",
        )
    return Folder.at(memories)


def _position(cursor: str) -> tuple[str, int]:
    if not cursor:
        return "", 0
    path, _, line = cursor.rpartition(":")
    if not path or not line.isascii() or not line.isdigit() or len(line) > 9:
        raise UsageError("that is no cursor", remedy="take it from the end of the previous answer, or leave it out")
    return path, int(line)


@contextmanager
def _refusals() -> Iterator[None]:
    """Say as an error of ours why a path or a request is refused."""
    try:
        yield
    except RefusedError as refused:
        raise UsageError(refused.text) from None
