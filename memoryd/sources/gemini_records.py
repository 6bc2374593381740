"""Records of a Gemini CLI session: lines of the newer format, the one object of the older, and the messages in both."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from msgspec import Raw

from memoryd.errors import SessionUnreadable
from memoryd.sources.decoding import decode_or_mend
from memoryd.sources.gemini_parts import CONTEXT_MARKER, SUMMARY_MARKER, GivenPart, UsualCall, UsualPart, parse_content
from memoryd.sources.identity import Moment, canonical_thread_id, is_usable_id, parse_instant
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.rawjson import UNREADABLE, as_list, as_text

AGENT = "gemini"
USER, GEMINI = "user", "gemini"
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024  # real ones reach 4 MB
READ_TRIES, READ_PAUSE_SECONDS = 4, 0.05  # a document is rewritten for every message: a read may catch it half-written


class Record(msgspec.Struct):
    """Any record: a message has `id`, a header `session_id`, a patch `patch`, a rewind `rewind_to`; all still raw."""

    id: Raw = Raw()
    timestamp: Raw = Raw()
    type: Raw = Raw()
    content: Raw = Raw()
    display_content: Raw = msgspec.field(default=Raw(), name="displayContent")
    tool_calls: Raw = msgspec.field(default=Raw(), name="toolCalls")
    session_id: Raw = msgspec.field(default=Raw(), name="sessionId")
    start_time: Raw = msgspec.field(default=Raw(), name="startTime")
    last_updated: Raw = msgspec.field(default=Raw(), name="lastUpdated")
    kind: Raw = Raw()
    messages: Raw = Raw()
    patch: Raw = msgspec.field(default=Raw(), name="$set")
    rewind_to: Raw = msgspec.field(default=Raw(), name="$rewindTo")


@dataclass(frozen=True, slots=True)
class Header:
    """What names a session."""

    thread_id: str
    is_subagent: bool
    started_at: float | None


class UsualToolCall(UsualCall, gc=False):
    """A recorded tool call as it is nearly always written; what was shown of it is passed over."""

    result: list[UsualPart] | str = ""
    at: Moment | None = msgspec.field(default=None, name="timestamp")
    display_name: str | None = msgspec.field(default=None, name="displayName")


class UsualPatch(msgspec.Struct, gc=False):
    """A patch that touches no message, as after every message the one that only says when that was."""

    messages: None = None


class UsualRecord(msgspec.Struct, gc=False):
    """A message or a patch as they are nearly always written, decoded in one go; thoughts and tokens are passed over.

    What is declared as null stands in others: with a value there a record is not usual.
    """

    id: str = ""
    at: Moment | None = msgspec.field(default=None, name="timestamp")
    type: str = ""
    content: list[GivenPart] | str = ""
    tool_calls: list[UsualToolCall] = msgspec.field(default_factory=list, name="toolCalls")
    patch: UsualPatch | None = msgspec.field(default=None, name="$set")
    display_content: None = msgspec.field(default=None, name="displayContent")
    rewind_to: None = msgspec.field(default=None, name="$rewindTo")
    session_id: None = msgspec.field(default=None, name="sessionId")


USUAL = msgspec.json.Decoder(UsualRecord)
_record = msgspec.json.Decoder(Record)


def decode_record(line: Line) -> tuple[Record | None, bool]:
    """Decode a line, and say whether it is bad."""
    return decode_or_mend(line, _record, is_known)


def read_document(open_file: Callable[[], SessionBytes], pause: Callable[[float], None]) -> tuple[Record, int, int]:
    """Read a session that is one object; its size in bytes and the file's mtime (ns) come with it.

    Raises SessionVanished, and SessionUnreadable when it is absurdly large or stays half-written.
    """
    reason = ""
    for attempt in range(READ_TRIES):
        if attempt:
            pause(READ_PAUSE_SECONDS)
        with open_file() as source:
            if source.size > MAX_DOCUMENT_BYTES:
                raise SessionUnreadable(
                    f"cannot read {source.path}: it is one object of {source.size} bytes, the most is"
                    f" {MAX_DOCUMENT_BYTES}"
                )
            data = b"".join(source.chunks())
            reason = f"cannot read {source.path}: it has {len(data)} bytes, and they are no JSON object"
            record = _decode(data)
            if record is not None:
                return record, len(data), source.mtime_ns
    raise SessionUnreadable(reason, remedy="if the agent is writing it just now, the next look will see the whole")


def parse_message(raw: Raw) -> Record | None:
    """Decode one of a list of messages; None for anything but an object."""
    return _decode(raw)


def parse_header(record: Record) -> Header | None:
    """Read what names the session; None when nothing does, or nothing that can be shown and typed."""
    named = as_text(record.session_id)
    if named is None or not is_usable_id(named):
        return None
    kind = as_text(record.kind)
    return Header(canonical_thread_id(AGENT, named), kind == "subagent", parse_instant(record.start_time))


def is_known(record: Record) -> bool:
    """Tell a record that this format has from any other object."""
    return bool(is_message(record) or record.patch or record.session_id or record.rewind_to)


def is_message(record: Record) -> bool:
    """Tell a message: only they have a text as id."""
    return bool(record.id) and bytes(memoryview(record.id)[:1]) == b'"'


def patched(record: Record) -> Record:
    """Return the header members that a patch sets, or the header itself."""
    return (_decode(record.patch) or Record()) if record.patch else record


def record_time(record: Record) -> float | None:
    """Return when a record was written; None where it does not say (a summary that is added later)."""
    if is_message(record):
        return parse_instant(record.timestamp)
    members = patched(record)
    return parse_instant(members.last_updated) or parse_instant(members.start_time)


def listed(raw: Raw) -> list[Record]:
    """Decode a list of messages, whatever is none of them left out."""
    return [record for value in as_list(raw) if (record := _decode(value)) is not None and is_message(record)]


def is_context(record: Record) -> bool:
    """Tell the message with which the program tells the model where it is."""
    return _starts_with(record, CONTEXT_MARKER)


def is_summary(record: Record) -> bool:
    """Tell the message that stands for what was compressed away."""
    return _starts_with(record, SUMMARY_MARKER)


def _starts_with(record: Record, marker: str) -> bool:
    # the marker is in the first bytes if anywhere: nothing is decoded for the other messages
    if marker.encode() not in bytes(memoryview(record.content)[:256]):
        return False
    texts = parse_content(record.content).texts
    return bool(texts) and texts[0].lstrip().startswith(marker)


def _decode(data: Raw | bytes) -> Record | None:
    try:
        return _record.decode(data)
    except UNREADABLE:
        return None
