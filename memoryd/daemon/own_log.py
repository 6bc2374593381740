"""The log file that launchd opens for the daemon and never rotates: kept bounded by the daemon itself.

Elsewhere stderr is the journal, a pipe or a terminal, which are not ours to bound.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import Self

from memoryd import logs

log = logs.get()

LIMIT_BYTES = 10 * 1024 * 1024
KEPT = 3
"""Older files beside the one that is written: at most 40 MB in all."""
STREAMS = (1, 2)


class OwnLog:
    """A log file in memoryd's own folder to which stderr leads."""

    def __init__(self, path: Path, *, limit_bytes: int = LIMIT_BYTES, streams: tuple[int, ...] = STREAMS) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._streams = streams

    @classmethod
    def found_in(cls, folder: Path, stream: int = 2) -> Self | None:
        """Return the log of this process if it is a file of that folder."""
        try:
            ours = os.fstat(stream)
            if S_ISREG(ours.st_mode):
                for path in folder.iterdir():
                    if path.name.endswith(".log") and os.path.samestat(path.stat(), ours):
                        return cls(path)
        except OSError:
            pass
        return None

    def rotate_if_large(self) -> bool:
        """Begin a new file where the old one is large; `.1` is the newest of the older ones.

        A full disk changes nothing.
        """
        try:
            if os.fstat(self._streams[-1]).st_size < self._limit_bytes:
                return False
            self._rotate()
        except OSError:
            return False
        log.info("log.rotated", path=str(self._path))
        return True

    def _rotate(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        descriptor = os.open(
            self._new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        try:
            ours = os.fstat(self._streams[-1])
            for number in range(KEPT, 1, -1):
                with suppress(FileNotFoundError):
                    self._older(number - 1).replace(self._older(number))
            with suppress(FileNotFoundError):
                self._path.replace(self._older(1))
            self._new.replace(self._path)
            for stream in self._streams:
                if os.path.samestat(os.fstat(stream), ours):
                    os.dup2(descriptor, stream)
        finally:
            os.close(descriptor)

    @property
    def _new(self) -> Path:
        return self._path.with_name(f"{self._path.name}.new")

    def _older(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
