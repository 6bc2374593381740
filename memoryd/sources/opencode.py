"""The reader of OpenCode sessions: databases (from 1.2), and the older tree of JSON files beside them."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from memoryd.errors import SessionUnreadable, SessionVanished, SourceError
from memoryd.sources.files import is_tellable, listing, locate_file
from memoryd.sources.identity import canonical_thread_id
from memoryd.sources.items import MemoryMode, SessionFile, SessionHead, SessionTail
from memoryd.sources.opencode_database import DatabaseSession, open_store
from memoryd.sources.opencode_reading import read_items
from memoryd.sources.opencode_records import AGENT, RecordedSession, is_session_id
from memoryd.sources.opencode_tree import STORAGE, SUFFIX, Tree, TreeSession
from memoryd.sources.reader import Reading
from memoryd.sources.stores import (
    MAX_COPY_BYTES,
    Database,
    PrivateCopies,
    StoreState,
    look_at_store,
    number_of,
    text_of,
)

DATABASE = "opencode.db"
OTHER_DATABASES = ("opencode-", ".db")  # of other channels: opencode-dev.db
MARK = "#"
NANOSECONDS = 1_000_000  # of a millisecond
FARTHEST_MS = 9_000_000_000_000  # the year 2255: what is written as later still is in nanoseconds an integer of 64 bits


@dataclass(slots=True)
class _Listing:
    """What a store held when it was last listed, and how many rows it had then."""

    state: StoreState
    sessions: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By id: time of the last change (ms), number of rows."""
    newest: tuple[int, int] = (0, 0)
    """Row numbers of the last message and the last part."""


class OpenCodeReader:
    """Reads OpenCode's sessions.

    A database's session has the path `<database>#<session id>`, as size its number of rows and as mtime its time of
    change. A store is opened only when its files have changed, and then only what has changed is counted. The session
    that stands in a database and in a tree is the database's. `max_copy_bytes`: see stores.
    """

    name = AGENT

    def __init__(self, max_copy_bytes: int = MAX_COPY_BYTES) -> None:
        self._listings: dict[Path, _Listing] = {}
        self._tree = Tree()
        self._copies = PrivateCopies(max_copy_bytes)
        self._lock = threading.Lock()

    def find(self, homes: Sequence[Path]) -> Iterator[SessionFile]:
        """Yield every session once; a database that cannot be read stands for itself, so that its error is told."""
        seen: set[str] = set()
        for home in homes:
            for path in _databases(home):
                for session_id, file in self._find_in_database(path):
                    if session_id not in seen:
                        seen.add(session_id)
                        yield file
        for home in homes:
            for file in self._tree.find(home):
                if file.path.stem not in seen:
                    seen.add(file.path.stem)
                    yield file

    def locate(self, path: Path) -> SessionFile:
        """Look at one session; a database is opened only if it has changed since it was listed."""
        store, session_id = _split(path)
        if session_id is None:
            file = locate_file(AGENT, store)
            return self._tree.dated(file) if store.name.endswith(SUFFIX) else file
        found = self._list(store).sessions.get(session_id)
        if found is None:
            raise SessionVanished(
                f"the session {session_id} is no longer in {store}", remedy="its memory, if it has one, stays"
            )
        return _file(store, session_id, *found)

    def missing_roots(self, homes: Sequence[Path]) -> list[Path]:
        """Return the homes that hold neither a database nor a tree that can be listed."""
        return [home for home in homes if not _databases(home) and not os.access(home / STORAGE, os.R_OK | os.X_OK)]

    def head(self, file: SessionFile) -> SessionHead:
        """Read the session's row, and when its first message was created: a fork shares that with its parent."""
        with closing(_Opened(self._copies)) as opened:
            session = opened.session(file.path)
            facts = session.facts()
            first = next((message for message in session.messages() if message is not None), None)
        return SessionHead(
            thread_id=canonical_thread_id(AGENT, facts.session_id),
            agent=AGENT,
            kind=facts.kind,
            cwd=facts.directory,
            git_branch=None,
            parent_id=canonical_thread_id(AGENT, facts.parent_id) if facts.parent_id else None,
            started_at=facts.created_ms // 1000,
            memory_mode=MemoryMode.ENABLED,
            lineage=f"{AGENT}:{first.created_ms}" if first is not None else None,
        )

    def tail(self, file: SessionFile) -> SessionTail:
        """Read when the session was changed and how many rows it has."""
        with closing(_Opened(self._copies)) as opened:
            session = opened.session(file.path)
            return SessionTail(session.facts().updated_ms // 1000, session.row_count(), None)

    def read(self, file: SessionFile, relatives: Sequence[SessionFile] = ()) -> Reading:
        """Open a session as a stream of items; what a fork has copied from one of its relatives is left out."""
        opened = _Opened(self._copies)
        try:
            session = opened.session(file.path)
            session.facts()
            others = [other for relative in relatives if (other := opened.relative(relative.path)) is not None]
        except SourceError:
            opened.close()
            raise
        return Reading(lambda reading: read_items(session, others, reading), opened.close)

    def _find_in_database(self, path: Path) -> Iterator[tuple[str, SessionFile]]:
        try:
            sessions = self._list(path).sessions
        except SessionVanished:
            return
        except SourceError:
            # what it held before is not gone because it cannot be read now
            known = self._listings.get(path)
            sessions = known.sessions if known else {}
            try:
                yield str(path), locate_file(AGENT, path)
            except SessionVanished:
                return
        for session_id, (updated_ms, rows) in sessions.items():
            yield session_id, _file(path, session_id, updated_ms, rows)

    def _list(self, path: Path) -> _Listing:
        with self._lock:
            state = look_at_store(path)
            known = self._listings.get(path)
            if known is None or known.state != state:
                with closing(open_store(path, self._copies)) as database:
                    known = self._listings[path] = _listed(database, state, known)
            return known


class _Opened:
    """The stores that one operation needs, each opened once."""

    def __init__(self, copies: PrivateCopies) -> None:
        self._copies = copies
        self._databases: dict[Path, Database] = {}

    def session(self, path: Path) -> RecordedSession:
        """Return the session of a path; nothing is opened before it is asked. Raises SessionUnreadable."""
        store, session_id = _split(path)
        if session_id is not None:
            return DatabaseSession(self._databases.setdefault(store, open_store(store, self._copies)), session_id)
        if store.name.endswith(SUFFIX):
            return TreeSession(store)
        # the path of a database alone: `find` gives it when the database cannot be listed, and here is the reason
        with closing(open_store(store, self._copies)) as database:
            database.rows("list_sessions")
            database.rows("newest_rows")
        raise SessionUnreadable(f"cannot read {store} as a session: it is a database of sessions")

    def relative(self, path: Path) -> RecordedSession | None:
        """Return the session of a path, None where there is none."""
        try:
            return self.session(path)
        except SourceError:
            return None

    def close(self) -> None:
        """Close them all; closing twice is allowed."""
        for database in self._databases.values():
            database.close()


def _listed(database: Database, state: StoreState, before: _Listing | None) -> _Listing:
    """List a store; counts only the sessions that have changed since the listing `before`."""
    message, part = database.rows("newest_rows")[0]
    newest = (number_of(message), number_of(part))
    rows = {text_of(session_id) or "": number_of(updated) for session_id, updated in database.rows("list_sessions")}
    updated_ms = {session_id: updated for session_id, updated in rows.items() if is_session_id(session_id)}
    if before is None or newest < before.newest or newest[0] < before.newest[0] or newest[1] < before.newest[1]:
        counts = dict.fromkeys(updated_ms, 0)
        for session_id, count in database.rows("count_rows_of_all"):
            name = text_of(session_id) or ""
            counts[name] = counts.get(name, 0) + number_of(count)
        return _Listing(state, {name: (updated, counts[name]) for name, updated in updated_ms.items()}, newest)
    parameters = {"newest_message": before.newest[0], "newest_part": before.newest[1]}
    grown = {text_of(row[0]) for row in database.rows("list_grown_sessions", parameters)}
    sessions: dict[str, tuple[int, int]] = {}
    for name, updated in updated_ms.items():
        known = before.sessions.get(name)
        if known is not None and known[0] == updated and name not in grown:
            sessions[name] = known
        else:
            sessions[name] = (updated, DatabaseSession(database, name).row_count())
    return _Listing(state, sessions, newest)


def _databases(home: Path) -> list[Path]:
    """Return the databases of a home, that of the main channel first."""
    start, end = OTHER_DATABASES
    names = [entry.name for entry in listing(home) if is_tellable(entry.name) and _is_file(entry)]
    chosen = [name for name in names if name == DATABASE or (name.startswith(start) and name.endswith(end))]
    return [home / name for name in sorted(chosen, key=lambda name: (name != DATABASE, name))]


def _is_file(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _split(path: Path) -> tuple[Path, str | None]:
    """Split `<database>#<session id>`; a session's file, or a database alone, has no id."""
    store, mark, session_id = str(path).rpartition(MARK)
    return (Path(store), session_id) if mark and store.endswith(".db") and is_session_id(session_id) else (path, None)


def _file(store: Path, session_id: str, updated_ms: int, rows: int) -> SessionFile:
    changed_ms = max(-FARTHEST_MS, min(FARTHEST_MS, updated_ms))
    return SessionFile(AGENT, f"{store}{MARK}{session_id}", rows, changed_ms * NANOSECONDS)
