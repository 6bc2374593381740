"""Factories of session files: synthetic Codex rollouts, and the recorded ones with their times shifted."""

import json
import os
import re
import time
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import zstandard

RECORDED = Path(__file__).parent.parent / "fixtures" / "codex"
SECONDS_PER_STEP = 2.0

_ISO = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_EPOCH = re.compile(rb'("(?:started_at|completed_at|create_time|resets_at)":)(\d{10})')
_EPOCH_MS = re.compile(rb'("(?:started_at_ms|completed_at_ms)":)(\d{10})(\d{3})')
_DAY = re.compile(rb"(current_date(?:\\?\"\s*:\s*\\?\"|>))(\d{4}-\d\d-\d\d)")


@dataclass(frozen=True)
class Command:
    """A shell command of a turn, with what it printed."""

    line: str
    output: str = ""
    exit_code: int = 0


@dataclass(frozen=True)
class Turn:
    """What the person said, what the agent ran and said meanwhile, and its answer."""

    human: str
    answer: str | None = "Done."
    commands: Sequence[Command] = ()
    commentary: str | None = None


def a_rollout(
    into: Path,
    *,
    now: float,
    idle_hours: float = 7.0,
    turns: Iterable[Turn | tuple[str, str] | str] = ("Fix the failing test, please.",),
    thread_id: str | None = None,
    source: Any = "cli",
    cwd: str = "/home/dev/shop",
    branch: str | None = "main",
    memory_mode: str | None = None,
    archived: bool = False,
    compressed: bool = False,
    meta: dict[str, Any] | None = None,
    extra: Iterable[dict[str, Any]] = (),
) -> Path:
    """Write a Codex session under the home `into`, whose last record is `idle_hours` before `now`; return its path.

    A turn may be a Turn, a pair of what was said and answered, or what was said alone. `meta` overrides members of
    session_meta, `extra` are records ({"type", "payload"}) that follow the turns.
    """
    told = [_turn(turn) for turn in turns]
    records = [record for turn in told for record in _turn_records(turn, cwd)] + list(extra)
    ends_at = now - idle_hours * 3600
    starts_at = ends_at - SECONDS_PER_STEP * len(records)
    thread = thread_id or a_thread_id(starts_at, "\n".join(turn.human for turn in told))
    payload: dict[str, Any] = {
        "id": thread,
        "timestamp": iso(starts_at),
        "cwd": cwd,
        "originator": "codex_cli_rs",
        "cli_version": "0.142.3",
        "source": source,
        "git": {"commit_hash": "0" * 40, "branch": branch} if branch else None,
    }
    if memory_mode is not None:
        payload["memory_mode"] = memory_mode
    records.insert(0, {"type": "session_meta", "payload": payload | (meta or {})})
    lines = [
        json.dumps({"timestamp": iso(starts_at + SECONDS_PER_STEP * step), **record}, ensure_ascii=False)
        for step, record in enumerate(records)
    ]
    return write_rollout(
        into, thread, "".join(f"{line}\n" for line in lines).encode(), starts_at, ends_at, archived, compressed
    )


def write_rollout(
    into: Path,
    thread_id: str,
    content: bytes,
    starts_at: float,
    ends_at: float,
    archived: bool = False,
    compressed: bool = False,
) -> Path:
    """Write the bytes of a rollout where Codex would, with the time of its end as the file's."""
    start = datetime.fromtimestamp(starts_at, UTC)
    folder = into / "archived_sessions" if archived else into / "sessions" / start.strftime("%Y/%m/%d")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rollout-{start:%Y-%m-%dT%H-%M-%S}-{thread_id}.jsonl{'.zst' if compressed else ''}"
    path.write_bytes(zstandard.ZstdCompressor().compress(content) if compressed else content)
    os.utime(path, (ends_at, ends_at))
    os.utime(folder, (time.time(), time.time()))  # by the clock of this process, which a test may have set
    return path


def a_thread_id(at: float, seed: str) -> str:
    """Return a version 7 UUID of an instant, the same for the same seed."""
    digest = uuid.uuid5(uuid.NAMESPACE_URL, f"{at}\n{seed}").int
    bits = (int(at * 1000) << 80) | (digest & ((1 << 76) - 1)) & ~(0b11 << 62) | (7 << 76) | (0b10 << 62)
    return str(uuid.UUID(int=bits))


def iso(at: float) -> str:
    """Render an instant as the rollouts do: UTC, milliseconds, Z."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def install_recorded(into: Path, *, now: float, idle_hours: float, names: Collection[str] | None = None) -> list[Path]:
    """Copy the recorded sessions into the home `into`, all shifted alike; return the copies in order of their paths.

    The latest record of all is then `idle_hours` before `now` (whole seconds earlier at most), and each file's mtime
    is the time of its own last record. `names` selects recordings (`exec-0.29.0`, `compressed`, ...). Thread ids and
    file names stay. A compressed twin lies beside the plain file of the same session.
    """
    contents = {path: _content(path) for path in recorded_files(names)}
    latest = max(_last_time(content) for content in contents.values())
    shift = int((now - idle_hours * 3600 - latest) // 1)
    copies: list[Path] = []
    for path, content in contents.items():
        shifted = _shifted(content, shift)
        copy = into / path.relative_to(RECORDED / path.relative_to(RECORDED).parts[0])
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(zstandard.ZstdCompressor().compress(shifted) if path.suffix == ".zst" else shifted)
        ends_at = _last_time(shifted)
        os.utime(copy, (ends_at, ends_at))
        copies.append(copy)
    return sorted(copies)


def recorded_files(names: Collection[str] | None = None) -> list[Path]:
    """Return the recorded files, all or those of the named recordings."""
    folders = sorted(folder for folder in RECORDED.iterdir() if names is None or folder.name in names)
    return [path for folder in folders for path in sorted(folder.rglob("rollout-*"))]


def _turn(turn: Turn | tuple[str, str] | str) -> Turn:
    if isinstance(turn, Turn):
        return turn
    return Turn(turn) if isinstance(turn, str) else Turn(*turn)


def _turn_records(turn: Turn, cwd: str) -> list[dict[str, Any]]:
    records = [{"type": "turn_context", "payload": {"cwd": cwd, "model": "mock"}}, _message("user", turn.human)]
    if turn.commentary is not None:
        records.append(_message("assistant", turn.commentary, phase="commentary"))
    for number, command in enumerate(turn.commands):
        call_id = f"call_{uuid.uuid5(uuid.NAMESPACE_URL, f'{turn.human}{number}{command.line}').hex}"
        output = f"Wall time: 0.1 seconds\nProcess exited with code {command.exit_code}\nOutput:\n{command.output}"
        call = {"name": "exec_command", "arguments": json.dumps({"cmd": command.line}), "call_id": call_id}
        records.append(response("function_call", **call))
        records.append(response("function_call_output", call_id=call_id, output=output))
    if turn.answer is not None:
        records.append(_message("assistant", turn.answer, phase="final_answer"))
    return records


def response(kind: str, **fields: Any) -> dict[str, Any]:
    """Build a response_item record."""
    return {"type": "response_item", "payload": {"type": kind, **fields}}


def _message(role: str, text: str, **fields: Any) -> dict[str, Any]:
    part = {"type": "output_text" if role == "assistant" else "input_text", "text": text}
    return response("message", role=role, content=[part], **fields)


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file).read() if path.suffix == ".zst" else file.read()


def _last_time(content: bytes) -> float:
    """Return the time of the last line that has one: of its record, or of the session where records have none."""
    for line in reversed(content.splitlines()):
        stamp = json.loads(line).get("timestamp")
        if stamp:
            return datetime.fromisoformat(stamp).timestamp()
    raise AssertionError("a recorded session without any time")


def _shifted(content: bytes, seconds: int) -> bytes:
    delta = timedelta(seconds=seconds)
    last = datetime.fromtimestamp(_last_time(content), UTC)
    days = (last + delta).date() - last.date()  # a lone date has no time of day: it moves as the session's end does

    def instant(match: re.Match[bytes]) -> bytes:
        moment = datetime.fromisoformat(match.group().decode()) + delta
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()

    def day(match: re.Match[bytes]) -> bytes:
        return match.group(1) + (date.fromisoformat(match.group(2).decode()) + days).isoformat().encode()

    content = _ISO.sub(instant, content)
    content = _EPOCH.sub(lambda match: match.group(1) + str(int(match.group(2)) + seconds).encode(), content)
    content = _EPOCH_MS.sub(
        lambda match: match.group(1) + str(int(match.group(2)) + seconds).encode() + match.group(3), content
    )
    return _DAY.sub(day, content)
