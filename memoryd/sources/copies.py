"""Which rows of a forked session were copied from an older one: those that begin both, in the same order."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from memoryd.errors import SourceError
from memoryd.sources.items import SessionFile
from memoryd.sources.jsonl import Line, SessionBytes

Rows = Iterable[str | None]


class CopiedBeginning:
    """Walks a session and its older relatives in step, by the ids of their rows.

    A fork begins with its parent's rows; the first row that stands in no relative at this place is its own, and so is
    all that follows. Rows without an id are passed over in the relatives. Holds one id of each relative; not `is_open`
    any more: no row from here on is a copy.
    """

    def __init__(self, relatives: Iterable[Rows]) -> None:
        self._walks = [_Walk(iter(rows)) for rows in relatives]
        self.is_open = bool(self._walks)

    def covers(self, row_id: str | None) -> bool:
        """Say whether the next row is a copy; call it once for each row, in order."""
        if row_id is None:
            return False
        self._walks = [walk for walk in self._walks if walk.step(row_id)]
        self.is_open = bool(self._walks)
        return self.is_open


def ids_in(file: SessionFile, id_of: Callable[[Line], str | None]) -> Iterator[str | None]:
    """Yield the ids of a session's rows; a session that is gone or unreadable has none."""
    with suppress(SourceError), SessionBytes(file.path) as source:
        yield from map(id_of, source.lines())


class _Walk:
    def __init__(self, rows: Iterator[str | None]) -> None:
        self._rows = rows

    def step(self, row_id: str) -> bool:
        """Go one row on, and say whether it is this one."""
        return row_id == next((other for other in self._rows if other is not None), None)
