"""One line of a session in the generic format as a row (README, "Any other agent"), and what its session row says.

Rows of the chat completions API ({"role", "content", "tool_calls"}) are taken too: people have them lying about.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Annotated

import msgspec
from msgspec import UNSET, Raw, UnsetType

from memoryd.sources.calls import call_text
from memoryd.sources.codex_records import parse_memory_mode
from memoryd.sources.decoding import decode_line
from memoryd.sources.identity import Moment, canonical_thread_id, is_usable_id, parse_instant
from memoryd.sources.items import MemoryMode, SessionKind
from memoryd.sources.jsonl import Line
from memoryd.sources.rawjson import as_fields, as_int, as_list, as_number, as_text, is_text, is_true

AGENT = "generic"
SESSION = "session"
USER, ASSISTANT, CALL, OUTPUT, CONTEXT, OTHER_AGENT, DEVELOPER = (
    "user",
    "assistant",
    "tool_call",
    "tool_output",
    "context",
    "other_agent",
    "developer",
)
TYPES = frozenset({USER, ASSISTANT, CALL, OUTPUT, CONTEXT, OTHER_AGENT, SESSION})
SPOKEN = TYPES - {SESSION}
ROLES = {  # role of the chat completions API: type of this format
    "user": USER,
    "assistant": ASSISTANT,
    "tool": OUTPUT,
    "function": OUTPUT,
    "system": DEVELOPER,
    "developer": DEVELOPER,
}
KINDS = {kind.value: kind for kind in (SessionKind.INTERACTIVE, SessionKind.NONINTERACTIVE, SessionKind.SUBAGENT)}
NAMELESS_TOOL = "tool"
MEDIA = ("image", "audio", "video")  # as they stand in the types of parts: image_url, input_audio, ...
MILLISECONDS_FROM = 1e11  # as seconds this is the year 5138


class Row(msgspec.Struct, frozen=True, gc=False):
    """One row: its type (empty when nobody knows it), its members as written, its id, its time and its line.

    `name` is what it calls itself, for the count of unknown rows.
    """

    type: str
    name: str
    fields: dict[str, Raw]
    row_id: str | None
    at: float | None
    ordinal: int
    is_damaged: bool


@dataclass(frozen=True, slots=True)
class SessionRow:
    """What a session row says; None where it says nothing."""

    thread_id: str | None
    kind: SessionKind
    cwd: str | None
    git_branch: str | None
    parent_id: str | None
    started_at: float | None
    memory_mode: MemoryMode | None
    agent: str | None


class UsualPart(msgspec.Struct, gc=False):
    """A part of a content; what an image holds is passed over."""

    type: str
    text: str = ""


class UsualRow(msgspec.Struct, gc=False):
    """A row of this format as it is nearly always written, decoded in one go: fastest in the order of its members here.

    What is declared as null mostly rows of the chat completions API have: with a value there the row is not usual.
    """

    type: str
    id: str | None = None
    tool: str | None = None
    text: str | UnsetType = UNSET
    content: str | list[UsualPart] = ""
    exit_code: Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)] | None = None
    call_id: str | None = None
    final: bool | None = None
    at: Moment | None = None
    cwd: str | None = None
    external: bool = False
    name: None = None
    role: None = None
    timestamp: None = None
    tool_calls: None = None
    tool_call_id: None = None


USUAL = msgspec.json.Decoder(UsualRow)
_fields = msgspec.json.Decoder(dict[str, Raw])


def decode_row(line: Line) -> Row | None:
    """Decode a line; None when it is blank, over the cap, or no JSON object even for a lenient decoder."""
    decoded = decode_line(line, _fields, _is_whole)
    fields = decoded.value
    if fields is None:
        return None
    named, role = as_text(fields.get("type")) or "", as_text(fields.get("role")) or ""
    kind = named if named in TYPES else ROLES.get(role, "")
    row_id = as_text(fields.get("id"))
    return Row(
        type=kind,
        name=named or role or "row",
        fields=fields,
        row_id=row_id if kind != SESSION else None,
        at=_instant(fields),
        ordinal=line.index,
        is_damaged=decoded.is_damaged,
    )


def key_of(row_id: str, kind: str, words: str) -> str:
    """Return what a row and its copy in a fork have alike: the id alone does not do, since many count from 1."""
    return sha256(f"{row_id}\n{kind}\n{words}".encode("utf-8", "replace")).hexdigest()


def key_of_row(row: Row | None) -> str | None:
    """Return the same of any row; None of one without an id, or in which nothing is said or done."""
    if row is None or row.row_id is None or row.type not in SPOKEN:
        return None
    return key_of(row.row_id, row.type, content(row.fields)[0])


def parse_session(row: Row) -> SessionRow:
    """Read a session row; a kind that nobody knows counts as noninteractive."""
    fields = row.fields
    named, parent, kind = as_text(fields.get("id")), as_text(fields.get("parent_id")), as_text(fields.get("kind"))
    return SessionRow(
        thread_id=canonical_thread_id(AGENT, named) if named and is_usable_id(named) else None,
        kind=SessionKind.INTERACTIVE if kind is None else KINDS.get(kind.lower(), SessionKind.NONINTERACTIVE),
        cwd=as_text(fields.get("cwd")) or None,
        git_branch=as_text(fields.get("git_branch")) or None,
        parent_id=canonical_thread_id(AGENT, parent) if parent and is_usable_id(parent) else None,
        started_at=instant(fields.get("started_at")) or row.at,
        memory_mode=parse_memory_mode(fields.get("memory_mode")),
        agent=as_text(fields.get("agent")) or None,
    )


def instant(raw: Raw | None) -> float | None:
    """Return epoch seconds of an ISO 8601 text or of a number, which is seconds or, when it is huge, milliseconds."""
    number = as_number(raw)
    if number is None:
        return parse_instant(raw)
    seconds = number / 1000 if number >= MILLISECONDS_FROM else number
    return seconds if 0 < seconds < MILLISECONDS_FROM else None


def content(fields: dict[str, Raw]) -> tuple[str, list[str]]:
    """Return a row's words (`text`, else `content`: a string or parts) and the medium of each part that has none."""
    raw = fields.get("text") or fields.get("content")
    if raw and is_text(raw):
        return _unless_blank(as_text(raw) or ""), []
    texts: list[str] = []
    media: list[str] = []
    for part in as_list(raw):
        inner = as_fields(part)
        kind = as_text(inner.get("type")) or ""
        if medium := _medium(kind):
            media.append(medium)
        elif text := (as_text(part) if is_text(part) else as_text(inner.get("text"))):
            texts.append(text)
    return _unless_blank("\n\n".join(texts)), media


def usual_content(parts: str | list[UsualPart]) -> tuple[str, list[str]]:
    """Return the same of a content that is decoded already."""
    if isinstance(parts, str):
        return parts, []
    kinds = [_medium(part.type) for part in parts]
    texts = [part.text for part, medium in zip(parts, kinds, strict=True) if medium is None and part.text]
    return "\n\n".join(texts), [medium for medium in kinds if medium is not None]


def spoken(row: Row, text: str) -> Iterator[tuple[UsualRow, str]]:
    """Yield what is said or done in any row but a usual one, with its words; a message may hold calls, too."""
    fields, is_external = row.fields, is_true(row.fields.get("external"))
    tool = as_text(fields.get("tool"))
    call_id = as_text(fields.get("call_id"))
    if row.type == CALL:
        words = text or call_text(tool or NAMELESS_TOOL, fields.get("arguments"))
        yield UsualRow(CALL, tool=tool, call_id=call_id, external=is_external), words
    elif row.type == OUTPUT:
        yield (
            UsualRow(
                OUTPUT,
                tool=tool or as_text(fields.get("name")),
                call_id=call_id or as_text(fields.get("tool_call_id")),
                exit_code=as_int(fields.get("exit_code")),
                external=is_external,
            ),
            text,
        )
    else:
        final = bytes(fields.get("final", b""))
        yield UsualRow(row.type, id=row.row_id, final=final == b"true" if final in (b"true", b"false") else None), text
    for raw in as_list(fields.get("tool_calls")) if row.type == ASSISTANT else ():
        call = as_fields(raw)
        function = as_fields(call.get("function"))
        tool = as_text(function.get("name"))
        words = call_text(tool or NAMELESS_TOOL, function.get("arguments"))
        yield UsualRow(CALL, tool=tool, call_id=as_text(call.get("id")), external=is_external), words


def _unless_blank(text: str) -> str:
    return "" if text.isspace() else text


@lru_cache(maxsize=256)  # a session has few types of parts, and many parts of each
def _medium(kind: str) -> str | None:
    return next((medium for medium in MEDIA if medium in kind), None)


def _instant(fields: dict[str, Raw]) -> float | None:
    return instant(fields.get("at") or fields.get("timestamp"))


def _is_whole(fields: dict[str, Raw]) -> bool:
    """Tell a row from an object that merely ends one, such as the arguments of a call."""
    return as_text(fields.get("type")) in TYPES or as_text(fields.get("role")) in ROLES
