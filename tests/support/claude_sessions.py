"""Factories of Claude Code sessions: synthetic ones, and the recorded ones with their times shifted."""

import json
import os
import re
import uuid
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.sessions import Turn, iso

RECORDED = Path(__file__).parent.parent / "fixtures" / "claude"
HOME = ".claude"
SECONDS_PER_ROW = 2.0
_ISO = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


def a_claude_session(
    home: Path,
    *,
    now: float,
    idle_hours: float = 7.0,
    turns: Iterable[Turn | tuple[str, str] | str] = ("Fix the failing test, please.",),
    session_id: str | None = None,
    cwd: str = "/home/dev/shop",
    branch: str = "main",
    entrypoint: str | None = "cli",
    extra: Iterable[dict[str, Any]] = (),
) -> Path:
    """Write a session under the home, whose last row is `idle_hours` before `now`; return its path.

    `extra` are rows that follow the turns; each is chained to the one before unless it names a parent itself.
    """
    told = [_turn(turn) for turn in turns]
    rows = [row for turn in told for row in turn_rows(turn)] + list(extra)
    return write_claude_session(
        home,
        rows,
        ends_at=now - idle_hours * 3600,
        session_id=session_id or str(uuid.uuid5(uuid.NAMESPACE_URL, f"{now}\n{told}")),
        common={"cwd": cwd, "gitBranch": branch} | ({"entrypoint": entrypoint} if entrypoint else {}),
    )


def write_claude_session(
    home: Path,
    rows: Sequence[dict[str, Any]],
    *,
    ends_at: float,
    session_id: str,
    common: dict[str, Any] | None = None,
) -> Path:
    """Write rows as the program would: ids, parents, times and what is common to all are added where they are missing.

    A row that names its own `parentUuid` keeps it; rows of bookkeeping (those without `message` whose type is neither
    system nor attachment) get no id and no time.
    """
    shared = {"isSidechain": False, "userType": "external", "sessionId": session_id, "version": "2.1.332"}
    shared |= common or {"cwd": "/home/dev/shop", "gitBranch": "main"}
    folder = home / "projects" / re.sub(r"[^0-9A-Za-z]", "-", str(shared.get("cwd", "-")))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{session_id}.jsonl"
    parent: str | None = None
    lines: list[str] = []
    for step, row in enumerate(rows):
        at = ends_at - SECONDS_PER_ROW * (len(rows) - 1 - step)
        whole: dict[str, Any] = {"sessionId": session_id} | row
        if "message" in row or row["type"] in ("system", "attachment", "progress"):
            own = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{session_id}\n{step}"))
            whole = {"parentUuid": parent, **shared, "uuid": own, "timestamp": iso(at)} | row
            parent = parent if whole["isSidechain"] else str(whole["uuid"])
        lines.append(json.dumps(whole, ensure_ascii=False, separators=(",", ":")))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    os.utime(path, (ends_at, ends_at))
    return path


def user(content: Any, **fields: Any) -> dict[str, Any]:
    """Build a user row."""
    return {"type": "user", "message": {"role": "user", "content": content}, **fields}


def assistant(*blocks: dict[str, Any] | str, message_id: str | None = None, **fields: Any) -> dict[str, Any]:
    """Build an assistant row; a text stands for a text block."""
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    named = message_id or f"msg_{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content)).hex}"
    message = {"id": named, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": content}
    return {"type": "assistant", "message": message, **fields}


def tool_use(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    """Build the block of a tool call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def tool_result(call_id: str, content: Any, *, is_error: bool = False, **fields: Any) -> dict[str, Any]:
    """Build the user row of a tool's result."""
    block = {"tool_use_id": call_id, "type": "tool_result", "content": content, "is_error": is_error}
    return user([block], **fields)


def turn_rows(turn: Turn) -> list[dict[str, Any]]:
    """Build the rows of a turn."""
    rows = [user(turn.human)]
    if turn.commentary is not None:
        rows.append(assistant(turn.commentary))
    for number, command in enumerate(turn.commands):
        call_id = f"toolu_{uuid.uuid5(uuid.NAMESPACE_URL, f'{turn.human}{number}{command.line}').hex}"
        rows.append(assistant(tool_use(call_id, "Bash", command=command.line, description="a step")))
        if command.exit_code:
            output = f"Exit code {command.exit_code}\n{command.output}"
            rows.append(tool_result(call_id, output, is_error=True, toolUseResult=f"Error: {output}"))
        else:
            # the program repeats the output here; nobody reads it
            account = {"stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
            rows.append(tool_result(call_id, command.output, toolUseResult=account))
    if turn.answer is not None:
        rows.append(assistant(turn.answer))
    return rows


def install_recorded_claude(
    home: Path, *, now: float, idle_hours: float, versions: Collection[str] | None = None
) -> list[Path]:
    """Copy the recorded sessions into the home, all shifted alike; return the copies in order of their paths.

    The latest row of all is then `idle_hours` before `now` (whole seconds earlier at most), and each file's mtime is
    the time of its own last row; a file without any takes the latest.
    """
    contents = {path: path.read_bytes() for path in recorded_claude_files(versions)}
    latest = max(at for content in contents.values() if (at := _last_time(content)) is not None)
    shift = timedelta(seconds=int((now - idle_hours * 3600 - latest) // 1))
    copies: list[Path] = []
    for path, content in contents.items():
        moved = _ISO.sub(lambda match: _moved(match.group(), shift), content)
        copy = home / path.relative_to(RECORDED / path.relative_to(RECORDED).parts[0] / HOME)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(moved)
        ends_at = _last_time(moved) or latest + shift.total_seconds()
        os.utime(copy, (ends_at, ends_at))
        copies.append(copy)
    return sorted(copies)


def recorded_claude_files(versions: Collection[str] | None = None) -> list[Path]:
    """Return the recorded transcripts, all or those of the versions named."""
    folders = sorted(folder for folder in RECORDED.iterdir() if versions is None or folder.name in versions)
    return [path for folder in folders for path in sorted(folder.rglob("*.jsonl"))]


def _turn(turn: Turn | tuple[str, str] | str) -> Turn:
    if isinstance(turn, Turn):
        return turn
    return Turn(turn) if isinstance(turn, str) else Turn(*turn)


def _last_time(content: bytes) -> float | None:
    """Return the time of the last row that has one."""
    for line in reversed(content.splitlines()):
        stamp = json.loads(line).get("timestamp")
        if stamp:
            return datetime.fromisoformat(stamp).timestamp()
    return None


def _moved(stamp: bytes, shift: timedelta) -> bytes:
    moment = datetime.fromisoformat(stamp.decode()) + shift
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()
