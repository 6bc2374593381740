"""Landlock and prctl by ctypes: a process may give up, for good, writing anywhere but below some paths (Linux 5.13+).

Source: the kernel's include/uapi/linux/landlock.h; the three system calls have the same numbers on all architectures.
"""

import ctypes
import os
import sys
from typing import Final

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG: Final = 1
RULE_PATH_BENEATH: Final = 1
WRITE_FILE: Final = 1 << 1
REMOVE_AND_MAKE: Final = sum(1 << bit for bit in range(4, 13))
REFER: Final = 1 << 13  # from version 2
TRUNCATE: Final = 1 << 14  # from version 3
SCOPE_SIGNAL: Final = 1 << 1  # from version 6
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm")  # noqa: S108 - devices, no files


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Return which version of Landlock the kernel speaks, 0 for none."""
    if sys.platform != "linux":
        return 0
    return max(0, int(_libc().syscall(CREATE_RULESET, None, 0, VERSION_FLAG)))


def restrict(writable: list[str]) -> None:
    """Allow this process and its children to write below `writable` and a few devices only. Raises OSError.

    Reading stays as it was. The process must have given up new privileges before. From version 6 on it cannot signal
    processes outside either.
    """
    speaks = version()
    handled = WRITE_FILE | REMOVE_AND_MAKE | (REFER if speaks >= 2 else 0) | (TRUNCATE if speaks >= 3 else 0)
    rules = _Ruleset(handled, 0, SCOPE_SIGNAL if speaks >= 6 else 0)
    ruleset = _call(CREATE_RULESET, ctypes.byref(rules), 24 if speaks >= 6 else 8, 0)
    for path in (*writable, *DEVICES):
        _allow(ruleset, path, handled)
    _call(RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def prctl(option: int, value: int) -> None:
    """Set a property of this process; does nothing where there is no prctl."""
    if sys.platform == "linux":
        _libc().prctl(option, value, 0, 0, 0)


def _allow(ruleset: int, path: str, handled: int) -> None:
    """Add a rule for a path; of a file only what can be done to files, or the kernel refuses it."""
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    allowed = handled if os.path.isdir(path) else handled & (WRITE_FILE | TRUNCATE)  # noqa: PTH112 - no pathlib here
    rule = _Beneath(allowed, parent)
    try:
        _call(ADD_RULE, ruleset, RULE_PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(parent)


def _call(*arguments: object) -> int:
    result = int(_libc().syscall(*arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
