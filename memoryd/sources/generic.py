"""The reader of the generic format (README, "Any other agent"): JSON lines that anybody can write."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from memoryd.errors import SessionUnreadable
from memoryd.sources.files import changed_in, is_tellable, locate_file, session_file
from memoryd.sources.generic_reading import read_items
from memoryd.sources.generic_records import AGENT, SESSION, Row, SessionRow, decode_row, key_of_row, parse_session
from memoryd.sources.identity import canonical_thread_id, is_usable_id, last_instant
from memoryd.sources.items import MemoryMode, SessionFile, SessionHead, SessionKind, SessionTail
from memoryd.sources.jsonl import BLOCK_BYTES, SessionBytes
from memoryd.sources.rawjson import as_text
from memoryd.sources.reader import Reading

SUFFIX = ".jsonl"
LEVELS = 4  # how deep sub-folders are looked into
HEAD_LINES = 64
HIDDEN = "."


class GenericReader:
    """Reads sessions that are written in memoryd's own format."""

    name = AGENT

    def find(self, homes: Sequence[Path]) -> Iterator[SessionFile]:
        """Yield every *.jsonl below the folders, a few levels deep; what is hidden is left out."""
        seen: set[str] = set()
        for home in homes:
            for file in _files(home, LEVELS):
                if file.name not in seen:
                    seen.add(file.name)
                    yield file

    def locate(self, path: Path) -> SessionFile:
        """Look at a session's file without opening it. Raises SessionVanished."""
        return locate_file(AGENT, path)

    def missing_roots(self, homes: Sequence[Path]) -> list[Path]:
        """Return the folders that are absent or cannot be listed."""
        return [home for home in homes if not home.is_dir() or not os.access(home, os.R_OK | os.X_OK)]

    def head(self, file: SessionFile) -> SessionHead:
        """Read the session row, if the first line is one; the rows tell what it does not."""
        with SessionBytes(file.path) as source:
            rows = _beginning(source)
        said = parse_session(rows[0]) if rows and rows[0].type == SESSION else _UNSAID
        stem = file.path.name.removesuffix(SUFFIX)
        if not any(row.type for row in rows) or not (said.thread_id or is_usable_id(stem)):
            reason = "it is empty" if not file.size else f"none of its first {HEAD_LINES} lines is a row of this format"
            raise SessionUnreadable(f"cannot tell which session {file.path} is: {reason}")
        began = said.started_at or next((row.at for row in rows if row.at is not None), None)
        return SessionHead(
            thread_id=said.thread_id or canonical_thread_id(AGENT, stem),
            agent=AGENT,
            kind=said.kind,
            cwd=said.cwd or next((cwd for row in rows if (cwd := as_text(row.fields.get("cwd")))), None),
            git_branch=said.git_branch,
            parent_id=said.parent_id,
            started_at=None if began is None else int(began // 1),
            memory_mode=said.memory_mode or MemoryMode.ENABLED,
            originator=said.agent,
            lineage=next(filter(None, map(key_of_row, rows)), None),
        )

    def tail(self, file: SessionFile) -> SessionTail:
        """Read the last row, and the memory mode if the last 64 KiB name one."""
        last: Row | None = None
        mode: MemoryMode | None = None
        consumed = 0
        with SessionBytes(file.path) as source:
            for line in source.lines_backwards():
                if last is not None and (mode is not None or consumed > BLOCK_BYTES):
                    break
                consumed += len(line.data or b"") + 1
                row = decode_row(line)
                last = last or row
                if row is not None and row.type == SESSION:
                    mode = mode or parse_session(row).memory_mode
            at = last.at if last else None
            return SessionTail(last_instant(at, source), source.size, mode, timed=at is not None)

    def read(self, file: SessionFile, relatives: Sequence[SessionFile] = ()) -> Reading:
        """Open a session as a stream of items, as long as it is at this moment."""
        source = SessionBytes(file.path)
        return Reading(lambda reading: read_items(source, reading, relatives), source.close)


_UNSAID = SessionRow(None, SessionKind.INTERACTIVE, None, None, None, None, None, None)


def _files(folder: Path | str, levels: int) -> Iterator[SessionFile]:
    for entry in changed_in(folder):
        if entry.name.startswith(HIDDEN) or not is_tellable(entry.name):
            continue
        if entry.name.endswith(SUFFIX) and (file := session_file(AGENT, entry)) is not None:
            yield file
        elif levels and entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path, levels - 1)


def _beginning(source: SessionBytes) -> list[Row]:
    rows: list[Row] = []
    for line in source.lines():
        row = decode_row(line)
        if row is not None:
            rows.append(row)
        if line.index >= HEAD_LINES:
            break
    return rows
