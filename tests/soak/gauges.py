"""What is measured of a daemon while it runs: its process from /proc, its folder from the disk."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
BEHIND_NAME = ")"
UTIME, STIME, THREADS = 11, 12, 17
"""Fields of /proc/PID/stat behind the command's name."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One look. `at`: seconds since the first one; bytes unless the name says otherwise."""

    at: float
    rss: int
    descriptors: int
    threads: int
    cpu_seconds: float
    wal: int
    ledger: int
    history: int
    loose_objects: int
    rest: int
    """All of the home but ledger, log of the ledger, and history."""
    sessions: int
    """How many sessions had been recorded by then."""


def look(pid: int, home: Path, *, began: float, sessions: int) -> Sample:
    """Measure once. Raises FileNotFoundError when the process is gone."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(BEHIND_NAME)[2].split()
    git = home / "memories" / ".git"
    ledger, wal, history, loose, rest = 0, 0, 0, 0, 0
    for path, size in _files(home):
        if path == home / "ledger.sqlite3-wal":
            wal = size
        elif path.parent == home and path.name.startswith("ledger.sqlite3"):
            ledger += size
        elif git in path.parents:
            history += size
            loose += len(path.parent.name) == 2 and path.parent.parent.name == "objects"
        else:
            rest += size
    return Sample(
        at=time.monotonic() - began,
        rss=int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE,
        descriptors=len(list(Path(f"/proc/{pid}/fd").iterdir())),
        threads=int(stat[THREADS]),
        cpu_seconds=(int(stat[UTIME]) + int(stat[STIME])) / TICKS,
        wal=wal,
        ledger=ledger,
        history=history,
        loose_objects=loose,
        rest=rest,
        sessions=sessions,
    )


def _files(folder: Path) -> list[tuple[Path, int]]:
    found = []
    for above, _folders, names in os.walk(folder):
        for name in names:
            path = Path(above, name)
            try:
                found.append((path, path.lstat().st_size))
            except FileNotFoundError:
                continue
    return found
