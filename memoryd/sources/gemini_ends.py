"""When a Gemini CLI session ended, and how many bytes it had then.

A later start of the program adds a summary to an old session, and rewrites one of the older form for it: nothing has
happened in that, and the session must not be read again for it.
"""

from memoryd.sources.gemini_records import Record, decode_record, parse_message, record_time
from memoryd.sources.identity import parse_instant
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.rawjson import as_fields, as_list

LATE_MEMBERS = frozenset({"summary", "memoryScratchpad"})


def end_of_lines(source: SessionBytes) -> tuple[float | None, int]:
    """Return the time of the last record that has one, and the size in bytes without what was added later."""
    late_bytes = 0
    is_late_part = True
    for line in source.lines_backwards():
        record, _ = decode_record(line)
        is_late_part = is_late_part and record is not None and _is_late(record)
        late_bytes += _line_bytes(line) if is_late_part else 0
        at = record_time(record) if record is not None else None
        if at is not None:
            return at, source.size - late_bytes
    return None, source.size - late_bytes


def end_of_document(document: Record) -> float | None:
    """Return the time of the last message, or where there is none that of the document."""
    for raw in reversed(as_list(document.messages)):
        message = parse_message(raw)
        if message is not None and (at := parse_instant(message.timestamp)) is not None:
            return at
    return record_time(document)


def _is_late(record: Record) -> bool:
    members = set(as_fields(record.patch)) if record.patch else set()
    return bool(members) and members <= LATE_MEMBERS


def _line_bytes(line: Line) -> int:
    return len(line.data or b"") + line.ended
