"""The reader of Gemini CLI sessions: where they lie, and what their beginning and their end say.

From 0.37 on a session is a file of lines; before, it was one object that every message rewrote. A session of the old
form that is resumed goes on in a file of lines beside it, which then holds all of it.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from memoryd import clock
from memoryd.errors import SessionUnreadable
from memoryd.sources.files import changed_in, is_tellable, locate_file, session_file
from memoryd.sources.gemini_ends import end_of_document, end_of_lines
from memoryd.sources.gemini_projects import CHATS, TMP, project_cwd, project_folder
from memoryd.sources.gemini_reading import read_document, read_lines
from memoryd.sources.gemini_records import AGENT, Header, Record, decode_record, parse_header, patched
from memoryd.sources.gemini_records import read_document as read_file
from memoryd.sources.identity import canonical_thread_id
from memoryd.sources.items import MemoryMode, SessionFile, SessionHead, SessionKind, SessionTail
from memoryd.sources.jsonl import SessionBytes
from memoryd.sources.reader import Reading, Stretches

HEAD_LINES = 64  # how far a header is looked for
DOCUMENT_SUFFIX = ".json"
_NAME = re.compile(r"(?P<stem>session-.+)\.jsonl?")
_SUBAGENT_NAME = re.compile(r"(?P<stem>.+)\.jsonl")


class GeminiReader:
    """Reads Gemini CLI's sessions; `pause` waits some seconds between the tries to read a half-written file."""

    name = AGENT

    def __init__(self, pause: Callable[[float], None] = clock.pause) -> None:
        self._pause = pause

    def find(self, homes: Sequence[Path]) -> Iterator[SessionFile]:
        """Yield one regular file per session; of the two forms of a resumed one the newer."""
        for home in dict.fromkeys(homes):
            for project in changed_in(home / TMP):
                if is_tellable(project.name):
                    yield from _sessions(Path(project.path) / CHATS)

    def locate(self, path: Path) -> SessionFile:
        """Look at a session's file without opening it."""
        return locate_file(AGENT, path)

    def missing_roots(self, homes: Sequence[Path]) -> list[Path]:
        """Return the homes whose folder of projects is absent or cannot be listed."""
        return [home for home in homes if not os.access(home / TMP, os.R_OK | os.X_OK)]

    def head(self, file: SessionFile) -> SessionHead:
        """Read the header that names the session, and which directory its project folder stands for."""
        header = self._header(file.path)
        project = project_folder(file.path)
        is_nested = file.path.parent.name != CHATS
        is_subagent = header.is_subagent or is_nested
        return SessionHead(
            thread_id=header.thread_id,
            agent=AGENT,
            kind=SessionKind.SUBAGENT if is_subagent else SessionKind.INTERACTIVE,
            cwd=project_cwd(project),
            git_branch=None,
            parent_id=canonical_thread_id(AGENT, file.path.parent.name) if is_nested else None,
            started_at=None if header.started_at is None else int(header.started_at // 1),
            memory_mode=MemoryMode.ENABLED,
        )

    def tail(self, file: SessionFile) -> SessionTail:
        """Read when the last record was written, and how many bytes there are up to it."""
        if _is_document(file.path):
            document, size, mtime_ns = self._document(file.path)
            at = end_of_document(document)
            return SessionTail(_second(at, mtime_ns), size, None, timed=at is not None)
        with SessionBytes(file.path) as source:
            at, size = end_of_lines(source)
            return SessionTail(_second(at, source.mtime_ns), size, None, timed=at is not None)

    def read(self, file: SessionFile, relatives: Sequence[SessionFile] = ()) -> Reading:
        """Open a session as a stream of items, as long as it is at this moment."""
        del relatives  # there are no forks: a resume goes on in the same file
        cwd = project_cwd(project_folder(file.path))
        if not _is_document(file.path):
            source = SessionBytes(file.path)
            return Reading(lambda reading: read_lines(source, cwd, reading), source.close)
        document, size, mtime_ns = self._document(file.path)

        def items(reading: Reading) -> Stretches:
            at = end_of_document(document)
            reading.record_bytes, reading.timed, reading.last_record_at = size, at is not None, _second(at, mtime_ns)
            yield from read_document(document, cwd, reading, size)

        return Reading(items, lambda: None)

    def _document(self, path: Path) -> tuple[Record, int, int]:
        return read_file(lambda: SessionBytes(path), self._pause)

    def _header(self, path: Path) -> Header:
        if _is_document(path):
            document, _, _ = self._document(path)
            header = parse_header(document)
        else:
            with SessionBytes(path) as source:
                header = _first_header(source)
        if header is None:
            raise SessionUnreadable(f"cannot tell which session {path} is: nothing in its beginning names one")
        return header


def _sessions(chats: Path) -> Iterator[SessionFile]:
    """Yield the sessions of a project, and those of their sub-agents in folders named like the parent."""
    older: dict[str, SessionFile] = {}
    newer: set[str] = set()
    for entry in changed_in(chats):
        if not is_tellable(entry.name):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _subagents(Path(entry.path))
        elif (name := _NAME.fullmatch(entry.name)) and (file := session_file(AGENT, entry)):
            if entry.name.endswith(DOCUMENT_SUFFIX):
                older[name["stem"]] = file
            else:
                newer.add(name["stem"])
                yield file
    yield from (file for stem, file in older.items() if stem not in newer)


def _subagents(folder: Path) -> Iterator[SessionFile]:
    for entry in changed_in(folder):
        if is_tellable(entry.name) and _SUBAGENT_NAME.fullmatch(entry.name) and (file := session_file(AGENT, entry)):
            yield file


def _is_document(path: Path) -> bool:
    return path.name.endswith(DOCUMENT_SUFFIX)


def _first_header(source: SessionBytes) -> Header | None:
    for line in source.lines():
        record, _ = decode_record(line)
        header = parse_header(patched(record)) if record is not None else None
        if header is not None or line.index >= HEAD_LINES:
            return header
    return None


def _second(at: float | None, mtime_ns: int) -> int:
    return mtime_ns // 1_000_000_000 if at is None else int(at // 1)
