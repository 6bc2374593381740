"""The stream of items of one Codex session: record by record, with what is seen on the way gathered in the Reading."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from msgspec import Raw

from memoryd.errors import SessionWithoutItems
from memoryd.sources.citations import parse_citations, strip_citations
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
    Payload,
    Record,
    SessionMeta,
    Usual,
    decode_record,
    decode_usual,
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
from memoryd.sources.decoding import is_blank
from memoryd.sources.finals import FinalMessages
from memoryd.sources.identity import instant_of, last_instant, message_key
from memoryd.sources.items import CitationSeen, Item, ItemKind
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.parts import Spot
from memoryd.sources.rawjson import as_fields, as_text
from memoryd.sources.reader import Reading

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
PHASES = {"commentary": ItemKind.ASSISTANT_COMMENTARY, "final_answer": ItemKind.ASSISTANT_FINAL}


def read_items(source: SessionBytes, reading: Reading) -> Generator[Item, None, None]:
    """Yield a session's items in the order of the file and fill `reading`.

    A first pass over the bytes looks for rollbacks; only a session that has some is decoded twice. Raises
    SessionWithoutItems at the end when there were bytes and nothing in them was understood.
    """
    withdrawn = Withdrawn(source.lines()) if source.contains(ROLLED_BACK.encode() + b'"') else Withdrawn()
    session = _Session(reading, withdrawn)
    for line in source.lines():
        if items := session.take(line):
            yield from items
    yield from session.finish(source)


class _Session:
    """What must be remembered from one record to the next."""

    def __init__(self, reading: Reading, withdrawn: Withdrawn) -> None:
        self._reading = reading
        self._withdrawn = withdrawn
        self._own: SessionMeta | None = None
        self._copied: CopiedRows | None = None
        self._cwd: str | None = None
        self._cwd_is_of_turn = False
        self._last_at: float | None = None
        self._understood = 0
        self._calls = OpenCalls()
        self._limits = LatestLimits()
        self._final = FinalMessages()
        self._is_own_part = False  # nothing from here on to the next session_meta is a copy
        self._stamp: str | None = None  # when the last of the usual lines was written; nobody may ever ask
        self._responses: dict[str, Callable[[dict[str, Raw], Spot], Sequence[Item]]] = {
            "message": self._message,
            "agent_message": self._other_agent,
            "tool_search_output": self._found_tools,
            **dict.fromkeys(CALL_TYPES, self._call),
            **dict.fromkeys(OUTPUT_TYPES, self._output),
        }
        self._usual_records: dict[str, Callable[[Usual, int], Sequence[Item] | None]] = {
            RESPONSE_ITEM: self._usual_response,
            "event_msg": self._usual_event,
            "turn_context": self._usual_context,
            **dict.fromkeys(SKIPPED_RECORDS, self._usual_noise),
        }
        self._usual_responses: dict[str, Callable[[Payload, Spot], Sequence[Item] | None]] = {
            "message": self._usual_message,
            "function_call": self._usual_call,
            **dict.fromkeys(OUTPUT_TYPES, self._usual_output),
        }

    def take(self, line: Line) -> Iterable[Item]:
        """Take in the next line and return the items that are decided now."""
        if self._is_own_part and (usual := decode_usual(line)) is not None:
            reader = self._usual_records.get(usual.type)
            items = reader(usual, line.index) if reader is not None else None
            if items is not None:
                self._understood += 1
                self._stamp = usual.timestamp
                return items
        return self._other(line)

    def _usual_response(self, usual: Usual, index: int) -> Sequence[Item] | None:
        """Return what was said or done; None for what needs a closer look."""
        payload = usual.payload
        if self._withdrawn.has_any and index in self._withdrawn:
            self._reading.dropped["rolled_back"] += 1
            return ()
        reason = "compaction" if usual.metadata and usual.is_compaction else SKIPPED_PAYLOADS.get(payload.type)
        if reason is not None:
            self._reading.dropped[reason] += 1
            return ()
        reader = self._usual_responses.get(payload.type)
        if reader is None:
            return None
        ordinal = index if usual.ordinal is None else usual.ordinal
        return reader(payload, Spot(ordinal, instant_of(usual.timestamp), self._cwd))

    def _usual_event(self, usual: Usual, index: int) -> Sequence[Item]:
        del index
        payload = usual.payload
        if payload.rate_limits is not None and payload.type == "token_count":
            self._limits.see_usual(payload.rate_limits, usual.timestamp)
        return ()

    def _usual_context(self, usual: Usual, index: int) -> Sequence[Item]:
        del index
        self._set_cwd(usual.payload.cwd, of_turn=True)
        return ()

    def _usual_noise(self, usual: Usual, index: int) -> Sequence[Item]:
        del index
        if usual.type == COMPACTED:
            self._reading.dropped["compaction"] += 1
        return ()

    def _other(self, line: Line) -> Iterator[Item]:
        """Yield the items of any other line, member by member."""
        self._settle_time()
        yield from self._record(line)
        self._is_own_part = self._copied is not None and not self._copied.may_cover

    def _record(self, line: Line) -> Iterator[Item]:
        record = decode_record(line)
        if record is None:
            # a torn last line is not bad: the rest of it is still to come
            self._reading.bad_lines += line.ended and not is_blank(line)
            return
        self._reading.bad_lines += record.is_damaged
        self._last_at = record.at
        if record.type == SESSION_META:
            self._meta(record)
        elif self._copied is not None and self._copied.covers(record):
            self._understood += 1
            self._reading.dropped["copied"] += record.type == RESPONSE_ITEM
        elif record.type in SKIPPED_RECORDS:
            self._understood += 1
            self._reading.dropped["compaction"] += record.type == COMPACTED
        else:
            yield from self._evidence(record, is_withdrawn=line.index in self._withdrawn)

    def _settle_time(self) -> None:
        """Parse when the last of the usual lines was written, now that it matters."""
        if self._stamp is not None:
            self._last_at, self._stamp = instant_of(self._stamp), None
            if self._copied is not None:
                self._copied.pass_by(self._last_at)

    def finish(self, source: SessionBytes) -> Iterator[Item]:
        """Yield what was held back, and settle what is known only at the end."""
        self._settle_time()
        yield from self._final.flush()
        reading = self._reading
        reading.dropped = +reading.dropped
        reading.record_bytes = source.bytes_read
        reading.timed = self._last_at is not None
        reading.last_record_at = last_instant(self._last_at, source)
        reading.rate_limits = self._limits.best
        if source.bytes_read and not self._understood:
            raise SessionWithoutItems(
                f"cannot read {source.path}: it has {source.bytes_read} bytes, and no record in them was understood",
                remedy="is it a session of a newer version of the agent?",
            )

    def _meta(self, record: Record) -> None:
        meta = parse_meta(record)
        if meta is None:
            self._reading.unknown[SESSION_META] += 1
            return
        self._understood += 1
        if self._own is None or self._copied is None:
            self._own, self._cwd = meta, meta.cwd
            self._copied = CopiedRows.of(meta)
        else:
            self._copied.see_meta(meta)
        if meta.thread_id == self._own.thread_id and meta.memory_mode is not None:
            self._reading.memory_mode = meta.memory_mode

    def _evidence(self, record: Record, *, is_withdrawn: bool) -> Iterator[Item]:
        if record.type == RESPONSE_ITEM:
            if is_withdrawn:
                self._understood += 1
                self._reading.dropped["rolled_back"] += 1
            else:
                yield from self._response(record)
        elif record.type == "turn_context":
            self._understood += 1
            self._set_cwd(as_text(as_fields(record.payload).get("cwd")), of_turn=True)
        elif record.type == "event_msg":
            self._understood += 1
            self._event(record)
        elif record.type == "inter_agent_communication":
            self._understood += 1
            yield from self._other_agent(as_fields(record.payload), self._spot(record))
        else:
            self._reading.unknown[record.type] += 1

    def _event(self, record: Record) -> None:
        fields = as_fields(record.payload)
        if turn_event(fields) == "token_count":
            self._limits.see(parse_limits(fields.get("rate_limits"), record.at))

    def _response(self, record: Record) -> Iterator[Item]:
        fields = as_fields(record.payload)
        kind = as_text(fields.get("type")) or ""
        reason = "compaction" if record.is_compaction else SKIPPED_PAYLOADS.get(kind)
        reader = self._responses.get(kind)
        self._understood += reason is not None or reader is not None
        if reason is not None:
            self._reading.dropped[reason] += 1
        elif reader is None:
            self._reading.unknown[f"{RESPONSE_ITEM}.{kind}"] += 1
        else:
            yield from reader(fields, self._spot(record))

    def _message(self, fields: dict[str, Raw], spot: Spot) -> Sequence[Item]:
        return self._spoken(parse_message(fields), spot)

    def _usual_message(self, payload: Payload, spot: Spot) -> Sequence[Item]:
        return self._spoken(usual_message(payload), spot)

    def _spoken(self, message: Message, spot: Spot) -> Sequence[Item]:
        if message.role == "assistant":
            return self._assistant(message, spot)
        cwd = environment_cwd(message)
        if cwd is not None and not self._cwd_is_of_turn:
            self._set_cwd(cwd)
            spot = Spot(spot.ordinal, spot.at, cwd)
        given: list[Item] = []
        for item in message_items(message, spot, self._reading.dropped):
            given += self._final.push(item)
        return given

    def _assistant(self, message: Message, spot: Spot) -> Sequence[Item]:
        phase = PHASES.get(message.phase or "")
        given: list[Item] = []
        for item in message_items(message, spot, self._reading.dropped):
            cited = parse_citations(item.text)
            text = item.text
            if cited is not None:
                key = message.message_id or message_key(text, spot.at)
                self._reading.citations.append(CitationSeen(key, spot.at, cited.entries, cited.thread_ids))
                text = strip_citations(text).strip()
            if text:
                spoken = Item(phase or item.kind, text, spot.ordinal, spot.at, spot.cwd)
                given += self._final.push(spoken, undecided=phase is None)
        return given

    def _call(self, fields: dict[str, Raw], spot: Spot) -> Sequence[Item]:
        return self._final.push(call_item(fields, spot, self._calls))

    def _usual_call(self, payload: Payload, spot: Spot) -> Sequence[Item] | None:
        if payload.arguments is None:
            return None
        return self._final.push(usual_call(payload, spot, self._calls))

    def _output(self, fields: dict[str, Raw], spot: Spot) -> Sequence[Item]:
        return self._answered(output_item(fields, spot, self._calls))

    def _usual_output(self, payload: Payload, spot: Spot) -> Sequence[Item]:
        return self._answered(usual_output(payload, spot, self._calls))

    def _answered(self, answer: tuple[Item | None, int]) -> Sequence[Item]:
        item, images = answer
        if images:
            self._reading.dropped["image"] += images
        return () if item is None else self._final.push(item)

    def _found_tools(self, fields: dict[str, Raw], spot: Spot) -> Sequence[Item]:
        return self._final.push(tool_search_output_item(fields, spot))

    def _other_agent(self, fields: dict[str, Raw], spot: Spot) -> Sequence[Item]:
        texts = [part_text(part)[0].strip() for part in content_parts(fields.get("content"))]
        text = "\n\n".join(text for text in texts if text)
        return self._final.push(Item(ItemKind.OTHER_AGENT, text, spot.ordinal, spot.at, spot.cwd)) if text else ()

    def _spot(self, record: Record) -> Spot:
        return Spot(record.ordinal, record.at, self._cwd)

    def _set_cwd(self, cwd: str | None, *, of_turn: bool = False) -> None:
        if cwd:
            self._cwd = cwd
            self._cwd_is_of_turn = self._cwd_is_of_turn or of_turn
