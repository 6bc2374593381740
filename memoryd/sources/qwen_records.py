"""Rows of a Qwen Code session: shaped like Claude Code's, with messages in Gemini form."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import UNSET, Raw, UnsetType

from memoryd.sources.decoding import decode_or_mend
from memoryd.sources.gemini_parts import UsualPart
from memoryd.sources.identity import parse_instant
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.rawjson import MAX_TEXT_BYTES, UNREADABLE, as_fields, as_int, as_text, is_text, is_true

AGENT = "qwen"
USER, ASSISTANT, TOOL_RESULT, SYSTEM = "user", "assistant", "tool_result", "system"
CONVERSATION = frozenset({USER, ASSISTANT, TOOL_RESULT})
KNOWN = CONVERSATION | {SYSTEM}


class Row(msgspec.Struct):
    """A row as it was written; everything in it is still raw."""

    uuid: Raw = Raw()
    parent: Raw = msgspec.field(default=Raw(), name="parentUuid")
    timestamp: Raw = Raw()
    type: Raw = Raw()
    subtype: Raw = Raw()
    provenance: Raw = Raw()
    cwd: Raw = Raw()
    branch: Raw = msgspec.field(default=Raw(), name="gitBranch")
    message: Raw = Raw()
    result: Raw = msgspec.field(default=Raw(), name="toolCallResult")
    payload: Raw = msgspec.field(default=Raw(), name="systemPayload")
    side_chain: Raw = msgspec.field(default=Raw(), name="isSidechain")
    forked_from: Raw = msgspec.field(default=Raw(), name="forkedFrom")

    @property
    def kind(self) -> str:
        """The row's type."""
        return as_text(self.type) or ""

    @property
    def at(self) -> float | None:
        """When the row was written, in epoch seconds."""
        return parse_instant(self.timestamp)

    @property
    def is_side_chain(self) -> bool:
        """Whether it is a row of a sub-agent."""
        return is_true(self.side_chain)


class UsualMessage(msgspec.Struct, gc=False):
    """A message in Gemini form."""

    parts: list[UsualPart] = []


class UsualResult(msgspec.Struct, gc=False):
    """What a tool's result says for the screen."""

    display: Raw = msgspec.field(default=Raw(), name="resultDisplay")


class UsualRow(msgspec.Struct, gc=False):
    """A row as it is nearly always written, decoded in one go."""

    type: str
    timestamp: str
    uuid: str
    message: UsualMessage | UnsetType = UNSET
    subtype: str | None = None
    provenance: str | None = None
    cwd: str | None = None
    result: UsualResult | UnsetType = msgspec.field(default=UNSET, name="toolCallResult")
    payload: Raw = msgspec.field(default=Raw(), name="systemPayload")
    side_chain: bool = msgspec.field(default=False, name="isSidechain")

    @property
    def exit_code(self) -> int | None:
        """The exit code of a command where the result for the screen tells it."""
        display = Raw() if self.result is UNSET else self.result.display
        if not display or is_text(display) or b'"exitCode"' not in bytes(display):
            return None
        return as_int(as_fields(display).get("exitCode"))


class Glance(msgspec.Struct, gc=False):
    """What a look for abandoned branches wants of a row."""

    uuid: Raw = Raw()
    parent: Raw = msgspec.field(default=Raw(), name="parentUuid")
    type: Raw = Raw()
    subtype: Raw = Raw()
    side_chain: Raw = msgspec.field(default=Raw(), name="isSidechain")


_row = msgspec.json.Decoder(Row)
_usual = msgspec.json.Decoder(UsualRow)
_glance = msgspec.json.Decoder(Glance)


def decode_usual(line: Line) -> UsualRow | None:
    """Decode a line that is as nearly all are; None where something in it needs a closer look (decode_row)."""
    data = line.data
    if not data or len(data) > MAX_TEXT_BYTES:
        return None
    try:
        return _usual.decode(data)
    except UNREADABLE:
        return None


def glances(lines: Iterable[Line]) -> Iterator[tuple[int, Glance]]:
    """Yield what is wanted of every row that can be read, with the index of its line."""
    for line in lines:
        try:
            yield line.index, _glance.decode(line.data or b"")
        except UNREADABLE:
            row, _ = decode_row(line)
            if row is not None:
                yield line.index, Glance(row.uuid, row.parent, row.type, row.subtype, row.side_chain)


def decode_row(line: Line) -> tuple[Row | None, bool]:
    """Decode a line, and say whether it is bad."""
    return decode_or_mend(line, _row, _is_whole)


def rows(lines: Iterable[Line]) -> Iterator[tuple[int, Row]]:
    """Yield every row that can be read, with the index of its line."""
    for line in lines:
        row, _ = decode_row(line)
        if row is not None:
            yield line.index, row


def last_time(source: SessionBytes) -> float | None:
    """Return when the last row that says so was written."""
    return next((at for _, row in rows(source.lines_backwards()) if (at := row.at) is not None), None)


def shell_exit_code(row: Row) -> int | None:
    """Return the exit code of a command where the result for the screen tells it."""
    if b'"exitCode"' not in bytes(row.result):
        return None
    return as_int(as_fields(as_fields(row.result).get("resultDisplay")).get("exitCode"))


def _is_whole(row: Row) -> bool:
    return bool(row.uuid and row.type and row.timestamp)
