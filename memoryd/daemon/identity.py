"""Who this process is, in a way that outlives it: so that its leases can be told from those of the living.

A name holds the process id, when that process started, and which boot of the machine it was in. A pid alone is used
again; a start time within one boot is not.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

_NAME: Final = re.compile(r"(?P<role>[a-z]+)-(?P<pid>\d+)-(?P<started>\d+)-(?P<boot>[0-9a-f]*)-(?P<nonce>[0-9a-f]+)")
_START_FIELD: Final = 19
"""starttime is field 22 of /proc/PID/stat; the 20th behind the parenthesis that closes the command's name."""


@dataclass(frozen=True, slots=True)
class Identity:
    """One run of memoryd. `started` is in clock ticks since boot, 0 where the system does not tell (macOS)."""

    role: str
    pid: int
    started: int
    boot: str
    nonce: str

    @classmethod
    def of_this_process(cls, role: str) -> Self:
        """Return the identity of this very run; each call makes another nonce."""
        return cls(role, os.getpid(), _started(os.getpid()), _boot(), os.urandom(4).hex())

    @classmethod
    def read(cls, worker_id: str) -> Self | None:
        """Read a worker's name as the ledger keeps it (a suffix numbers the workers of a run); None if it is none."""
        found = _NAME.match(worker_id)
        if found is None:
            return None
        return cls(found["role"], int(found["pid"]), int(found["started"]), found["boot"], found["nonce"])

    def __str__(self) -> str:
        return f"{self.role}-{self.pid}-{self.started}-{self.boot}-{self.nonce}"

    @property
    def is_this_process(self) -> bool:
        """Tell whether this process has that identity, whatever the nonce."""
        return self.pid == os.getpid() and self.started == _started(self.pid) and self.boot == _boot()

    @property
    def is_dead(self) -> bool:
        """Tell whether that process is gone for certain: another boot, no such process, or its number used again."""
        if self.boot != _boot():
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return self.started != _started(self.pid)


def _started(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    fields = stat.rpartition(")")[2].split()
    return int(fields[_START_FIELD]) if len(fields) > _START_FIELD else 0


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip().replace("-", "")[:12]
    except OSError:
        return ""
