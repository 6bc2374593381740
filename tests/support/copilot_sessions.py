"""Factories of Copilot CLI sessions: synthetic ones, and the recorded ones with their times shifted."""

import json
import os
import re
import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.sessions import SECONDS_PER_STEP, Turn, a_thread_id, iso

RECORDED = Path(__file__).parent.parent / "fixtures" / "copilot"
_ISO = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def a_copilot_session(
    into: Path,
    *,
    now: float,
    idle_hours: float = 7.0,
    turns: Iterable[Turn | str] = ("Fix the failing test, please.",),
    thread_id: str | None = None,
    cwd: str | None = "/home/dev/shop",
    branch: str | None = "main",
    start: dict[str, Any] | None = None,
    extra: Iterable[dict[str, Any]] = (),
) -> Path:
    """Write a session under the home `into`, whose last event is `idle_hours` before `now`; return its path.

    `start` overrides members of session.start, `extra` are events ({"type", "data"}) that follow the turns.
    """
    told = [Turn(turn) if isinstance(turn, str) else turn for turn in turns]
    events = [event for turn in told for event in _turn_events(turn)] + list(extra)
    ends_at = now - idle_hours * 3600
    starts_at = ends_at - SECONDS_PER_STEP * len(events)
    thread = thread_id or a_thread_id(starts_at, "\n".join(turn.human for turn in told))
    context = {"cwd": cwd, "gitRoot": cwd, "repository": "example/shop", "hostType": "github", "branch": branch}
    data = {
        "sessionId": thread,
        "version": 1,
        "producer": "copilot-agent",
        "copilotVersion": "1.0.102",
        "startTime": iso(starts_at),
        "context": context if cwd else None,
        "alreadyInUse": False,
    }
    events.insert(0, {"type": "session.start", "data": data | (start or {})})
    return write_events(into / "session-state" / thread / "events.jsonl", events, starts_at)


def write_events(path: Path, events: Iterable[dict[str, Any]], starts_at: float) -> Path:
    """Write events two seconds apart, each with an id of its own and its predecessor's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parent: str | None = None
    at = starts_at
    with path.open("w") as file:
        for step, event in enumerate(events):
            at = starts_at + SECONDS_PER_STEP * step
            own = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{path.parent.name}{step}"))
            whole = {**event, "id": event.get("id", own), "timestamp": iso(at), "parentId": parent}
            file.write(json.dumps(whole, ensure_ascii=False) + "\n")
            parent = whole["id"]
    os.utime(path, (at, at))
    return path


def user(content: str, **data: Any) -> dict[str, Any]:
    """Build a user.message as the program writes it, its own words in transformedContent alone."""
    dressed = f"<current_datetime>2026-11-29T17:10:10.844+00:00</current_datetime>\n\n{content}"
    return {"type": "user.message", "data": {"content": content, "transformedContent": dressed, **data}}


def assistant(content: str, **data: Any) -> dict[str, Any]:
    return {"type": "assistant.message", "data": {"messageId": f"m-{content[:8]}", "content": content, **data}}


def tool(name: str, arguments: Any, said: str, call_id: str = "call_1", /, **complete: Any) -> list[dict[str, Any]]:
    """Build the two events of a tool that ran; `start` and what else is given go into their data."""
    begun = {"toolCallId": call_id, "toolName": name, "arguments": arguments, **complete.pop("start", {})}
    done = {"toolCallId": call_id, "success": True, "result": {"content": said}, **complete}
    return [{"type": "tool.execution_start", "data": begun}, {"type": "tool.execution_complete", "data": done}]


def install_recorded_copilot(into: Path, *, now: float, idle_hours: float) -> list[Path]:
    """Copy the recorded sessions into the home `into`, the last event of each `idle_hours` before `now`."""
    copies: list[Path] = []
    for path in sorted(RECORDED.rglob("events.jsonl")):
        content = path.read_bytes()
        last = datetime.fromisoformat(json.loads(content.splitlines()[-1])["timestamp"]).timestamp()
        delta = timedelta(seconds=int((now - idle_hours * 3600 - last) // 1))

        def shifted(match: re.Match[bytes], delta: timedelta = delta) -> bytes:
            moment = datetime.fromisoformat(match.group().decode()) + delta
            return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()

        copy = into / path.relative_to(RECORDED / path.relative_to(RECORDED).parts[0])
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(_ISO.sub(shifted, content))
        copy.with_name("workspace.yaml").write_bytes(path.with_name("workspace.yaml").read_bytes())
        copies.append(copy)
    return copies


def _turn_events(turn: Turn) -> list[dict[str, Any]]:
    events = [user(turn.human), {"type": "assistant.turn_start", "data": {"turnId": "0"}}]
    if turn.commentary is not None:
        events.append(assistant(turn.commentary, toolRequests=[]))
    for number, command in enumerate(turn.commands):
        call_id = f"call_{uuid.uuid5(uuid.NAMESPACE_URL, f'{turn.human}{number}{command.line}').hex}"
        told = f"{command.output}\n<shellId: {number} completed with exit code {command.exit_code}>"
        arguments = {"command": command.line, "description": "a step"}
        events += tool("bash", arguments, told, call_id, shellExecution={"exitCode": command.exit_code})
    if turn.answer is not None:
        events.append(assistant(turn.answer, toolRequests=[]))
    return [*events, {"type": "assistant.turn_end", "data": {"turnId": "0"}}]
