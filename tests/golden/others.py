"""Qwen Code and Copilot CLI sessions for the golden files."""

from pathlib import Path

from tests.golden.record import INTERACTIVE, SUBAGENT, Golden, json_lines, thread_id


def extract_qwen(root: Path, recording: str) -> list[Golden]:
    sessions = []
    for path in sorted(root.rglob("chats/*.jsonl")):
        rows = json_lines(path)
        first = rows[0]
        kind = SUBAGENT if first.get("isSidechain") else INTERACTIVE
        session = Golden("qwen", recording, path.name, thread_id("qwen", path.stem), kind)
        session.cwd, session.branch = first["cwd"], first.get("gitBranch")
        for row in rows:
            parts = row.get("message", {}).get("parts", [])
            if row["type"] == "user" and row["provenance"] == "real_user":
                session.human.append("\n\n".join(part["text"].strip() for part in parts))
            session.tool_calls += sum("functionCall" in part for part in parts)
        sessions.append(session)
    return sessions


def extract_copilot(root: Path, recording: str) -> list[Golden]:
    sessions = []
    for path in sorted(root.rglob("session-state/*/events.jsonl")):
        name = f"{path.parent.name}/{path.name}"
        session = Golden("copilot", recording, name, thread_id("copilot", path.parent.name), INTERACTIVE)
        for event in json_lines(path):
            data = event["data"]
            if event["type"] == "session.start":
                session.cwd, session.branch = data["context"]["cwd"], data["context"].get("branch")
            elif event["type"] == "user.message":
                session.human.append(data["content"].strip())
            elif event["type"] == "tool.execution_start":
                session.tool_calls += 1
        sessions.append(session)
    return sessions
