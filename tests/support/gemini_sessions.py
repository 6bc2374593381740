"""Factories of Gemini CLI sessions: synthetic ones in both formats, and the recorded ones with their times shifted."""

import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.sessions import Command, Turn, iso

RECORDED = Path(__file__).parent.parent / "fixtures" / "gemini"
SECONDS_PER_STEP = 2.0
CWD, SLUG = "/home/dev/shop", "shop"
CONTEXT = "<session_context>\nThis is the Gemini CLI.\n- **Workspace Directories:**\n  - {cwd}\n</session_context>"
_ISO = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


def a_gemini_session(
    home: Path,
    *,
    now: float,
    idle_hours: float = 7.0,
    turns: Iterable[Turn | str] = ("Fix the failing test, please.",),
    session_id: str | None = None,
    cwd: str = CWD,
    kind: str | None = "main",
    legacy: bool = False,
) -> Path:
    """Write a session under the home `home`, whose last record is `idle_hours` before `now`; return its path.

    `legacy` makes it one pretty-printed object, as versions before 0.37 did.
    """
    told = [turn if isinstance(turn, Turn) else Turn(turn) for turn in turns]
    messages = [message for turn in told for message in turn_messages(turn)]
    ends_at = now - idle_hours * 3600
    starts_at = ends_at - SECONDS_PER_STEP * len(messages)
    for step, message in enumerate(messages, start=1):
        at = iso(starts_at + SECONDS_PER_STEP * step)
        message.update({"timestamp": at} | message)
        for call in message.get("toolCalls", ()):
            call["timestamp"] = at
    head = a_header(session_id or an_id(f"{ends_at}{told}"), starts_at, cwd, kind)
    if legacy:
        once = {message["id"]: message for message in messages if "functionResponse" not in json.dumps(message)}
        document = head | {"lastUpdated": iso(ends_at), "messages": list(once.values())}
        content = json.dumps(document, indent=2, ensure_ascii=False)
    else:
        content = "".join(
            f"{json.dumps(record, ensure_ascii=False)}\n" for record in _log(head, messages, cwd, ends_at)
        )
    project(home, cwd)
    return write_session(home, head["sessionId"], content.encode(), starts_at, ends_at, legacy=legacy)


def project(home: Path, cwd: str = CWD, slug: str = SLUG) -> Path:
    """Make the folder of a project, with the mapping that tells its directory."""
    folder = home / "tmp" / slug
    (folder / "chats").mkdir(parents=True, exist_ok=True)
    (home / "projects.json").write_text(json.dumps({"projects": {cwd: slug}}))
    (folder / ".project_root").write_text(cwd)
    return folder


def write_session(
    home: Path, session_id: str, content: bytes, starts_at: float, ends_at: float, *, legacy: bool = False
) -> Path:
    """Write the bytes of a session where Gemini CLI would, with the time of its end as the file's."""
    chats = home / "tmp" / SLUG / "chats"
    chats.mkdir(parents=True, exist_ok=True)
    start = datetime.fromtimestamp(starts_at, UTC)
    path = chats / f"session-{start:%Y-%m-%dT%H-%M}-{session_id[:8]}.{'json' if legacy else 'jsonl'}"
    path.write_bytes(content)
    os.utime(path, (ends_at, ends_at))
    return path


def a_header(session_id: str, starts_at: float, cwd: str = CWD, kind: str | None = "main") -> dict[str, Any]:
    """Build the record that names a session."""
    at = iso(starts_at)
    head = {"sessionId": session_id, "projectHash": hashlib.sha256(cwd.encode()).hexdigest(), "startTime": at}
    return head | {"lastUpdated": at} | ({"kind": kind} if kind else {})


def a_message(kind: str, content: Any, seed: str | None = None, **fields: Any) -> dict[str, Any]:
    """Build a message; texts of the person stand in parts, as the program writes them."""
    parts = [{"text": content}] if kind == "user" and isinstance(content, str) else content
    return {"id": an_id(seed or f"{kind}{content}"), "type": kind, "content": parts} | fields


def turn_messages(turn: Turn) -> list[dict[str, Any]]:
    """Build the messages of a turn: the calling one is written twice, and its outputs once more as the person's."""
    messages = [a_message("user", turn.human)]
    if turn.commands or turn.commentary is not None:
        calling = a_message("gemini", turn.commentary or "", f"calls{turn.human}", thoughts=[], model="mock")
        calls = [a_call(turn.human, number, command) for number, command in enumerate(turn.commands)]
        messages += [calling, calling | {"toolCalls": calls}] if calls else [calling]
        parts = [part for call in calls for part in call["result"]]
        messages += [a_message("user", parts, f"outputs{turn.human}")] if parts else []
    if turn.answer is not None:
        messages.append(a_message("gemini", turn.answer, f"answer{turn.human}", thoughts=[], model="mock"))
    return messages


def a_call(seed: str, number: int, command: Command) -> dict[str, Any]:
    """Build a recorded call of the shell with its result; only a failure has an exit code."""
    call_id = f"run_shell_command__{an_id(f'{seed}{number}{command.line}')}"
    code = f"\nExit Code: {command.exit_code}" if command.exit_code else ""
    output = f"<untrusted_context>\nOutput: {command.output}{code}\nProcess Group PGID: 4711\n</untrusted_context>"
    return {
        "id": call_id,
        "name": "run_shell_command",
        "args": {"command": command.line, "description": "mock step"},
        "result": [a_response(call_id, "run_shell_command", {"output": output})],
        "status": "success",
        "displayName": "Shell",
    }


def a_response(call_id: str, tool: str, response: Any) -> dict[str, Any]:
    """Build the part that answers a call."""
    return {"functionResponse": {"id": call_id, "name": tool, "response": response}}


def an_id(seed: str) -> str:
    """Return a UUID, the same for the same seed."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, seed))


def install_recorded_gemini(into: Path, *, now: float, idle_hours: float) -> list[Path]:
    """Copy all recorded sessions into the home `into`, all shifted alike; return the copies in order of their paths.

    The latest record of all is then `idle_hours` before `now` (a second earlier at most).
    """
    return install_shifted(RECORDED, ".gemini", into, now=now, idle_hours=idle_hours)


def install_shifted(recorded: Path, home: str, into: Path, *, now: float, idle_hours: float) -> list[Path]:
    """Copy the homes named `home` of every recording into one, and move every time in the sessions alike."""
    latest = max(_latest(path.read_bytes()) for path in _sessions(recorded))
    shift = timedelta(seconds=int((now - idle_hours * 3600 - latest.timestamp()) // 1))
    copies: list[Path] = []
    for recording in sorted(path for path in recorded.iterdir() if path.is_dir()):
        shutil.copytree(recording / home, into, dirs_exist_ok=True)
        for path in _sessions(recording / home):
            copy = into / path.relative_to(recording / home)
            content = _ISO.sub(lambda match: _moved(match.group(), shift), path.read_bytes())
            copy.write_bytes(content)
            ends_at = _latest(content).timestamp()
            os.utime(copy, (ends_at, ends_at))
            copies.append(copy)
    return sorted(copies)


def _log(
    head: dict[str, Any], messages: Sequence[dict[str, Any]], cwd: str, ends_at: float
) -> Iterable[dict[str, Any]]:
    """Write messages as a log of edits, as versions from 0.37 on do."""
    context = a_message("user", CONTEXT.format(cwd=cwd)) | {"timestamp": head["startTime"]}
    yield head
    yield {"$set": {"messages": [context], "lastUpdated": head["startTime"]}}
    for index, message in enumerate(messages):
        yield message
        is_last = index == len(messages) - 1
        yield {"$set": {"lastUpdated": iso(ends_at) if is_last else message["timestamp"]}}


def _sessions(below: Path) -> list[Path]:
    return sorted(path for path in below.rglob("*") if path.parent.name == "chats" and path.is_file())


def _latest(content: bytes) -> datetime:
    return max(datetime.fromisoformat(found.decode()) for found in _ISO.findall(content))


def _moved(stamp: bytes, shift: timedelta) -> bytes:
    moment = datetime.fromisoformat(stamp.decode()) + shift
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()
