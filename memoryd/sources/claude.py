"""The reader of Claude Code sessions: where they lie, and what their beginning and their end say."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from memoryd.errors import SessionUnreadable
from memoryd.sources.claude_branches import CopiedRows
from memoryd.sources.claude_reading import read_items
from memoryd.sources.claude_records import (
    AGENT,
    CONVERSATION,
    SUBAGENT_NAME,
    SUBAGENTS,
    UUID_NAME,
    Record,
    is_known,
    is_subagent,
    last_time,
    owner_in_path,
    records,
    session_kind,
)
from memoryd.sources.files import (
    files_below,
    is_folder,
    is_tellable,
    leave_aside,
    locate_file,
    news_in,
    session_file,
    without_known,
)
from memoryd.sources.identity import canonical_thread_id, is_usable_id, last_instant
from memoryd.sources.items import MemoryMode, SessionFile, SessionHead, SessionKind, SessionTail
from memoryd.sources.jsonl import SessionBytes
from memoryd.sources.rawjson import as_fields, as_text
from memoryd.sources.reader import Reading

PROJECTS = "projects"
SUFFIX = ".jsonl"
SUBAGENT_LEVELS = 2  # <session>/subagents/, and what newer versions sort into folders below it
_SUBAGENT = re.compile(rf"{SUBAGENT_NAME.pattern}{re.escape(SUFFIX)}", re.ASCII)
_USUAL_NAME = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.jsonl")
_TRANSCRIPT = re.compile(
    rf"(?:{UUID_NAME.pattern}|{SUBAGENT_NAME.pattern}){re.escape(SUFFIX)}", re.IGNORECASE | re.ASCII
)
HEAD_LINES = 64  # how far the first row of the conversation is looked for


class ClaudeReader:
    """Reads Claude Code sessions; a session's identity is the name of its file, since forks keep older ids in rows."""

    name = AGENT

    def find(self, homes: Sequence[Path]) -> Iterator[SessionFile]:
        """Yield one regular file per name, sub-agents' included; of several with one name the one written last.

        A session that is resumed from another directory goes on in that directory's folder. Empty files, which the
        program leaves where nothing was said, are no sessions yet.
        """
        newest: dict[str, SessionFile] = {}
        for entry in _transcripts(homes):
            file = session_file(AGENT, entry)
            if file is None or not file.size:
                continue
            name = entry.name.lower()
            other = newest.setdefault(name, file)
            if other is not file and other.name != file.name:
                is_newer = (file.mtime_ns, file.size) > (other.mtime_ns, other.size)
                leave_aside(other if is_newer else file)
                newest[name] = file if is_newer else other
        yield from without_known(newest.values())

    def locate(self, path: Path) -> SessionFile:
        """Look at a session's file without opening it."""
        return locate_file(AGENT, path)

    def missing_roots(self, homes: Sequence[Path]) -> list[Path]:
        """Return the homes whose projects folder is absent or cannot be listed."""
        return [home for home in homes if not os.access(home / PROJECTS, os.R_OK | os.X_OK)]

    def head(self, file: SessionFile) -> SessionHead:
        """Read up to the first row of the conversation; a session that has none yet is known by its name alone."""
        with SessionBytes(file.path) as source:
            beginning = _beginning(source)
        first = beginning.first
        sub = is_subagent(file.path)
        entrypoint = first.entrypoint if first else None
        return SessionHead(
            thread_id=canonical_thread_id(AGENT, file.path.stem),
            agent=AGENT,
            kind=SessionKind.SUBAGENT if sub else session_kind(entrypoint),
            cwd=beginning.cwd,
            git_branch=first.branch if first else None,
            parent_id=_parent(file.path, first),
            started_at=None if beginning.started_at is None else int(beginning.started_at // 1),
            memory_mode=MemoryMode.ENABLED,  # the format has no word for it
            originator=entrypoint,
            lineage=None if sub or first is None else _lineage(first),
        )

    def tail(self, file: SessionFile) -> SessionTail:
        """Read the end, back to the last row that has a time."""
        with SessionBytes(file.path) as source:
            at = last_time(source)
            return SessionTail(last_instant(at, source), source.size, None, timed=at is not None)

    def read(self, file: SessionFile, relatives: Sequence[SessionFile] = ()) -> Reading:
        """Open a session as a stream of items, as long as it is at this moment."""
        source = SessionBytes(file.path)
        return Reading(lambda reading: read_items(source, reading, CopiedRows(relatives)), source.close)


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The first row of a session's conversation, and what the rows up to it say."""

    first: Record | None
    cwd: str | None
    started_at: float | None


def _transcripts(homes: Sequence[Path]) -> Iterator["os.DirEntry[str]"]:
    """Yield every entry that has the name of a session or of a sub-agent, in projects and in links to such folders."""
    projects = (project for home in homes for project in news_in(home / PROJECTS))
    folders = (project.path for project in projects if is_folder(project) and is_tellable(project.name))
    return chain.from_iterable(map(_in_project, folders))


def _in_project(folder: str) -> list["os.DirEntry[str]"]:
    found = []
    for entry in news_in(folder):
        name = entry.name
        if _USUAL_NAME.fullmatch(name):
            found.append(entry)
        elif name.endswith(SUFFIX):
            if is_tellable(name) and _TRANSCRIPT.fullmatch(name):
                found.append(entry)
        elif UUID_NAME.fullmatch(name):
            below = files_below(f"{entry.path}/{SUBAGENTS}", SUBAGENT_LEVELS)
            found += [file for file in below if is_tellable(file.name) and _SUBAGENT.fullmatch(file.name)]
    return found


def _beginning(source: SessionBytes) -> _Beginning:
    """Read up to the first row of the conversation. Raises SessionUnreadable where no row is one of the program's."""
    cwd: str | None = None
    started_at: float | None = None
    understood = False
    for record in records(source.lines()):
        understood = understood or is_known(record.type)
        cwd = cwd or record.cwd
        started_at = record.at if started_at is None else started_at
        if record.type in CONVERSATION:
            return _Beginning(record, cwd, started_at)
        if record.ordinal >= HEAD_LINES:
            break
    if not understood:
        reason = "it is empty" if not source.size else f"none of its first {HEAD_LINES} rows is of a known type"
        raise SessionUnreadable(f"cannot tell which session {source.path} is: {reason}")
    return _Beginning(None, cwd, started_at)


def _parent(path: Path, first: Record | None) -> str | None:
    """Return whose sub-agent or fork a session is, where path or rows tell (2.1 forks do not name their parent)."""
    named = owner_in_path(path)
    if named is None and first is not None:
        forked_from = as_fields(first.row.forked_from).get("sessionId") if first.row.forked_from else None
        named = _other_id(as_text(forked_from), path) or _other_id(first.session, path)
    return canonical_thread_id(AGENT, named) if named else None


def _other_id(named: str | None, path: Path) -> str | None:
    return named if named is not None and is_usable_id(named) and named.lower() != path.stem.lower() else None


def _lineage(first: Record) -> str | None:
    """Return the id of the first row: forks copy it unchanged."""
    return first.uuid if is_usable_id(first.uuid) else None
