"""The stream of items of one Copilot CLI session: event by event, with what is seen on the way in the Reading."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Raw

from memoryd.sources.codex_tools import OpenCalls
from memoryd.sources.copies import CopiedBeginning, ids_in
from memoryd.sources.copilot_records import (
    ASSISTANT,
    CONTEXTUAL,
    NOISE,
    REWIND,
    TOOL_COMPLETE,
    TOOL_START,
    UNWANTED,
    USER,
    USUAL,
    Event,
    UsualData,
    UsualEvent,
    decode_event,
    working_context,
)
from memoryd.sources.copilot_tools import call_item, output_item, usual_call, usual_output
from memoryd.sources.items import ASSISTANT_COMMENTARY, ASSISTANT_FINAL, HUMAN, OTHER_AGENT, Item, SessionFile
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.parts import Spot
from memoryd.sources.rawjson import as_fields, as_list, as_text, is_true
from memoryd.sources.reader import Reading, Stretches
from memoryd.sources.stream import ItemStream

# user.message.source: what the person typed, also while the agent was busy; every other word is the program's own
TYPED = frozenset({"", "user", "immediate-prompt"})
AGENT_SOURCE, SKILL_SOURCE = "agent-", "skill"
SKILL_CONTEXT = "<skill-context"
PHASES = {"commentary": ASSISTANT_COMMENTARY, "final_answer": ASSISTANT_FINAL}


def read_items(source: SessionBytes, reading: Reading, relatives: Sequence[SessionFile]) -> Stretches:
    """Yield a session's items in the order of the file and fill `reading`.

    A first pass over the bytes looks for rewinds; only a session that has some is decoded more than once. Raises
    SessionWithoutItems at the end when there were bytes and nothing in them was understood.
    """
    withdrawn = Withdrawn(_withdrawn(source) if source.contains(f'"{REWIND}"'.encode()) else ())
    session = _Session(ItemStream(reading), CopiedBeginning(ids_in(file, row_id_of) for file in relatives), withdrawn)
    yield from session.stream.rows(source, USUAL, session.usual, session.other)
    yield session.stream.finish(source)


def row_id_of(line: Line) -> str | None:
    """Return the id of the row that a line holds; None where it holds none, or one without an id."""
    event = decode_event(line)
    return None if event is None else event.row_id


class Withdrawn:
    """Stretches of lines, some of which may lie in others; asked for by line index, however many there are."""

    def __init__(self, stretches: Iterable[range] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for lines in sorted(stretches, key=lambda lines: lines.start):
            if self._ends and lines.start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], lines.stop)
            else:
                self._starts.append(lines.start)
                self._ends.append(lines.stop)

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __contains__(self, index: int) -> bool:
        position = bisect_right(self._starts, index) - 1
        return position >= 0 and index < self._ends[position]


def _withdrawn(source: SessionBytes) -> list[range]:
    """Return the lines that rewinds took back: from the event that each names up to the rewind itself."""
    rewinds = [
        (event.ordinal, as_text(as_fields(event.data).get("upToEventId")))
        for event in _events(source.lines())
        if event.type == REWIND
    ]
    named = {event_id for _, event_id in rewinds}
    starts = {event.event_id: event.ordinal for event in _events(source.lines()) if event.event_id in named}
    return [range(starts[event_id], end) for end, event_id in rewinds if event_id in starts]


def _events(lines: Iterable[Line]) -> Iterator[Event]:
    return (event for line in lines if (event := decode_event(line)) is not None)


class _Session:
    """What must be remembered from one event to the next."""

    def __init__(self, stream: ItemStream, copied: CopiedBeginning, withdrawn: Withdrawn) -> None:
        self.stream = stream
        self._copied = copied
        self._withdrawn = withdrawn
        self._has_rewinds = bool(withdrawn)
        self._cwd: str | None = None
        self._calls = OpenCalls()
        self._readers: dict[str, Callable[[dict[str, Raw], Spot], None]] = {
            USER: self._user,
            ASSISTANT: self._assistant,
            TOOL_START: self._call,
            TOOL_COMPLETE: self._output,
        }
        self._usual_readers: dict[str, Callable[[UsualData, Spot], bool]] = {
            ASSISTANT: self._usual_answer,
            TOOL_START: self._usual_call,
            TOOL_COMPLETE: self._usual_output,
        }

    def usual(self, event: UsualEvent, index: int) -> bool:
        """Take an event that is as nearly all are; other events are turned down."""
        kind = event.type
        is_taken = kind in NOISE or kind in UNWANTED or self._usual_words(event, index)
        if kind in UNWANTED:
            self.stream.reading.dropped[UNWANTED[kind]] += 1
        if is_taken:
            self.stream.last = event
        return is_taken

    def _usual_words(self, event: UsualEvent, index: int) -> bool:
        data, reader = event.data, self._usual_readers.get(event.type)
        if reader is None or event.agent_id or data.parent_call or self._copied.is_open or self._has_rewinds:
            return False
        return reader(data, Spot(index, event.at.timestamp(), self._cwd))

    def other(self, line: Line) -> None:
        """Take any other event, member by member."""
        event = decode_event(line)
        if event is None:
            self.stream.miss(line)
            return
        self.stream.see(event.at, is_damaged=event.is_damaged)
        if event.type in NOISE:
            self.stream.know()
        elif event.type in self._readers:
            self._spoken(event)
        elif event.type in UNWANTED:
            self.stream.know(UNWANTED[event.type])
        elif event.type in CONTEXTUAL:
            self.stream.know()
            self._cwd = as_text(working_context(event).get("cwd")) or self._cwd
        else:
            self.stream.reading.unknown[event.type] += 1

    def _spoken(self, event: Event) -> None:
        data = as_fields(event.data)
        reason = self._reason_against(event, data)
        self.stream.know(reason)
        if reason is None:
            self._readers[event.type](data, Spot(event.ordinal, event.at, self._cwd))

    def _reason_against(self, event: Event, data: dict[str, Raw]) -> str | None:
        if self._copied.covers(event.row_id):
            return "copied"
        if event.ordinal in self._withdrawn:
            return "rolled_back"
        return "side_chain" if event.of_sub_agent or as_text(data.get("parentToolCallId")) else None

    def _usual_answer(self, data: UsualData, spot: Spot) -> bool:
        self._said(data.content.strip(), data.phase, data.message_id, spot)
        return True

    def _usual_call(self, data: UsualData, spot: Spot) -> bool:
        if (item := usual_call(data, spot, self._calls)) is not None:
            self.stream.give(item)
        return True

    def _usual_output(self, data: UsualData, spot: Spot) -> bool:
        item = usual_output(data, spot, self._calls)
        if item is not None:
            self.stream.give(item)
        return item is not None

    def _call(self, data: dict[str, Raw], spot: Spot) -> None:
        if (item := call_item(data, spot, self._calls)) is not None:
            self.stream.give(item)

    def _output(self, data: dict[str, Raw], spot: Spot) -> None:
        item, images = output_item(data, spot, self._calls)
        if images:
            self.stream.reading.dropped["image"] += images
        if item is not None:
            self.stream.give(item)

    def _user(self, data: dict[str, Raw], spot: Spot) -> None:
        for raw in as_list(data.get("attachments")):
            self.stream.reading.dropped["image"] += as_text(as_fields(raw).get("type")) == "blob"
        text = (as_text(data.get("content")) or "").strip()
        if not text:
            return
        source = as_text(data.get("source")) or ""
        if source.startswith(SKILL_SOURCE) or text.startswith(SKILL_CONTEXT):
            self.stream.reading.dropped["skill"] += 1
        elif source.startswith(AGENT_SOURCE) or as_fields(data.get("crossSession")):
            self.stream.give(Item(OTHER_AGENT, text, spot.ordinal, spot.at, spot.cwd))
        elif source not in TYPED or is_true(data.get("isAutopilotContinuation")):
            self.stream.reading.dropped["harness"] += 1
        else:
            self.stream.give(Item(HUMAN, text, spot.ordinal, spot.at, spot.cwd))

    def _assistant(self, data: dict[str, Raw], spot: Spot) -> None:
        text = (as_text(data.get("content")) or "").strip()
        self._said(text, as_text(data.get("phase")), as_text(data.get("messageId")), spot)

    def _said(self, text: str, said_phase: str | None, message_id: str | None, spot: Spot) -> None:
        if text:
            phase = PHASES.get(said_phase or "")
            item = Item(phase or ASSISTANT_FINAL, text, spot.ordinal, spot.at, spot.cwd)
            self.stream.answer(item, message_id, undecided=phase is None)
