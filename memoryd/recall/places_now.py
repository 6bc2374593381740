"""On which line a passage stands now: a person's edit moves and removes lines before the index hears of it."""

import os
import sqlite3
import stat
from pathlib import Path

from memoryd.ledger.search import Found, state_of
from memoryd.recall.entries import opening_of, rows_digest_of
from memoryd.workspace.folder import decode_text
from memoryd.workspace.layout import Home


class Files:
    """The files that one answer names; each is looked at once, and read only if it changed since it was indexed."""

    def __init__(self, conn: sqlite3.Connection, home: Home) -> None:
        self._conn = conn
        self._folder = home.memories
        self._changed: dict[str, _Rows | None] = {}

    def line_of(self, entry: Found) -> int | None:
        """Return the first line of an entry; None when its lines stand in the file no more."""
        if entry.path not in self._changed:
            self._changed[entry.path] = self._look(entry.path)
        rows = self._changed[entry.path]
        return entry.line if rows is None else rows.find(entry)

    def _look(self, path: str) -> "_Rows | None":
        """Return the lines of a file that changed, None for one that did not; those of a file that is gone are none."""
        file = self._folder / path
        try:
            facts = file.lstat()
        except OSError:
            return _Rows("")
        if not stat.S_ISREG(facts.st_mode):
            return _Rows("")
        if state_of(self._conn, path) == (facts.st_size, facts.st_mtime_ns):
            return None
        return _Rows(read_text(file, path))


class _Rows:
    """The lines of a file, and where lines with a checksum stand."""

    def __init__(self, text: str) -> None:
        self._rows = text.split("\n")
        self._places: dict[int, list[int]] = {}
        for number, row in enumerate(self._rows, start=1):
            self._places.setdefault(opening_of(row), []).append(number)

    def find(self, entry: Found) -> int | None:
        """Return the place nearest to where the entry stood at which all its lines are the same."""
        height = entry.end_line - entry.line
        for number in sorted(self._places.get(entry.opening, ()), key=lambda place: abs(place - entry.line)):
            if rows_digest_of(self._rows[number - 1 : number + height]) == entry.rows_digest:
                return number
        return None


def read_text(file: Path, path: str) -> str:
    """Return the text of a regular file of the memory folder, empty when it is no memory text or cannot be read."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:  # noqa: PTH123 (a descriptor, which Path cannot open)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            text = decode_text(path, stream.read())
    except OSError:
        return ""
    return text if type(text) is str else ""
