"""OpenCode's older store (to 1.1): a tree of JSON files, one per session, message and part.

    storage/session/<project>/<session>.json
    storage/message/<session>/<message>.json
    storage/part/<message>/<part>.json

The first start of 1.2 copies it into the database and leaves it where it is.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from memoryd.errors import SessionUnreadable, SessionVanished, SourceError
from memoryd.sources.files import is_tellable, listing, session_file
from memoryd.sources.items import SessionFile
from memoryd.sources.jsonl import MAX_LINE_BYTES, SessionBytes
from memoryd.sources.opencode_records import (
    AGENT,
    Message,
    Part,
    SessionFacts,
    fields_of,
    is_session_id,
    parse_message,
    session_facts,
)
from memoryd.sources.rawjson import as_fields, as_int, as_text

STORAGE = "storage"
SESSIONS, MESSAGES, PARTS = "session", "message", "part"
SUFFIX = ".json"
MAX_KNOWN_ENDS = 100_000


class Tree:
    """Finds the sessions of the trees; remembers which message of each was the last."""

    def __init__(self) -> None:
        self._last_message: dict[Path, tuple[int, str | None]] = {}

    def find(self, home: Path) -> Iterator[SessionFile]:
        """Yield the sessions of a home; none is opened."""
        for project in listing(home / STORAGE / SESSIONS):
            for entry in listing(project.path):
                name = entry.name.removesuffix(SUFFIX)
                file = session_file(AGENT, entry) if name != entry.name and is_session_id(name) else None
                if file is not None and is_tellable(file.name):
                    yield self.dated(file)

    def dated(self, file: SessionFile) -> SessionFile:
        """Return the session with the latest time of its file, its folder of messages and the last one's of parts.

        A turn writes those before it writes the session's own file.
        """
        storage = _storage(file.path)
        messages = storage / MESSAGES / file.path.stem
        changed_ns = _mtime_ns(messages)
        known = self._last_message.get(messages)
        if known is None or known[0] != changed_ns:
            if len(self._last_message) >= MAX_KNOWN_ENDS:
                self._last_message.clear()
            last = max((entry.name for entry in listing(messages) if entry.name.endswith(SUFFIX)), default=None)
            known = self._last_message[messages] = (changed_ns, last)
        parts_ns = _mtime_ns(storage / PARTS / known[1].removesuffix(SUFFIX)) if known[1] else 0
        return SessionFile(AGENT, file.name, file.size, max(file.mtime_ns, changed_ns, parts_ns))


class TreeSession:
    """One session of a tree, by the path of its own file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._storage = _storage(path)

    def facts(self) -> SessionFacts:
        """Read the session's file."""
        fields = fields_of(_content(self._path))
        if not fields:
            raise SessionUnreadable(f"cannot read {self._path}: it is no JSON object")
        times = as_fields(fields.get("time"))
        return session_facts(
            self._path.stem,
            parent_id=as_text(fields.get("parentID")),
            directory=as_text(fields.get("directory")),
            permission=fields.get("permission"),
            revert=fields.get("revert"),
            times=(as_int(times.get("created")), as_int(times.get("updated"))),
        )

    def row_count(self) -> int:
        """Count the files of its messages and parts."""
        messages = _names(self._storage / MESSAGES / self._path.stem)
        return len(messages) + sum(len(_names(self._storage / PARTS / name)) for name in messages)

    def messages(self) -> Iterator[Message | None]:
        """Yield its messages in the order of their ids, as the agent does."""
        folder = self._storage / MESSAGES / self._path.stem
        for name in _names(folder):
            yield parse_message(name, _content_if_there(folder / f"{name}{SUFFIX}"))

    def parts(self, message: Message) -> Iterator[Part]:
        """Yield a message's parts in the order of their ids."""
        folder = self._storage / PARTS / message.message_id
        for name in _names(folder):
            yield os.fsencode(name), _content_if_there(folder / f"{name}{SUFFIX}")


def _storage(session: Path) -> Path:
    return session.parent.parent.parent


def _names(folder: Path) -> list[str]:
    return [entry.name.removesuffix(SUFFIX) for entry in listing(folder) if entry.name.endswith(SUFFIX)]


def _mtime_ns(folder: Path) -> int:
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - several times cheaper in a scan of all sessions
    except OSError:
        return 0


def _content(path: Path) -> bytes:
    with SessionBytes(path) as source:
        if source.size > MAX_LINE_BYTES:
            raise SessionUnreadable(f"cannot read {path}: it has {source.size} bytes")
        return b"".join(source.chunks())


def _content_if_there(path: Path) -> bytes | None:
    """Return a file's bytes; None when it was taken away meanwhile, or cannot be read: one row less, no error."""
    try:
        return _content(path)
    except SourceError as error:
        if isinstance(error, SessionVanished) and not path.parent.parent.exists():
            raise
        return None
