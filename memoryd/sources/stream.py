"""What the readers of line files do alike while they go through a session: they count, hold, cite and close."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from memoryd.errors import SessionWithoutItems
from memoryd.sources.citations import parse_citations, strip_citations
from memoryd.sources.decoding import is_blank
from memoryd.sources.finals import FinalMessages
from memoryd.sources.identity import instant_of, last_instant, message_key
from memoryd.sources.items import CitationSeen, Item
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.reader import Reading


class ItemStream:
    """The way from a session's records to its Reading: what is given out, what is counted, and the end of it."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self._final = FinalMessages()
        self._last_at: float | None = None
        self._stamp: str | None = None  # when the last record was written, if nobody needed to know yet
        self._understood = 0

    def miss(self, line: Line) -> None:
        """Take note of a line without a record; a torn last one is not bad: the rest of it is still to come."""
        self.reading.bad_lines += line.ended and not is_blank(line)

    def see(self, at: float | None, *, is_damaged: bool) -> None:
        """Take note of a record, whatever it holds; the last one's time is the session's."""
        self._last_at, self._stamp = at, None
        self.reading.bad_lines += is_damaged

    def see_stamp(self, stamp: str) -> None:
        """Take note of a record by the time in it, which is parsed at the end, if it is the last."""
        self._stamp = stamp

    def know(self, reason: str | None = None, count: int = 1) -> None:
        """Take note that a record was understood, and, with a reason, that something in it is not wanted."""
        self._understood += 1
        if reason is not None:
            self.reading.dropped[reason] += count

    def give(self, item: Item) -> Sequence[Item]:
        """Give out an item as soon as what was held before it is decided."""
        return self._final.push(item)

    def answer(self, item: Item, message_id: str | None, *, undecided: bool) -> Sequence[Item]:
        """Give out what the assistant said, without the citations in it; `undecided`: final or not is seen later."""
        cited = parse_citations(item.text)
        if cited is not None:
            key = message_id or message_key(item.text, item.at)
            self.reading.citations.append(CitationSeen(key, item.at, cited.entries, cited.thread_ids))
            item = replace(item, text=strip_citations(item.text).strip())
        return self._final.push(item, undecided=undecided) if item.text else ()

    def finish(self, source: SessionBytes) -> Iterator[Item]:
        """Give out what was held back, and settle what is known only at the end. Raises SessionWithoutItems."""
        yield from self._final.flush()
        reading = self.reading
        if self._stamp is not None:
            self._last_at = instant_of(self._stamp)
        reading.dropped = +reading.dropped
        reading.record_bytes = source.bytes_read
        reading.timed = self._last_at is not None
        reading.last_record_at = last_instant(self._last_at, source)
        if source.bytes_read and not self._understood:
            raise SessionWithoutItems(
                f"cannot read {source.path}: it has {source.bytes_read} bytes, and no record in them was understood",
                remedy="is it a session of a newer version of the agent?",
            )
