"""A script as the lines of a Codex session file, in the envelope of version 0.171."""

import hashlib
import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from memoryd.control.demo_sessions.scripts import Row, Script

CLI_VERSION: Final = "0.171.0"
CONTEXT_WINDOW: Final = 258_400
USED_PERCENT: Final = 12.5
LIMIT_WINDOW_MINUTES: Final = 300

JsonObject = dict[str, object]


def thread_id_of(name: str, started_at: float) -> str:
    """Return the UUID (version 7) of a session: its time, and bits that depend on its name alone."""
    noise = int.from_bytes(hashlib.sha256(name.encode()).digest()[:10], "big")
    value = (int(started_at * 1000) & (1 << 48) - 1) << 80 | noise
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def session_lines(script: Script, *, started_at: float, parent_id: str | None = None) -> Iterator[str]:
    """Yield the lines of a session's file, without line breaks; `parent_id` is the thread that spawned it."""
    recorder = _Recorder(script, started_at, parent_id)
    for ordinal, (at, kind, payload) in enumerate(recorder.records()):
        line = {"timestamp": timestamp(started_at + at), "ordinal": ordinal, "type": kind, "payload": payload}
        yield json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def timestamp(instant: float) -> str:
    """Render epoch seconds as the records have them: UTC, milliseconds, `Z`."""
    return datetime.fromtimestamp(instant, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Recorder:
    """Turns the rows of one script into records, in order; holds the turn that is open."""

    def __init__(self, script: Script, started_at: float, parent_id: str | None) -> None:
        self._script = script
        self._started_at = started_at
        self._parent_id = parent_id
        self._thread_id = thread_id_of(script.name, started_at)
        self._turns = 0
        self._calls = 0

    def records(self) -> Iterator[tuple[float, str, JsonObject]]:
        """Yield (seconds after the start, type, payload)."""
        yield 0.0, "session_meta", self._meta()
        opened = False
        for row in self._script.rows:
            if row.kind == "human":
                self._turns += 1
                yield row.at, "event_msg", {"type": "task_started", **self._turn(), "started_at": self._epoch(row.at)}
                if not opened:
                    yield row.at, "response_item", self._environment(row.at)
                    opened = True
                yield row.at, "turn_context", self._context()
            yield from self._row(row)

    def _row(self, row: Row) -> Iterator[tuple[float, str, JsonObject]]:
        match row.kind:
            case "human":
                yield row.at, "response_item", self._message(row, "user")
            case "says" | "answers":
                yield row.at, "response_item", self._message(row, "assistant")
            case _:
                yield from self._call(row)
        if row.kind == "answers":
            yield row.at, "event_msg", self._limits(row.at)
            yield row.at, "event_msg", {"type": "task_complete", **self._turn(), "last_agent_message": row.text}

    def _meta(self) -> JsonObject:
        script = self._script
        source: object = script.source
        if self._parent_id is not None:
            spawn = {"parent_thread_id": self._parent_id, "depth": 1, "agent_path": None, "agent_nickname": "Noether"}
            source = {"subagent": {"thread_spawn": {**spawn, "agent_role": None}}}
        meta: JsonObject = {
            "session_id": self._parent_id or self._thread_id,
            "id": self._thread_id,
            "timestamp": timestamp(self._started_at),
            "cwd": script.cwd,
            "originator": "codex_exec" if source == "exec" else "codex-tui",
            "cli_version": CLI_VERSION,
            "source": source,
            "thread_source": "subagent" if self._parent_id else "user",
            "model_provider": "demo",
            "history_mode": "paginated",
            "git": {"commit_hash": self._hash("commit")[:40], "branch": script.branch, "repository_url": None},
        }
        if self._parent_id is not None:
            meta["parent_thread_id"] = self._parent_id
        if script.memory_mode is not None:
            meta["memory_mode"] = script.memory_mode
        return meta

    def _environment(self, at: float) -> JsonObject:
        """Return what the harness puts before a person's first words."""
        day = timestamp(self._started_at + at)[:10]
        context = (
            f"<environment_context>\n  <cwd>{self._script.cwd}</cwd>\n  <shell>bash</shell>\n"
            f"  <current_date>{day}</current_date>\n</environment_context>"
        )
        texts, kinds = [context], ["environments.environment_context"]
        if self._script.agents_md:
            rules = f"<INSTRUCTIONS>\n{self._script.agents_md}\n</INSTRUCTIONS>"
            texts.insert(0, f"# AGENTS.md instructions for {self._script.cwd}\n\n{rules}")
            kinds.insert(0, "agents_md.instructions")
        return {
            "type": "message",
            "id": f"msg_{self._hash('environment')[:24]}",
            "role": "user",
            "content": [{"type": "input_text", "text": text} for text in texts],
            "internal_chat_message_metadata_passthrough": {**self._turn(), "content_item_kinds": kinds},
        }

    def _context(self) -> JsonObject:
        return {**self._turn(), "cwd": self._script.cwd, "approval_policy": "on-request", "model": "demo-model"}

    def _message(self, row: Row, role: str) -> JsonObject:
        part = "input_text" if role == "user" else "output_text"
        kind = "user.text" if role == "user" else "unknown"
        message: JsonObject = {
            "type": "message",
            "id": f"msg_{self._hash(f'{row.at} {row.kind}')[:24]}",
            "role": role,
            "content": [{"type": part, "text": row.text}],
            "internal_chat_message_metadata_passthrough": {**self._turn(), "content_item_kinds": [kind]},
        }
        if role == "assistant":
            message["phase"] = "final_answer" if row.kind == "answers" else "commentary"
        return message

    def _call(self, row: Row) -> Iterator[tuple[float, str, JsonObject]]:
        self._calls += 1
        call_id = f"call_{self._hash(f'call {self._calls}')[:24]}"
        if row.kind == "patches":
            output = f"Exit code: {row.exit_code}\nWall time: 0.1 seconds\nOutput:\n{row.output}"
            call: JsonObject = {"type": "custom_tool_call", "name": "apply_patch", "input": row.text}
            answer: JsonObject = {"type": "custom_tool_call_output"}
        else:
            output = (
                f"Chunk ID: {call_id[5:11]}\nWall time: 0.4000 seconds\nProcess exited with code {row.exit_code}\n"
                f"Original token count: {len(row.output) // 4}\nOutput:\n{row.output}"
            )
            arguments = json.dumps({"cmd": row.text}, ensure_ascii=False)
            call = {"type": "function_call", "name": "exec_command", "arguments": arguments}
            answer = {"type": "function_call_output"}
        yield row.at, "response_item", {**call, "status": "completed", "call_id": call_id}
        yield row.at + 0.5, "response_item", {**answer, "call_id": call_id, "output": output}

    def _limits(self, at: float) -> JsonObject:
        primary = {
            "used_percent": USED_PERCENT,
            "window_minutes": LIMIT_WINDOW_MINUTES,
            "resets_at": self._epoch(at) + LIMIT_WINDOW_MINUTES * 60,
        }
        limits = {"limit_id": "codex", "primary": primary, "secondary": None, "rate_limit_reached_type": None}
        return {"type": "token_count", "info": {"model_context_window": CONTEXT_WINDOW}, "rate_limits": limits}

    def _turn(self) -> JsonObject:
        return {"turn_id": thread_id_of(f"{self._script.name} turn {self._turns}", self._started_at)}

    def _epoch(self, at: float) -> int:
        return int(self._started_at + at)

    def _hash(self, what: str) -> str:
        return hashlib.sha256(f"{self._script.name} {what}".encode()).hexdigest()
