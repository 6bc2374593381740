"""The evidence of a consolidation as files: raw_memories.md and rollout_summaries/ (FORMATS.md section 3)."""

from collections.abc import Sequence
from pathlib import Path

from memoryd.ledger.outputs import SelectedOutput


def materialise(work: Path, selected: Sequence[SelectedOutput]) -> None:
    """Write raw_memories.md and one summary per selected session; remove the .md files of all others."""
    raise NotImplementedError
