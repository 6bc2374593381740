"""Large sessions of every agent, in the shapes of recorded ones: tool outputs, images, compaction histories, noise.

One turn is built once per agent; a session is that turn over and over, with other ids each time. A turn has ten calls,
whose outputs are small (150 bytes) to large (30 KB, 6 KB on average), and around them what the program of that version
writes beside them: every output twice where it keeps one for the screen, bookkeeping after every request, encrypted
reasoning, one image, and where there are such a compaction history or Claude's attachments of 110 KB.
"""

import base64
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

TURN_MARK = "7070707070"  # replaced by the number of the turn, in the same length
THREAD = "01a22835-20fe-7142-8458-53a7ac00c13f"
AT = "2026-11-29T16:48:20.272Z"
CWD = "/home/dev/paginator"
OUTPUT_SIZES = (150, 300, 600, 900, 1_500, 2_500, 4_000, 7_000, 12_000, 30_000)
IMAGE_BYTES, HISTORY_BYTES, ATTACHMENT_BYTES = 24_000, 40_000, 110_000
ATTACHMENTS = 3  # with them a tenth of the bytes is conversation, as in the recorded sessions of 2.1.332

_random = Random(7)
_SENTENCE = "def return total size page count test assert self import Error line in for while None value list index"
_WORDS = _SENTENCE.split()
_IMAGE = base64.b64encode(_random.randbytes(IMAGE_BYTES * 3 // 4)).decode()

Rows = list[dict[str, Any]]


def text(size: int) -> str:
    """Write something like code or a log: short lines, indents, quotes, some characters beyond ASCII."""
    lines: list[str] = []
    length = 0
    while length < size:
        words = _random.choices(_WORDS, k=_random.randint(3, 11))
        line = " " * _random.choice((0, 4, 8)) + " ".join(words)
        line = f'{line} "{words[0]}" \\n' if _random.random() < 0.2 else line
        lines.append(line + (" — größer" if _random.random() < 0.03 else ""))
        length += len(line) + 1
    return "\n".join(lines)[:size]


def identity(row: int) -> str:
    return f"{row:08x}-7070-4070-8070-{TURN_MARK}{row:02x}"


def last_id(rows: Rows) -> str:
    """Return the id of the last row that has one: each row names the one before it."""
    return next((row.get("uuid") or row["id"] for row in reversed(rows) if "uuid" in row or "id" in row), identity(0))


def codex_turn() -> Rows:
    def item(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": AT, "type": "response_item", "payload": {"type": kind, **payload}}

    def event(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": AT, "type": "event_msg", "payload": {"type": kind, **payload}}

    def message(role: str, words: str, **more: Any) -> dict[str, Any]:
        part = {"type": "output_text" if role == "assistant" else "input_text", "text": words}
        return item("message", role=role, content=[part], **more)

    image = {"type": "input_image", "image_url": f"data:image/png;base64,{_IMAGE}"}
    human = message("user", text(300))
    human["payload"]["content"].append(image)
    limits = {"limit_id": "codex", "primary": {"used_percent": 4.0, "window_minutes": 300, "resets_at": 1795970900}}
    rows = [
        {"timestamp": AT, "type": "turn_context", "payload": {"cwd": CWD, "user_instructions": text(3_000)}},
        {"timestamp": AT, "type": "world_state", "payload": {"state": {"agents_md": {"text": text(4_000)}}}},
        event("thread_settings_applied", thread_settings={"model": "m", "instructions": text(1_700)}),
        human,
        event("user_message", message=human["payload"]["content"][0]["text"], images=[], local_images=[]),
    ]
    usage = {
        name: number for number, name in enumerate(("input_tokens", "cached_input_tokens", "output_tokens"), 9_000)
    }
    counted = {"total_token_usage": usage, "last_token_usage": usage, "model_context_window": 258_400}
    for number, size in enumerate(OUTPUT_SIZES):
        call, output = f"call_{TURN_MARK}{number}", text(size)
        arguments = json.dumps({"cmd": f"pytest -q tests/test_{number}.py"})
        done = {"type": "CommandExecution", "id": call, "aggregated_output": output, "exit_code": 0}
        record = {"turn_id": THREAD, "usage": counted, "source": "responses", "note": "x" * 400}
        said = text(200)
        if number % 3 == 0:
            rows += [message("assistant", said, phase="commentary"), event("agent_message", message=said)]
        rows += [
            item("reasoning", summary=[], content=None, encrypted_content=_IMAGE[: 600 + 300 * number]),
            item("function_call", name="exec_command", arguments=arguments, call_id=call),
            item("function_call_output", call_id=call, output=f"Process exited with code 0\nOutput:\n{output}"),
            event("item_completed", thread_id=THREAD, turn_id=THREAD, item=done),
            {"timestamp": AT, "type": "token_usage_record", "payload": record},
            event("token_count", info=counted, rate_limits=limits),
        ]
    history = [message("assistant", text(2_000))["payload"] for _ in range(HISTORY_BYTES // 2_000)]
    compacted = {"message": "", "replacement_history": history}
    return [
        *rows,
        message("assistant", text(1_500), phase="final_answer"),
        {"timestamp": AT, "type": "compacted", "payload": compacted},
    ]


def claude_turn() -> Rows:
    place: dict[str, Any] = {"sessionId": THREAD, "cwd": CWD, "gitBranch": "main", "version": "2.1.332"}
    place |= {"userType": "external"}
    place |= {"isSidechain": False, "timestamp": AT, "entrypoint": "cli"}
    rows: Rows = []

    def add(kind: str, **more: Any) -> None:
        rows.append({"parentUuid": last_id(rows), "type": kind, "uuid": identity(len(rows) + 1), **more, **place})

    def says(role: str, *blocks: dict[str, Any], **more: Any) -> None:
        add(role, message={"role": role, "id": f"msg_{TURN_MARK}{len(rows)}", "content": list(blocks)}, **more)

    picture = {"type": "base64", "media_type": "image/png", "data": _IMAGE}
    says("user", {"type": "text", "text": text(300)}, {"type": "image", "source": picture})
    for _ in range(ATTACHMENTS):
        add("attachment", attachment={"type": "prompt_snapshot", "content": text(ATTACHMENT_BYTES)})
    rows.append({"type": "file-history-snapshot", "messageId": identity(1), "snapshot": {"trackedFileBackups": {}}})
    for number, size in enumerate(OUTPUT_SIZES):
        call, output = f"toolu_{TURN_MARK}{number}", text(size)
        says("assistant", {"type": "thinking", "thinking": text(400), "signature": _IMAGE[:1_000]})
        if number % 3 == 0:
            says("assistant", {"type": "text", "text": text(200)})
        add("attachment", attachment={"type": "total_tokens_reminder", "used": 1_000, "content": "x" * 150})
        rows.append({"type": "api-request", "sessionId": THREAD, "hash": "0" * 60, "shape": {"note": "x" * 1_100}})
        command = {"command": f"pytest -q tests/test_{number}.py", "description": "run the tests"}
        says("assistant", {"type": "tool_use", "id": call, "name": "Bash", "input": command})
        result = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": False}
        says("user", result, toolUseResult={"stdout": output, "stderr": "", "interrupted": False})
    says("assistant", {"type": "text", "text": text(1_500)})
    rows.append(
        {"type": "api-request-blob", "sessionId": THREAD, "hash": "0" * 60, "message": {"content": text(20_000)}}
    )
    return rows


def qwen_turn() -> Rows:
    place = {"sessionId": THREAD, "timestamp": AT, "cwd": CWD, "version": "0.24.4", "gitBranch": "main"}
    rows: Rows = []

    def add(kind: str, provenance: str, **more: Any) -> None:
        row = len(rows) + 1
        head = {"uuid": identity(row), "parentUuid": identity(row - 1), "type": kind, "provenance": provenance}
        rows.append(head | place | more)

    def says(kind: str, provenance: str, role: str, *parts: dict[str, Any], **more: Any) -> None:
        add(kind, provenance, message={"role": role, "parts": list(parts)}, **more)

    picture = {"inlineData": {"mimeType": "image/png", "data": _IMAGE}}
    says("user", "real_user", "user", {"text": text(300)}, picture)
    for number, size in enumerate(OUTPUT_SIZES):
        call, output = f"call_{TURN_MARK}{number}", text(size)
        function = {"id": call, "name": "run_shell_command", "args": {"command": f"pytest -q tests/test_{number}.py"}}
        words = [{"text": text(200)}] if number % 3 == 0 else []
        says("assistant", "assistant_output", "model", *words, {"functionCall": function})
        add("system", "system", subtype="ui_telemetry", systemPayload={"uiEvent": {"model": "m", "note": "x" * 500}})
        add("system", "system", subtype="ui_telemetry", systemPayload={"uiEvent": {"call_id": call, "note": text(900)}})
        answer = {"id": call, "name": "run_shell_command", "response": {"output": f"Output: {output}\nExit Code: 0"}}
        shown = {"callId": call, "status": "success", "resultDisplay": {"type": "shell_result", "output": output}}
        says("tool_result", "tool_result", "user", {"functionResponse": answer}, toolCallResult=shown)
    says("assistant", "assistant_output", "model", {"text": text(1_500)})
    return rows


def copilot_turn() -> Rows:
    rows: Rows = []

    def add(kind: str, **data: Any) -> None:
        row = len(rows) + 1
        rows.append({"type": kind, "data": data, "id": identity(row), "timestamp": AT, "parentId": identity(row - 1)})

    said = text(300)
    add("user.message", content=said, transformedContent=f"<current_datetime>{AT}</current_datetime>\n\n{said}")
    add("system.message", role="system", content=text(4_000))
    for number, size in enumerate(OUTPUT_SIZES):
        call, output = f"call_{TURN_MARK}{number}", text(size)
        arguments = {"command": f"pytest -q tests/test_{number}.py", "description": "run the tests"}
        request = {"toolCallId": call, "name": "bash", "arguments": arguments, "type": "function"}
        add("assistant.turn_start", turnId=str(number))
        add("session.usage_record", usage={"model": "m", "note": "x" * 900})
        add(
            "assistant.message",
            messageId=identity(number),
            content=text(200) if number % 3 == 0 else "",
            toolRequests=[request],
        )
        add("tool.execution_start", toolCallId=call, toolName="bash", arguments=arguments)
        result = {"content": output, "detailedContent": output}
        add("tool.execution_complete", toolCallId=call, shellExecution={"exitCode": 0}, success=True, result=result)
        add("assistant.turn_end", turnId=str(number))
    add("assistant.message", messageId=identity(99), content=text(1_500), toolRequests=[])
    return rows


def gemini_turn() -> Rows:
    picture = {"inlineData": {"mimeType": "image/png", "data": _IMAGE}}
    rows: Rows = [{"id": identity(1), "timestamp": AT, "type": "user", "content": [{"text": text(300)}, picture]}]
    for number, size in enumerate(OUTPUT_SIZES):
        call, output = f"run_{TURN_MARK}{number}", text(size)
        row: dict[str, Any] = {"id": identity(10 + number), "timestamp": AT, "type": "gemini", "content": ""}
        row["content"] = text(200) if number % 3 == 0 else ""
        row["tokens"] = {"input": 9_000, "output": 90, "cached": 8_000, "thoughts": 40, "tool": 0, "total": 9_130}
        row["thoughts"] = [{"subject": "", "description": text(400), "timestamp": AT}]
        answer = {"functionResponse": {"id": call, "name": "run_shell_command", "response": {"output": output}}}
        function = {"id": call, "name": "run_shell_command", "args": {"command": f"pytest -q tests/test_{number}.py"}}
        called = function | {"result": [answer], "status": "success", "resultDisplay": output, "timestamp": AT}
        rows += [row, {"$set": {"lastUpdated": AT}}, row | {"toolCalls": [called]}]
        rows.append({"id": identity(30 + number), "timestamp": AT, "type": "user", "content": [answer]})
    rows.append({"id": identity(60), "timestamp": AT, "type": "gemini", "content": text(1_500), "thoughts": []})
    return rows


def generic_turn() -> Rows:
    picture = {"type": "image", "source": {"data": _IMAGE}}
    parts = [{"type": "text", "text": text(300)}, picture]
    rows: Rows = [{"type": "user", "id": identity(1), "content": parts, "at": AT}]
    for number, size in enumerate(OUTPUT_SIZES):
        call = f"c{TURN_MARK}{number}"
        command = f"pytest -q tests/test_{number}.py"
        if number % 3 == 0:
            rows.append({"type": "assistant", "id": identity(10 + number), "text": text(200), "at": AT})
        rows.append(
            {"type": "tool_call", "id": identity(30 + number), "tool": "bash", "text": command, "call_id": call}
        )
        output = {"type": "tool_output", "id": identity(50 + number), "text": text(size), "exit_code": 0}
        rows.append(output | {"call_id": call, "at": AT})
    rows.append({"type": "assistant", "id": identity(99), "text": text(1_500), "final": True, "at": AT})
    return rows


FIRST_LINES: dict[str, dict[str, Any]] = {
    "codex": {"timestamp": AT, "type": "session_meta", "payload": {"id": THREAD, "timestamp": AT, "cwd": CWD}},
    "copilot": {"type": "session.start", "data": {"sessionId": THREAD, "context": {"cwd": CWD}}, "timestamp": AT},
    "gemini": {"sessionId": THREAD, "projectHash": "0" * 64, "startTime": AT, "lastUpdated": AT, "kind": "main"},
    "generic": {"type": "session", "id": THREAD, "cwd": CWD, "started_at": AT},
}
TURNS: dict[str, Callable[[], Rows]] = {
    "codex": codex_turn,
    "claude": claude_turn,
    "qwen": qwen_turn,
    "copilot": copilot_turn,
    "gemini": gemini_turn,
    "generic": generic_turn,
}
PLACES = {
    "codex": f"sessions/2026/11/29/rollout-2026-11-29T16-48-20-{THREAD}.jsonl",
    "claude": f"projects/-home-dev-paginator/{THREAD}.jsonl",
    "qwen": f"projects/-home-dev-paginator/chats/{THREAD}.jsonl",
    "copilot": f"session-state/{THREAD}/events.jsonl",
    "gemini": "tmp/paginator/chats/session-2026-11-29T16-48-01a22835.jsonl",
    "generic": f"{THREAD}.jsonl",
    "opencode": "opencode.db",
}


def write_session(agent: str, home: Path, size: int) -> Path:
    """Write a session of about `size` bytes under an agent's home; return its file."""
    path = home / PLACES[agent]
    path.parent.mkdir(parents=True, exist_ok=True)
    if agent == "opencode":
        _write_store(path, size)
        return path
    rows = TURNS[agent]()
    turn = b"".join(_compact(row) + b"\n" for row in rows)
    first, last = _compact(identity(0)), _compact(last_id(rows))
    with path.open("wb") as file:
        if agent in FIRST_LINES:
            file.write(_compact(FIRST_LINES[agent]) + b"\n")
        before = b"null"
        for number in range(max(1, size // len(turn))):
            mark = f"{number:010d}".encode()
            file.write(turn.replace(first, before).replace(TURN_MARK.encode(), mark))
            before = last.replace(TURN_MARK.encode(), mark)
    return path


def _compact(value: Any) -> bytes:
    """Write JSON as the agents do."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


_STORE = """
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, vcs text, name text, time_created integer,
  time_updated integer);
CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, slug text, directory text, title text,
  version text, permission text, revert text, time_created integer, time_updated integer, time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer,
  data text);
CREATE INDEX message_session ON message (session_id, time_created, id);
CREATE INDEX part_message ON part (message_id, id);
CREATE INDEX part_session ON part (session_id);
"""
SESSION, BEGAN = "ses_0123456789abcdefghijklmnop", 1_795_970_736_361


def _write_store(path: Path, size: int) -> None:
    with closing(sqlite3.connect(path)) as store:
        store.executescript(_STORE)
        store.execute("INSERT INTO project VALUES ('p', ?, 'git', NULL, ?, ?)", [CWD, BEGAN, BEGAN])
        facts = [SESSION, "p", None, "s", CWD, "t", "1.18.33", None, None, BEGAN, BEGAN + 1, None]
        store.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", facts)
        turn = list(_opencode_turn())
        written = number = 0
        while written < size:
            for place, (role, parts) in enumerate(turn):
                name = f"msg_{number:010d}{place:04d}"
                message = _compact({"role": role, "time": {"created": BEGAN + number}, "finish": "stop"}).decode()
                store.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", [name, SESSION, BEGAN + number, 0, message])
                for index, part in enumerate(parts):
                    row = [f"prt_{number:010d}{place:04d}{index:02d}", name, SESSION, BEGAN + number, 0, part.decode()]
                    store.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
                    written += len(part)
            number += 1
        store.commit()


def _opencode_turn() -> Iterator[tuple[str, list[bytes]]]:
    picture = {"type": "file", "mime": "image/png", "url": f"data:image/png;base64,{_IMAGE}"}
    yield "user", [_compact({"type": "text", "text": text(300)}), _compact(picture)]
    for number, size in enumerate(OUTPUT_SIZES):
        given = {"command": f"pytest -q tests/test_{number}.py"}
        output, times = text(size), {"start": BEGAN, "end": BEGAN + 90}
        shown = {"output": output, "exit": 0, "description": "run the tests", "truncated": False}
        state = {"status": "completed", "input": given, "output": output, "title": "tests", "metadata": shown}
        parts: Rows = [
            {"type": "step-start", "snapshot": "0" * 40},
            {"type": "reasoning", "text": text(400), "time": times},
            *([{"type": "text", "text": text(200), "time": times}] if number % 3 == 0 else []),
            {"type": "tool", "tool": "bash", "callID": f"call_{number}", "state": state | {"time": times}},
            {"type": "step-finish", "reason": "tool-calls", "cost": 0, "tokens": {"input": 1, "output": 1, "total": 2}},
        ]
        yield "assistant", [_compact(part) for part in parts]
    yield "assistant", [_compact({"type": "text", "text": text(1_500)})]
