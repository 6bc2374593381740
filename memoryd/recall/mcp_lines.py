"""What a client writes, line by line, and what it is told where a line is no message: nobody may wait in vain.

Knows the outermost form of JSON-RPC 2.0 alone, and nothing of the package that serves it.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

MAX_LINE_BYTES: Final = 4 << 20
"""No request of ours is longer than some kilobytes; of what is longer only the ends are kept, to tell whose it is."""
READ_BYTES: Final = 1 << 16
_EDGE_BYTES: Final = 400

_ID: Final = r'"id"\s*:\s*(?P<id>-?\d{1,40}|"(?:[^"\\]|\\.){0,200}")'
_VERSION: Final = r'"jsonrpc"\s*:\s*"2\.0"'
_AT_FRONT: Final = re.compile(rf"\s*\{{\s*(?:{_VERSION}\s*,\s*)?{_ID}\s*,")
_AT_END: Final = re.compile(rf",\s*{_ID}\s*(?:,\s*{_VERSION}\s*)?\}}\s*\Z")
"""Where clients write a message's id: before or after all else."""
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


class Code(IntEnum):
    """JSON-RPC 2.0, section 5.1."""

    NO_JSON = -32700
    NO_MESSAGE = -32600


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its line feed; `end` is what its last bytes are where the rest was left out."""

    text: str
    end: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether it was too long to be read."""
        return bool(self.end)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer to a line that is no message; `id` None: it could not be made out."""

    code: Code
    why: str
    id: str | int | None = None


def lines_of(source: int) -> Iterator[Line]:
    """Yield the lines of a descriptor as they come; bytes that are no UTF-8 are replaced. Raises OSError."""
    kept, end = bytearray(), b""
    while piece := os.read(source, READ_BYTES):
        *whole, last = piece.split(b"\n")
        for part in whole:
            yield _line(kept, (end + part)[-_EDGE_BYTES:], part)
            kept, end = bytearray(), b""
        end = (end + last)[-_EDGE_BYTES:]
        kept += last[: MAX_LINE_BYTES + 1 - len(kept)]
    if kept:
        yield _line(kept, end, b"")


def mended(text: str) -> str | None:
    """Return a JSON text without the halves of characters that some clients escape; None where there are none."""
    if not _HALF.search(text):
        return None
    try:
        whole = json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace").decode()
    except (ValueError, RecursionError):
        return None
    return whole


def has_odd_id(text: str) -> bool:
    """Say whether an object has an id by which nobody could be answered; null is none."""
    try:
        said: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    given = said.get("id")
    return given is not None and (isinstance(given, bool) or not isinstance(given, str | int))


def refusal(line: Line) -> Refusal | None:
    """Say what to answer to a line that is no message; None: nothing, since it is blank, or itself an answer."""
    if line.is_cut:
        return Refusal(Code.NO_MESSAGE, f"a line of more than {MAX_LINE_BYTES:,} bytes is not read", _id_at_ends(line))
    if not line.text.strip():
        return None
    try:
        said: Any = json.loads(line.text)
    except (ValueError, RecursionError):
        return Refusal(Code.NO_JSON, "this line is no JSON, or nested too deeply", _id_at_ends(line))
    if not isinstance(said, dict):
        return Refusal(Code.NO_MESSAGE, "a line holds one JSON-RPC 2.0 message, an object; batches are not taken")
    if "method" not in said and ("result" in said or "error" in said):
        return None
    given = said.get("id")
    known = given if isinstance(given, str | int) and not isinstance(given, bool) else None
    shown = known.encode("utf-8", "replace").decode() if isinstance(known, str) else known
    return Refusal(
        Code.NO_MESSAGE, "this is no JSON-RPC 2.0 message with an id that is a text or a whole number", shown
    )


def _line(kept: bytearray, end: bytes, last: bytes) -> Line:
    whole = kept + last[: MAX_LINE_BYTES + 1 - len(kept)]
    if len(whole) <= MAX_LINE_BYTES:
        return Line(whole.decode("utf-8", "replace"))
    return Line(whole[:_EDGE_BYTES].decode("utf-8", "replace"), end.decode("utf-8", "replace"))


def _id_at_ends(line: Line) -> str | int | None:
    found = _AT_FRONT.match(line.text[:_EDGE_BYTES]) or _AT_END.search((line.end or line.text)[-_EDGE_BYTES:])
    if found is None:
        return None
    try:
        known: str | int = json.loads(found["id"])
    except ValueError:
        return None
    return known.encode("utf-8", "replace").decode() if isinstance(known, str) else known
