"""A reader that looks at memory files all the while, as agents do, and keeps every content that it saw."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.support.process import Place

PAUSE_SECONDS = 0.001
ARTEFACTS = ("MEMORY.md", "memory_summary.md")


class Reader:
    """Reads a folder's files in a loop on a thread; hidden ones are nobody's to read.

    `seen` has each content of each file once, `faults` what no reader should ever meet: a file that was there and is
    gone, or one that is empty. Evidence of sessions `may_vanish` when they are no longer selected.
    """

    def __init__(self, folder: Path, *, may_vanish: bool = False) -> None:
        self._folder = folder
        self._may_vanish = may_vanish
        self.seen: dict[Path, set[bytes]] = {folder / name: set() for name in ARTEFACTS}
        self.faults: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="reader", daemon=True)

    def _read(self) -> None:
        while not self._stop.is_set():
            time.sleep(PAUSE_SECONDS)  # an Event's wait with a limit never ends where the clock is set by libfaketime
            for path in sorted({*self.seen, *self._there()}):
                self._look_at(path)

    def _there(self) -> Iterator[Path]:
        for root, folders, names in os.walk(self._folder):
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield from (Path(root) / name for name in names if not name.startswith("."))

    def _look_at(self, path: Path) -> None:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            evidence = path.parent.name == "rollout_summaries"
            if self.seen.get(path) and not (evidence and self._may_vanish):
                self.faults.append(f"{path.name} was gone")
            return
        if not content:
            self.faults.append(f"{path.name} was empty")
        self.seen.setdefault(path, set()).add(content)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@contextmanager
def reading(memories: Path, *, may_vanish: bool = False) -> Iterator[Reader]:
    """Read the memory folder while the block lasts."""
    with Reader(memories, may_vanish=may_vanish) as reader:
        yield reader
    assert reader.faults == []


def assert_only_accepted(place: Place, reader: Reader) -> None:
    """Each content that was seen is the whole of that file in some accepted version."""
    accepted: dict[Path, set[str]] = {}
    for version in place.git("log", "--format=%H").splitlines():
        for name in place.git("ls-tree", "-r", "--name-only", version).splitlines():
            accepted.setdefault(place.memories / name, set()).add(place.git("show", f"{version}:{name}"))
    for path, contents in reader.seen.items():
        assert {content.decode().strip() for content in contents} <= accepted[path], path
