"""Whose session it is and when: the thread ids of every agent in one spelling, and the instants that records carry."""

import hashlib
import re
import uuid
from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta, Raw

from memoryd.sources.jsonl import SessionBytes
from memoryd.sources.rawjson import as_text

Moment = Annotated[datetime, Meta(tz=True)]
"""When a row was written, as nearly all are: in ISO 8601, with an offset."""

MAX_ID_CHARACTERS = 200
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def canonical_thread_id(agent: str, text: str) -> str:
    """Return a UUID bare and in lower case; any other id is stored with the agent's name before it."""
    return text.lower() if _UUID.fullmatch(text) else f"{agent}:{text}"


def is_usable_id(text: str | None) -> bool:
    """Tell whether an id can be kept, shown on one line and typed."""
    return bool(text) and len(text or "") <= MAX_ID_CHARACTERS and (text or "").isprintable()


def uuid_time(text: str | None) -> float | None:
    """Return epoch seconds of a version 7 UUID (milliseconds in its first 48 bits); None for any other text."""
    if text is None or not _UUID.fullmatch(text):
        return None
    value = uuid.UUID(text)
    return (value.int >> 80) / 1000 if value.version == 7 else None


def parse_instant(raw: Raw | None) -> float | None:
    """Return epoch seconds of an ISO 8601 text; a text without an offset is UTC."""
    text = as_text(raw)
    return None if text is None else instant_of(text)


def instant_of(text: str) -> float | None:
    """Return epoch seconds of an ISO 8601 text that is decoded already; a text without an offset is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def last_instant(at: float | None, source: SessionBytes) -> int:
    """Return whole epoch seconds of a session's last record, or of the file where records have no times."""
    return source.mtime_ns // 1_000_000_000 if at is None else int(at // 1)


def message_key(text: str, at: float | None) -> str:
    """Name a message that has no id of its own: a hash of its text and time."""
    return hashlib.sha256(f"{at!r}\n{text}".encode("utf-8", "replace")).hexdigest()
