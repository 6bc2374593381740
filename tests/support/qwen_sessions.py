"""Factories of Qwen Code sessions: synthetic ones, and the recorded ones with their times shifted."""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.gemini_sessions import an_id, install_shifted
from tests.support.sessions import Command, Turn, iso

RECORDED = Path(__file__).parent.parent / "fixtures" / "qwen"
SECONDS_PER_STEP = 2.0
CWD, BRANCH = "/home/dev/shop", "main"


def a_qwen_session(
    home: Path,
    *,
    now: float,
    idle_hours: float = 7.0,
    turns: Iterable[Turn | str] = ("Fix the failing test, please.",),
    session_id: str | None = None,
    cwd: str = CWD,
    branch: str = BRANCH,
) -> Path:
    """Write a session under the home `home`, whose last record is `idle_hours` before `now`; return its path."""
    told = [turn if isinstance(turn, Turn) else Turn(turn) for turn in turns]
    rows = [row for turn in told for row in turn_rows(turn)]
    return write_rows(
        home,
        rows,
        now=now,
        idle_hours=idle_hours,
        session_id=session_id or an_id(f"{now}{told}"),
        cwd=cwd,
        branch=branch,
    )


def write_rows(
    home: Path,
    rows: Iterable[dict[str, Any]],
    *,
    now: float,
    idle_hours: float = 7.0,
    session_id: str,
    cwd: str = CWD,
    branch: str = BRANCH,
) -> Path:
    """Write rows as a session: each gets what it lacks of an id, its parent (the row before), a time and a place."""
    given = list(rows)
    ends_at = now - idle_hours * 3600
    parent: str | None = None
    lines: list[str] = []
    for step, row in enumerate(given, start=1 - len(given)):
        common = {
            "uuid": an_id(f"{session_id}{step + len(given)}"),
            "parentUuid": parent,
            "sessionId": session_id,
            "timestamp": iso(ends_at + SECONDS_PER_STEP * step),
            "cwd": cwd,
            "version": "0.24.4",
            "gitBranch": branch,
        }
        whole = common | row
        parent = whole["uuid"]
        lines.append(json.dumps(whole, ensure_ascii=False))
    folder = home / "projects" / re.sub(r"[^0-9A-Za-z]", "-", cwd) / "chats"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{session_id}.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    os.utime(path, (ends_at, ends_at))
    return path


def turn_rows(turn: Turn) -> list[dict[str, Any]]:
    """Build the rows of a turn."""
    rows = [human(turn.human)]
    if turn.commentary is not None and not turn.commands:
        rows.append(assistant({"text": turn.commentary}))
    for number, command in enumerate(turn.commands):
        call_id = f"call_{an_id(f'{turn.human}{number}{command.line}')}"
        spoken = [{"text": turn.commentary}] if turn.commentary is not None and not number else []
        rows += [assistant(*spoken, a_call(call_id, command)), a_result(call_id, command), telemetry()]
    if turn.answer is not None:
        rows.append(assistant({"text": turn.answer}))
    return rows


def human(text: str, **fields: Any) -> dict[str, Any]:
    """Build a prompt of the person's."""
    message = {"role": "user", "parts": [{"text": text}]}
    return {"type": "user", "provenance": "real_user", "message": message} | fields


def assistant(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Build an answer."""
    message = {"role": "model", "parts": list(parts)}
    return {"type": "assistant", "provenance": "assistant_output", "model": "mock", "message": message} | fields


def a_call(call_id: str, command: Command) -> dict[str, Any]:
    """Build the part that calls the shell."""
    return {"functionCall": {"id": call_id, "name": "run_shell_command", "args": {"command": command.line}}}


def a_result(call_id: str, command: Command) -> dict[str, Any]:
    """Build the row that holds what a command printed."""
    output = (
        f"Command: {command.line}\nDirectory: (root)\nOutput: {command.output}\nError: (none)\n"
        f"Exit Code: {command.exit_code}\nSignal: (none)\nProcess Group PGID: (none)"
    )
    response = {"error" if command.exit_code else "output": output}
    part = {"functionResponse": {"id": call_id, "name": "run_shell_command", "response": response}}
    shown = {"type": "shell_result", "exitCode": command.exit_code}
    return {
        "type": "tool_result",
        "provenance": "tool_result",
        "message": {"role": "user", "parts": [part]},
        "toolCallResult": {"callId": call_id, "status": "success", "resultDisplay": shown},
    }


def telemetry() -> dict[str, Any]:
    """Build a row of the program's own."""
    return system("ui_telemetry", {"uiEvent": {"event.name": "qwen-code.tool_call"}})


def system(subtype: str, payload: Any, **fields: Any) -> dict[str, Any]:
    """Build a row of the program's own."""
    return {"type": "system", "provenance": "system", "subtype": subtype, "systemPayload": payload} | fields


def install_recorded_qwen(into: Path, *, now: float, idle_hours: float) -> list[Path]:
    """Copy all recorded sessions into the home `into`, all shifted alike; return the copies in order of their paths."""
    return install_shifted(RECORDED, ".qwen", into, now=now, idle_hours=idle_hours)
