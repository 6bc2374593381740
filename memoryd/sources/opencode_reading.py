"""The stream of items of one OpenCode session: message by message, part by part, from either store."""

from collections.abc import Iterator, Sequence

from memoryd.errors import SourceError
from memoryd.sources.items import ASSISTANT_COMMENTARY, ASSISTANT_FINAL, HUMAN, Item
from memoryd.sources.opencode_parts import (
    NOISE,
    PartRow,
    as_typed,
    attachment_reason,
    parse_part,
    seconds,
    spoken_text,
    tool_items,
)
from memoryd.sources.opencode_records import Message, RecordedSession, SessionFacts
from memoryd.sources.parts import Spot
from memoryd.sources.reader import Reading, Stretches
from memoryd.sources.stream import ItemStream

USER, ASSISTANT = "user", "assistant"
# why the model stopped tells what its words were; other reasons (length, unknown, none after an abort) do not
ROWS_PER_PAUSE = 32  # after so many the items that are decided are given out
TELLING = ""  # of a part that is no noise
FINISHES = {"stop": ASSISTANT_FINAL, "tool-calls": ASSISTANT_COMMENTARY}


def read_items(session: RecordedSession, relatives: Sequence[RecordedSession], reading: Reading) -> Stretches:
    """Yield a session's items in the agent's order and fill `reading`.

    The watermark is taken before the first row: what is added meanwhile makes the session new again. Raises
    SessionVanished when the session is gone at the end, SessionWithoutItems when it has rows and none was understood.
    """
    facts = session.facts()
    reading.last_record_at, reading.timed = facts.updated_ms // 1000, True
    reading.record_bytes = session.row_count()
    stream = ItemStream(reading)
    told = _Session(session, facts, CopiedMessages(facts, relatives), stream)
    due = ROWS_PER_PAUSE
    for message in session.messages():
        told.take(message)
        if told.rows >= due:
            due = told.rows + ROWS_PER_PAUSE
            yield stream.decided()
    yield stream.flush(f"the session {facts.session_id}", told.rows)
    session.facts()


class CopiedMessages:
    """Says which messages a fork has copied: those older than itself that stand in a relative, by time of creation.

    A copy has a new id and its old time. Both sessions are walked in step, so that no list of them is kept.
    """

    def __init__(self, facts: SessionFacts, relatives: Sequence[RecordedSession]) -> None:
        self._since_ms = facts.created_ms
        self._others = [_times(relative) for relative in relatives]
        self._next = [next(times, None) for times in self._others]

    def cover(self, message: Message) -> bool:
        """Tell whether this message is a copy; call it once for each, in order."""
        if message.created_ms >= self._since_ms:
            return False
        found = False
        for position, times in enumerate(self._others):
            held = self._next[position]
            while held is not None and held < message.created_ms:
                held = next(times, None)
            self._next[position] = held
            found = found or held == message.created_ms
        return found


class _Session:
    """What must be remembered from one message to the next."""

    def __init__(
        self, session: RecordedSession, facts: SessionFacts, copied: CopiedMessages, stream: ItemStream
    ) -> None:
        self.rows = 0
        self._session = session
        self._facts = facts
        self._copied = copied
        self._stream = stream
        self._reading = stream.reading
        self._is_withdrawn = False

    def take(self, message: Message | None) -> None:
        """Take in the next message."""
        self.rows += 1
        reason = self._why_not(message) if message is not None else None
        if message is None:
            self._reading.bad_lines += 1
        elif reason is not None:
            self._stream.know(reason)
        elif message.role not in (USER, ASSISTANT):
            self._reading.unknown[f"message.{message.role}"] += 1
        else:
            self._stream.know()
            self._take_parts(message)

    def _take_parts(self, message: Message) -> None:
        """Take in the parts of a message.

        What a person sent is one message, whose parts hide together; an agent's message is many steps.
        """
        cwd, at = message.cwd or self._facts.directory, seconds(message.created_ms or None)
        ordinal, is_users = self.rows, message.role == USER
        is_taken_back, dropped = self._facts.revert is not None, self._reading.dropped
        rows = self.rows
        for part_id, data in self._session.parts(message):
            part = parse_part(data)
            if part is None:
                self._reading.bad_lines += 1
            elif is_taken_back and self._is_cut_off(part_id):
                dropped["rolled_back"] += 1
            elif (noise := NOISE.get(part.type, TELLING)) is TELLING:
                self._part(part, message, Spot(ordinal if is_users else rows, at, cwd))
            elif noise is not None:
                dropped[noise] += 1
            rows += 1
        self.rows = rows

    def _why_not(self, message: Message) -> str | None:
        """Return why a whole message is left out; its parts are not even looked at."""
        revert = self._facts.revert
        is_copied = self._copied.cover(message)
        if revert is not None and revert.part_id is None and message.message_id == revert.message_id:
            self._is_withdrawn = True
        if self._is_withdrawn:
            return "rolled_back"
        if is_copied:
            return "copied"
        return "compaction" if message.is_compaction else None

    def _is_cut_off(self, part_id: bytes) -> bool:
        revert = self._facts.revert
        self._is_withdrawn = self._is_withdrawn or (revert is not None and part_id == (revert.part_id or "").encode())
        return self._is_withdrawn

    def _part(self, part: PartRow, message: Message, spot: Spot) -> None:
        kind = part.type
        if kind == "tool":
            for item in tool_items(part, spot, self._reading.dropped):
                self._stream.give(item)
        elif kind == "text":
            self._text(part, message, spot)
        elif kind == "file":
            self._reading.dropped[attachment_reason(part.mime)] += 1
        else:
            self._reading.unknown[f"part.{kind}"] += 1

    def _text(self, part: PartRow, message: Message, spot: Spot) -> None:
        text, at = spoken_text(part, self._reading.dropped), seconds(part.time.start) or spot.at
        if message.role == USER:
            text = as_typed(text)
            if text.strip():
                self._stream.give(Item(HUMAN, text, spot.ordinal, at, spot.cwd))
        elif text:
            kind = FINISHES.get(message.finish or "")
            spoken = Item(kind or ASSISTANT_COMMENTARY, text, spot.ordinal, at, spot.cwd)
            self._stream.answer(spoken, message.message_id, undecided=kind is None)


def _times(relative: RecordedSession) -> Iterator[int]:
    """Yield when a relative's messages were created; one that is gone or unreadable has none (any more)."""
    try:
        for message in relative.messages():
            if message is not None:
                yield message.created_ms
    except SourceError:
        return
