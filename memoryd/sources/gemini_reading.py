"""The stream of items of one Gemini CLI session, with what is seen on the way gathered in the Reading."""

from collections.abc import Callable, Sequence
from functools import partial

from memoryd.sources.gemini_ends import end_of_lines
from memoryd.sources.gemini_fold import REWRITTEN, STANDS, WITHDRAWN, Fold, fold_lines
from memoryd.sources.gemini_items import Telling
from memoryd.sources.gemini_parts import CONTEXT_MARKER, Content, parse_content, usual_content
from memoryd.sources.gemini_records import (
    GEMINI,
    USER,
    USUAL,
    Record,
    UsualRecord,
    decode_record,
    is_context,
    is_known,
    is_message,
    is_summary,
    parse_message,
    patched,
)
from memoryd.sources.gemini_tools import parse_call
from memoryd.sources.identity import parse_instant
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.parts import Spot
from memoryd.sources.rawjson import as_list, as_text
from memoryd.sources.reader import Reading, Stretches
from memoryd.sources.stream import ItemStream

NOTICES = frozenset({"info", "error", "warning"})  # what the program told the person; no evidence
KINDS = NOTICES | {USER, GEMINI}


def read_lines(source: SessionBytes, cwd: str | None, reading: Reading) -> Stretches:
    """Yield the items of a session of lines in the order of the file, and fill `reading`.

    A first pass finds out which lines still count. Raises SessionWithoutItems at the end when there were bytes and
    nothing in them was understood.
    """
    fold = fold_lines(source)
    if fold.unknown_rewinds:
        reading.unknown["$rewindTo"] += fold.unknown_rewinds
    session = Session(ItemStream(reading), cwd, fold)
    yield from session.stream.rows(source, USUAL, session.usual, session.other)
    session.settle()
    yield session.stream.end(source, *end_of_lines(source))


def read_document(document: Record, cwd: str | None, reading: Reading, size: int) -> Stretches:
    """Yield the items of a session that is one object."""
    session = Session(ItemStream(reading), cwd, Fold())
    if document.session_id:
        session.stream.know()
    for index, raw in enumerate(as_list(document.messages)):
        message = parse_message(raw)
        if message is None:
            reading.unknown["message"] += 1
        else:
            session.message(message, index)
            yield session.stream.decided()
    session.settle()
    yield session.stream.flush("the session", size)


class Session:
    """A session's messages, one after the other; the last one stays open, since it may be written anew in a moment."""

    def __init__(self, stream: ItemStream, cwd: str | None, fold: Fold) -> None:
        self.stream = stream
        self._telling = Telling(stream)
        self._cwd = cwd
        self._fold = fold
        self._saw_context = False
        self._open_id: str | None = None
        self._tell_open = _nothing

    def usual(self, record: UsualRecord, index: int) -> bool:
        """Take a record that is as nearly all are."""
        if record.patch is not None or not record.id:
            is_taken = record.patch is not None and not record.id
        elif (fate := self._fold.fate(index)) != STANDS:
            is_taken = fate == REWRITTEN
        elif record.type == GEMINI:
            is_taken = self._usual_agent(record, index)
        else:
            is_taken = record.type == USER and self._usual_user(record, index)
        if is_taken:
            self.stream.last = record
        return is_taken

    def settle(self) -> None:
        """Tell the message that is open: nothing comes any more that could be it, written anew."""
        self._tell_open()
        self._tell_open = _nothing

    def _open(self, message_id: str | None, tell: Callable[[], None]) -> None:
        """Take in the next message; `tell` tells it, once it is certain not to be written anew."""
        if not message_id or message_id != self._open_id:
            self.settle()
        self._open_id, self._tell_open = message_id, tell

    def _usual_agent(self, record: UsualRecord, index: int) -> bool:
        content = usual_content(record.content)
        results = [usual_content(call.result) for call in record.tool_calls]
        if content is None or None in results:
            return False
        self._open(record.id, partial(self._tell_usual_agent, record, index, content, results))
        return True

    def _tell_usual_agent(
        self, record: UsualRecord, index: int, content: Content, results: Sequence[Content | None]
    ) -> None:
        at = record.at.timestamp() if record.at else None
        spot = Spot(index, at, self._cwd)
        self._drop(content.dropped)
        self._telling.assistant(content.texts, record.id, spot)
        for call, result in zip(record.tool_calls, results, strict=True):
            self._telling.call(call, spot, call.display_name)
            if result is not None:
                self._drop(result.dropped)
                ended = call.at.timestamp() if call.at else at
                self._telling.responses(result.responses, Spot(index, ended, self._cwd))
        for called in content.calls:
            self._telling.call(called, spot)

    def _usual_user(self, record: UsualRecord, index: int) -> bool:
        content = usual_content(record.content)
        if content is None or (content.texts and content.texts[0].lstrip().startswith(CONTEXT_MARKER)):
            return False
        self._open(record.id, partial(self._tell_usual_user, record, index, content))
        return True

    def _tell_usual_user(self, record: UsualRecord, index: int, content: Content) -> None:
        spot = Spot(index, record.at.timestamp() if record.at else None, self._cwd)
        self._drop(content.dropped)
        if content.texts:
            self._telling.user(content.texts, spot)
        self._telling.responses(content.responses, spot)

    def other(self, line: Line) -> None:
        """Take any other line."""
        record, is_bad = decode_record(line)
        self.stream.reading.bad_lines += is_bad
        if record is None:
            return
        fate = self._fold.fate(line.index)
        if not is_known(record):
            self.stream.reading.unknown["record"] += 1
        elif not is_message(record):
            self.stream.know()
            self._listed(record, line.index)
        elif fate == WITHDRAWN:
            self.stream.know("rolled_back")
        elif fate == STANDS:
            self.message(record, line.index)

    def message(self, record: Record, ordinal: int) -> None:
        """Take in a message, whatever is in it."""
        spot = Spot(ordinal, parse_instant(record.timestamp), self._cwd)
        self._open(as_text(record.id), partial(self._tell, record, spot))

    def _tell(self, record: Record, spot: Spot) -> None:
        kind = as_text(record.type) or ""
        if kind not in KINDS:
            self.stream.reading.unknown[kind or "message"] += 1
            return
        self.stream.know("notice" if kind in NOTICES else None)
        if kind == USER:
            self._user(record, spot)
        elif kind == GEMINI:
            self._agent(record, spot)

    def _user(self, record: Record, spot: Spot) -> None:
        if is_context(record) and self._saw_context:
            return  # each resume tells it again
        self._saw_context = self._saw_context or is_context(record)
        content = parse_content(record.content)
        typed = parse_content(record.display_content).texts if record.display_content else ()
        self._drop(content.dropped)
        if typed and typed != content.texts:
            self.stream.reading.dropped["expansion"] += 1
        self._telling.user(typed or content.texts, spot)
        self._telling.responses(content.responses, spot)

    def _agent(self, record: Record, spot: Spot) -> None:
        content = parse_content(record.content)
        self._drop(content.dropped)
        self._telling.assistant(content.texts, as_text(record.id), spot)
        for raw in as_list(record.tool_calls):
            call = parse_call(raw)
            self._telling.call(raw, spot)
            result = parse_content(call.result)
            self._drop(result.dropped)
            at = parse_instant(call.timestamp)
            self._telling.responses(result.responses, Spot(spot.ordinal, at or spot.at, spot.cwd))
        for called in content.calls:
            self._telling.call(called, spot)

    def _listed(self, record: Record, index: int) -> None:
        """Tell what only a list of messages holds: the context, and messages that have no line of their own."""
        for position, raw in enumerate(as_list(patched(record).messages)):
            message = parse_message(raw)
            if message is None:
                continue
            if is_context(message) or (index == self._fold.list_line and position in self._fold.list_positions):
                self.message(message, index)
            elif is_summary(message):
                self.stream.reading.dropped["compaction"] += 1

    def _drop(self, reasons: Sequence[str]) -> None:
        for reason in reasons:
            self.stream.reading.dropped[reason] += 1


def _nothing() -> None:
    """Tell of a message that was told already."""
