"""Stage 2 without a model: the handbook and its summary, rewritten from the selected outputs alone."""

from collections.abc import Sequence
from pathlib import Path

from memoryd.ledger.outputs import SelectedOutput


def write_offline(work: Path, selected: Sequence[SelectedOutput], *, now: float, max_summary_bytes: int) -> None:
    """Write MEMORY.md and memory_summary.md of `work`; the same inputs give the same bytes."""
    del work, selected, now, max_summary_bytes
