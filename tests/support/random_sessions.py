"""Sessions with sentences drawn at random, and what must and must not be remembered of each."""

import random
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Planted:
    """One generated session: texts that must stand in the memory afterwards, and texts that must not."""

    thread_id: str
    path: Path
    cwd: str
    must_remember: tuple[str, ...]
    must_not_remember: tuple[str, ...]
    remembered: bool


def random_sessions(into: Path, *, now: float, rng: random.Random) -> list[Planted]:
    """Write random sessions into the Codex home `into` and say what was planted."""
    del into, now, rng
    return []
