"""Which directory a project folder of Gemini CLI stands for: sessions themselves do not name it.

The folder is a slug that projects.json maps, or (before 0.30) the SHA-256 of the directory, which only a known
directory can be compared with.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from memoryd.sources.rawjson import as_fields, as_text

TMP, CHATS = "tmp", "chats"
MAX_MAPPING_BYTES = 4 * 1024 * 1024
_HASH = re.compile(r"[0-9a-f]{64}")


def project_folder(session: Path) -> Path:
    """Return the project folder of a session's file: `tmp/<project>/chats/[<parent session>/]<file>`."""
    chats = session.parent if session.parent.name == CHATS else session.parent.parent
    return chats.parent


def project_cwd(project: Path) -> str | None:
    """Return the directory that a project folder stands for; None when nothing tells."""
    rooted = _read(project / ".project_root").decode("utf-8", "replace").strip()
    if rooted:
        return rooted
    home = project.parent.parent
    known = as_fields(as_fields(_read(home / "projects.json")).get("projects"))
    for cwd, slug in known.items():
        if as_text(slug) == project.name:
            return cwd
    if not _HASH.fullmatch(project.name):
        return None
    candidates = _candidates(home, known)
    return next((cwd for cwd in candidates if hashlib.sha256(cwd.encode()).hexdigest() == project.name), None)


def _candidates(home: Path, known: Iterable[str]) -> Iterator[str]:
    """Yield every directory that this home knows by name."""
    yield from known
    yield from as_fields(_read(home / "trustedFolders.json"))


def _read(path: Path) -> bytes:
    """Return a small file's content; nothing when there is none that can be read."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_MAPPING_BYTES:
            return b""
        return path.read_bytes()
    except OSError:
        return b""
