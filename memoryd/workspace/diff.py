"""What changed since the last accepted commit, as the consolidation agent reads it."""

from dataclasses import dataclass
from pathlib import Path

from memoryd.workspace.git import Change, Repository


@dataclass(frozen=True, slots=True)
class WorkspaceDiff:
    """The changed paths, and the text of phase2_workspace_diff.md."""

    changes: tuple[Change, ...]
    text: str


def workspace_diff(repo: Repository, accepted: str | None, work: Path) -> WorkspaceDiff:
    """Compare a staged folder with the accepted commit (None: with nothing)."""
    raise NotImplementedError
