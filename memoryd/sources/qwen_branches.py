"""Rows of a Qwen Code session that do not count: branches that were taken back, and rows that a fork copied.

Each row names the one before it, and a rewind an earlier one: what the file holds between the two is an abandoned
branch. Results and answers always follow what they belong to: only a person's row, or one of the program's own, begins
a branch.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from msgspec import Raw

from memoryd.errors import SessionUnreadable, SessionVanished
from memoryd.sources.items import SessionFile
from memoryd.sources.jsonl import SessionBytes
from memoryd.sources.qwen_records import CONVERSATION, SYSTEM, USER, Glance, rows
from memoryd.sources.rawjson import as_text, is_true

MAX_COPIED_ROWS = 200_000  # of the older sessions of a lineage together, the earliest: a fork copies a beginning
MAX_ROWS = 16_384  # how many are remembered; a rewind to an older one goes unnoticed
_NULL = b"null"


class Abandoned:
    """The line ranges of abandoned branches; ordered, apart, asked for by line index."""

    def __init__(self, session: Iterable[tuple[int, Glance]] = ()) -> None:
        self._ranges: list[tuple[int, int]] = []
        self._lines: dict[int, int] = {}  # hash of a row's id: its line
        self._last: Raw = Raw()
        for index, row in session:
            if row.uuid and not (row.side_chain and is_true(row.side_chain)):
                self._see(index, row)
        self._starts = [start for start, _ in self._ranges]

    def __contains__(self, index: int) -> bool:
        position = bisect_right(self._starts, index) - 1
        return position >= 0 and index < self._ranges[position][1]

    def _see(self, index: int, row: Glance) -> None:
        if row.parent != self._last and as_text(row.type) in (USER, SYSTEM):
            start = self._branching_line(row)
            if start is not None:
                self._abandon(start, index)
        self._last = row.uuid
        self._lines[_digest(row.uuid)] = index
        if len(self._lines) > MAX_ROWS:
            del self._lines[next(iter(self._lines))]

    def _branching_line(self, row: Glance) -> int | None:
        """Return the first line that does not lead to this row; None where nobody can tell."""
        if not row.parent or bytes(row.parent) == _NULL:
            return 0 if as_text(row.subtype) == "rewind" else None
        parent = self._lines.get(_digest(row.parent))
        return None if parent is None else parent + 1

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

    def __contains__(self, row_id: Raw) -> bool:
        return bool(self._digests) and bool(row_id) and _digest(row_id) in self._digests

    def __bool__(self) -> bool:
        return bool(self._digests)

    def _add_all(self, file: SessionFile) -> None:
        with SessionBytes(file.path) as source:
            for _, row in rows(source.lines()):
                if len(self._digests) >= MAX_COPIED_ROWS:
                    return
                if row.uuid and row.kind in CONVERSATION:
                    self._digests.add(_digest(row.uuid))


def _digest(raw: Raw) -> int:
    return hash(bytes(raw))
