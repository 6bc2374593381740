"""Gemini CLI sessions for the golden files: one JSON object to 0.36, since then lines that rewrite a message list."""

import json
from pathlib import Path
from typing import Any

from tests.golden.record import INTERACTIVE, SUBAGENT, Golden, json_lines, thread_id


def extract(root: Path, recording: str) -> list[Golden]:
    return [_session(path, recording) for path in sorted(root.rglob("chats/session-*"))]


def _session(path: Path, recording: str) -> Golden:
    told = json.loads(path.read_text()) if path.suffix == ".json" else _replayed(json_lines(path))
    kind = SUBAGENT if told.get("kind") == "subagent" else INTERACTIVE
    session = Golden("gemini", recording, path.name, thread_id("gemini", told["sessionId"]), kind)
    named = path.parent.parent / ".project_root"
    session.cwd = named.read_text().strip() if named.exists() else None
    calls: set[str] = set()
    for message in told["messages"]:
        calls.update(call["id"] for call in message.get("toolCalls", []))
        if message["type"] == "user" and (words := _words(message["content"])):
            session.human.append(words)
        if isinstance(message["content"], list):
            calls.update(part["functionCall"]["id"] for part in message["content"] if "functionCall" in part)
    session.tool_calls = len(calls)
    return session


def _replayed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Do what the lines say, one after the other: headers, patches, and messages of which the last version counts.

    A resume writes the whole list anew, with calls as parts of the content, and gives a call's output the id of the
    message that called: the type belongs to the key.
    """
    told: dict[str, Any] = {}
    messages: dict[tuple[str, str], Any] = {}
    for row in rows:
        change = row.get("$set", row)
        if "messages" in change:
            messages = {(message["id"], message["type"]): message for message in change["messages"]}
        if "id" in row and "type" in row:
            messages[row["id"], row["type"]] = row
        else:
            told |= change
    return told | {"messages": list(messages.values())}


def _words(content: str | list[dict[str, Any]]) -> str:
    texts = [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]
    return "\n\n".join(text.strip() for text in texts if not text.startswith("<session_context>"))
