"""Put the bundled sessions into a Codex home, as if they had been recorded during the last weeks."""

from pathlib import Path
from typing import Final

DEMO_MAX_AGE_SECONDS: Final = 30 * 86_400
"""The age up to which the bundled sessions are meant to be read; one of them is older on purpose."""


def install(into_codex_home: Path, *, now: float) -> int:
    """Write the bundled sessions under `into_codex_home`/sessions, shifted to `now`; return how many."""
    del into_codex_home, now
    return 0
