"""What a look at the house, the service or an agent's hook found: the one shape that `doctor` tells."""

from dataclasses import dataclass
from enum import StrEnum


class Repair(StrEnum):
    """What `doctor --fix` can do about a finding."""

    MODES = "modes"
    LOCKS = "locks"
    RUNNER = "runner"
    REOPEN = "reopen"
    """Opening the house once puts right what every start puts right: folders, recall/, what a crash left."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found: `severity` is ok, info, warning or error; `evidence` what was seen; `remedy` what to do.

    `repair`: `doctor --fix` does something about it.
    """

    id: str
    severity: str
    evidence: str
    remedy: str = ""
    repair: Repair | None = None
