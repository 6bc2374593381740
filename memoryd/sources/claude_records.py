"""One row of a Claude Code session: the envelope is decoded, messages, results and attachments stay raw."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from memoryd.sources.claude_messages import Message, UsualResult
from memoryd.sources.decoding import decode_line
from memoryd.sources.identity import Moment
from memoryd.sources.items import SessionKind
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.rawjson import UNREADABLE, as_fields, as_text

AGENT = "claude"
USER, ASSISTANT, ATTACHMENT, SYSTEM, LAST_PROMPT = "user", "assistant", "attachment", "system", "last-prompt"
CONVERSATION = frozenset({USER, ASSISTANT})
SUBAGENTS = "subagents"  # the folder beside a session that holds its sub-agents (since 2.1)
UUID_NAME = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
SUBAGENT_NAME = re.compile(r"agent-[\w-]{1,180}", re.ASCII)

# rows that are known and carry nothing that anybody said or did
NOISE = frozenset(
    {
        SYSTEM,
        LAST_PROMPT,
        "agent-color",
        "agent-name",
        "agent-setting",
        "ai-title",
        "atis-latch",
        "attribution-snapshot",
        "bridge-session",
        "content-replacement",
        "cost-state",
        "custom-title",
        "file-history-delta",
        "file-history-snapshot",
        "fork-context-ref",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "rewind-pointer",
        "speculation-accept",
        "summary",
        "tag",
        "task-summary",
        "tools-used",
        "worktree-state",
    }
)
NOISE_FAMILIES = ("api-request", "context-collapse", "marble-origami")

# who started the program: a terminal, an editor, the desktop application; print mode and SDKs are `sdk-*`, ...
INTERACTIVE = frozenset({"cli", "remote"})
INTERACTIVE_FAMILY = "claude-"
AUTOMATIONS = frozenset({"claude-code-github-action"})


class Row(msgspec.Struct):
    """A row's envelope. Small members are decoded at once (the wrong type reads as absent), big ones stay raw."""

    type: Any = None
    uuid: Any = None
    parent: Any = msgspec.field(default=None, name="parentUuid")
    session: Any = msgspec.field(default=None, name="sessionId")
    timestamp: Any = None
    cwd: Any = None
    branch: Any = msgspec.field(default=None, name="gitBranch")
    entrypoint: Any = None
    side_chain: Any = msgspec.field(default=None, name="isSidechain")
    meta: Any = msgspec.field(default=None, name="isMeta")
    compact_summary: Any = msgspec.field(default=None, name="isCompactSummary")
    transcript_only: Any = msgspec.field(default=None, name="isVisibleInTranscriptOnly")
    api_error: Any = msgspec.field(default=None, name="isApiErrorMessage")
    leaf: Any = msgspec.field(default=None, name="leafUuid")
    message: Raw = Raw()
    result: Raw = msgspec.field(default=Raw(), name="toolUseResult")
    origin: Raw = Raw()
    attachment: Raw = Raw()
    forked_from: Raw = msgspec.field(default=Raw(), name="forkedFrom")


class UsualAttachment(msgspec.Struct, gc=False):
    """What the program puts beside the conversation, or what a person typed while the agent was busy."""

    type: str = ""


class UsualRow(msgspec.Struct, gc=False):
    """A row as it is nearly always written, decoded in one go."""

    type: str
    at: Moment | None = msgspec.field(default=None, name="timestamp")
    message: Message | None = None
    cwd: str | None = None
    side_chain: bool = msgspec.field(default=False, name="isSidechain")
    meta: bool = msgspec.field(default=False, name="isMeta")
    compact_summary: bool = msgspec.field(default=False, name="isCompactSummary")
    transcript_only: bool = msgspec.field(default=False, name="isVisibleInTranscriptOnly")
    api_error: bool = msgspec.field(default=False, name="isApiErrorMessage")
    result: UsualResult = msgspec.field(default=None, name="toolUseResult")
    attachment: UsualAttachment | None = None


class Record(msgspec.Struct):
    """A row as values of the types they should have; `ordinal` is the 0-based index of its line."""

    row: Row
    ordinal: int
    type: str
    is_damaged: bool = False

    @property
    def at(self) -> float | None:
        """When the row was written, in epoch seconds; rows of bookkeeping do not say."""
        return _instant(self.row.timestamp)

    @property
    def uuid(self) -> str | None:
        """The row's own id; rows of bookkeeping have none."""
        return _text(self.row.uuid)

    @property
    def parent(self) -> str | None:
        """The id of the row that this one follows; None for the first, and after a compaction."""
        return _text(self.row.parent)

    @property
    def session(self) -> str | None:
        """The session that the row says it belongs to; in forks to 2.0 the one it was copied from."""
        return _text(self.row.session)

    @property
    def leaf(self) -> str | None:
        """The end of the conversation as the program sees it."""
        return _text(self.row.leaf)

    @property
    def cwd(self) -> str | None:
        """The directory that the agent worked in."""
        return _text(self.row.cwd)

    @property
    def branch(self) -> str | None:
        """The git branch of that directory."""
        return _text(self.row.branch)

    @property
    def entrypoint(self) -> str | None:
        """How the program was started; files to 2.0 do not say."""
        return _text(self.row.entrypoint)

    @property
    def is_side_chain(self) -> bool:
        """Whether a sub-agent's row stands here (to 1.0 they stand among the session's own)."""
        return self.row.side_chain is True

    @property
    def is_meta(self) -> bool:
        """Whether the program wrote the row for the model, not the person."""
        return self.row.meta is True

    @property
    def is_compaction(self) -> bool:
        """Whether the row repeats older ones in short."""
        return self.row.compact_summary is True or self.row.transcript_only is True

    @property
    def is_api_error(self) -> bool:
        """Whether the row tells of a failed request in the assistant's name."""
        return self.row.api_error is True

    @property
    def speaker(self) -> str:
        """Who wrote a user row, as the row says (human, task-notification, peer, ...); empty when it does not."""
        return origin_kind(self.row.origin)


USUAL = msgspec.json.Decoder(UsualRow)
_row = msgspec.json.Decoder(Row)


def decode_record(line: Line) -> Record | None:
    """Decode a line; None when it is blank, over the cap, or no JSON object even for a lenient decoder."""
    try:
        return _record(_row.decode(line.data or b""), line.index)  # nearly every line; what follows is for the others
    except UNREADABLE:
        decoded = decode_line(line, _row, _is_whole)
    return None if decoded.value is None else _record(decoded.value, line.index, is_damaged=decoded.is_damaged)


def last_time(source: SessionBytes) -> float | None:
    """Return the time of the last row that has one: the program ends sessions with rows that have none."""
    times = (record.at for record in records(source.lines_backwards()))
    return next((at for at in times if at is not None), None)


def records(lines: Iterator[Line]) -> Iterator[Record]:
    """Yield the rows of those lines that can be decoded."""
    return (record for line in lines if (record := decode_record(line)) is not None)


def origin_kind(raw: Raw | None) -> str:
    """Return the kind of an `origin` member; empty when there is none."""
    return as_text(as_fields(raw).get("kind")) or "" if raw else ""


def is_noise(kind: str) -> bool:
    """Say whether rows of this type are known to carry nothing that anybody said or did."""
    return kind in NOISE or kind.startswith(NOISE_FAMILIES)


@lru_cache(maxsize=256)
def is_known(kind: str) -> bool:
    """Say whether the program writes rows of this type."""
    return kind in CONVERSATION or kind == ATTACHMENT or is_noise(kind)


def session_kind(entrypoint: str | None) -> SessionKind:
    """Judge who drove a session; files to 2.0 do not say, and count as a person's."""
    if not entrypoint or entrypoint in INTERACTIVE:
        return SessionKind.INTERACTIVE
    is_program_of_a_person = entrypoint.startswith(INTERACTIVE_FAMILY) and entrypoint not in AUTOMATIONS
    return SessionKind.INTERACTIVE if is_program_of_a_person else SessionKind.NONINTERACTIVE


def is_subagent(path: Path) -> bool:
    """Say whether a file holds a sub-agent's session, by its name."""
    return SUBAGENT_NAME.fullmatch(path.stem) is not None


def owner_in_path(path: Path) -> str | None:
    """Return the session in whose folder a sub-agent's file lies; None where it lies beside the sessions (2.0)."""
    for below, folder in pairwise(path.parents):
        if below.name == SUBAGENTS and UUID_NAME.fullmatch(folder.name):
            return folder.name
    return None


def _record(row: Row, index: int, *, is_damaged: bool = False) -> Record:
    return Record(row, index, row.type if isinstance(row.type, str) else "", is_damaged)


def _is_whole(row: Row) -> bool:
    """Tell a row from an object that merely ends one: every row says its type and its session."""
    return bool(row.type and row.session)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _instant(stamp: object) -> float | None:
    try:
        moment = datetime.fromisoformat(stamp) if isinstance(stamp, str) else None
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() if moment else None
