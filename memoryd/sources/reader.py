"""The seam between agents' session formats and the rest: what every reader module must offer."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from memoryd.sources.items import CitationSeen, Item, MemoryMode, RateLimits, SessionFile, SessionHead, SessionTail


class Reading:
    """Placeholder of the stream of items; its attributes are those of the finished one."""

    bad_lines: int
    unknown: Counter[str]
    dropped: Counter[str]
    memory_mode: MemoryMode | None
    rate_limits: RateLimits | None
    citations: list[CitationSeen]
    last_record_at: int
    record_bytes: int
    items_seen: int

    def __iter__(self) -> Iterator[Item]:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError


class SessionReader(Protocol):
    """Reads one agent's sessions; read-only, one line in memory at a time."""

    name: str

    def find(self, homes: Sequence[Path]) -> Iterator[SessionFile]:
        """Yield one file per session under the agent's homes; homes that are missing yield nothing."""
        ...

    def missing_roots(self, homes: Sequence[Path]) -> list[Path]:
        """Return the homes that hold no sessions folder."""
        ...

    def head(self, file: SessionFile) -> SessionHead:
        """Read a session's beginning; raises SessionVanished or SessionUnreadable."""
        ...

    def tail(self, file: SessionFile) -> SessionTail:
        """Read a session's end; raises SessionVanished or SessionUnreadable."""
        ...

    def read(self, file: SessionFile) -> Reading:
        """Open a session as a stream of items; raises SessionVanished or SessionUnreadable."""
        ...
