"""How a pass says how far it is: for bars, log lines and the control socket. Imports nothing of what a pass does."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """Progress of a pass: `stage` is discover, extract or consolidate; `total` is 0 while it is unknown."""

    stage: str
    done: int
    total: int
    note: str = ""


Progress = Callable[[Step], None]


def silent(_step: Step) -> None:
    """Report nothing."""
