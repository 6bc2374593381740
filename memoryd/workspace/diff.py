"""What changed since the last accepted commit, as the consolidation agent reads it."""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.text import byte_length, truncate_bytes
from memoryd.workspace.files import translated
from memoryd.workspace.folder import Folder
from memoryd.workspace.git import Change, Repository
from memoryd.workspace.layout import DIFF_FILE

MAX_DIFF_BYTES: Final = 4_194_304
_CUT: Final = f"\n[the diff was cut: this file holds at most {MAX_DIFF_BYTES} bytes]\n"
_OPENING: Final = """\
# Memory Workspace Diff

What changed in this folder since the last accepted consolidation.

## Status
"""


@dataclass(frozen=True, slots=True)
class WorkspaceDiff:
    """The changed paths, and the text of phase2_workspace_diff.md."""

    changes: tuple[Change, ...]
    text: str


def workspace_diff(repo: Repository, accepted: str | None, work: Path) -> WorkspaceDiff:
    """Compare a staged folder with the accepted commit (None: with nothing); writes nothing into the repository."""
    files = {path: work / path for path in Folder.read(work).files if path != DIFF_FILE}
    with (
        translated("compare in", work.parent),
        tempfile.TemporaryDirectory(prefix="objects-", dir=work.parent) as objects,
    ):
        scratch = repo.scratch(Path(objects))
        old, new = scratch.tree_of(accepted), scratch.write_tree(files)
        changes = scratch.changes(old, new)
        diff = scratch.diff(old, new, max_bytes=MAX_DIFF_BYTES) if changes else b""
    return WorkspaceDiff(changes, render_diff(changes, diff.decode("utf-8", "replace")))


def render_diff(changes: tuple[Change, ...], diff: str) -> str:
    """Render phase2_workspace_diff.md in at most MAX_DIFF_BYTES; a cut ends on a character boundary and says so."""
    rows = [f"- {change.status} {change.path}\n" for change in changes] or ["- none\n"]
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", diff)), default=0))
    head = f"{_OPENING}{''.join(rows)}\n## Diff\n\n{fence}diff\n"
    room = MAX_DIFF_BYTES - byte_length(head) - len(fence) - 1
    if diff and not diff.endswith("\n"):
        diff += "\n"
    if byte_length(diff) > room:
        diff = truncate_bytes(diff, room - len(_CUT)) + _CUT
    return f"{head}{diff}{fence}\n"
