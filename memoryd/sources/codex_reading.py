"""The stream of items of one Codex session: record by record, with what is seen on the way gathered in the Reading."""

from collections.abc import Callable

from msgspec import Raw
from msgspec.structs import replace

from memoryd.sources.codex_limits import LatestLimits, parse_limits
from memoryd.sources.codex_messages import (
    Message,
    content_parts,
    environment_cwd,
    message_items,
    parse_message,
    part_text,
    usual_message,
)
from memoryd.sources.codex_records import (
    RESPONSE_ITEM,
    SESSION_META,
    STATE,
    USUAL,
    Payload,
    Record,
    SessionMeta,
    UsualRecord,
    decode_record,
    parse_meta,
)
from memoryd.sources.codex_tools import (
    CALL_TYPES,
    OUTPUT_TYPES,
    OpenCalls,
    call_item,
    output_item,
    tool_search_output_item,
    usual_call,
    usual_output,
)
from memoryd.sources.codex_turns import ROLLED_BACK, CopiedRows, Withdrawn, turn_event
from memoryd.sources.items import ASSISTANT_COMMENTARY, ASSISTANT_FINAL, OTHER_AGENT, Item
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.parts import Spot
from memoryd.sources.rawjson import as_fields, as_text
from memoryd.sources.reader import Reading, Stretches
from memoryd.sources.stream import ItemStream

# records and payloads that are known and carry no evidence; their texts are never built
COMPACTED = "compacted"
SKIPPED_RECORDS = frozenset({COMPACTED, "world_state", "token_usage_record", STATE})
SKIPPED_PAYLOADS = {
    "reasoning": "reasoning",
    "image_generation_call": "image",
    "compaction": "compaction",
    "compaction_summary": "compaction",
    "context_compaction": "compaction",
    "compaction_trigger": "compaction",
    "additional_tools": "additional_tools",
    "ghost_snapshot": "ghost_snapshot",
}
PHASES = {"commentary": ASSISTANT_COMMENTARY, "final_answer": ASSISTANT_FINAL}


def read_items(source: SessionBytes, reading: Reading) -> Stretches:
    """Yield a session's items in the order of the file and fill `reading`.

    A first pass over the bytes looks for rollbacks; only a session that has some is decoded twice. Raises
    SessionWithoutItems at the end when there were bytes and nothing in them was understood.
    """
    withdrawn = Withdrawn(source.lines()) if source.contains(f'"{ROLLED_BACK}"'.encode()) else Withdrawn()
    session = _Session(ItemStream(reading), withdrawn)
    yield from session.stream.rows(source, USUAL, session.usual, session.other)
    reading.rate_limits = session.limits.best
    yield session.stream.finish(source)


class _Session:
    """What must be remembered from one record to the next."""

    def __init__(self, stream: ItemStream, withdrawn: Withdrawn) -> None:
        self.stream = stream
        self.limits = LatestLimits()
        self._reading = stream.reading
        self._withdrawn = withdrawn
        self._own: SessionMeta | None = None
        self._copied: CopiedRows | None = None
        self._cwd: str | None = None
        self._cwd_is_of_turn = False
        self._calls = OpenCalls()
        self._is_own_part = False  # nothing from here on to the next session_meta is a copy
        self._responses: dict[str, Callable[[dict[str, Raw], Spot], None]] = {
            "message": self._message,
            "agent_message": self._other_agent,
            "tool_search_output": self._found_tools,
            **dict.fromkeys(CALL_TYPES, self._call),
            **dict.fromkeys(OUTPUT_TYPES, self._output),
        }
        self._usual_records: dict[str, Callable[[UsualRecord, int], bool]] = {
            RESPONSE_ITEM: self._usual_response,
            "event_msg": self._usual_event,
            "turn_context": self._usual_context,
            **dict.fromkeys(SKIPPED_RECORDS, self._usual_noise),
        }
        self._usual_responses: dict[str, Callable[[Payload, Spot], bool]] = {
            "message": self._usual_message,
            "function_call": self._usual_call,
            **dict.fromkeys(OUTPUT_TYPES, self._usual_output),
        }

    def usual(self, record: UsualRecord, index: int) -> bool:
        """Take a record that is as nearly all are; others, and what may be a copy, are turned down."""
        reader = self._usual_records.get(record.type) if self._is_own_part else None
        if reader is None or not reader(record, index):
            return False
        self.stream.last = record
        return True

    def _usual_response(self, record: UsualRecord, index: int) -> bool:
        """Take what was said or done."""
        payload = record.payload
        kind = payload.type
        if self._withdrawn.has_any and index in self._withdrawn:
            self._reading.dropped["rolled_back"] += 1
            return True
        reason = "compaction" if record.metadata and record.is_compaction else SKIPPED_PAYLOADS.get(kind)
        if reason is not None:
            self._reading.dropped[reason] += 1
            return True
        reader = self._usual_responses.get(kind)
        if reader is None:
            return False
        ordinal = index if record.ordinal is None else record.ordinal
        return reader(payload, Spot(ordinal, record.at.timestamp(), self._cwd))

    def _usual_event(self, record: UsualRecord, index: int) -> bool:
        del index
        payload = record.payload
        if payload.rate_limits is not None and payload.type == "token_count":
            self.limits.see_usual(payload.rate_limits, record.at)
        return True

    def _usual_context(self, record: UsualRecord, index: int) -> bool:
        del index
        self._set_cwd(record.payload.cwd, of_turn=True)
        return True

    def _usual_noise(self, record: UsualRecord, index: int) -> bool:
        del index
        if record.type == COMPACTED:
            self._reading.dropped["compaction"] += 1
        return True

    def other(self, line: Line) -> None:
        """Take any other line, member by member."""
        last = self.stream.last
        if last is not None and last.at is not None and self._copied is not None:
            self._copied.pass_by(last.at.timestamp())
        self._record(line)
        self._is_own_part = self._copied is not None and not self._copied.may_cover

    def _record(self, line: Line) -> None:
        record = decode_record(line)
        if record is None:
            self.stream.miss(line)
            return
        self.stream.see(record.at, is_damaged=record.is_damaged)
        if record.type == SESSION_META:
            self._meta(record)
        elif self._copied is not None and self._copied.covers(record):
            self.stream.know("copied" if record.type == RESPONSE_ITEM else None)
        elif record.type in SKIPPED_RECORDS:
            self.stream.know("compaction" if record.type == COMPACTED else None)
        else:
            self._evidence(record, is_withdrawn=line.index in self._withdrawn)

    def _meta(self, record: Record) -> None:
        meta = parse_meta(record)
        if meta is None:
            self._reading.unknown[SESSION_META] += 1
            return
        self.stream.know()
        if self._own is None or self._copied is None:
            self._own, self._cwd = meta, meta.cwd
            self._copied = CopiedRows.of(meta)
        else:
            self._copied.see_meta(meta)
        if meta.thread_id == self._own.thread_id and meta.memory_mode is not None:
            self._reading.memory_mode = meta.memory_mode

    def _evidence(self, record: Record, *, is_withdrawn: bool) -> None:
        if record.type == RESPONSE_ITEM:
            if is_withdrawn:
                self.stream.know("rolled_back")
            else:
                self._response(record)
        elif record.type == "turn_context":
            self.stream.know()
            self._set_cwd(as_text(as_fields(record.payload).get("cwd")), of_turn=True)
        elif record.type == "event_msg":
            self.stream.know()
            self._event(record)
        elif record.type == "inter_agent_communication":
            self.stream.know()
            self._other_agent(as_fields(record.payload), self._spot(record))
        else:
            self._reading.unknown[record.type] += 1

    def _event(self, record: Record) -> None:
        fields = as_fields(record.payload)
        if turn_event(fields) == "token_count":
            self.limits.see(parse_limits(fields.get("rate_limits"), record.at))

    def _response(self, record: Record) -> None:
        fields = as_fields(record.payload)
        kind = as_text(fields.get("type")) or ""
        reason = "compaction" if record.is_compaction else SKIPPED_PAYLOADS.get(kind)
        reader = self._responses.get(kind)
        if reason is not None:
            self.stream.know(reason)
        elif reader is None:
            self._reading.unknown[f"{RESPONSE_ITEM}.{kind}"] += 1
        else:
            self.stream.know()
            reader(fields, self._spot(record))

    def _message(self, fields: dict[str, Raw], spot: Spot) -> None:
        self._spoken(parse_message(fields), spot)

    def _usual_message(self, payload: Payload, spot: Spot) -> bool:
        self._spoken(usual_message(payload), spot)
        return True

    def _spoken(self, message: Message, spot: Spot) -> None:
        if message.role == "assistant":
            self._assistant(message, spot)
            return
        cwd = environment_cwd(message)
        if cwd is not None and not self._cwd_is_of_turn:
            self._set_cwd(cwd)
            spot = Spot(spot.ordinal, spot.at, cwd)
        for item in message_items(message, spot, self._reading.dropped):
            self.stream.give(item)

    def _assistant(self, message: Message, spot: Spot) -> None:
        phase = PHASES.get(message.phase or "")
        for item in message_items(message, spot, self._reading.dropped):
            spoken = item if phase is None else replace(item, kind=phase)
            self.stream.answer(spoken, message.message_id, undecided=phase is None)

    def _call(self, fields: dict[str, Raw], spot: Spot) -> None:
        self.stream.give(call_item(fields, spot, self._calls))

    def _usual_call(self, payload: Payload, spot: Spot) -> bool:
        if payload.arguments is None:
            return False
        self.stream.give(usual_call(payload, spot, self._calls))
        return True

    def _output(self, fields: dict[str, Raw], spot: Spot) -> None:
        self._answered(*output_item(fields, spot, self._calls))

    def _usual_output(self, payload: Payload, spot: Spot) -> bool:
        self._answered(*usual_output(payload, spot, self._calls))
        return True

    def _answered(self, item: Item | None, images: int) -> None:
        if images:
            self._reading.dropped["image"] += images
        if item is not None:
            self.stream.give(item)

    def _found_tools(self, fields: dict[str, Raw], spot: Spot) -> None:
        self.stream.give(tool_search_output_item(fields, spot))

    def _other_agent(self, fields: dict[str, Raw], spot: Spot) -> None:
        texts = [part_text(part)[0].strip() for part in content_parts(fields.get("content"))]
        text = "\n\n".join(text for text in texts if text)
        if text:
            self.stream.give(Item(OTHER_AGENT, text, spot.ordinal, spot.at, spot.cwd))

    def _spot(self, record: Record) -> Spot:
        return Spot(record.ordinal, record.at, self._cwd)

    def _set_cwd(self, cwd: str | None, *, of_turn: bool = False) -> None:
        if cwd:
            self._cwd = cwd
            self._cwd_is_of_turn = self._cwd_is_of_turn or of_turn
