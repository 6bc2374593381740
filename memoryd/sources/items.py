"""The values that every reader gives out, whatever the agent: files, heads, tails, items, limits, citations."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

from memoryd.sources.citations import CitationEntry


class ItemKind(StrEnum):
    """Who or what an item comes from; evidence is budgeted by it."""

    HUMAN = "human"
    ASSISTANT_FINAL = "assistant_final"
    ASSISTANT_COMMENTARY = "assistant_commentary"
    OTHER_AGENT = "other_agent"
    HARNESS_CONTEXT = "harness_context"
    TOOL_CALL = "tool_call"
    TOOL_OUTPUT = "tool_output"


# before Python 3.12 to look a member up in its class takes longer than to make an item
HUMAN, ASSISTANT_FINAL, ASSISTANT_COMMENTARY, OTHER_AGENT, HARNESS_CONTEXT, TOOL_CALL, TOOL_OUTPUT = ItemKind


class SessionKind(StrEnum):
    """Who drove a session; only interactive ones are remembered unless the settings say more."""

    INTERACTIVE = "interactive"
    NONINTERACTIVE = "noninteractive"
    SUBAGENT = "subagent"
    MEMORY_RUN = "memory_run"


class MemoryMode(StrEnum):
    """What the agent itself says about remembering a session."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    POLLUTED = "polluted"


class Item(msgspec.Struct, frozen=True, gc=False):
    """One thing that was said or done.

    `ordinal` is the record's own ordinal when it has one, else the 0-based index of its line; `at` is epoch seconds.
    A tool call's `text` is its readable command or arguments, for a shell the command line as a person would type it.
    `external` marks content from outside the machine: web search, MCP, tool search.
    """

    kind: ItemKind
    text: str
    ordinal: int
    at: float | None = None
    cwd: str | None = None
    tool: str | None = None
    call_id: str | None = None
    exit_code: int | None = None
    external: bool = False


class SessionFile(msgspec.Struct, frozen=True, gc=False):
    """A session's file as a directory listing shows it, without opening it: its whole path, its size in bytes on disk.

    A path is a text until somebody opens it: of the thousands that a scan lists most are never opened.
    """

    agent: str
    name: str
    size: int
    mtime_ns: int

    @property
    def path(self) -> Path:
        """The path as such; of a session in a store `<store>#<session id>`."""
        return Path(self.name)


@dataclass(frozen=True, slots=True)
class SessionHead:
    """What the beginning of a session says about it; `started_at` is epoch seconds.

    `lineage` is equal for sessions that may hold copies of each other's rows (forks that do not name their parent): for
    example the id of the first row. None where forks copy nothing, or tell by themselves what is theirs.
    """

    thread_id: str
    agent: str
    kind: SessionKind
    cwd: str | None
    git_branch: str | None
    parent_id: str | None
    started_at: int | None
    memory_mode: MemoryMode
    ephemeral: bool = False
    originator: str | None = None
    lineage: str | None = None


@dataclass(frozen=True, slots=True)
class SessionTail:
    """What the end of a session says about it.

    `last_record_at` is epoch seconds; where the format has no times (`timed` is False) it is the file's mtime, which a
    mere touch moves. `record_bytes` counts decompressed bytes; `memory_mode` is None when the end does not speak of it.
    """

    last_record_at: int
    record_bytes: int
    memory_mode: MemoryMode | None
    timed: bool = True


@dataclass(frozen=True, slots=True)
class LimitWindow:
    """One rate-limit window; `resets_at` is epoch seconds, None when the record does not say."""

    used_percent: float
    window_minutes: int | None
    resets_at: int | None


@dataclass(frozen=True, slots=True)
class RateLimits:
    """A rate-limit snapshot that the agent recorded at `seen_at`; `reached` names the limit that was hit, if any."""

    seen_at: float | None
    limit_id: str | None
    windows: tuple[LimitWindow, ...]
    reached: str | None


@dataclass(frozen=True, slots=True)
class CitationSeen:
    """A message that cites memory; `message_key` is the message's own id, else a hash of its text and time."""

    message_key: str
    at: float | None
    entries: tuple[CitationEntry, ...]
    thread_ids: tuple[str, ...]
