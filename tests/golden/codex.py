"""Codex sessions for the golden files: every line in memory, plain json, no cleverness."""

import io
import json
from pathlib import Path
from typing import Any

import zstandard

from tests.golden.record import INTERACTIVE, MEMORY_RUN, NONINTERACTIVE, SUBAGENT, Golden, thread_id

CALLS = ("function_call", "local_shell_call", "custom_tool_call", "tool_search_call", "web_search_call")
NOT_HUMAN = (
    ("# AGENTS.md instructions", "</INSTRUCTIONS>"),
    ("<skill>", "</skill>"),
    ("<user_instructions>", ""),
    ("<environment_context>", ""),
    ("<turn_aborted>", ""),
    ("<subagent_notification>", ""),
)


def extract(root: Path, recording: str) -> list[Golden]:
    return [_session(path, recording) for path in sorted(root.rglob("rollout-*")) if path.is_file()]


def _session(path: Path, recording: str) -> Golden:
    rows = _rows(path)
    meta = next(payload for kind, payload in rows if kind == "session_meta")
    session = Golden("codex", recording, path.name, thread_id("codex", meta["id"]), _kind(meta))
    session.cwd = meta.get("cwd")
    session.branch = (meta.get("git") or {}).get("branch")
    session.parent = _parent(meta) or meta.get("forked_from_id")
    for kind, payload in rows:
        if kind != "response_item":
            continue
        if payload["type"] in CALLS:
            session.tool_calls += 1
        elif payload["type"] == "message" and payload["role"] == "user":
            session.cwd = session.cwd or _environment_cwd(payload)
            words = _human(payload)
            session.human += [words] if words else []
    return session


def _rows(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return (type, payload) of every line; lines of 2025 are bare payloads, the first a session_meta."""
    data = path.read_bytes()
    if path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()
    rows = []
    for number, line in enumerate(data.decode().splitlines()):
        row = json.loads(line)
        if (row.get("metadata") or {}).get("compaction_output"):
            continue  # what the model answered when it was asked to compact the session
        if "payload" in row:
            rows.append((row["type"], row["payload"]))
        elif "record_type" not in row:
            rows.append(("session_meta" if number == 0 else "response_item", row))
    return rows


def _kind(meta: dict[str, Any]) -> str:
    source = meta.get("source", "vscode")
    name = source if isinstance(source, str) else next(iter(source))
    if "memory_consolidation" in (meta.get("thread_source"), source if isinstance(source, str) else source[name]):
        return MEMORY_RUN
    if name in ("subagent", "internal") or meta.get("thread_source") == "subagent" or _parent(meta):
        return SUBAGENT
    return INTERACTIVE if name in ("cli", "vscode") else NONINTERACTIVE


def _parent(meta: dict[str, Any]) -> str | None:
    parent: str | None = meta.get("parent_thread_id")
    return parent


def _human(message: dict[str, Any]) -> str:
    said = message.get("internal_chat_message_metadata_passthrough") or {}
    kinds = said.get("content_item_kinds")
    texts = []
    for number, part in enumerate(message["content"]):
        if part["type"] != "input_text":
            continue
        is_human = kinds[number] == "user.text" if kinds else not _is_marked(part["text"].strip())
        texts += [part["text"].strip()] if is_human else []
    return "\n\n".join(texts)


def _is_marked(text: str) -> bool:
    return any(text.startswith(opening) and text.endswith(closing) for opening, closing in NOT_HUMAN)


def _environment_cwd(message: dict[str, Any]) -> str | None:
    text = message["content"][0].get("text", "")
    if text.startswith("<environment_context>") and "<cwd>" in text:
        return str(text.split("<cwd>")[1].split("</cwd>")[0])
    return None
