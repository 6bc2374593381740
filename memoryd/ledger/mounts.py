"""Is a folder on a network file system? SQLite's WAL needs shared memory, which those do not have."""

import re
from pathlib import Path

MOUNTINFO = Path("/proc/self/mountinfo")

_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "sshfs", "fuse.sshfs", "virtiofs", "drvfs"})
_ESCAPE = re.compile(r"\\([0-7]{3})")


def read_mounts(source: Path = MOUNTINFO) -> str:
    """Return the kernel's table of mounts; empty where there is none (macOS)."""
    try:
        return source.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def network_file_system(path: Path, mountinfo: str) -> str | None:
    """Return the type of the network file system that holds `path` (absolute, resolved), or None.

    The longest mount point that is a prefix holds it; of several at one point, the last.
    """
    best, best_type = -1, ""
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        columns = fields.split(" ")
        if len(columns) < 5 or not rest:
            continue
        point = Path(_ESCAPE.sub(lambda match: chr(int(match[1], 8)), columns[4]))
        depth = len(point.parts)
        if depth >= best and path.is_relative_to(point):
            best, best_type = depth, rest.split(" ")[0]
    return best_type if best_type in _NETWORK else None
