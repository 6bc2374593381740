"""Cuts a Markdown text into passages that can be found and shown by themselves: a heading's text, a labelled list."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

MAX_PASSAGE: Final = 1_200
"""Characters of a passage at which it is cut, at the next beginning of a paragraph or of a list item."""

_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*)")
_LABEL: Final = re.compile(r"([A-Z][^:]{2,60}):[ \t]*")
_ITEM: Final = re.compile(r"(?:[-*+]|\d{1,4}[.)])[ \t]+")
_HEADER_ROW: Final = re.compile(r"[a-z_]+:(?: .*)?")
_FENCE: Final = re.compile(r"[ \t]*(?:```|~~~)")


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of a text (from 1, both ends included) with the headings above them, outermost first."""

    line: int
    end_line: int
    text: str
    headings: tuple[str, ...] = ()

    @property
    def section(self) -> str | None:
        """The innermost heading."""
        return self.headings[-1] if self.headings else None


def passages_of(rows: Sequence[str], *, after_header: bool = False) -> Iterator[Passage]:
    """Cut a text; `after_header`: the `name: value` lines at its top say of whom it is, and are no passage."""
    first = _end_of_header(rows) if after_header else 0
    yield from _Cutter(rows).cut(first)


def _end_of_header(rows: Sequence[str]) -> int:
    end = 0
    while end < len(rows) and _HEADER_ROW.fullmatch(rows[end]):
        end += 1
    return end


class _Cutter:
    """One pass over the lines; headings and labels end a passage, and so does its size."""

    def __init__(self, rows: Sequence[str]) -> None:
        self.rows = rows
        self.headings: list[tuple[int, str]] = []
        self.label = ""
        self.first: int | None = None
        self.size = 0
        self.in_fence = False

    def cut(self, first: int) -> Iterator[Passage]:
        for number, raw in enumerate(self.rows[first:], start=first + 1):
            row = raw.rstrip()
            heading, label = (None, None) if self.in_fence else (_HEADING.fullmatch(row), _LABEL.fullmatch(row))
            if heading or label or self._is_full(number, row):
                yield from self._close(number - 1)
            if heading:
                self._open_heading(len(heading[1]), heading[2].strip())
            elif label:
                self.label = label[1]
            if _FENCE.match(row):
                self.in_fence = not self.in_fence
            if row and self.first is None:
                self.first = number
            self.size += len(row)
        yield from self._close(len(self.rows))

    def _is_full(self, number: int, row: str) -> bool:
        """Say whether the passage is long enough, and this line begins a paragraph or an item."""
        if self.size < MAX_PASSAGE:
            return False
        return not self.rows[number - 2].strip() or bool(_ITEM.match(row)) or self.size >= 2 * MAX_PASSAGE

    def _open_heading(self, level: int, name: str) -> None:
        self.label = ""
        while self.headings and self.headings[-1][0] >= level:
            self.headings.pop()
        self.headings.append((level, name))

    def _close(self, end: int) -> Iterator[Passage]:
        """Give the passage that ends here, if it says anything beside its heading."""
        first, self.first, self.size = self.first, None, 0
        if first is None:
            return
        while end > first and not self.rows[end - 1].strip():
            end -= 1
        said = self.rows[first - 1 : end]
        shown = "\n".join(row.rstrip() for row in said)
        if any(character.isalnum() for row in said for character in row if not _HEADING.fullmatch(row.rstrip())):
            headings = [name for _, name in self.headings] + ([self.label] if self.label else [])
            yield Passage(first, end, shown, tuple(name for name in headings if name))
