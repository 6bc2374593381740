"""What installing, restarting and uninstalling come to: values that a person is told."""

from dataclasses import dataclass, field
from pathlib import Path

from memoryd.control.service.state import State


@dataclass(frozen=True, slots=True)
class Installed:
    """`wrote`: files that are new or have changed; `notes`: what a person should know, a sentence each."""

    state: State
    wrote: list[Path] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Uninstalled:
    """What went, and what a person should know."""

    removed: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
