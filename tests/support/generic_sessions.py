"""Factories of sessions in the generic format."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.sessions import SECONDS_PER_STEP, Turn, iso

RECORDED = Path(__file__).parent.parent / "fixtures" / "generic"


def a_generic_session(
    into: Path,
    *,
    now: float,
    idle_hours: float = 7.0,
    turns: Iterable[Turn | str] = ("Fix the failing test, please.",),
    name: str = "a-session",
    session: dict[str, Any] | None = None,
    extra: Iterable[dict[str, Any]] = (),
) -> Path:
    """Write a session with rows two seconds apart, the last one `idle_hours` before `now`; return its path.

    `session` overrides members of the session row, `extra` are rows that follow the turns.
    """
    told = [Turn(turn) if isinstance(turn, str) else turn for turn in turns]
    rows = [row for turn in told for row in _turn_rows(turn)] + list(extra)
    starts_at = now - idle_hours * 3600 - SECONDS_PER_STEP * len(rows)
    head = {"type": "session", "cwd": "/home/dev/shop", "git_branch": "main", "started_at": iso(starts_at)}
    timed = [{**row, "at": iso(starts_at + SECONDS_PER_STEP * (step + 1))} for step, row in enumerate(rows)]
    return write_rows(into / f"{name}.jsonl", [head | (session or {}), *timed], now - idle_hours * 3600)


def write_rows(path: Path, rows: Iterable[dict[str, Any]], ends_at: float) -> Path:
    """Write rows as they are; the file's time is `ends_at`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    os.utime(path, (ends_at, ends_at))
    return path


def install_generic(into: Path, *, now: float, idle_hours: float) -> list[Path]:
    """Put the sample sessions into the folder `into`; those without times get their file's."""
    copies: list[Path] = []
    ends_at = now - idle_hours * 3600
    for path in sorted(RECORDED.rglob("*.jsonl")):
        copy = into / path.relative_to(RECORDED)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
        os.utime(copy, (ends_at, ends_at))
        copies.append(copy)
    return copies


def _turn_rows(turn: Turn) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"type": "user", "text": turn.human}]
    if turn.commentary is not None:
        rows.append({"type": "assistant", "text": turn.commentary})
    for number, command in enumerate(turn.commands):
        call_id = f"{turn.human[:8]}-{number}"
        rows.append({"type": "tool_call", "tool": "bash", "text": command.line, "call_id": call_id})
        rows.append({"type": "tool_output", "text": command.output, "call_id": call_id, "exit_code": command.exit_code})
    if turn.answer is not None:
        rows.append({"type": "assistant", "text": turn.answer})
    return rows
