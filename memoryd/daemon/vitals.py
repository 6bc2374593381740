"""What a process of long life may run out of: memory and file descriptors; how much it has, and how much is too much.

The bounds lie far above what memoryd needs (60 MB and 20 descriptors at rest) and below what the service file allows,
so that it ends by itself, with its jobs given back, before the system ends it in the middle of them.
"""

import ctypes
import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MEMORY: Final = Path("/proc/self/statm")
DESCRIPTORS: Final = (Path("/proc/self/fd"), Path("/dev/fd"))
M_ARENA_MAX: Final = -8
"""Of malloc.h."""
SHARED_POOLS: Final = 2
MEGABYTE: Final = 1024 * 1024
RESIDENT_FIELD: Final = 1
"""The second number of statm: resident pages."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What this process has now; None where the system does not tell (memory on macOS)."""

    resident_bytes: int | None
    descriptors: int | None
    descriptor_limit: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """From `soft` on health is degraded; from `hard` on the daemon takes no more work and starts anew.

    Memory in bytes, descriptors in parts of what the system allows the process.
    """

    soft_bytes: int = 384 * MEGABYTE
    hard_bytes: int = 768 * MEGABYTE
    soft_share: float = 0.6
    hard_share: float = 0.9


@dataclass(frozen=True, slots=True)
class Excess:
    """A bound that is passed: `what` is "memory" or "descriptors", in megabytes or as a number."""

    what: str
    has: int
    bound: int
    is_hard: bool

    def __str__(self) -> str:
        unit = " MB of memory" if self.what == "memory" else " open descriptors"
        return f"memoryd has {self.has}{unit}, more than {self.bound}"


def usage() -> Usage:
    """Measure this process; a fraction of a millisecond."""
    return Usage(_resident_bytes(), _descriptors(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def excesses(has: Usage, bounds: Bounds) -> list[Excess]:
    """Return which bounds are passed, of each thing the harder one."""
    found = []
    if has.resident_bytes is not None:
        soft, hard = bounds.soft_bytes // MEGABYTE, bounds.hard_bytes // MEGABYTE
        found.append(_excess("memory", has.resident_bytes // MEGABYTE, soft, hard))
    if has.descriptors is not None and has.descriptor_limit > 0:
        soft, hard = (int(share * has.descriptor_limit) for share in (bounds.soft_share, bounds.hard_share))
        found.append(_excess("descriptors", has.descriptors, soft, hard))
    return [excess for excess in found if excess is not None]


def spare_memory() -> bool:
    """Let the C library's threads share two pools of memory, for the life of this process; tell whether it could.

    By default glibc gives each thread one of its own: what a consolidation needed for a moment then stays in six.
    """
    return _call_libc("mallopt", M_ARENA_MAX, SHARED_POOLS)


def give_memory_back() -> bool:
    """Give the system what was needed for a moment and is free again; tell whether there was any. Some milliseconds."""
    return _call_libc("malloc_trim", 0)


def _call_libc(name: str, *arguments: int) -> bool:
    """Call a function that glibc alone has."""
    try:
        return bool(getattr(ctypes.CDLL(None), name)(*arguments))
    except (AttributeError, OSError):
        return False


def _excess(what: str, has: int, soft: int, hard: int) -> Excess | None:
    if has > hard:
        return Excess(what, has, hard, is_hard=True)
    return Excess(what, has, soft, is_hard=False) if has > soft else None


def _resident_bytes() -> int | None:
    try:
        pages = int(MEMORY.read_text(encoding="ascii").split()[RESIDENT_FIELD])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def _descriptors() -> int | None:
    for folder in DESCRIPTORS:
        try:
            return len(os.listdir(folder)) - 1  # noqa: PTH208 - the one that lists is not counted
        except OSError:
            continue
    return None
