"""Rows of a Qwen Code session: shaped like Claude Code's, with messages in Gemini form."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw

from memoryd.sources.decoding import decode_or_mend
from memoryd.sources.gemini_parts import UsualPart
from memoryd.sources.identity import Moment, parse_instant
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.rawjson import as_fields, as_int, as_text, is_true

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


class UsualDisplay(msgspec.Struct, gc=False):
    """What the screen shows of a command; its output, which stands there once more, is passed over."""

    exit_code: int | None = msgspec.field(default=None, name="exitCode")


class UsualResult(msgspec.Struct, gc=False):
    """What a tool's result says for the screen."""

    display: UsualDisplay | str | None = msgspec.field(default=None, name="resultDisplay")


class UsualRow(msgspec.Struct, gc=False):
    """A row as it is nearly always written, decoded in one go."""

    uuid: str
    at: Moment = msgspec.field(name="timestamp")
    type: str
    subtype: str | None = None
    provenance: str | None = None
    cwd: str | None = None
    payload: Raw = msgspec.field(default=Raw(), name="systemPayload")
    message: UsualMessage | None = None
    result: UsualResult | None = msgspec.field(default=None, name="toolCallResult")
    side_chain: bool = msgspec.field(default=False, name="isSidechain")

    @property
    def exit_code(self) -> int | None:
        """The exit code of a command where the result for the screen tells it."""
        display = self.result.display if self.result is not None else None
        return display.exit_code if isinstance(display, UsualDisplay) else None


USUAL = msgspec.json.Decoder(UsualRow)
_row = msgspec.json.Decoder(Row)


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
