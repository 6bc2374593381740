"""Factories of session files: synthetic Codex rollouts, and the recorded ones with their times shifted."""

from pathlib import Path


def install_recorded(into: Path, *, now: float, idle_hours: float, names: list[str] | None = None) -> list[Path]:
    """Copy recorded sessions into a sessions/YYYY/MM/DD tree, shifted so that the last record is idle_hours old."""
    raise NotImplementedError
