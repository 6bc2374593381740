"""The stream of items of one OpenCode session: message by message, part by part, from either store."""

from collections.abc import Generator, Iterator, Sequence

from memoryd.errors import SessionWithoutItems, SourceError
from memoryd.sources.citations import parse_citations, strip_citations
from memoryd.sources.finals import FinalMessages
from memoryd.sources.items import CitationSeen, Item, ItemKind
from memoryd.sources.opencode_parts import (
    NOISE,
    PartRow,
    Place,
    as_typed,
    attachment_reason,
    parse_part,
    seconds,
    spoken_text,
    tool_items,
)
from memoryd.sources.opencode_records import Message, RecordedSession, SessionFacts
from memoryd.sources.reader import Reading

USER, ASSISTANT = "user", "assistant"
# why the model stopped tells what its words were; other reasons (length, unknown, none after an abort) do not
FINISHES = {"stop": ItemKind.ASSISTANT_FINAL, "tool-calls": ItemKind.ASSISTANT_COMMENTARY}


def read_items(
    session: RecordedSession, relatives: Sequence[RecordedSession], reading: Reading
) -> Generator[Item, None, None]:
    """Yield a session's items in the agent's order and fill `reading`.

    The watermark is taken before the first row: what is added meanwhile makes the session new again. Raises
    SessionVanished when the session is gone at the end, SessionWithoutItems when it has rows and none was understood.
    """
    facts = session.facts()
    reading.last_record_at, reading.timed = facts.updated_ms // 1000, True
    reading.record_bytes = session.row_count()
    stream = _Stream(session, facts, CopiedMessages(facts, relatives), reading)
    for message in session.messages():
        yield from stream.take(message)
    yield from stream.finish()
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


class _Stream:
    """What must be remembered from one message to the next."""

    def __init__(self, session: RecordedSession, facts: SessionFacts, copied: CopiedMessages, reading: Reading) -> None:
        self._session = session
        self._facts = facts
        self._copied = copied
        self._reading = reading
        self._is_withdrawn = False
        self._rows = 0
        self._message_row = 0
        self._understood = 0
        self._final = FinalMessages()

    def take(self, message: Message | None) -> Iterator[Item]:
        """Take in the next message and yield the items that are decided now."""
        self._rows += 1
        self._message_row = self._rows
        reason = self._why_not(message) if message is not None else None
        if message is None:
            self._reading.bad_lines += 1
        elif reason is not None:
            self._understood += 1
            self._reading.dropped[reason] += 1
        elif message.role not in (USER, ASSISTANT):
            self._reading.unknown[f"message.{message.role}"] += 1
        else:
            self._understood += 1
            for stored in self._session.parts(message):
                self._rows += 1
                part = parse_part(stored.data)
                if part is None:
                    self._reading.bad_lines += 1
                elif self._facts.revert is not None and self._is_cut_off(stored.part_id):
                    self._reading.dropped["rolled_back"] += 1
                elif items := self._part(part, message):
                    yield from items

    def finish(self) -> Iterator[Item]:
        """Yield what was held back."""
        yield from self._final.flush()
        self._reading.dropped = +self._reading.dropped
        if self._rows and not self._understood:
            raise SessionWithoutItems(
                f"cannot read the session {self._facts.session_id}: none of its {self._rows} rows was understood",
                remedy="is it a session of a newer version of the agent?",
            )

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

    def _is_cut_off(self, part_id: str) -> bool:
        revert = self._facts.revert
        self._is_withdrawn = self._is_withdrawn or (revert is not None and part_id == revert.part_id)
        return self._is_withdrawn

    def _part(self, part: PartRow, message: Message) -> Sequence[Item]:
        kind = part.type
        if kind in NOISE:
            if (reason := NOISE[kind]) is not None:
                self._reading.dropped[reason] += 1
            return ()
        # What a person sent is one message, whose parts hide together; an agent's message is many steps.
        ordinal = self._message_row if message.role == USER else self._rows - 1
        place = Place(message, ordinal, message.cwd or self._facts.directory)
        if kind == "text":
            return self._text(part, place)
        if kind == "tool":
            given: list[Item] = []
            for item in tool_items(part, place, self._reading.dropped):
                given += self._final.push(item)
            return given
        if kind == "file":
            self._reading.dropped[attachment_reason(part.mime)] += 1
        else:
            self._reading.unknown[f"part.{kind}"] += 1
        return ()

    def _text(self, part: PartRow, place: Place) -> Sequence[Item]:
        text, at = spoken_text(part, self._reading.dropped), seconds(part.time.start) or place.at
        if place.message.role == USER:
            text = as_typed(text)
            human = Item(ItemKind.HUMAN, text, place.ordinal, at, place.cwd)
            return self._final.push(human) if text.strip() else ()
        cited = parse_citations(text)
        if cited is not None:
            key = place.message.message_id
            self._reading.citations.append(CitationSeen(key, at, cited.entries, cited.thread_ids))
            text = strip_citations(text).strip()
        if not text:
            return ()
        kind = FINISHES.get(place.message.finish or "")
        spoken = Item(kind or ItemKind.ASSISTANT_COMMENTARY, text, place.ordinal, at, place.cwd)
        return self._final.push(spoken, undecided=kind is None)


def _times(relative: RecordedSession) -> Iterator[int]:
    """Yield when a relative's messages were created; one that is gone or unreadable has none (any more)."""
    try:
        for message in relative.messages():
            if message is not None:
                yield message.created_ms
    except SourceError:
        return
