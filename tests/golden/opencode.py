"""OpenCode sessions for the golden files: the JSON tree of 1.0 and the database since 1.2, both read whole."""

import json
import sqlite3
from pathlib import Path
from typing import Any

from tests.golden.record import INTERACTIVE, NONINTERACTIVE, SUBAGENT, Golden, thread_id

Session = tuple[dict[str, Any], list[tuple[dict[str, Any], list[dict[str, Any]]]]]


def extract(root: Path, recording: str) -> list[Golden]:
    found: list[Session] = []
    for path in sorted(root.rglob("opencode.db")):
        found += _database(path)
    for path in sorted(root.rglob("storage")):
        found += _tree(path)
    return [_session(session, recording, found) for session in found]


def _database(path: Path) -> list[Session]:
    connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    connection.row_factory = sqlite3.Row
    sessions: list[Session] = []
    for row in connection.execute("SELECT * FROM session ORDER BY time_created"):
        messages = []
        of_session = "SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id"
        for message in connection.execute(of_session, [row["id"]]).fetchall():
            of_message = "SELECT data FROM part WHERE message_id = ? ORDER BY id"
            parts = [json.loads(part["data"]) for part in connection.execute(of_message, [message["id"]])]
            messages.append((json.loads(message["data"]), parts))
        facts = {key: row[key] for key in ("id", "parent_id", "directory", "time_created", "permission")}
        sessions.append((facts, messages))
    connection.close()
    return sessions


def _tree(root: Path) -> list[Session]:
    sessions: list[Session] = []
    for path in sorted(root.glob("session/*/ses_*.json")):
        told = json.loads(path.read_text())
        messages = []
        for message in sorted((root / "message" / told["id"]).glob("*.json")):
            parts = [json.loads(part.read_text()) for part in sorted((root / "part" / message.stem).glob("*.json"))]
            messages.append((json.loads(message.read_text()), parts))
        facts = {
            "id": told["id"],
            "parent_id": told.get("parentID"),
            "directory": told["directory"],
            "time_created": told["time"]["created"],
            "permission": None,
        }
        sessions.append((facts, messages))
    return sessions


def _session(found: Session, recording: str, all_of_them: list[Session]) -> Golden:
    facts, messages = found
    session = Golden("opencode", recording, facts["id"], thread_id("opencode", facts["id"]), INTERACTIVE)
    session.cwd = facts["directory"]
    if _asks_nobody(facts["permission"]):
        session.kind = NONINTERACTIVE
    # `opencode run` alone makes sessions that may not ask their user anything; the tree does not tell
    if any(rule["permission"] == "question" for rule in json.loads(facts.get("permission") or "[]")):
        session.kind = NONINTERACTIVE
    if facts["parent_id"]:
        session.kind, session.parent = SUBAGENT, thread_id("opencode", facts["parent_id"])
    for message, parts in messages:
        is_copy = message["time"]["created"] < facts["time_created"]
        if is_copy:
            session.copied_from = thread_id("opencode", _source(message["time"]["created"], facts, all_of_them))
        if message["role"] == "user":
            words = "\n\n".join(_unquoted(part["text"].strip()) for part in parts if part["type"] == "text")
            (session.copied_human if is_copy else session.human).append(words)
        session.tool_calls += 0 if is_copy else sum(part["type"] == "tool" for part in parts)
    return session


def _asks_nobody(permission: str | None) -> bool:
    """Tell whether questions are denied from the start, as `opencode run` does: there is nobody to answer them."""
    rules = json.loads(permission or "[]")
    return any((rule["permission"], rule["action"]) == ("question", "deny") for rule in rules)


def _source(created: int, facts: dict[str, Any], all_of_them: list[Session]) -> str:
    """Name the older session with a message of the same instant."""
    (name,) = {
        other["id"]
        for other, messages in all_of_them
        if other["time_created"] < facts["time_created"]
        and any(message["time"]["created"] == created for message, _ in messages)
    }
    return str(name)


def _unquoted(text: str) -> str:
    """Take the quotes away that `opencode run` puts around what was given on the command line."""
    inner = text[1:-1]
    return inner if len(text) > 2 and text[0] == text[-1] == '"' and '"' not in inner else text
