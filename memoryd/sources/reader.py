"""The seam between agents' session formats and the rest: what every reader module must offer."""

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from memoryd.sources.items import CitationSeen, Item, MemoryMode, RateLimits, SessionFile, SessionHead, SessionTail

MOST_KINDS: Final = 100
OTHER_KINDS: Final = "(others)"
"""What is counted together: names that are none, and more of them than anybody reads."""
_NAME: Final = re.compile(r"[\w.:/$@+-]{0,60}")


class Kinds(Counter[str]):
    """Counts records, in little space, by what they call themselves: it may be anything, and of any number of kinds."""

    def __getitem__(self, name: str) -> int:
        return self.get(self._counted_as(name), 0)

    def __setitem__(self, name: str, count: int) -> None:
        super().__setitem__(self._counted_as(name), count)

    def _counted_as(self, name: str) -> str:
        if name in self or (len(self) < MOST_KINDS and _NAME.fullmatch(name)):
            return name
        return OTHER_KINDS


Stretches = Generator[Sequence[Item], None, None]
"""The items of a session as they are decided, some at a time."""


class Reading:
    """One pass over a session: an iterator of its items, and, once it is exhausted, what else was seen on the way.

    `bad_lines` could not be decoded or were over the cap; `unknown` counts record types nobody knows; `dropped` counts
    by reason what is known and not wanted (developer, agents_md, skill, compaction, image, rolled_back, copied, ...);
    `last_record_at` (epoch seconds) and `record_bytes` (decompressed) equal those of the session's tail.
    """

    def __init__(self, items: Callable[["Reading"], Stretches], close: Callable[[], None]) -> None:
        self.bad_lines = 0
        self.unknown: Counter[str] = Kinds()
        self.dropped: Counter[str] = Counter()
        self.memory_mode: MemoryMode | None = None
        self.rate_limits: RateLimits | None = None
        self.citations: list[CitationSeen] = []
        self.last_record_at = 0
        self.record_bytes = 0
        self.timed = False
        self.items_seen = 0
        self._stretches = items(self)
        self._items = chain.from_iterable(self._counted())
        self._close = close

    def __iter__(self) -> Iterator[Item]:
        return self._items

    def __next__(self) -> Item:
        return next(self._items)

    def close(self) -> None:
        """Let go of the file; closing twice is allowed."""
        self._stretches.close()
        self._close()

    def _counted(self) -> Iterator[Sequence[Item]]:
        for items in self._stretches:
            self.items_seen += len(items)
            yield items

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class SessionReader(Protocol):
    """Reads one agent's sessions; read-only, one line in memory at a time.

    A session's path names it for good: it is a file, or, where a store holds many sessions, `<store>#<session id>`.
    """

    name: str

    def find(self, homes: Sequence[Path]) -> Iterator[SessionFile]:
        """Yield one file per session under the agent's homes; homes that are missing yield nothing."""
        ...

    def locate(self, path: Path) -> SessionFile:
        """Look at one session by the path that `find` gave it, without reading it; raises SessionVanished."""
        ...

    def missing_roots(self, homes: Sequence[Path]) -> list[Path]:
        """Return the homes that hold no sessions folder that can be listed."""
        ...

    def head(self, file: SessionFile) -> SessionHead:
        """Read a session's beginning; raises SessionVanished or SessionUnreadable."""
        ...

    def tail(self, file: SessionFile) -> SessionTail:
        """Read a session's end; raises SessionVanished or SessionUnreadable."""
        ...

    def read(self, file: SessionFile, relatives: Sequence[SessionFile] = ()) -> Reading:
        """Open a session as a stream of items; raises SessionVanished or SessionUnreadable.

        `relatives` are older sessions of the same lineage (SessionHead.lineage): rows that stand in one of them are
        copies, and dropped as `copied`. A relative that is gone or unreadable is passed over.
        The stream raises SessionWithoutItems at its end when there were bytes and no record of them was understood.
        """
        ...
