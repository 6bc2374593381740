"""One line of a Codex session as a record: the envelope is decoded, the payload stays raw; and what session_meta says.

Files of 2025 up to 0.29 hold payloads without the envelope and `record_type` state lines; both are read here.
"""

from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Raw

from memoryd.sources.codex_limits import UsualLimits
from memoryd.sources.decoding import decode_line
from memoryd.sources.identity import Moment, canonical_thread_id, is_usable_id, parse_instant
from memoryd.sources.items import MemoryMode, SessionKind
from memoryd.sources.jsonl import Line
from memoryd.sources.rawjson import as_fields, as_int, as_text, is_true

AGENT = "codex"
SESSION_META, RESPONSE_ITEM, STATE = "session_meta", "response_item", "state"
INTERACTIVE_SOURCES = frozenset({"cli", "vscode"})
INTERACTIVE_CUSTOMS = frozenset({"atlas", "chatgpt"})
MEMORY_RUN = "memory_consolidation"


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record: its type, its payload as it was written, when it was written, and which it is in the session."""

    type: str
    payload: Raw
    at: float | None
    ordinal: int
    is_compaction: bool
    is_damaged: bool = False


@dataclass(frozen=True, slots=True)
class SessionMeta:
    """What a session_meta record says; `source` has been judged, everything else is as written."""

    thread_id: str
    kind: SessionKind
    cwd: str | None
    git_branch: str | None
    forked_from: str | None
    parent_id: str | None
    started_at: float | None
    memory_mode: MemoryMode | None
    originator: str | None
    history_starts_at: int | None
    has_history_base: bool
    ephemeral: bool


class _Envelope(msgspec.Struct):
    type: Raw = Raw()
    payload: Raw = Raw()
    timestamp: Raw = Raw()
    ordinal: Raw = Raw()
    metadata: Raw = Raw()
    record_type: Raw = Raw()


class ContentPart(msgspec.Struct, gc=False):
    """A part of a message or an output; what else it holds (an image as base64) is passed over."""

    type: str = ""
    text: str | None = None


class Payload(msgspec.Struct, gc=False):
    """What is asked of the payloads that nearly all lines hold, whatever their type; the rest is passed over."""

    type: str = ""
    role: str = ""
    content: list[ContentPart] | str | None = None
    phase: str | None = None
    id: str | None = None
    said: Raw = msgspec.field(default=Raw(), name="internal_chat_message_metadata_passthrough")
    name: str | None = None
    namespace: str | None = None
    arguments: str | None = None
    call_id: str | None = None
    output: list[ContentPart] | str | None = None
    cwd: str | None = None
    rate_limits: UsualLimits | None = None


class UsualRecord(msgspec.Struct, gc=False):
    """A line as all versions since the envelope write it, decoded in one go."""

    type: str
    payload: Payload
    at: Moment = msgspec.field(name="timestamp")
    ordinal: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None
    metadata: Raw = Raw()

    @property
    def is_compaction(self) -> bool:
        """Whether the record repeats older ones in short."""
        return bool(self.metadata) and is_true(as_fields(self.metadata).get("compaction_output"))


USUAL = msgspec.json.Decoder(UsualRecord)
_envelope = msgspec.json.Decoder(_Envelope)


def decode_record(line: Line) -> Record | None:
    """Decode a line; None when it is blank, over the cap, or no JSON object even for a lenient decoder."""
    decoded = decode_line(line, _envelope, _is_whole)
    if decoded.value is None:
        return None
    return _record(decoded.value, decoded.data, line.index, is_damaged=decoded.is_damaged)


def parse_meta(record: Record) -> SessionMeta | None:
    """Read a session_meta record; None when it names no thread, or none by a name that can be shown and typed."""
    fields = as_fields(record.payload)
    named = as_text(fields.get("id")) or as_text(fields.get("session_id"))
    if named is None or not is_usable_id(named):
        return None
    source = fields.get("source")
    parent = as_text(fields.get("parent_thread_id")) or _spawning_thread(source)
    thread_source = as_text(fields.get("thread_source"))
    return SessionMeta(
        thread_id=canonical_thread_id(AGENT, named),
        kind=_judge(source, thread_source, has_parent=parent is not None),
        cwd=as_text(fields.get("cwd")) or None,
        git_branch=as_text(as_fields(fields.get("git")).get("branch")) or None,
        forked_from=_thread(as_text(fields.get("forked_from_id"))),
        parent_id=_thread(parent),
        started_at=parse_instant(fields.get("timestamp")),
        memory_mode=parse_memory_mode(fields.get("memory_mode")),
        originator=as_text(fields.get("originator")),
        history_starts_at=as_int(fields.get("subagent_history_start_ordinal")),
        has_history_base=bool(as_fields(fields.get("history_base"))),
        ephemeral=is_true(fields.get("ephemeral")),
    )


def parse_memory_mode(raw: Raw | None) -> MemoryMode | None:
    """Read a memory_mode; a word that nobody knows yet counts as disabled, since the doubt is about privacy."""
    text = as_text(raw)
    if text is None:
        return None
    try:
        return MemoryMode(text.lower())
    except ValueError:
        return MemoryMode.DISABLED


def _is_whole(envelope: _Envelope) -> bool:
    """Tell a record from an object that merely ends one: every record since the envelope has both."""
    return bool(envelope.timestamp and envelope.type)


def _record(envelope: _Envelope, data: bytes, index: int, *, is_damaged: bool) -> Record:
    kind = as_text(envelope.type)
    payload = envelope.payload
    if not payload:
        has_envelope = bool(envelope.timestamp or envelope.ordinal) and kind is not None
        payload = Raw(b"{}") if has_envelope else Raw(data)
        kind = kind if has_envelope else _bare_type(envelope, kind)
    ordinal = as_int(envelope.ordinal)
    metadata = envelope.metadata
    return Record(
        type=kind or "",
        payload=payload,
        at=parse_instant(envelope.timestamp),
        ordinal=index if ordinal is None or ordinal < 0 else ordinal,
        is_compaction=bool(metadata) and is_true(as_fields(metadata).get("compaction_output")),
        is_damaged=is_damaged,
    )


def _bare_type(envelope: _Envelope, kind: str | None) -> str:
    if envelope.record_type:
        return STATE
    return SESSION_META if kind is None else RESPONSE_ITEM


def _judge(source: Raw | None, thread_source: str | None, *, has_parent: bool) -> SessionKind:
    """Decide who drove a session; no source at all is the terminal of 2025, thus interactive."""
    name, value = _source_name(source)
    if MEMORY_RUN in (value, thread_source):
        return SessionKind.MEMORY_RUN
    if name in ("subagent", "internal") or thread_source == "subagent" or has_parent:
        return SessionKind.SUBAGENT
    is_interactive = name in INTERACTIVE_SOURCES or (name == "custom" and value in INTERACTIVE_CUSTOMS)
    return SessionKind.INTERACTIVE if is_interactive else SessionKind.NONINTERACTIVE


def _source_name(source: Raw | None) -> tuple[str, str | None]:
    """Split `source` into its name and, for the object forms, its value when that is one word."""
    if not source or bytes(source) == b"null":
        return "vscode", None
    word = as_text(source)
    if word is not None:
        return word.lower(), None
    for name, value in as_fields(source).items():
        inner = as_text(value)
        return name, inner if inner is not None else as_text(as_fields(value).get("other"))
    return "unknown", None


def _spawning_thread(source: Raw | None) -> str | None:
    spawn = as_fields(as_fields(as_fields(source).get("subagent")).get("thread_spawn"))
    return as_text(spawn.get("parent_thread_id"))


def _thread(named: str | None) -> str | None:
    return canonical_thread_id(AGENT, named) if named else None
