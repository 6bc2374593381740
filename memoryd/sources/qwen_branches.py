"""Rows of a Qwen Code session that do not count: branches that were taken back, and rows that a fork copied.

Each row names the one before it, and a rewind an earlier one: what the file holds between the two is an abandoned
branch. Results and answers always follow what they belong to: only a person's row, or one of the program's own, begins
a branch.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Raw

from memoryd.errors import SessionUnreadable, SessionVanished
from memoryd.sources.forgetting import forget_oldest
from memoryd.sources.items import SessionFile
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.qwen_records import CONVERSATION, SYSTEM, USER, Row, decode_row, rows
from memoryd.sources.rawjson import as_text

MAX_COPIED_ROWS = 200_000  # of the older sessions of a lineage together, the earliest: a fork copies a beginning
# how the program begins every row: with its id, and that of the row that it follows
BEGINNING = re.compile(rb'\{"uuid": ?"([^"\\]+)", ?"parentUuid": ?(?:null|"([^"\\]+)"),')
MAX_ROWS = 16_384  # how many are remembered; a rewind to an older one goes unnoticed


class Abandoned:
    """The line ranges of abandoned branches; ordered, apart, asked for by line index."""

    def __init__(self, source: SessionBytes | None = None) -> None:
        self._ranges: list[tuple[int, int]] = []
        self._lines: dict[bytes, int] = {}  # a row's id: its line
        self._last: bytes | None = None
        if source is not None:
            self._glance(source)
        self._starts = [start for start, _ in self._ranges]

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __contains__(self, index: int) -> bool:
        position = bisect_right(self._starts, index) - 1
        return position >= 0 and index < self._ranges[position][1]

    def _glance(self, source: SessionBytes) -> None:
        """Take in all lines by how they begin: a row that goes on where the one before it ended is not decoded."""
        index, last, begin, lines = 0, self._last, BEGINNING.match, self._lines
        for stretch in source.stretches():
            data, start = stretch.data, stretch.start
            if data is None or not stretch.ended:
                self._see(Line(index, data, stretch.ended))
                index += 1
                continue
            while (end := data.find(b"\n", start)) >= 0:
                row = begin(data, start, end)
                if row is not None and row[2] == last:
                    self._last = last = row[1]
                    lines[last] = index
                else:
                    self._see(Line(index, data[start:end], True))
                    last = self._last
                index, start = index + 1, end + 1
            self._forget()

    def _see(self, line: Line) -> None:
        row, _ = decode_row(line)
        own = _id(row.uuid) if row is not None else None
        if row is None or own is None or row.is_side_chain:
            return
        if _id(row.parent) != self._last and row.kind in (USER, SYSTEM):
            start = self._branching_line(row)
            if start is not None:
                self._abandon(start, line.index)
        self._pass(own, line.index)

    def _pass(self, own: bytes, index: int) -> None:
        self._last = own
        self._lines[own] = index
        self._forget()

    def _forget(self) -> None:
        while len(self._lines) > MAX_ROWS:
            forget_oldest(self._lines, MAX_ROWS)

    def _branching_line(self, row: Row) -> int | None:
        """Return the first line that does not lead to this row; None where nobody can tell."""
        parent = _id(row.parent)
        if parent is None:
            return 0 if as_text(row.subtype) == "rewind" else None
        line = self._lines.get(parent)
        return None if line is None else line + 1

    def _abandon(self, start: int, end: int) -> None:
        """Take a stretch out; one that began later is part of it, and one that holds the row before it counts again."""
        while self._ranges and self._ranges[-1][1] >= start:
            self._ranges.pop()
        if start < end:
            self._ranges.append((start, end))


class CopiedRows:
    """The rows of older sessions, by hashes of their ids."""

    def __init__(self, relatives: Sequence[SessionFile] = ()) -> None:
        self._digests: set[int] = set()
        for file in relatives:
            try:
                self._add_all(file)
            except (SessionVanished, SessionUnreadable):
                continue  # whose rows they are cannot be told any more

    def __contains__(self, row_id: str | None) -> bool:
        return bool(self._digests) and bool(row_id) and hash(row_id) in self._digests

    def __bool__(self) -> bool:
        return bool(self._digests)

    def _add_all(self, file: SessionFile) -> None:
        with SessionBytes(file.path) as source:
            for _, row in rows(source.lines()):
                if len(self._digests) >= MAX_COPIED_ROWS:
                    return
                if (row_id := as_text(row.uuid)) and row.kind in CONVERSATION:
                    self._digests.add(hash(row_id))


def _id(raw: Raw) -> bytes | None:
    text = as_text(raw)
    return text.encode("utf-8", "replace") if text else None
