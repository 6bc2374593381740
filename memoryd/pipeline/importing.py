"""What an import of another agent's memory has to say: what came, what was there, what was left out and why."""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from sqlite3 import Connection
from typing import Final

from memoryd.ledger import meta

MAX_NAMED: Final = 50
"""Things left out that are named one by one; the counts hold all."""
MAX_READ: Final = 1_000
"""Folders and databases that are named: a report travels over the socket as one line."""
STATEMENTS: Final = f"{meta.IMPORTED}statements"
"""The key of the digests of statements that came with an import (workspace/importing_record.py)."""


def recorded_statements(conn: Connection) -> frozenset[str]:
    """Return the digests of what came with imports, as far as it has not been forgotten."""
    return frozenset(json.loads(meta.get(conn, STATEMENTS) or "[]"))


def record_statements(conn: Connection, digests: Collection[str]) -> None:
    """Put these digests in the place of those that were recorded."""
    if digests or recorded_statements(conn):
        meta.put(conn, STATEMENTS, json.dumps(sorted(digests)))


RESOURCES: Final = f"{meta.IMPORTED}claude"
"""The key of the resources of Claude Code's memory as they were written last: digests by path."""


def known_resources(conn: Connection) -> dict[str, str]:
    """Return which resources an import has written, with the digests of what it wrote."""
    value = json.loads(meta.get(conn, RESOURCES) or "{}")
    return {str(path): str(digest) for path, digest in value.items()} if isinstance(value, dict) else {}


def know_resources(conn: Connection, known: Mapping[str, str]) -> None:
    """Put these in the place of those that were known; a path says what the file is about."""
    if known or known_resources(conn):
        meta.put(conn, RESOURCES, json.dumps(dict(known), sort_keys=True))


def digest_of_resource(data: bytes) -> str:
    """Return what tells one state of a resource from another."""
    return sha256(data).hexdigest()


@dataclass(slots=True)
class ImportReport:
    """What one import did, or, `is_dry`, would do. Nothing was sent for it, and nothing written beside the source."""

    agent: str
    homes: list[str]
    is_dry: bool = False
    read: list[str] = field(default_factory=list)
    sessions: Counter[str] = field(default_factory=Counter)
    """Rows by what became of them: imported, unchanged, left_out."""
    files: Counter[str] = field(default_factory=Counter)
    """Files by what became of them: imported, unchanged, left_out."""
    bullets: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)
    """(a session or a file, why)."""
    commit: str | None = None

    @property
    def is_news(self) -> bool:
        """Tell whether anything came."""
        return bool(self.sessions["imported"] or self.files["imported"] or self.commit)

    def leave_out_session(self, thread_id: str, reason: str) -> None:
        """Note a row that does not come."""
        self.sessions["left_out"] += 1
        self.left_out.append((thread_id, reason))

    def leave_out_file(self, path: str | Path, reason: str) -> None:
        """Note a file that does not come."""
        self.files["left_out"] += 1
        self.left_out.append((str(path), reason))

    def as_json(self) -> dict[str, object]:
        """Return it as `import --json` prints it."""
        return {
            "agent": self.agent,
            "homes": self.homes,
            "dry_run": self.is_dry,
            "read": self.read[:MAX_READ],
            "sessions": dict(self.sessions),
            "files": dict(self.files),
            "bullets": self.bullets,
            "left_out": [{"what": what, "why": why} for what, why in self.left_out[:MAX_NAMED]],
            "left_out_unnamed": max(0, len(self.left_out) - MAX_NAMED),
            "commit": self.commit,
            "consolidation": self.is_news and not self.is_dry,
        }
