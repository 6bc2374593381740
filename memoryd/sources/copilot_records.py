"""One line of a Copilot CLI session as an event, its data still raw; and which types of events there are.

Sources: sessions of 1.0.102, and the event schema that the Copilot SDK publishes (session-events.schema.json).
"""

import msgspec
from msgspec import Raw

from memoryd.sources.decoding import decode_line
from memoryd.sources.identity import Moment, instant_of, parse_instant
from memoryd.sources.jsonl import Line
from memoryd.sources.rawjson import UNREADABLE, as_fields, as_text

AGENT = "copilot"
START, RESUME, CONTEXT_CHANGED = "session.start", "session.resume", "session.context_changed"
USER, ASSISTANT = "user.message", "assistant.message"
TOOL_START, TOOL_COMPLETE = "tool.execution_start", "tool.execution_complete"
SPOKEN = frozenset({USER, ASSISTANT, TOOL_START, TOOL_COMPLETE})
CONTEXTUAL = frozenset({START, RESUME, CONTEXT_CHANGED})
REWIND = "session.snapshot_rewind"

# known, and no evidence: the reason under which they are counted
UNWANTED = {
    "system.message": "developer",
    "system.notification": "harness",
    "skill.invoked": "skill",
    "session.compaction_complete": "compaction",
    "session.handoff": "compaction",
    "session.import_legacy": "imported",  # a session of the layout before, whole in one event
    "session.binary_asset": "image",
    "assistant.reasoning": "reasoning",
}
# known, and nothing in them was said or done
NOISE = frozenset({
    "abort", "model.call_failure", "model.call_finished", "pending_messages.modified", "tool_search.activated",
    *(f"session.{name}" for name in (
        "error", "idle", "info", "warning", "title_changed", "model_change", "mode_changed", "mode_notice_delivered",
        "plan_changed", "todos_changed", "workspace_file_changed", "truncation", "shutdown", "usage_info",
        "usage_record", "usage_checkpoint", "context_cleared", "compaction_start", "task_complete",
        "remote_steerable_changed", "schedule_created", "schedule_cancelled", "schedule_rearmed",
        "autopilot_objective_changed", "limits_changed", "permissions_changed", "fusion_route_started",
        "fusion_route_failed", "fusion_resolved", "fusion_completed", "snapshot_rewind", "tools_updated",
        "background_tasks_changed", "skills_loaded", "custom_agents_updated", "mcp_servers_loaded",
        "mcp_server_status_changed", "extensions_loaded", "auto_mode_resolved", "managed_settings_resolved",
    )),
    *(f"assistant.{name}" for name in (
        "turn_start", "turn_end", "intent", "idle", "usage", "message_start", "message_delta", "reasoning_delta",
        "streaming_delta", "tool_call_delta", "server_tool_progress", "fusion_phase_started",
        "fusion_phase_completed", "fusion_phase_failed",
    )),
    *(f"tool.{name}" for name in ("user_requested", "execution_partial_result", "execution_progress")),
    *(f"subagent.{name}" for name in ("started", "configured", "completed", "failed", "selected", "deselected")),
    *(f"hook.{name}" for name in ("start", "end", "progress")),
    *(f"{asked}.{state}" for state in ("requested", "completed") for asked in (
        "permission", "user_input", "elicitation", "sampling", "external_tool", "exit_plan_mode",
        "auto_mode_switch", "session_limits_exhausted",
    )),
    *(f"command.{name}" for name in ("queued", "execute", "completed")),
})  # fmt: skip


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event: its type, its data as written, its own id, when it was written, and which line it is.

    `of_sub_agent`: it happened in an agent that this session had started.
    """

    type: str
    data: Raw
    event_id: str | None
    at: float | None
    ordinal: int
    of_sub_agent: bool
    is_damaged: bool

    @property
    def row_id(self) -> str | None:
        """The id by which copies are known; a fork has events of its own about itself."""
        return self.event_id if self.type in SPOKEN else None


class UsualShell(msgspec.Struct, frozen=True, gc=False):
    """How a command ended."""

    exit_code: int | None = msgspec.field(default=None, name="exitCode")


class UsualResult(msgspec.Struct, frozen=True, gc=False):
    """What a tool gave back; the longer form of it for the screen is passed over."""

    content: str = ""
    contents: Raw = Raw()
    binary: Raw = msgspec.field(default=Raw(), name="binaryResultsForLlm")


class UsualData(msgspec.Struct, gc=False):
    """What is asked of the data of what the assistant said and its tools did; the rest is passed over."""

    content: str = ""
    message_id: str | None = msgspec.field(default=None, name="messageId")
    phase: str | None = None
    parent_call: str | None = msgspec.field(default=None, name="parentToolCallId")
    call_id: str | None = msgspec.field(default=None, name="toolCallId")
    tool: str | None = msgspec.field(default=None, name="toolName")
    arguments: Raw = Raw()
    server: Raw = msgspec.field(default=Raw(), name="mcpServerName")
    result: UsualResult = UsualResult()
    shell: UsualShell = msgspec.field(default=UsualShell(), name="shellExecution")


class UsualEvent(msgspec.Struct, gc=False):
    """An event as it is nearly always written, decoded in one go."""

    type: str
    data: UsualData
    at: Moment = msgspec.field(name="timestamp")
    id: str | None = None
    agent_id: str | None = msgspec.field(default=None, name="agentId")


class _Usual(msgspec.Struct, gc=False):
    """The envelope as every version writes it; it spares most lines a second look at each member."""

    type: str
    data: Raw
    timestamp: str
    id: str | None = None
    agentId: str | None = None  # noqa: N815 - as the format spells it


class _Envelope(msgspec.Struct):
    type: Raw = Raw()
    data: Raw = Raw()
    id: Raw = Raw()
    timestamp: Raw = Raw()
    agentId: Raw = Raw()  # noqa: N815 - as the format spells it


USUAL = msgspec.json.Decoder(UsualEvent)
_usual = msgspec.json.Decoder(_Usual)
_envelope = msgspec.json.Decoder(_Envelope)


def decode_event(line: Line) -> Event | None:
    """Decode a line; None when it is blank, over the cap, or no JSON object even for a lenient decoder."""
    if line.data:
        try:
            usual = _usual.decode(line.data)
        except UNREADABLE:
            pass  # no JSON, or an envelope with something else in it
        else:
            at = instant_of(usual.timestamp)
            return Event(usual.type, usual.data, usual.id, at, line.index, bool(usual.agentId), is_damaged=False)
    decoded = decode_line(line, _envelope, _is_whole)
    if decoded.value is None:
        return None
    envelope = decoded.value
    return Event(
        type=as_text(envelope.type) or "",
        data=envelope.data,
        event_id=as_text(envelope.id),
        at=parse_instant(envelope.timestamp),
        ordinal=line.index,
        of_sub_agent=bool(as_text(envelope.agentId)),
        is_damaged=decoded.is_damaged,
    )


def working_context(event: Event) -> dict[str, Raw]:
    """Return the directory and git context that an event tells; empty for events that tell none."""
    if event.type in (START, RESUME):
        return as_fields(as_fields(event.data).get("context"))
    return as_fields(event.data) if event.type == CONTEXT_CHANGED else {}


def _is_whole(envelope: _Envelope) -> bool:
    return bool(envelope.type and envelope.timestamp)
