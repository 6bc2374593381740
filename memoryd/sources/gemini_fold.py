"""What a Gemini CLI session of lines amounts to: which lines count after all rewritings, rewinds and replacements.

A session is a log of edits: a message with a known id replaces the earlier one, `$rewindTo` takes a message and all
after it away, and `$set.messages` puts another list in the place of all. That list is what the model is sent, with new
times and without recorded calls: where a message has a line of its own, the line counts, and the list only says that
it still stands. A list that begins with a summary is a compression: what was said before it was said all the same.
"""

import re
from itertools import islice

from msgspec import Raw

from memoryd.sources.forgetting import forget_oldest
from memoryd.sources.gemini_records import (
    USER,
    Record,
    decode_record,
    is_context,
    is_message,
    is_summary,
    listed,
    patched,
)
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.rawjson import as_text

# how the program begins a message, and the patch after every message that only says when that was
BEGINNING = re.compile(rb'\{(?:"id": ?"([^"\\]+)",|"\$set": ?\{"lastUpdated": ?"[^"\\]*"\}\})')
BEGINNING_BYTES = 128
MAX_MESSAGES = 16_384  # how many are followed; older ones can no longer be rewritten or taken back
STANDS, REWRITTEN, WITHDRAWN = 0, 1, 2  # what is left of a line


class Fold:
    """Takes in the records of a session once, and then says of each line what is left of it.

    Lines that were REWRITTEN have a later form, those that were WITHDRAWN were taken back; of the list in line
    `list_line` the messages at `list_positions` have no line of their own.
    """

    def __init__(self) -> None:
        self.list_line = -1
        self.list_positions: set[int] = set()
        self.unknown_rewinds = 0
        self._fates = bytearray()  # a byte for each line
        self._places: dict[int, int] = {}  # hash of an id: its line, or -1 - its position in the list; in order
        self._words: dict[int, int] = {}  # hash of a user message's id: hash of its content
        self._compressed: dict[int, int] = {}  # hash of an id: the line of the compression that it stands in

    def fate(self, index: int) -> int:
        """Say what is left of a line."""
        return self._fates[index] if index < len(self._fates) else STANDS

    def take(self, line: Line) -> None:
        """Take in the record of the next line."""
        record, _ = decode_record(line)
        if record is None:
            return
        if record.rewind_to:
            self._rewind(_digest(record.rewind_to))
        elif is_message(record):
            self._message(line.index, _digest(record.id), record.content if _is_user(record) else None)
        elif messages := patched(record).messages:
            self._replace(line.index, listed(messages))

    def _message(self, index: int, digest: int, words: Raw | None) -> None:
        before = self._places.get(digest)
        if before is not None:
            self._give_up(before, REWRITTEN)
        self._places[digest] = index
        if words is not None:
            self._words[digest] = hash(bytes(words))
        self._forget()

    def _forget(self) -> None:
        while len(self._places) > MAX_MESSAGES:
            forget_oldest(self._places, MAX_MESSAGES)
        if len(self._words) > MAX_MESSAGES:
            forget_oldest(self._words, MAX_MESSAGES)

    def _rewind(self, digest: int) -> None:
        """Take a message and what follows it away; the copies in a compression stand where the compression does."""
        if digest in self._places:
            last = None
            while last != digest:  # from the end: a session may hold as many rewinds as messages
                last, place = self._places.popitem()
                self._give_up(place, WITHDRAWN)
        elif digest in self._compressed:
            line = self._compressed[digest]
            for each in [each for each, place in self._places.items() if place > line]:
                self._give_up(self._places.pop(each), WITHDRAWN)
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
                self._give_up(place, WITHDRAWN)

    def _stand(self, position: int, message: Record, line: int) -> None:
        """Take in a message of a list; it has a line of its own unless that is negative."""
        digest = _digest(message.id)
        if line >= 0 and not self._says_otherwise(digest, message):
            self._places[digest] = line
            return
        if line >= 0:
            self._give_up(line, REWRITTEN)
        if not is_context(message) and digest not in self._places:
            self._places[digest] = -1 - position
            self.list_positions.add(position)

    def _says_otherwise(self, digest: int, message: Record) -> bool:
        return _is_user(message) and self._words.get(digest) != hash(bytes(message.content))

    def _give_up(self, place: int, fate: int) -> None:
        """Let a message in a line of its own, or in the list, count no longer."""
        if place < 0:
            self.list_positions.discard(-1 - place)
            return
        if place >= len(self._fates):
            self._fates.extend(bytes(place + 1 - len(self._fates)))
        self._fates[place] = fate


def fold_lines(source: SessionBytes) -> Fold:
    """Find out what is left of the lines of a session; of one that is plain all of them are."""
    fold = Fold()
    if not _is_plain(source):
        for line in source.lines():
            fold.take(line)
    return fold


def _is_plain(source: SessionBytes) -> bool:
    """Tell whether nothing was taken back or replaced, but for messages that were written anew right after themselves.

    So it is in nearly every session, and the lines tell by how they begin; only those that do not are looked into. Of
    a line that a crash tore and the next run went on in, only the beginning counts here.
    """
    last, known, looked_into = b"", dict[bytes, None](), 0
    for number, beginning in enumerate(map(BEGINNING.match, source.beginnings(BEGINNING_BYTES)), start=1):
        if beginning is None:
            looked_into = number
            last = b""  # it may tell something, after which what came before is no longer open
        elif (own := beginning[1]) is not None and own != last:
            if own in known:
                return False
            known[own], last = None, own
            if len(known) > MAX_MESSAGES:
                forget_oldest(known, MAX_MESSAGES)
    return not any(map(_is_edit, islice(source.lines(), looked_into)))


def _is_edit(line: Line) -> bool:
    """Tell whether a line may change what others say, or is a message that does not begin as the program writes it."""
    if line.data is None or BEGINNING.match(line.data, 0, BEGINNING_BYTES):
        return False
    record, _ = decode_record(line)
    if record is None:
        return False
    is_changing = bool(record.rewind_to) or is_message(record)
    return is_changing or not all(is_context(message) for message in listed(patched(record).messages))


def _digest(raw: Raw) -> int:
    return hash((as_text(raw) or "").encode("utf-8", "replace"))


def _is_user(record: Record) -> bool:
    return as_text(record.type) == USER
