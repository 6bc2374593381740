"""The records of OpenCode, whichever store they lie in: what a session, a message and the store itself say."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import msgspec
from msgspec import Raw

from memoryd.errors import SessionUnreadable
from memoryd.sources.items import SessionKind
from memoryd.sources.rawjson import UNREADABLE, as_fields, as_int, as_list, as_text, is_true, repair

AGENT = "opencode"
COMPACTION = "compaction"
MAX_MILLISECONDS = 253_402_300_799_999  # the end of the year 9999
SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")


@dataclass(frozen=True, slots=True)
class Revert:
    """Where a session was taken back to: this message and all later ones are withdrawn, or its parts from one on."""

    message_id: str
    part_id: str | None


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """A session's own row; times in milliseconds."""

    session_id: str
    parent_id: str | None
    directory: str | None
    kind: SessionKind
    created_ms: int
    updated_ms: int
    revert: Revert | None


class _Times(msgspec.Struct, frozen=True, gc=False):
    created: int | None = None


class _Path(msgspec.Struct, frozen=True, gc=False):
    cwd: str | None = None


class _MessageRow(msgspec.Struct, gc=False):
    """A message as all known versions write it; `summary` may be a flag, or the diffs of whole files."""

    role: str
    time: _Times = _Times()
    finish: str | None = None
    mode: str | None = None
    agent: str | None = None
    path: _Path = _Path()
    summary: Raw = Raw()


_message_rows = msgspec.json.Decoder(_MessageRow)


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message without its parts. `finish` says why the model stopped; `cwd` is where it worked, if it says."""

    message_id: str
    created_ms: int
    role: str
    finish: str | None
    is_compaction: bool
    cwd: str | None


Part = tuple[bytes, bytes | None]
"""A part: its id in UTF-8, and its JSON; None when that is too big to be read, or no JSON."""


class RecordedSession(Protocol):
    """One session in one of the two stores. Each method raises SessionVanished or SessionUnreadable."""

    def facts(self) -> SessionFacts:
        """Return the session's own row as it is now."""
        ...

    def row_count(self) -> int:
        """Count its messages and parts."""
        ...

    def messages(self) -> Iterator[Message | None]:
        """Yield its messages in order, a few in memory at a time; None for one that is no JSON object."""
        ...

    def parts(self, message: Message) -> Iterator[Part]:
        """Yield a message's parts in order, a few in memory at a time; messages are asked for in their order."""
        ...


def session_facts(
    session_id: str,
    *,
    parent_id: str | None,
    directory: str | None,
    permission: Raw | None,
    revert: Raw | None,
    times: tuple[int | None, int | None],
) -> SessionFacts:
    """Put a session's facts together; `times` are those of its creation and its last change, in milliseconds.

    A session with a parent is a sub-agent's. One that may not ask its user anything was started by `opencode run`,
    which denies `question` (versions before 1.1 keep no rules: their runs cannot be told from others). Raises
    SessionUnreadable when the times are none.
    """
    created, updated = times
    if not _is_time(created) or not _is_time(updated):
        raise SessionUnreadable(f"cannot read the session {session_id}: it does not say when it was changed")
    assert created is not None
    assert updated is not None
    if parent_id:
        kind = SessionKind.SUBAGENT
    else:
        kind = SessionKind.NONINTERACTIVE if _denies_questions(permission) else SessionKind.INTERACTIVE
    return SessionFacts(session_id, parent_id, directory, kind, created, updated, _revert(revert))


def parse_message(message_id: str, data: bytes | None, stored_at: object = None) -> Message | None:
    """Read a message's JSON; `stored_at` is the time beside it in a database. None when it is no JSON object."""
    try:
        row = _message_rows.decode(data or b"")
    except UNREADABLE:
        mended = _mended_row(fields_of(data))
        if mended is None:
            return None
        row = mended
    created = row.time.created
    if created is None:
        created = stored_at if isinstance(stored_at, int) else 0
    is_compaction = COMPACTION in (row.mode, row.agent) or is_true(row.summary)
    return Message(message_id, created, row.role, row.finish, is_compaction, row.path.cwd)


def _mended_row(fields: dict[str, Raw]) -> _MessageRow | None:
    """Take what can be had of a message whose members are not of the types they should have."""
    if not fields:
        return None
    return _MessageRow(
        as_text(fields.get("role")) or "",
        _Times(as_int(as_fields(fields.get("time")).get("created"))),
        as_text(fields.get("finish")),
        as_text(fields.get("mode")),
        as_text(fields.get("agent")),
        _Path(as_text(as_fields(fields.get("path")).get("cwd"))),
        fields.get("summary", Raw()),
    )


def fields_of(data: bytes | None) -> dict[str, Raw]:
    """Return a record's members, still raw, of whatever a lenient decoder can read; else an empty mapping."""
    return as_fields(data) or as_fields(repair(data) if data else None)


def is_session_id(text: str) -> bool:
    """Tell whether an id may stand in a path; OpenCode's are `ses_` and 26 letters and digits."""
    return SESSION_ID.fullmatch(text) is not None


def _is_time(milliseconds: int | None) -> bool:
    return milliseconds is not None and 0 <= milliseconds <= MAX_MILLISECONDS


def _denies_questions(permission: Raw | None) -> bool:
    rules = [as_fields(rule) for rule in as_list(permission)]
    return any(
        (as_text(rule.get("permission")), as_text(rule.get("pattern")), as_text(rule.get("action")))
        == ("question", "*", "deny")
        for rule in rules
    )


def _revert(raw: Raw | None) -> Revert | None:
    fields = as_fields(raw)
    message_id = as_text(fields.get("messageID"))
    return Revert(message_id, as_text(fields.get("partID"))) if message_id else None
