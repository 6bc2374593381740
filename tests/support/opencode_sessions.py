"""Factories of OpenCode sessions in both of its stores, and the recorded ones with their times shifted."""

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.sessions import Turn

RECORDED = Path(__file__).parent.parent / "fixtures" / "opencode"
TREE_VERSION = "1.0.185"
STEP_MS = 100
RUN_RULES = [{"permission": name, "pattern": "*", "action": "deny"} for name in ("question", "plan_enter", "plan_exit")]
SCHEMA = """
CREATE TABLE IF NOT EXISTS project (id text PRIMARY KEY, worktree text NOT NULL);
CREATE TABLE IF NOT EXISTS session (
  id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL, directory text NOT NULL,
  title text NOT NULL, version text NOT NULL, summary_diffs text, revert text, permission text,
  time_created integer NOT NULL, time_updated integer NOT NULL, time_archived integer);
CREATE TABLE IF NOT EXISTS message (
  id text PRIMARY KEY, session_id text NOT NULL REFERENCES session(id) ON DELETE CASCADE,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE IF NOT EXISTS part (
  id text PRIMARY KEY, message_id text NOT NULL REFERENCES message(id) ON DELETE CASCADE, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX IF NOT EXISTS message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX IF NOT EXISTS part_message_id_id_idx ON part (message_id, id);
CREATE INDEX IF NOT EXISTS part_session_idx ON part (session_id);
"""
_MILLISECONDS = re.compile(r"\b1795\d{9}\b")  # the recordings are of one afternoon


@dataclass
class StoredMessage:
    """A message with its parts, as both stores hold them but for the ids."""

    role: str
    created_ms: int
    parts: list[Any]
    more: dict[str, Any] = field(default_factory=dict)
    message_id: str = ""

    def data(self) -> dict[str, Any]:
        return {"role": self.role, "time": {"created": self.created_ms}, **self.more}


@dataclass
class StoredSession:
    """A session before it is written."""

    session_id: str
    created_ms: int
    updated_ms: int
    messages: list[StoredMessage]
    directory: str = "/home/dev/shop"
    title: str = "New session"
    parent_id: str | None = None
    permission: Any = None
    revert: Any = None
    archived_ms: int | None = None


def an_opencode_session(
    home: Path,
    *,
    now: float,
    idle_hours: float = 7.0,
    turns: Iterable[Turn | tuple[str, str] | str] = ("Fix the failing test, please.",),
    name: str = "one",
    store: str = "database",
    extra: Sequence[StoredMessage] = (),
    **facts: Any,
) -> Path:
    """Write a session that was changed last `idle_hours` before `now`; return the path that names it.

    `store` is `tree`, `database`, or the file name of one; `name` makes the ids; `extra` messages follow the turns;
    `facts` are members of StoredSession.
    """
    session = a_stored_session(now=now, idle_hours=idle_hours, turns=turns, name=name, extra=extra, **facts)
    return write_session(home, session, store=store)


def a_stored_session(
    *,
    now: float,
    idle_hours: float = 7.0,
    turns: Iterable[Turn | tuple[str, str] | str] = ("Fix the failing test, please.",),
    name: str = "one",
    extra: Sequence[StoredMessage] = (),
    **facts: Any,
) -> StoredSession:
    """Make a session without writing it; its messages have ids and times."""
    ends_ms = int((now - idle_hours * 3600) * 1000)
    messages = [message for turn in turns for message in _messages(turn)] + list(extra)
    starts_ms = ends_ms - STEP_MS * (len(messages) + 1)
    for step, message in enumerate(messages, start=1):
        message.created_ms = message.created_ms or starts_ms + STEP_MS * step
    session = StoredSession(f"ses_{name}", starts_ms, ends_ms, messages)
    for key, value in facts.items():
        setattr(session, key, value)
    _name_messages(session)
    return session


def a_fork(of: StoredSession, *, name: str, at_ms: int, turns: Iterable[Turn | str] = ()) -> StoredSession:
    """Copy a session as OpenCode forks one: new ids, old times of messages, no word of the parent but in the title."""
    own = [message for turn in turns for message in _messages(turn)]
    for step, message in enumerate(own, start=1):
        message.created_ms = at_ms + STEP_MS * step
    copies = [StoredMessage(m.role, m.created_ms, m.parts, m.more) for m in of.messages]
    updated_ms = at_ms + STEP_MS * (len(own) + 1)
    fork = StoredSession(f"ses_{name}", at_ms, updated_ms, [*copies, *own], title=f"{of.title} (fork #1)")
    _name_messages(fork)
    return fork


def write_session(home: Path, session: StoredSession, *, store: str = "database") -> Path:
    """Write a session into one of the stores of a home; return the path that names it."""
    home.mkdir(parents=True, exist_ok=True)
    if store == "tree":
        return _write_tree(home / "storage", session)
    path = home / ("opencode.db" if store == "database" else store)
    with closing(connect(path)) as connection:
        insert(connection, session)
    return path.with_name(f"{path.name}#{session.session_id}")


def connect(path: Path) -> sqlite3.Connection:
    """Open a store as OpenCode does: WAL, the tables made."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(SCHEMA)
    return connection


def insert(connection: sqlite3.Connection, session: StoredSession) -> None:
    """Write a session's rows in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO session (id, project_id, parent_id, slug, directory, title, version, permission, revert,"
        " time_created, time_updated, time_archived) VALUES (?, 'p', ?, 'slug', ?, ?, '1.18.33', ?, ?, ?, ?, ?)",
        (
            session.session_id,
            session.parent_id,
            session.directory,
            session.title,
            None if session.permission is None else json.dumps(session.permission),
            None if session.revert is None else json.dumps(session.revert),
            session.created_ms,
            session.updated_ms,
            session.archived_ms,
        ),
    )
    for message in session.messages:
        add_message(connection, session.session_id, message)
    connection.execute("COMMIT")


def add_message(connection: sqlite3.Connection, session_id: str, message: StoredMessage) -> None:
    """Write one message and its parts; a part that is a string is written as it stands."""
    times = (message.created_ms, message.created_ms)
    connection.execute(
        "INSERT INTO message VALUES (?, ?, ?, ?, ?)",
        (message.message_id, session_id, *times, json.dumps(message.data(), ensure_ascii=False)),
    )
    connection.executemany(
        "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)",
        [
            (part_id, message.message_id, session_id, *times, part if isinstance(part, str) else dumped(part))
            for part_id, part in _named_parts(message)
        ],
    )


def dumped(part: dict[str, Any]) -> str:
    """Render a part as JSON with every character as it is."""
    return json.dumps(part, ensure_ascii=False)


def text_part(text: str, **more: Any) -> dict[str, Any]:
    """Return a text part."""
    return {"type": "text", "text": text, **more}


def tool_part(
    tool: str, given: dict[str, Any], output: str = "", *, exit_code: int | None = None, **state: Any
) -> dict[str, Any]:
    """Return a part of a tool that has run."""
    metadata = {} if exit_code is None else {"exit": exit_code, "output": output}
    return {
        "type": "tool",
        "callID": f"call_{tool}",
        "tool": tool,
        "state": {"status": "completed", "input": given, "output": output, "metadata": metadata, **state},
    }


def install_recorded_opencode(
    home: Path, *, now: float, idle_hours: float, names: Collection[str] | None = None
) -> list[Path]:
    """Copy the recorded stores into one home, all times shifted alike; return the paths of their sessions.

    The latest change of all is then `idle_hours` before `now`. The newest database is opencode.db, an older one that
    of another channel, the tree lies in storage/. `names` selects versions.
    """
    versions = [path for path in sorted(RECORDED.iterdir()) if names is None or path.name in names]
    latest_ms = max(updated for version in versions for updated in _updates(version))
    shift = int((now - idle_hours * 3600) * 1000) - latest_ms
    home.mkdir(parents=True, exist_ok=True)
    found: list[Path] = []
    for version in versions:
        if version.name == TREE_VERSION:
            found += _install_tree(version / "storage", home / "storage", shift)
        else:
            taken = (home / "opencode.db").exists()
            found += _install_database(
                version / "opencode.db", home / (f"opencode-{version.name}.db" if taken else "opencode.db"), shift
            )
    return sorted(found)


def _updates(version: Path) -> Iterator[int]:
    if version.name == TREE_VERSION:
        for path in (version / "storage" / "session").rglob("*.json"):
            yield json.loads(path.read_text())["time"]["updated"]
        return
    with closing(sqlite3.connect(f"{(version / 'opencode.db').as_uri()}?immutable=1", uri=True)) as connection:
        yield from (updated for (updated,) in connection.execute("SELECT time_updated FROM session"))


def _shifted(text: str, shift: int) -> str:
    return _MILLISECONDS.sub(lambda found: str(int(found.group()) + shift), text)


def _install_tree(source: Path, target: Path, shift: int) -> list[Path]:
    for path in sorted(source.rglob("*.json")):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(_shifted(path.read_text(encoding="utf-8"), shift), encoding="utf-8")
    sessions = sorted((target / "session").rglob("*.json"))
    ends = {path: json.loads(path.read_text())["time"]["updated"] / 1000 for path in sessions}
    for path in sorted(target.rglob("*"), reverse=True):
        at = ends.get(path, max(ends.values()))
        os.utime(path, (at, at))
    return sessions


def _install_database(source: Path, target: Path, shift: int) -> list[Path]:
    shutil.copyfile(source, target)
    with closing(sqlite3.connect(target)) as connection:
        connection.create_function("shifted", 1, lambda text: _shifted(text, shift), deterministic=True)
        for table in ("session", "message", "part"):
            connection.execute(
                f"UPDATE {table} SET time_created = time_created + ?, time_updated = time_updated + ?", (shift, shift)
            )
        for table in ("message", "part"):
            connection.execute(f"UPDATE {table} SET data = shifted(data)")
        connection.commit()
        rows = connection.execute("SELECT id FROM session").fetchall()
    return [target.with_name(f"{target.name}#{session_id}") for (session_id,) in rows]


def _messages(turn: Turn | tuple[str, str] | str) -> Iterator[StoredMessage]:
    told = turn if isinstance(turn, Turn) else Turn(turn) if isinstance(turn, str) else Turn(*turn)
    yield StoredMessage("user", 0, [text_part(told.human)])
    spoken = [] if told.commentary is None else [text_part(told.commentary)]
    for number, command in enumerate(told.commands):
        part = tool_part("bash", {"command": command.line}, command.output, exit_code=command.exit_code)
        part["callID"] = f"call_{number}"
        yield StoredMessage("assistant", 0, [{"type": "step-start"}, *spoken, part], {"finish": "tool-calls"})
        spoken = []
    if spoken:
        yield StoredMessage("assistant", 0, spoken, {"finish": "tool-calls"})
    if told.answer is not None:
        yield StoredMessage("assistant", 0, [text_part(told.answer), {"type": "step-finish"}], {"finish": "stop"})


def _name_messages(session: StoredSession) -> None:
    for number, message in enumerate(session.messages):
        message.message_id = message.message_id or f"msg_{session.session_id[4:]}_{number:06}"


def _named_parts(message: StoredMessage) -> Iterator[tuple[str, Any]]:
    for number, part in enumerate(message.parts):
        named = part.pop("id", None) if isinstance(part, dict) else None
        yield named or f"prt_{message.message_id[4:]}_{number:06}", part


def _write_tree(storage: Path, session: StoredSession) -> Path:
    path = storage / "session" / "p" / f"{session.session_id}.json"
    facts = {
        "id": session.session_id,
        "directory": session.directory,
        "title": session.title,
        "version": TREE_VERSION,
        "time": {"created": session.created_ms, "updated": session.updated_ms},
    }
    optional = {"parentID": session.parent_id, "permission": session.permission, "revert": session.revert}
    _write(path, facts | {key: value for key, value in optional.items() if value is not None})
    messages = storage / "message" / session.session_id
    for message in session.messages:
        _write(messages / f"{message.message_id}.json", message.data())
        for part_id, part in _named_parts(message):
            _write(storage / "part" / message.message_id / f"{part_id}.json", part)
    return path


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2), "utf-8")
