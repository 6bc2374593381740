"""The stream of items of one Gemini CLI session, with what is seen on the way gathered in the Reading."""

from collections.abc import Generator, Iterator

from msgspec import Raw

from memoryd.errors import SessionWithoutItems
from memoryd.sources.citations import parse_citations, strip_citations
from memoryd.sources.decoding import is_blank
from memoryd.sources.finals import FinalMessages
from memoryd.sources.gemini_fold import Fold
from memoryd.sources.gemini_parts import Content, Spot, human_parts, parse_content, part_items
from memoryd.sources.gemini_records import (
    Record,
    decode_record,
    is_context,
    is_known,
    is_message,
    is_summary,
    parse_message,
    patched,
    record_time,
)
from memoryd.sources.gemini_tools import OpenCalls, call_item, parse_call, response_item
from memoryd.sources.identity import last_instant, message_key, parse_instant
from memoryd.sources.items import CitationSeen, Item, ItemKind
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.rawjson import as_fields, as_list, as_text
from memoryd.sources.reader import Reading

NOTICES = frozenset({"info", "error", "warning"})  # what the program told the person; no evidence
LATE_PATCH = frozenset({"summary", "memoryScratchpad"})  # what a later start of the program adds to an old session


def read_lines(source: SessionBytes, cwd: str | None, reading: Reading) -> Generator[Item, None, None]:
    """Yield the items of a session of lines in the order of the file, and fill `reading`.

    A first pass over the envelopes finds out which lines still count. Raises SessionWithoutItems at the end when there
    were bytes and nothing in them was understood.
    """
    session = Session(reading, cwd)
    fold = Fold(source.lines())
    if fold.unknown_rewinds:
        reading.unknown["$rewindTo"] += fold.unknown_rewinds
    last_at: float | None = None
    late_bytes = 0
    for line in source.lines():
        record, is_damaged = _decoded(line)
        reading.bad_lines += is_damaged
        late_bytes = late_bytes + line_bytes(line) if record is not None and is_late(record) else 0
        if record is None:
            continue
        last_at = record_time(record) or last_at
        yield from _take(record, line.index, fold, session)
    yield from session.finish(f"{source.path}", source.bytes_read)
    reading.record_bytes = source.bytes_read - late_bytes
    reading.timed = last_at is not None
    reading.last_record_at = last_instant(last_at, source)


def read_document(document: Record, cwd: str | None, reading: Reading, size: int) -> Generator[Item, None, None]:
    """Yield the items of a session that is one object."""
    session = Session(reading, cwd)
    session.understood += bool(document.session_id)
    for index, raw in enumerate(as_list(document.messages)):
        message = parse_message(raw)
        if message is None:
            reading.unknown["message"] += 1
        else:
            yield from session.message(message, index)
    yield from session.finish("the session", size)


def document_time(document: Record) -> float | None:
    """Return the time of the last message, or of the document: a summary that is added later moves only that."""
    for raw in reversed(as_list(document.messages)):
        message = parse_message(raw)
        if message is not None and (at := parse_instant(message.timestamp)) is not None:
            return at
    return record_time(document)


def is_late(record: Record) -> bool:
    """Tell a patch that a later start of the program adds to an old session: nothing has happened in that."""
    members = set(as_fields(record.patch)) if record.patch else set()
    return bool(members) and members <= LATE_PATCH


def line_bytes(line: Line) -> int:
    """Return how many bytes a line takes in its file."""
    return len(line.data or b"") + line.ended


class Session:
    """What must be remembered from one message to the next."""

    def __init__(self, reading: Reading, cwd: str | None) -> None:
        self.reading = reading
        self.understood = 0
        self._cwd = cwd
        self._saw_context = False
        self._calls = OpenCalls()
        self._final = FinalMessages()

    def message(self, record: Record, ordinal: int) -> Iterator[Item]:
        """Yield what a message says and does."""
        spot = Spot(ordinal, parse_instant(record.timestamp), self._cwd)
        kind = as_text(record.type) or ""
        if kind in NOTICES:
            self.understood += 1
            self.reading.dropped["notice"] += 1
        elif kind == "user":
            self.understood += 1
            yield from self._user(record, spot)
        elif kind == "gemini":
            self.understood += 1
            yield from self._assistant(record, spot)
        else:
            self.reading.unknown[kind or "message"] += 1

    def finish(self, name: str, size: int) -> Iterator[Item]:
        """Yield what was held back; raise SessionWithoutItems when nothing was understood."""
        yield from self._final.flush()
        self.reading.dropped = +self.reading.dropped
        if size and not self.understood:
            raise SessionWithoutItems(
                f"cannot read {name}: it has {size} bytes, and no record in them was understood",
                remedy="is it a session of a newer version of the agent?",
            )

    def _user(self, record: Record, spot: Spot) -> Iterator[Item]:
        if is_context(record) and self._saw_context:
            return  # each resume tells it again
        self._saw_context = self._saw_context or is_context(record)
        content = parse_content(record.content)
        typed = parse_content(record.display_content).texts
        self.reading.dropped.update(content.dropped)
        if typed and typed != content.texts:
            self.reading.dropped["expansion"] += 1
        for item in part_items(human_parts(typed or content.texts), spot, self.reading.dropped):
            yield from self._final.push(item)
        yield from self._responses(content.responses, spot)

    def _assistant(self, record: Record, spot: Spot) -> Iterator[Item]:
        content = parse_content(record.content)
        self.reading.dropped.update(content.dropped)
        yield from self._words(content, as_text(record.id), spot)
        for raw in as_list(record.tool_calls):
            yield from self._recorded_call(raw, spot)
        for raw in content.calls:
            call = parse_call(raw)
            if self._calls.open(call):
                yield from self._final.push(call_item(call, spot))

    def _words(self, content: Content, message_id: str | None, spot: Spot) -> Iterator[Item]:
        text = "\n\n".join(text.strip() for text in content.texts)
        cited = parse_citations(text)
        if cited is not None:
            key = message_id or message_key(text, spot.at)
            self.reading.citations.append(CitationSeen(key, spot.at, cited.entries, cited.thread_ids))
            text = strip_citations(text).strip()
        if text:
            item = Item(ItemKind.ASSISTANT_FINAL, text, spot.ordinal, spot.at, spot.cwd)
            yield from self._final.push(item, undecided=True)

    def _recorded_call(self, raw: Raw, spot: Spot) -> Iterator[Item]:
        fields = as_fields(raw)
        call = parse_call(raw, display_name=as_text(fields.get("displayName")) or "")
        if not self._calls.open(call):
            return
        yield from self._final.push(call_item(call, spot))
        result = parse_content(fields.get("result"))
        self.reading.dropped.update(result.dropped)
        at = parse_instant(fields.get("timestamp"))
        yield from self._responses(result.responses, Spot(spot.ordinal, at or spot.at, spot.cwd))

    def _responses(self, responses: tuple[Raw, ...], spot: Spot) -> Iterator[Item]:
        for raw in responses:
            item, reason = response_item(raw, spot, self._calls)
            if reason is not None:
                self.reading.dropped[reason] += 1
            if item is not None:
                yield from self._final.push(item)


def _decoded(line: Line) -> tuple[Record | None, bool]:
    """Decode a line, and say whether some of it is lost; a torn last line is not: the rest of it is still to come."""
    decoded = decode_record(line)
    if decoded.value is None:
        return None, line.ended and not is_blank(line)
    return decoded.value, decoded.is_damaged


def _take(record: Record, index: int, fold: Fold, session: Session) -> Iterator[Item]:
    if not is_known(record):
        session.reading.unknown["record"] += 1
    elif not is_message(record):
        session.understood += 1
        yield from _listed(record, index, fold, session)
    elif index in fold.withdrawn:
        session.understood += 1
        session.reading.dropped["rolled_back"] += 1
    elif index not in fold.rewritten:
        yield from session.message(record, index)


def _listed(record: Record, index: int, fold: Fold, session: Session) -> Iterator[Item]:
    """Yield what only a list of messages holds: the context, and messages that have no line of their own."""
    for position, raw in enumerate(as_list(patched(record).messages)):
        message = parse_message(raw)
        if message is None:
            continue
        if is_context(message) or (index == fold.list_line and position in fold.list_positions):
            yield from session.message(message, index)
        elif is_summary(message):
            session.reading.dropped["compaction"] += 1
