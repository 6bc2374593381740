"""Claude Code sessions for the golden files: a file is a session, a fork owns only the rows that no older one has."""

from pathlib import Path
from typing import Any

from tests.golden.record import EMPTY, INTERACTIVE, NONINTERACTIVE, SUBAGENT, Golden, json_lines, thread_id

HARNESS = (
    "<command-name>",
    "<command-message>",
    "<local-command-stdout>",
    "<local-command-caveat>",
    "<system-reminder>",
)


def extract(root: Path, recording: str) -> list[Golden]:
    files = {path: json_lines(path) for path in sorted(root.rglob("*.jsonl"))}
    return [_session(path, rows, recording, files) for path, rows in files.items()]


def _session(path: Path, rows: list[dict[str, Any]], recording: str, files: dict[Path, list[dict[str, Any]]]) -> Golden:
    session = Golden("claude", recording, path.name, thread_id("claude", path.stem), EMPTY)
    talk = [row for row in rows if row["type"] in ("user", "assistant")]
    if not talk:
        return session
    is_agent = path.stem.startswith("agent-")
    session.kind = SUBAGENT if is_agent else _kind(talk[0])
    session.cwd, session.branch = talk[0]["cwd"], talk[0].get("gitBranch") or None
    named = [row["sessionId"] for row in talk if row["sessionId"] != path.stem]
    session.parent = thread_id("claude", named[0]) if named else None
    older, copied = _copied(path, rows, files)
    session.copied_from = thread_id("claude", older.stem) if older else None
    for row in talk:
        if row["isSidechain"] and not is_agent:
            continue
        is_copy = row["uuid"] in copied
        if words := _human(row):
            (session.copied_human if is_copy else session.human).append(words)
        session.tool_calls += 0 if is_copy else _calls(row)
    return session


def _kind(row: dict[str, Any]) -> str:
    return INTERACTIVE if row.get("entrypoint", "cli") == "cli" else NONINTERACTIVE


def _copied(
    path: Path, rows: list[dict[str, Any]], files: dict[Path, list[dict[str, Any]]]
) -> tuple[Path | None, set[str]]:
    """Find the older session whose rows this one repeats: the one of the two whose first row of any type is earlier."""
    own = {row["uuid"] for row in rows if "uuid" in row}
    for other, its_rows in files.items():
        shared = own & {row["uuid"] for row in its_rows if "uuid" in row}
        if other != path and shared and _begin(its_rows) < _begin(rows):
            return other, shared
    return None, set()


def _begin(rows: list[dict[str, Any]]) -> str:
    return min(str(row["timestamp"]) for row in rows if "timestamp" in row)


def _human(row: dict[str, Any]) -> str:
    if row["type"] != "user" or row.get("isMeta") or row.get("isCompactSummary"):
        return ""
    content = row["message"]["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = [block["text"].strip() for block in blocks if block["type"] == "text"]
    return "\n\n".join(text for text in texts if not text.startswith(HARNESS))


def _calls(row: dict[str, Any]) -> int:
    content = row["message"]["content"]
    return 0 if isinstance(content, str) else sum(block["type"] == "tool_use" for block in content)
