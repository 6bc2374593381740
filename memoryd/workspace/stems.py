"""The file name stem of a session's rollout summary: `<time>-<hash>[-<slug>]`."""

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Final

from memoryd.clock import in_calendar
from memoryd.ledger.outputs import SelectedOutput

_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HASH_DIGITS: Final = 4
_MAX_SLUG: Final = 60
_GREGORIAN: Final = datetime(1582, 10, 15, tzinfo=UTC)
_STAMP: Final = "%Y-%m-%dT%H-%M-%S"
_STEM: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([0-9A-Za-z]{4})(?:-[a-z0-9_]{1,60})?", re.ASCII)
_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def session_stem(thread_id: str, started_or_updated_at: float, slug: str | None) -> str:
    """Return the stem for a session.

    `started_or_updated_at` (epoch seconds) is used only for ids that carry no time of their own.
    """
    identity = _as_uuid(thread_id)
    instant = _uuid_time(identity) if identity is not None else None
    if instant is None:
        instant = in_calendar(int(started_or_updated_at))
    parts = [instant.strftime(_STAMP), _hash(thread_id), _clean_slug(slug or "")]
    return "-".join(part for part in parts if part)


def is_stem_of(stem: str, thread_id: str) -> bool:
    """Say whether a stem that somebody else gave is one, and this session's."""
    found = _STEM.fullmatch(stem)
    return found is not None and found[1] == _hash(thread_id)


def stem_of(output: SelectedOutput) -> str:
    """Return the stem under which a session's summary lies: the one fixed in the ledger, else a new one."""
    if output.stem:
        return output.stem
    return session_stem(output.thread_id, output.started_at or output.source_updated_at, output.rollout_slug)


def stamp_time(stamp: str) -> float | None:
    """Return the epoch seconds of a `YYYY-MM-DDTHH-MM-SS` stamp (UTC), None when it is none."""
    try:
        return datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _hash(thread_id: str) -> str:
    identity = _as_uuid(thread_id)
    return _base62(identity.int & 0xFFFFFFFF if identity is not None else _text_hash(thread_id))


def _as_uuid(thread_id: str) -> uuid.UUID | None:
    return uuid.UUID(thread_id) if _UUID.fullmatch(thread_id) else None


def _uuid_time(identity: uuid.UUID) -> datetime | None:
    """Return the time inside a version 1, 6 or 7 UUID (RFC 9562), None for the others."""
    try:
        if identity.version == 7:
            return datetime.fromtimestamp((identity.int >> 80) // 1000, UTC)
        if identity.version == 1:
            return _GREGORIAN + timedelta(microseconds=identity.time // 10)
        if identity.version == 6:
            ticks = ((identity.int >> 80) << 12) | ((identity.int >> 64) & 0x0FFF)
            return _GREGORIAN + timedelta(microseconds=ticks // 10)
    except (OverflowError, ValueError, OSError):
        return None
    return None


def _text_hash(text: str) -> int:
    value = 0
    for byte in text.encode("utf-8", "surrogatepass"):
        value = (value * 31 + byte) & 0xFFFFFFFF
    return value


def _base62(number: int) -> str:
    digits = []
    number %= len(_ALPHABET) ** _HASH_DIGITS
    for _ in range(_HASH_DIGITS):
        number, rest = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[rest])
    return "".join(reversed(digits))


def _clean_slug(slug: str) -> str:
    cleaned = "".join(char.lower() if char.isascii() and char.isalnum() else "_" for char in slug[:_MAX_SLUG])
    return cleaned.rstrip("_")
