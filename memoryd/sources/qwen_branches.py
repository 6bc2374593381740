"""Rows of a Qwen Code session that do not count: branches that were taken back, and rows that a fork copied.

Each row names the one before it, and a rewind an earlier one: what the file holds between the two is an abandoned
branch. Results and answers always follow what they belong to: only a person's row, or one of the program's own, begins
a branch.
"""

from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Raw

from memoryd.errors import SessionUnreadable, SessionVanished
from memoryd.sources.forgetting import forget_oldest
from memoryd.sources.items import SessionFile
from memoryd.sources.jsonl import SessionBytes
from memoryd.sources.qwen_records import CONVERSATION, SYSTEM, USER, Row, rows
from memoryd.sources.rawjson import as_text

MAX_COPIED_ROWS = 200_000  # of the older sessions of a lineage together, the earliest: a fork copies a beginning
# every row begins with its id and that of the row that it follows, both UUIDs
ID_KEY = b'{"uuid":"'
ID_END = len(ID_KEY) + 36
BEGINNING_BYTES = 128
MAX_ROWS = 16_384  # how many are remembered; a rewind to an older one goes unnoticed


class Abandoned:
    """The line ranges of abandoned branches; ordered, apart, asked for by line index."""

    def __init__(self, source: SessionBytes | None = None) -> None:
        self._ranges: list[tuple[int, int]] = []
        self._lines: dict[bytes, int] = {}  # a row's id: its line
        self._last: bytes | None = None
        if source is not None and not _is_one_chain(source):
            for index, row in rows(source.lines()):
                self._see(row, index)
        self._starts = [start for start, _ in self._ranges]

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __contains__(self, index: int) -> bool:
        position = bisect_right(self._starts, index) - 1
        return position >= 0 and index < self._ranges[position][1]

    def _see(self, row: Row, index: int) -> None:
        own = _id(row.uuid)
        if own is None or row.is_side_chain:
            return
        if _id(row.parent) != self._last and row.kind in (USER, SYSTEM):
            start = self._branching_line(row)
            if start is not None:
                self._abandon(start, index)
        self._last = own
        self._lines[own] = index
        if len(self._lines) > MAX_ROWS:
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


def _is_one_chain(source: SessionBytes) -> bool:
    """Tell whether each row goes on where the one before it ended, as in nearly every session: none is abandoned."""
    link = b'","parentUuid":null,'
    for beginning in source.beginnings(BEGINNING_BYTES):
        if not beginning.startswith(ID_KEY) or not beginning.startswith(link, ID_END):
            return False
        link = b'","parentUuid":"%b",' % beginning[len(ID_KEY) : ID_END]
    return True


def _id(raw: Raw) -> bytes | None:
    text = as_text(raw)
    return text.encode("utf-8", "replace") if text else None
