"""A reader that looks at memory files all the while, as agents do, and keeps every content that it saw."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

PAUSE_SECONDS = 0.001


class Reader:
    """Reads files in a loop on a thread; `seen` has each content once, `faults` what no reader should ever meet."""

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        self.seen: dict[Path, set[bytes]] = {path: set() for path in paths}
        self.faults: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="reader", daemon=True)

    def _read(self) -> None:
        while not self._stop.wait(PAUSE_SECONDS):
            for path in self._paths:
                try:
                    content = path.read_bytes()
                except FileNotFoundError:
                    if self.seen[path]:
                        self.faults.append(f"{path.name} was gone")
                    continue
                if not content:
                    self.faults.append(f"{path.name} was empty")
                self.seen[path].add(content)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@contextmanager
def reading(memories: Path) -> Iterator[Reader]:
    """Read the two files that agents are given, while the block lasts."""
    with Reader(memories / "MEMORY.md", memories / "memory_summary.md") as reader:
        yield reader
    assert reader.faults == []
