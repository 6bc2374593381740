"""JSON values that stay raw bytes until somebody wants them: one tolerant accessor per type, none of which raises.

A wanted text is bounded: real ones are far smaller, and a longer one (a pasted file, base64) is cut at a white space.
"""

import json
import math

import msgspec
from msgspec import Raw

MAX_TEXT_BYTES = 1024 * 1024
MAX_REPAIR_BYTES = 16 * 1024 * 1024  # the standard library needs many times the size of a line
CUT_MARK = "\n[... the rest of this text was cut ...]"
_WORD_BYTES = 4096  # how far back a white space is looked for, so that no token is cut in two
_ESCAPE_BYTES = 12  # an escaped surrogate pair

# RecursionError: arrays nested thousands deep; both decoders give up on them
UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)


class _Command(msgspec.Struct, gc=False):
    command: str | None = None


_fields = msgspec.json.Decoder(dict[str, Raw])
_command = msgspec.json.Decoder(_Command)
_values = msgspec.json.Decoder(list[Raw])
_text = msgspec.json.Decoder(str)
_number = msgspec.json.Decoder(float)
_integer = msgspec.json.Decoder(int)


def as_fields(raw: Raw | bytes | None) -> dict[str, Raw]:
    """Return an object's members, still raw; an empty mapping for anything else."""
    if not raw:
        return {}
    try:
        return _fields.decode(raw)
    except UNREADABLE:
        return {}


def as_list(raw: Raw | None) -> list[Raw]:
    """Return an array's values, still raw; an empty list for anything else."""
    if not raw:
        return []
    try:
        return _values.decode(raw)
    except UNREADABLE:
        return []


def as_text(raw: Raw | None) -> str | None:
    """Return a string, at most MAX_TEXT_BYTES of it; None for anything else.

    Bytes that are no UTF-8 become U+FFFD, lone surrogates `?`.
    """
    if not raw:
        return None
    is_short = len(raw) <= MAX_TEXT_BYTES
    if is_short:
        try:
            return _text.decode(raw)  # what nearly every value that is asked for is
        except UNREADABLE:
            pass
    if not is_text(raw):
        return None
    return _whole_text(raw) if is_short else _cut_text(bytes(memoryview(raw)[:MAX_TEXT_BYTES]))


def command_in(raw: Raw | None) -> str | None:
    """Return the text that is an object's member `command`, as in a shell's arguments; None where there is none."""
    if not raw:
        return None
    try:
        if len(raw) <= MAX_TEXT_BYTES:
            return _command.decode(raw).command  # nothing else of the object is looked at
    except UNREADABLE:
        pass
    return as_text(as_fields(raw).get("command"))


def as_int(raw: Raw | None) -> int | None:
    """Return an integer of at most 63 bits; None for anything else."""
    if not raw:
        return None
    try:
        value = _integer.decode(raw)
    except UNREADABLE:
        return None
    return value if abs(value) < 2**63 else None


def as_number(raw: Raw | None) -> float | None:
    """Return a finite number; None for anything else."""
    if not raw:
        return None
    try:
        value = _number.decode(raw)
    except UNREADABLE:
        return None
    return value if math.isfinite(value) else None


def is_true(raw: Raw | None) -> bool:
    """Say whether the value is the literal `true`."""
    return bool(raw) and bytes(raw or b"") == b"true"


def is_text(raw: Raw) -> bool:
    """Say whether the value is a string."""
    return bytes(memoryview(raw)[:1]) == b'"'


def compact(raw: Raw | None) -> str:
    """Render any value as JSON without white space between its parts, at most MAX_TEXT_BYTES of the source."""
    if not raw:
        return ""
    if len(raw) > MAX_TEXT_BYTES:
        return bytes(memoryview(raw)[:MAX_TEXT_BYTES]).decode("utf-8", "replace") + CUT_MARK
    try:
        return msgspec.json.format(bytes(raw), indent=-1).decode("utf-8", "replace")
    except UNREADABLE:
        return bytes(raw).decode("utf-8", "replace")


def repair(line: bytes) -> bytes | None:
    """Rewrite what only a lenient decoder accepts (lone surrogates, NaN, bare control characters) as strict JSON.

    None when the standard library cannot read the line either, or when it is too long to try.
    """
    if len(line) > MAX_REPAIR_BYTES:
        return None
    try:
        value: object = json.loads(line.decode("utf-8", "replace"), strict=False, parse_constant=lambda _: None)
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    except UNREADABLE:
        return None


def _whole_text(raw: Raw | bytes) -> str | None:
    try:
        return _text.decode(raw)
    except UNREADABLE:
        mended = repair(bytes(raw))
        return None if mended is None else _text.decode(mended)


def _cut_text(head: bytes) -> str:
    """Decode the beginning of a string literal whose end is missing, back to the last white space if one is near."""
    for end in range(len(head), len(head) - _ESCAPE_BYTES, -1):
        try:
            text = _text.decode(head[:end] + b'"')
        except UNREADABLE:
            continue
        word = max(text.rfind(" ", -_WORD_BYTES), text.rfind("\n", -_WORD_BYTES))
        return (text[:word] if word > 0 else text) + CUT_MARK
    return CUT_MARK.lstrip()
