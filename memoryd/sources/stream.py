"""What the readers of line files do alike while they go through a session: they count, hold, cite and close."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from msgspec.json import Decoder
from msgspec.structs import replace

from memoryd.errors import SessionWithoutItems
from memoryd.sources.citations import parse_citations, strip_citations
from memoryd.sources.decoding import is_blank
from memoryd.sources.finals import FinalMessages
from memoryd.sources.identity import last_instant, message_key
from memoryd.sources.items import CitationSeen, Item
from memoryd.sources.jsonl import Line, SessionBytes, whole_line
from memoryd.sources.rawjson import MAX_TEXT_BYTES, UNREADABLE
from memoryd.sources.reader import Reading, Stretches

Row = TypeVar("Row")
READ_BYTES = 1024 * 1024  # at a time
PAUSE_BYTES = 256 * 1024  # after so many the items that are decided are given out


class Dated(Protocol):
    """A row that is decoded in one go, and says when it was written, if it does."""

    @property
    def at(self) -> datetime | None:
        """The time that it says."""
        ...


def walk(
    source: SessionBytes, decoder: Decoder[Row], usual: Callable[[Row, int], bool], other: Callable[[Line], None]
) -> Iterator[None]:
    """Go through a session's lines, and pause now and then.

    A row that is as nearly all are is decoded in one go, and `usual` takes it with the index of its line. What does not
    decode so, what `usual` turns down for a closer look, and very long lines are for `other`.
    """
    content = source.content(READ_BYTES)
    readline, decode = content.readline, decoder.decode
    index = passed = 0
    while piece := readline(MAX_TEXT_BYTES):
        size = len(piece)
        passed += size
        if passed >= PAUSE_BYTES:
            yield
            passed = 0
        try:
            row = decode(piece)
        except UNREADABLE:
            is_taken = False
        else:
            is_taken = size < MAX_TEXT_BYTES and usual(row, index)
        if not is_taken:
            other(whole_line(content, index, piece))
        index += 1
    yield


class ItemStream:
    """The way from a session's records to its Reading: what is given out, what is counted, and the end of it."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.last: Dated | None = None  # the last row that was seen, if it was a usual one
        self._final = FinalMessages()
        self._last_at: float | None = None
        self._understood = 0
        self.give = self._final.push  # what was said or done next

    def rows(
        self,
        source: SessionBytes,
        decoder: Decoder[Row],
        usual: Callable[[Row, int], bool],
        other: Callable[[Line], None],
    ) -> Stretches:
        """Go through a session's lines as `walk` does, and yield the items that are decided after each stretch."""
        for _ in walk(source, decoder, usual, other):
            yield self._final.decided()

    def miss(self, line: Line) -> None:
        """Take note of a line without a record; a torn last one is not bad: the rest of it is still to come."""
        self.reading.bad_lines += line.ended and not is_blank(line)

    def see(self, at: float | None, *, is_damaged: bool) -> None:
        """Take note of a record, whatever it holds; the last one's time is the session's."""
        self._understood += self.last is not None
        self.last, self._last_at = None, at
        self.reading.bad_lines += is_damaged

    def know(self, reason: str | None = None, count: int = 1) -> None:
        """Take note that a record was understood, and, with a reason, that something in it is not wanted."""
        self._understood += 1
        if reason is not None:
            self.reading.dropped[reason] += count

    def answer(self, item: Item, message_id: str | None, *, undecided: bool) -> None:
        """Give out what the assistant said, without the citations in it; `undecided`: final or not is seen later."""
        cited = parse_citations(item.text)
        if cited is not None:
            key = message_id or message_key(item.text, item.at)
            self.reading.citations.append(CitationSeen(key, item.at, cited.entries, cited.thread_ids))
            item = replace(item, text=strip_citations(item.text).strip())
        if item.text:
            push = self._final.push_undecided if undecided else self._final.push
            push(item)

    def decided(self) -> list[Item]:
        """Return what is decided by now and was not yet given out."""
        return self._final.decided()

    def finish(self, source: SessionBytes) -> Sequence[Item]:
        """Return what was held back, and settle what is known only at the end. Raises SessionWithoutItems."""
        at = self._last_at
        if self.last is not None:
            at = self.last.at.timestamp() if self.last.at else None
        return self.end(source, at, source.bytes_read)

    def end(self, source: SessionBytes, at: float | None, size: int) -> Sequence[Item]:
        """Do the same where the end of the session says when it was written, and how many bytes count."""
        reading = self.reading
        reading.record_bytes = size
        reading.timed = at is not None
        reading.last_record_at = last_instant(at, source)
        return self.flush(f"{source.path}", source.size)

    def flush(self, name: str, size: int) -> Sequence[Item]:
        """Return what was held back; raise SessionWithoutItems when there were bytes and nothing was understood."""
        reading = self.reading
        reading.dropped = +reading.dropped
        if size and not self._understood and self.last is None:
            raise SessionWithoutItems(
                f"cannot read {name}: it has {size} bytes, and no record in them was understood",
                remedy="is it a session of a newer version of the agent?",
            )
        return self._final.flush()
