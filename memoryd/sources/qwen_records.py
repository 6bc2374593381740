"""Rows of a Qwen Code session: shaped like Claude Code's, with messages in Gemini form."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec
from msgspec import Raw

from memoryd.sources.decoding import decode_line, is_blank
from memoryd.sources.identity import parse_instant
from memoryd.sources.jsonl import Line
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


@dataclass(frozen=True, slots=True)
class Record:
    """One row, where it stands in the file, and whether some of its line is lost."""

    row: Row
    type: str
    subtype: str
    at: float | None
    index: int
    is_damaged: bool

    @property
    def is_side_chain(self) -> bool:
        """Tell a row of a sub-agent."""
        return is_true(self.row.side_chain)


_row = msgspec.json.Decoder(Row)


def decode_record(line: Line) -> tuple[Record | None, bool]:
    """Decode a line, and say whether it is bad: a torn last one is not, the rest of it is still to come."""
    decoded = decode_line(line, _row, _is_whole)
    row = decoded.value
    if row is None:
        return None, line.ended and not is_blank(line)
    record = Record(
        row=row,
        type=as_text(row.type) or "",
        subtype=as_text(row.subtype) or "",
        at=parse_instant(row.timestamp),
        index=line.index,
        is_damaged=decoded.is_damaged,
    )
    return record, decoded.is_damaged


def records(lines: Iterable[Line]) -> Iterator[Record]:
    """Yield every row that can be read."""
    for line in lines:
        record, _ = decode_record(line)
        if record is not None:
            yield record


def shell_exit_code(row: Row) -> int | None:
    """Return the exit code of a command where the result for the screen tells it."""
    return as_int(as_fields(as_fields(row.result).get("resultDisplay")).get("exitCode"))


def _is_whole(row: Row) -> bool:
    return bool(row.uuid and row.type and row.timestamp)
