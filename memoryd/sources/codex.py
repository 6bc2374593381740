"""The reader of Codex sessions ("rollouts"): where they lie, and what their beginning and their end say."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from memoryd import clock
from memoryd.errors import SessionUnreadable, SessionVanished
from memoryd.sources.codex_messages import environment_cwd, parse_message
from memoryd.sources.codex_reading import read_items
from memoryd.sources.codex_records import (
    AGENT,
    RESPONSE_ITEM,
    SESSION_META,
    Record,
    SessionMeta,
    decode_record,
    parse_memory_mode,
    parse_meta,
)
from memoryd.sources.files import files_below, is_tellable, locate_file, session_file
from memoryd.sources.identity import canonical_thread_id, last_instant
from memoryd.sources.items import MemoryMode, SessionFile, SessionHead, SessionTail
from memoryd.sources.jsonl import BLOCK_BYTES, COMPRESSED_SUFFIX, SessionBytes
from memoryd.sources.rawjson import as_fields, as_text
from memoryd.sources.reader import Reading

SESSIONS, ARCHIVED = "sessions", "archived_sessions"
DATE_LEVELS = 3  # sessions/YYYY/MM/DD
OPEN_TRIES, OPEN_PAUSE_SECONDS = 3, 0.05  # a path may vanish while a plain file and its compressed twin are swapped
MODE_MEMBER = b"memory_mode"
HEAD_LINES = 64  # how far a session_meta is looked for
CONTEXT_LINES = 16  # how far a directory is looked for when session_meta names none (files to 0.29)
_USUAL_NAME = re.compile(  # what nearly every file is called; it costs a third of the other
    r"rollout-[0-9T-]{19}-(?P<id>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl"
)
_NAME = re.compile(
    r"rollout-.*?(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl(?:\.zst)?", re.IGNORECASE | re.ASCII
)


class CodexReader:
    """Reads Codex sessions; `pause` waits some seconds between the tries to open a file that is being swapped."""

    name = AGENT

    def __init__(self, pause: Callable[[float], None] = clock.pause) -> None:
        self._pause = pause

    def find(self, homes: Sequence[Path]) -> Iterator[SessionFile]:
        """Yield one regular file per thread id of the file names; a plain file wins over a compressed one."""
        found: dict[str, SessionFile] = {}
        compressed: list[tuple[str, os.DirEntry[str]]] = []
        for entry in _entries(homes):
            name = entry.name
            usual = _USUAL_NAME.fullmatch(name)
            thread = usual["id"] if usual else _thread_in_name(name)
            if thread is None or thread in found or not (usual or is_tellable(name)):
                continue
            if name.endswith(COMPRESSED_SUFFIX):
                compressed.append((thread, entry))
            elif file := session_file(AGENT, entry):
                found[thread] = file
        yield from found.values()
        for thread, entry in compressed:
            # A scan does not list again what it knows: the plain file may lie there all the same.
            has_twin = Path(entry.path.removesuffix(COMPRESSED_SUFFIX)).exists()
            if thread not in found and not has_twin and (file := session_file(AGENT, entry)):
                found[thread] = file
                yield file

    def locate(self, path: Path) -> SessionFile:
        """Look at a session's file without opening it; its compressed twin may have taken its place."""
        return locate_file(AGENT, path)

    def missing_roots(self, homes: Sequence[Path]) -> list[Path]:
        """Return the homes whose sessions folder is absent or cannot be listed."""
        return [home for home in homes if not os.access(home / SESSIONS, os.R_OK | os.X_OK)]

    def head(self, file: SessionFile) -> SessionHead:
        """Read the session_meta that names the thread, and the directory from the context where that names none."""
        with self._open(file.path) as source:
            meta, cwd = self._beginning(source)
        return SessionHead(
            thread_id=meta.thread_id,
            agent=AGENT,
            kind=meta.kind,
            cwd=cwd,
            git_branch=meta.git_branch,
            parent_id=meta.parent_id or meta.forked_from,
            started_at=None if meta.started_at is None else int(meta.started_at // 1),
            memory_mode=meta.memory_mode or MemoryMode.ENABLED,
            ephemeral=meta.ephemeral,
            originator=meta.originator,
        )

    def tail(self, file: SessionFile) -> SessionTail:
        """Read the last record, and the memory mode if the last 64 KiB (of a compressed file: all of it) name one."""
        own_id = _id_in_name(file.path)
        with self._open(file.path) as source:
            last, mode = _compressed_end(source, own_id) if source.is_compressed else _plain_end(source, own_id)
            at = last.at if last else None
            size = source.bytes_read if source.is_compressed else source.size
            return SessionTail(last_instant(at, source), size, mode, timed=at is not None)

    def read(self, file: SessionFile, relatives: Sequence[SessionFile] = ()) -> Reading:
        """Open a session as a stream of items, as long as it is at this moment."""
        del relatives  # forks tell by themselves which rows are copies
        source = self._open(file.path)
        return Reading(lambda reading: read_items(source, reading), source.close)

    def _open(self, path: Path) -> SessionBytes:
        plain = path.with_name(path.name.removesuffix(COMPRESSED_SUFFIX))
        for attempt in range(OPEN_TRIES):
            if attempt:
                self._pause(OPEN_PAUSE_SECONDS)
            for candidate in (plain, plain.with_name(plain.name + COMPRESSED_SUFFIX)):
                try:
                    return SessionBytes(candidate)
                except SessionVanished:
                    continue
        raise SessionVanished(f"cannot open {path}: it is no longer there")

    def _beginning(self, source: SessionBytes) -> tuple[SessionMeta, str | None]:
        meta: SessionMeta | None = None
        for line in source.lines():
            record = decode_record(line)
            if meta is None and record is not None and record.type == SESSION_META:
                meta = parse_meta(record)
            cwd = meta.cwd if meta and meta.cwd else _context_cwd(record) if meta and record else None
            if meta and (cwd or line.index >= CONTEXT_LINES):
                return meta, cwd
            if line.index >= HEAD_LINES:
                break
        if meta:
            return meta, None
        reason = "it is empty" if not source.size else f"none of its first {HEAD_LINES} lines is a session_meta"
        raise SessionUnreadable(f"cannot tell which session {source.path} is: {reason}")


def _entries(homes: Sequence[Path]) -> Iterator["os.DirEntry[str]"]:
    for home in homes:
        yield from files_below(home / SESSIONS, DATE_LEVELS)
        yield from files_below(home / ARCHIVED, 0)


def _thread_in_name(name: str) -> str | None:
    """Return the thread's id in lower case of a file that has the name of a rollout."""
    found = _NAME.fullmatch(name)
    return found["id"].lower() if found else None


def _id_in_name(path: Path) -> str | None:
    thread = _thread_in_name(path.name)
    return canonical_thread_id(AGENT, thread) if thread else None


def _context_cwd(record: Record) -> str | None:
    if record.type == "turn_context":
        return as_text(as_fields(record.payload).get("cwd"))
    if record.type == RESPONSE_ITEM:
        return environment_cwd(parse_message(as_fields(record.payload)))
    return None


def _plain_end(source: SessionBytes, own_id: str | None) -> tuple[Record | None, MemoryMode | None]:
    last: Record | None = None
    mode: MemoryMode | None = None
    consumed = 0
    for line in source.lines_backwards():
        if last is not None and (mode is not None or consumed > BLOCK_BYTES):
            break
        consumed += len(line.data or b"") + 1
        if last is not None and MODE_MEMBER not in (line.data or b""):
            continue
        record = decode_record(line)
        last = last or record
        mode = mode or (_mode_of(record, own_id) if record else None)
    return last, mode


def _compressed_end(source: SessionBytes, own_id: str | None) -> tuple[Record | None, MemoryMode | None]:
    last: Record | None = None
    mode: MemoryMode | None = None
    for line in source.lines():
        record = decode_record(line)
        if record is not None:
            last = record
            mode = _mode_of(record, own_id) or mode
    return last, mode


def _mode_of(record: Record, own_id: str | None) -> MemoryMode | None:
    """Return the memory mode that a record sets for the session itself."""
    if record.type != SESSION_META:
        return None
    fields = as_fields(record.payload)
    named = as_text(fields.get("id"))
    if own_id is not None and named is not None and canonical_thread_id(AGENT, named) != own_id:
        return None
    return parse_memory_mode(fields.get("memory_mode"))
