"""The stream of items of one Gemini CLI session, with what is seen on the way gathered in the Reading."""

from collections.abc import Generator, Iterator

from memoryd.sources.gemini_ends import end_of_lines
from memoryd.sources.gemini_fold import Fold
from memoryd.sources.gemini_items import Telling
from memoryd.sources.gemini_parts import CONTEXT_MARKER, has_texts, parse_content, usual_content
from memoryd.sources.gemini_records import (
    Record,
    UsualMessage,
    decode_record,
    decode_usual,
    is_context,
    is_known,
    is_message,
    is_summary,
    is_touch,
    parse_message,
    patched,
)
from memoryd.sources.gemini_tools import parse_call, recorded_call
from memoryd.sources.identity import instant_of, last_instant, parse_instant
from memoryd.sources.items import Item
from memoryd.sources.jsonl import SessionBytes
from memoryd.sources.parts import Spot
from memoryd.sources.rawjson import as_list, as_text
from memoryd.sources.reader import Reading

USER, GEMINI = "user", "gemini"
NOTICES = frozenset({"info", "error", "warning"})  # what the program told the person; no evidence
KINDS = NOTICES | {USER, GEMINI}


def read_lines(source: SessionBytes, cwd: str | None, reading: Reading) -> Generator[Item, None, None]:
    """Yield the items of a session of lines in the order of the file, and fill `reading`.

    A first pass over the envelopes finds out which lines still count. Raises SessionWithoutItems at the end when there
    were bytes and nothing in them was understood.
    """
    session = Session(reading, cwd)
    fold = Fold(source.lines())
    if fold.unknown_rewinds:
        reading.unknown["$rewindTo"] += fold.unknown_rewinds
    reading.bad_lines += fold.bad_lines
    for line in source.lines():
        index = line.index
        if index in fold.rewritten:
            continue  # it is not even decoded
        if is_touch(line):
            session.telling.understood += 1
            continue
        usual = decode_usual(line) if index not in fold.withdrawn else None
        items = session.usual(usual, index) if usual is not None else None
        if items is not None:
            yield from items
        elif (record := decode_record(line)[0]) is not None:
            yield from _take(record, index, fold, session)
    at, reading.record_bytes = end_of_lines(source)
    reading.timed = at is not None
    reading.last_record_at = last_instant(at, source)
    yield from session.telling.finish(f"{source.path}", source.size)


def read_document(document: Record, cwd: str | None, reading: Reading, size: int) -> Generator[Item, None, None]:
    """Yield the items of a session that is one object."""
    session = Session(reading, cwd)
    session.telling.understood += bool(document.session_id)
    for index, raw in enumerate(as_list(document.messages)):
        message = parse_message(raw)
        if message is None:
            reading.unknown["message"] += 1
        else:
            yield from session.message(message, index)
    yield from session.telling.finish("the session", size)


class Session:
    """A session's messages, one after the other."""

    def __init__(self, reading: Reading, cwd: str | None) -> None:
        self.reading = reading
        self.telling = Telling(reading)
        self._cwd = cwd
        self._saw_context = False

    def usual(self, row: UsualMessage, ordinal: int) -> list[Item] | None:
        """Return what a message says and does that is as nearly all are; None for one that needs a closer look."""
        content = usual_content(row.content)
        results = [usual_content(call.result) for call in row.tool_calls]
        is_of_person = row.type == USER and not (content.texts and content.texts[0].lstrip().startswith(CONTEXT_MARKER))
        if not (is_of_person or row.type == GEMINI) or not all(map(has_texts, (content, *results))):
            return None
        self.telling.understood += 1
        if content.dropped:
            self.reading.dropped.update(content.dropped)
        at = instant_of(row.timestamp)
        spot = Spot(ordinal, at, self._cwd)
        if is_of_person:
            given = self.telling.user(content.texts, spot)
            return given + self.telling.responses(content.responses, spot)
        given = [*self.telling.assistant(content, row.id, spot)]
        for call, result in zip(row.tool_calls, results, strict=True):
            given += self.telling.call(recorded_call(call.id, call.name, call.args, call.display_name), spot)
            if result.dropped:
                self.reading.dropped.update(result.dropped)
            ended = instant_of(call.timestamp) if call.timestamp else None
            given += self.telling.responses(result.responses, Spot(ordinal, ended or at, self._cwd))
        for called in content.calls:
            given += self.telling.call(parse_call(called), spot)
        return given

    def message(self, record: Record, ordinal: int) -> Iterator[Item]:
        """Yield what a message says and does."""
        spot = Spot(ordinal, parse_instant(record.timestamp), self._cwd)
        kind = as_text(record.type) or ""
        self.telling.understood += kind in KINDS
        if kind in NOTICES:
            self.reading.dropped["notice"] += 1
        elif kind == USER:
            yield from self._user(record, spot)
        elif kind == GEMINI:
            yield from self._agent(record, spot)
        else:
            self.reading.unknown[kind or "message"] += 1

    def _user(self, record: Record, spot: Spot) -> Iterator[Item]:
        if is_context(record) and self._saw_context:
            return  # each resume tells it again
        self._saw_context = self._saw_context or is_context(record)
        content = parse_content(record.content)
        typed = parse_content(record.display_content).texts if record.display_content else ()
        self.reading.dropped.update(content.dropped)
        if typed and typed != content.texts:
            self.reading.dropped["expansion"] += 1
        yield from self.telling.user(typed or content.texts, spot)
        yield from self.telling.responses(content.responses, spot)

    def _agent(self, record: Record, spot: Spot) -> Iterator[Item]:
        content = parse_content(record.content)
        self.reading.dropped.update(content.dropped)
        yield from self.telling.assistant(content, as_text(record.id), spot)
        for raw in as_list(record.tool_calls):
            call = parse_call(raw)
            yield from self.telling.call(call, spot)
            result = parse_content(call.result)
            self.reading.dropped.update(result.dropped)
            at = parse_instant(call.timestamp)
            yield from self.telling.responses(result.responses, Spot(spot.ordinal, at or spot.at, spot.cwd))
        for called in content.calls:
            yield from self.telling.call(parse_call(called), spot)


def _take(record: Record, index: int, fold: Fold, session: Session) -> Iterator[Item]:
    if not is_known(record):
        session.reading.unknown["record"] += 1
    elif not is_message(record):
        session.telling.understood += 1
        yield from _listed(record, index, fold, session)
    elif index in fold.withdrawn:
        session.telling.understood += 1
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
