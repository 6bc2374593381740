"""One line of a session as one record: a fast strict decoder first, then whatever can be saved of a damaged line."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from memoryd.sources.jsonl import Line
from memoryd.sources.rawjson import MAX_REPAIR_BYTES, UNREADABLE, repair

T = TypeVar("T")

BOM = b"\xef\xbb\xbf"
MOST_BEGINNINGS = 32  # where in a line a fused record is looked for
_FILLER = b"\x00 \t\r\n"


@dataclass(frozen=True, slots=True)
class Decoded(Generic[T]):
    """What a line held; `data` is the strict JSON that `value` was decoded from, `is_damaged`: some of it is lost."""

    value: T | None
    data: bytes
    is_damaged: bool


def decode_line(line: Line, decoder: msgspec.json.Decoder[T], is_record: Callable[[T], bool]) -> Decoded[T]:
    """Decode a line; its value is None when it is blank, over the cap, or no JSON object even for a lenient decoder.

    A record that a crash tore and the next run's first record share a line: the second one is whole, and is found by
    its beginning. `is_record` tells a whole record from an object that merely ends one. Filler that a crash of the
    machine leaves (NUL bytes) is skipped.
    """
    if line.data is None:
        return Decoded(None, b"", is_damaged=True)
    data = line.data.strip(_FILLER).removeprefix(BOM)
    if not data:
        return Decoded(None, b"", is_damaged=b"\x00" in line.data)
    try:
        return Decoded(decoder.decode(data), data, is_damaged=False)
    except UNREADABLE:
        pass
    mended = repair(data)
    if mended is not None:
        try:
            return Decoded(decoder.decode(mended), mended, is_damaged=False)
        except UNREADABLE:
            pass
    return _fused(data, decoder, is_record) if line.ended else Decoded(None, data, is_damaged=True)


def decode_or_mend(
    line: Line, decoder: msgspec.json.Decoder[T], is_record: Callable[[T], bool]
) -> tuple[T | None, bool]:
    """Decode a line, the sound ones at once, and say whether it is bad: a torn last one is not, its rest is to come."""
    if line.data:
        try:
            return decoder.decode(line.data), False
        except UNREADABLE:
            pass
    decoded = decode_line(line, decoder, is_record)
    if decoded.value is None:
        return None, line.ended and not is_blank(line)
    return decoded.value, decoded.is_damaged


def is_blank(line: Line) -> bool:
    """Say whether a line holds nothing but white space."""
    return line.data is not None and not line.data.strip()


def _fused(data: bytes, decoder: msgspec.json.Decoder[T], is_record: Callable[[T], bool]) -> Decoded[T]:
    """Find the whole record at the end of a line whose beginning is the torn half of another."""
    position = 0
    for _ in range(MOST_BEGINNINGS if len(data) <= MAX_REPAIR_BYTES else 0):
        position = data.find(b'{"', position + 1)
        if position < 0:
            break
        rest = data[position:]
        try:
            value = decoder.decode(rest)
        except UNREADABLE:
            continue
        if is_record(value):
            return Decoded(value, rest, is_damaged=True)
    return Decoded(None, data, is_damaged=True)
