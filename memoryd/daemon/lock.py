"""memoryd.lock: the flock that says which process may write the ledger and the folder. Never a pid file.

The file's content is a courtesy for people and `status` (pid, since, what holds it); only the kernel's lock counts.
"""

import errno
import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from memoryd.clock import Clock
from memoryd.errors import DiskFull, LeaseLost, LedgerBusy, StorageError

# `status` takes the lock shared for an instant to see whether it is free; an owner tries again past that.
TRIES = 5
TRY_PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the lock: process id, since when (epoch seconds), and as what ("daemon" or a command's name)."""

    pid: int
    since: int
    role: str


class Lock:
    """The held lock; a context manager, released by `release()` or by the end of the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def still_ours(self) -> None:
        """Raise LeaseLost unless the file at the path is the very file that is locked."""
        if self._descriptor < 0:
            raise LeaseLost(f"the lock {self._path} was given back", remedy="this memoryd is ending")
        held = os.fstat(self._descriptor)
        try:
            there = self._path.stat()
        except FileNotFoundError:
            there = None
        if there is None or (there.st_dev, there.st_ino) != (held.st_dev, held.st_ino):
            raise LeaseLost(
                f"the lock file {self._path} was removed or replaced while memoryd held it",
                remedy="another memoryd may have started; this one stops",
            )

    def release(self) -> None:
        """Give the lock back; doing it twice is harmless. The file stays, so that nobody locks a deleted one."""
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1


async def acquire(path: Path, *, clock: Clock, role: str) -> Lock:
    """Take the lock, or raise LedgerBusy with the holder's pid."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _translated(path, error) from error
    try:
        await _lock(path, descriptor, clock)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "since": int(clock.now()), "role": role}).encode(), 0)
    except OSError as error:
        os.close(descriptor)
        raise _translated(path, error) from error
    except BaseException:
        os.close(descriptor)
        raise
    return Lock(path, descriptor)


def holder(path: Path) -> Holder | None:
    """Return who holds the lock, None when nobody does. Never waits, never takes it away from anybody."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # nobody waits for a FIFO's writer
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _read_holder(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


async def _lock(path: Path, descriptor: int, clock: Clock) -> None:
    for attempt in range(TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < TRIES:
                await clock.sleep(TRY_PAUSE_SECONDS)
        else:
            return
    who = _read_holder(descriptor)
    raise LedgerBusy(
        f"{path} is held by process {who.pid} ({who.role})",
        remedy="wait for it, or stop it, then try again",
        pid=who.pid,
    )


def _read_holder(descriptor: int) -> Holder:
    try:
        found = json.loads(os.pread(descriptor, 4096, 0))
        return Holder(int(found["pid"]), int(found["since"]), str(found["role"]))
    except (ValueError, KeyError, TypeError):
        return Holder(0, 0, "unknown")


def _translated(path: Path, error: OSError) -> StorageError:
    if error.errno in {errno.ENOSPC, errno.EROFS, errno.EDQUOT}:
        return DiskFull(f"cannot write {path}: {error.strerror}", remedy="free some space on that disk")
    return StorageError(f"cannot open {path}: {error.strerror}", remedy="check the folder and its permissions")
