"""The reader of GitHub Copilot CLI sessions: where they lie, and what their beginning and their end say."""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from memoryd.errors import SessionUnreadable, SourceError
from memoryd.sources.copilot_reading import read_items
from memoryd.sources.copilot_records import AGENT, START, Event, decode_event, working_context
from memoryd.sources.files import is_tellable, listing, locate_file
from memoryd.sources.identity import canonical_thread_id, is_usable_id, last_instant, parse_instant
from memoryd.sources.items import MemoryMode, SessionFile, SessionHead, SessionKind, SessionTail
from memoryd.sources.jsonl import SessionBytes
from memoryd.sources.rawjson import as_fields, as_text
from memoryd.sources.reader import Reading

SESSIONS = "session-state"
EVENTS, WORKSPACE = "events.jsonl", "workspace.yaml"
FLAT_SUFFIX = ".jsonl"  # to 0.0.3xx a session was session-state/<id>.jsonl
HEAD_LINES = 64
_WORKSPACE_LINE = re.compile(rb"^(cwd|branch): (.+?)\s*$", re.MULTILINE)


class CopilotReader:
    """Reads the sessions of the GitHub Copilot CLI."""

    name = AGENT

    def find(self, homes: Sequence[Path]) -> Iterator[SessionFile]:
        """Yield one regular file per session id; a folder wins over a flat file of the same id."""
        seen: set[str] = set()
        for home in homes:
            folders: list[tuple[str, Path]] = []
            flat: list[tuple[str, Path]] = []
            for entry in listing(home / SESSIONS):
                if not is_tellable(entry.name):
                    continue
                if entry.name.endswith(FLAT_SUFFIX):
                    flat.append((entry.name.removesuffix(FLAT_SUFFIX), Path(entry.path)))
                else:
                    folders.append((entry.name, Path(entry.path, EVENTS)))
            for identity, path in (*folders, *flat):
                if identity.lower() not in seen and (file := _regular(path)) is not None:
                    seen.add(identity.lower())
                    yield file

    def locate(self, path: Path) -> SessionFile:
        """Look at a session's file without opening it. Raises SessionVanished."""
        return locate_file(AGENT, path)

    def missing_roots(self, homes: Sequence[Path]) -> list[Path]:
        """Return the homes whose sessions folder is absent or cannot be listed."""
        return [home for home in homes if not os.access(home / SESSIONS, os.R_OK | os.X_OK)]

    def head(self, file: SessionFile) -> SessionHead:
        """Read who and where from session.start, and from workspace.yaml what older versions do not say there.

        The name of the folder is the session's id. The format does not tell scripted runs from others.
        """
        identity = _identity(file.path)
        with SessionBytes(file.path) as source:
            events = _beginning(source)
        if not is_usable_id(identity) or not any(event.type for event in events):
            reason = "it is empty" if not file.size else f"none of its first {HEAD_LINES} lines is an event"
            raise SessionUnreadable(f"cannot tell which session {file.path} is: {reason}")
        start = as_fields(next((event.data for event in events if event.type == START), None))
        context = next((found for event in events if as_text((found := working_context(event)).get("cwd"))), {})
        beside = {} if context else _workspace(file.path)
        spawner = as_text(start.get("detachedFromSpawningParentSessionId"))
        began = parse_instant(start.get("startTime")) or next((event.at for event in events if event.at), None)
        return SessionHead(
            thread_id=canonical_thread_id(AGENT, identity),
            agent=AGENT,
            kind=SessionKind.SUBAGENT if spawner else SessionKind.INTERACTIVE,
            cwd=as_text(context.get("cwd")) or beside.get("cwd"),
            git_branch=as_text(context.get("branch")) or beside.get("branch"),
            parent_id=canonical_thread_id(AGENT, spawner) if spawner else None,
            started_at=None if began is None else int(began // 1),
            memory_mode=MemoryMode.ENABLED,
            originator=as_text(start.get("producer")),
            lineage=next((event.row_id for event in events if event.row_id), None),
        )

    def tail(self, file: SessionFile) -> SessionTail:
        """Read the time of the last event."""
        with SessionBytes(file.path) as source:
            events = (event for line in source.lines_backwards() if (event := decode_event(line)) is not None)
            last = next(events, None)
            at = last.at if last else None
            return SessionTail(last_instant(at, source), source.size, None, timed=at is not None)

    def read(self, file: SessionFile, relatives: Sequence[SessionFile] = ()) -> Reading:
        """Open a session as a stream of items, as long as it is at this moment."""
        source = SessionBytes(file.path)
        return Reading(lambda reading: read_items(source, reading, relatives), source.close)


def _regular(path: Path) -> SessionFile | None:
    with suppress(OSError):
        facts = path.lstat()
        if stat.S_ISREG(facts.st_mode):
            return SessionFile(AGENT, str(path), facts.st_size, facts.st_mtime_ns)
    return None


def _identity(path: Path) -> str:
    return path.parent.name if path.name == EVENTS else path.name.removesuffix(FLAT_SUFFIX)


def _beginning(source: SessionBytes) -> list[Event]:
    """Return the first events, up to the first that a copy of this session would share."""
    events: list[Event] = []
    for line in source.lines():
        if (event := decode_event(line)) is not None:
            events.append(event)
        if line.index >= HEAD_LINES or (event is not None and event.row_id and event.type):
            break
    return events


def _workspace(path: Path) -> dict[str, str]:
    """Return cwd and branch from the file that lies beside the events; empty where there is none."""
    if path.name != EVENTS:
        return {}
    with suppress(SourceError), SessionBytes(path.with_name(WORKSPACE)) as source:
        head = next(source.chunks(), b"")
        return {
            key.decode(): value.decode("utf-8", "replace").strip("\"'") for key, value in _WORKSPACE_LINE.findall(head)
        }
    return {}
