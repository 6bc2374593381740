"""What a Gemini CLI session of lines amounts to: which lines count after all rewritings, rewinds and replacements.

A session is a log of edits: a message with a known id replaces the earlier one, `$rewindTo` takes a message and all
after it away, and `$set.messages` puts another list in the place of all. That list is what the model is sent, with new
times and without recorded calls: where a message has a line of its own, the line counts, and the list only says that
it still stands. A list that begins with a summary is a compression: what was said before it was said all the same.
"""

from collections.abc import Iterable

from msgspec import Raw

from memoryd.sources.gemini_records import (
    Record,
    decode_record,
    is_context,
    is_message,
    is_summary,
    is_touch,
    listed,
    patched,
)
from memoryd.sources.jsonl import Line

MAX_MESSAGES = 16_384  # how many are followed; older ones can no longer be rewritten or taken back


class Lines:
    """A set of line indexes, a bit for each line."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, index: int) -> None:
        """Put a line into the set."""
        byte = index >> 3
        if byte >= len(self._bits):
            self._bits.extend(bytes(byte + 1 - len(self._bits)))
        self._bits[byte] |= 1 << (index & 7)

    def __contains__(self, index: int) -> bool:
        byte = index >> 3
        return byte < len(self._bits) and bool(self._bits[byte] & 1 << (index & 7))


class Fold:
    """Reads a session once, and then says of each line what is left of it.

    `rewritten` lines have a later form, `withdrawn` ones were taken back, `bad_lines` counts the damaged; of the list
    in line `list_line` the messages at `list_positions` have no line of their own.
    """

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self.rewritten = Lines()
        self.withdrawn = Lines()
        self.list_line = -1
        self.list_positions: set[int] = set()
        self.unknown_rewinds = 0
        self.bad_lines = 0
        self._places: dict[int, int] = {}  # hash of an id: its line, or -1 - its position in the list; in order
        self._words: dict[int, int] = {}  # hash of a user message's id: hash of its content
        self._compressed: dict[int, int] = {}  # hash of an id: the line of the compression that it stands in
        for line in lines:
            if not is_touch(line):
                record, is_bad = decode_record(line)
                self.bad_lines += is_bad
                if record is not None:
                    self._see(line.index, record)

    def _see(self, index: int, record: Record) -> None:
        if record.rewind_to:
            self._rewind(_digest(record.rewind_to))
        elif is_message(record):
            self._message(index, record)
        elif messages := patched(record).messages:
            self._replace(index, listed(messages))

    def _message(self, index: int, record: Record) -> None:
        digest = _digest(record.id)
        before = self._places.get(digest)
        if before is not None:
            self._supersede(before)
        self._places[digest] = index
        if _is_user(record):
            self._words[digest] = _digest(record.content)
        if len(self._places) > MAX_MESSAGES:
            oldest = next(iter(self._places))
            del self._places[oldest]
            self._words.pop(oldest, None)

    def _rewind(self, digest: int) -> None:
        """Take a message and what follows it away; the copies in a compression stand where the compression does."""
        if digest in self._places:
            last = None
            while last != digest:  # from the end: a session may hold as many rewinds as messages
                last, place = self._places.popitem()
                self._withdraw(place)
        elif digest in self._compressed:
            line = self._compressed[digest]
            for each in [each for each, place in self._places.items() if place > line]:
                self._withdraw(self._places.pop(each))
        else:
            self.unknown_rewinds += 1

    def _replace(self, index: int, messages: list[Record]) -> None:
        """Put a list in the place of all; one that holds nothing but the context comes before a list that does."""
        if all(is_context(message) for message in messages):
            return
        if any(is_summary(message) for message in messages):
            self._compressed = {_digest(message.id): index for message in messages}
            return
        before, self._places, self.list_line, self.list_positions = self._places, {}, index, set()
        for position, message in enumerate(messages):
            self._stand(position, message, before.pop(_digest(message.id), -1))
        for place in before.values():
            if place >= 0:  # what the list before this one added goes with that list
                self.withdrawn.add(place)

    def _stand(self, position: int, message: Record, line: int) -> None:
        """Take in a message of a list; it has a line of its own unless that is negative."""
        digest = _digest(message.id)
        if line >= 0 and not self._says_otherwise(digest, message):
            self._places[digest] = line
            return
        if line >= 0:
            self.rewritten.add(line)
        if not is_context(message) and digest not in self._places:
            self._places[digest] = -1 - position
            self.list_positions.add(position)

    def _says_otherwise(self, digest: int, message: Record) -> bool:
        return _is_user(message) and self._words.get(digest) != _digest(message.content)

    def _supersede(self, place: int) -> None:
        if place >= 0:
            self.rewritten.add(place)
        else:
            self.list_positions.discard(-1 - place)

    def _withdraw(self, place: int) -> None:
        if place >= 0:
            self.withdrawn.add(place)
        else:
            self.list_positions.discard(-1 - place)


def _digest(raw: Raw) -> int:
    return hash(bytes(raw))


def _is_user(record: Record) -> bool:
    return bytes(record.type) == b'"user"'
