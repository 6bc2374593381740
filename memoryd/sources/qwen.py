"""The reader of Qwen Code sessions: where they lie, and what their beginning and their end say."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memoryd.errors import SessionUnreadable
from memoryd.sources.files import files_below, is_tellable, locate_file, news_in, session_file
from memoryd.sources.identity import canonical_thread_id, is_usable_id, last_instant
from memoryd.sources.items import MemoryMode, SessionFile, SessionHead, SessionKind, SessionTail
from memoryd.sources.jsonl import SessionBytes
from memoryd.sources.qwen_branches import CopiedRows
from memoryd.sources.qwen_reading import read_items
from memoryd.sources.qwen_records import AGENT, CONVERSATION, KNOWN, SYSTEM, Row, last_time, rows
from memoryd.sources.rawjson import as_fields, as_text
from memoryd.sources.reader import Reading

PROJECTS, CHATS, SUBAGENTS = "projects", "chats", "subagents"
LEVELS = 1  # archived sessions, and those of sub-agents, lie a folder deeper
HEAD_LINES = 64  # how far the first row of the conversation is looked for
_NAME = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl", re.IGNORECASE)
_SUBAGENT_NAME = re.compile(r"agent-[^/]+\.jsonl")


class QwenReader:
    """Reads Qwen Code's sessions; a session's identity is the name of its file."""

    name = AGENT

    def find(self, homes: Sequence[Path]) -> Iterator[SessionFile]:
        """Yield one regular file per name, sub-agents' included; of several with one name the one written last."""
        found: dict[str, SessionFile] = {}
        for entry in _transcripts(homes):
            file = session_file(AGENT, entry)
            if file is None:
                continue
            other = found.get(entry.name.lower())
            if other is None or (file.mtime_ns, file.size) > (other.mtime_ns, other.size):
                found[entry.name.lower()] = file
        yield from found.values()

    def locate(self, path: Path) -> SessionFile:
        """Look at a session's file without opening it."""
        return locate_file(AGENT, path)

    def missing_roots(self, homes: Sequence[Path]) -> list[Path]:
        """Return the homes whose projects folder is absent or cannot be listed."""
        return [home for home in homes if not os.access(home / PROJECTS, os.R_OK | os.X_OK)]

    def head(self, file: SessionFile) -> SessionHead:
        """Read up to the first row of the conversation."""
        with SessionBytes(file.path) as source:
            beginning = _beginning(source)
        first = beginning.first
        is_sub = _is_subagent(file.path) or first.is_side_chain or beginning.spawned_by is not None
        forked_from = as_text(as_fields(first.forked_from).get("sessionId"))
        parent = (file.path.parent.name if _is_subagent(file.path) else beginning.spawned_by) or forked_from
        uuid = as_text(first.uuid)
        return SessionHead(
            thread_id=canonical_thread_id(AGENT, file.path.stem),
            agent=AGENT,
            kind=SessionKind.SUBAGENT if is_sub else SessionKind.INTERACTIVE,
            cwd=as_text(first.cwd) or None,
            git_branch=as_text(first.branch) or None,
            parent_id=canonical_thread_id(AGENT, parent) if parent and is_usable_id(parent) else None,
            started_at=None if beginning.started_at is None else int(beginning.started_at // 1),
            memory_mode=MemoryMode.ENABLED,  # the format has no word for it
            lineage=None if is_sub or not is_usable_id(uuid) else uuid,  # a fork copies rows with their ids
        )

    def tail(self, file: SessionFile) -> SessionTail:
        """Read the end, back to the last row that has a time."""
        with SessionBytes(file.path) as source:
            at = last_time(source)
            return SessionTail(last_instant(at, source), source.size, None, timed=at is not None)

    def read(self, file: SessionFile, relatives: Sequence[SessionFile] = ()) -> Reading:
        """Open a session as a stream of items, as long as it is at this moment."""
        source = SessionBytes(file.path)
        is_sub = _is_subagent(file.path)
        return Reading(
            lambda reading: read_items(source, reading, CopiedRows(relatives), is_subagent=is_sub), source.close
        )


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The first row of a session's conversation (where there is none, of the session), and what comes before it."""

    first: Row
    started_at: float | None
    spawned_by: str | None


def _transcripts(homes: Sequence[Path]) -> Iterator["os.DirEntry[str]"]:
    """Yield every entry that has the name of a session or of a sub-agent."""
    for home in homes:
        for project in news_in(home / PROJECTS):
            for below, name in ((CHATS, _NAME), (SUBAGENTS, _SUBAGENT_NAME)):
                for entry in files_below(Path(project.path) / below, LEVELS):
                    if is_tellable(entry.path) and name.fullmatch(entry.name):
                        yield entry


def _is_subagent(path: Path) -> bool:
    return _SUBAGENT_NAME.fullmatch(path.name) is not None


def _beginning(source: SessionBytes) -> _Beginning:
    """Read up to the first row of the conversation. Raises SessionUnreadable where no row is one of the program's."""
    first: Row | None = None
    started_at: float | None = None
    spawned_by: str | None = None
    for index, row in rows(source.lines()):
        if row.kind in KNOWN:
            first = first or row
            started_at = row.at if started_at is None else started_at
        if row.kind == SYSTEM and as_text(row.subtype) == "parent_session":
            spawned_by = as_text(as_fields(row.payload).get("parentSessionId"))
        if row.kind in CONVERSATION:
            return _Beginning(row, started_at, spawned_by)
        if index >= HEAD_LINES:
            break
    if first is None:
        reason = "it is empty" if not source.size else f"none of its first {HEAD_LINES} rows is of a known type"
        raise SessionUnreadable(f"cannot tell which session {source.path} is: {reason}")
    return _Beginning(first, started_at, spawned_by)
