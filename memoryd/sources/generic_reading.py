"""The stream of items of one session in the generic format: row by row, with what is seen on the way in the Reading."""

from collections.abc import Callable, Sequence

from msgspec import UNSET

from memoryd.sources.calls import brings_outside_words
from memoryd.sources.codex_tools import Call, OpenCalls
from memoryd.sources.copies import CopiedBeginning, ids_in
from memoryd.sources.generic_records import (
    ASSISTANT,
    CALL,
    CONTEXT,
    DEVELOPER,
    NAMELESS_TOOL,
    OTHER_AGENT,
    OUTPUT,
    SESSION,
    USER,
    USUAL,
    Row,
    UsualRow,
    content,
    decode_row,
    key_of,
    key_of_row,
    parse_session,
    spoken,
    usual_content,
)
from memoryd.sources.items import (
    ASSISTANT_COMMENTARY,
    ASSISTANT_FINAL,
    TOOL_CALL,
    TOOL_OUTPUT,
    Item,
    ItemKind,
    SessionFile,
)
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.rawjson import as_text
from memoryd.sources.reader import Reading, Stretches
from memoryd.sources.stream import ItemStream

MAX_KNOWN_IDS = 8_192  # this many, and as many before them: a row that is written again stands near the first
PLAIN = {
    USER: ItemKind.HUMAN,
    CONTEXT: ItemKind.HARNESS_CONTEXT,
    OTHER_AGENT: ItemKind.OTHER_AGENT,
}


def read_items(source: SessionBytes, reading: Reading, relatives: Sequence[SessionFile]) -> Stretches:
    """Yield a session's items in the order of the file and fill `reading`.

    Raises SessionWithoutItems at the end when there were bytes and nothing in them was understood.
    """
    session = _Session(ItemStream(reading), CopiedBeginning(ids_in(file, row_id_of) for file in relatives))
    yield from session.stream.rows(source, USUAL, session.usual, session.other)
    yield session.stream.finish(source)


def row_id_of(line: Line) -> str | None:
    """Return by what a copy of the row that a line holds is known; None where it holds none, or one without an id."""
    return key_of_row(decode_row(line))


class _Session:
    """What must be remembered from one row to the next."""

    def __init__(self, stream: ItemStream, copied: CopiedBeginning) -> None:
        self.stream = stream
        self._give = stream.give
        self._copied = copied
        self._cwd: str | None = None
        self._calls = OpenCalls()
        self._known: set[str] = set()  # ids of rows, and of those before them
        self._known_before: set[str] = set()
        self._tellers: dict[str, Callable[[UsualRow, str, int, float | None], None]] = {
            **dict.fromkeys(PLAIN, self._plain),
            ASSISTANT: self._assistant,
            CALL: self._call,
            OUTPUT: self._output,
        }

    def usual(self, row: UsualRow, index: int) -> bool:
        """Take a row that is as nearly all are; one of another type or without words is turned down."""
        text, media = row.text, None
        if text is UNSET:
            text, media = usual_content(row.content)
        tell = self._tellers.get(row.type)
        if not text or text.isspace() or tell is None:
            return False
        self.stream.last = row
        if row.cwd:
            self._cwd = row.cwd
        if row.id is not None and (reason := self._why_not(row.id, row.type, text)):
            self.stream.reading.dropped[reason] += 1
            return True
        if media:
            self.stream.reading.dropped.update(media)
        tell(row, text, index, row.at.timestamp() if row.at else None)
        return True

    def other(self, line: Line) -> None:
        """Take any other row, member by member."""
        row = decode_row(line)
        if row is None:
            self.stream.miss(line)
            return
        self.stream.see(row.at, is_damaged=row.is_damaged)
        self._cwd = as_text(row.fields.get("cwd")) or self._cwd
        if row.type == SESSION:
            self.stream.know()
            self.stream.reading.memory_mode = parse_session(row).memory_mode or self.stream.reading.memory_mode
        elif row.type == DEVELOPER:
            self.stream.know("developer")
        elif row.type not in self._tellers:
            self.stream.reading.unknown[row.name] += 1
        elif row.row_id is not None and (reason := self._why_not(row.row_id, row.type, content(row.fields)[0])):
            self.stream.know(reason)
        else:
            self.stream.know()
            self._tell(row)

    def _why_not(self, row_id: str, kind: str, words: str) -> str | None:
        """Return why a row is left out by its id; to be asked once for each row, in order."""
        if self._copied.is_open and self._copied.covers(key_of(row_id, kind, words)):
            return "copied"
        known = self._known
        if row_id in known or row_id in self._known_before:
            return "repeated"
        known.add(row_id)
        if len(known) >= MAX_KNOWN_IDS:
            self._known, self._known_before = set(), known
        return None

    def _tell(self, row: Row) -> None:
        text, media = content(row.fields)
        self.stream.reading.dropped.update(media)
        for said, words in spoken(row, text):
            self._tellers[said.type](said, words, row.ordinal, row.at)

    def _plain(self, row: UsualRow, text: str, ordinal: int, at: float | None) -> None:
        if text:
            self._give(Item(PLAIN[row.type], text.strip(), ordinal, at, self._cwd))

    def _assistant(self, row: UsualRow, text: str, ordinal: int, at: float | None) -> None:
        kind = ASSISTANT_COMMENTARY if row.final is False else ASSISTANT_FINAL
        item = Item(kind, text.strip(), ordinal, at, self._cwd)
        self.stream.answer(item, row.id, undecided=row.final is None)

    def _call(self, row: UsualRow, text: str, ordinal: int, at: float | None) -> None:
        tool = row.tool or NAMELESS_TOOL
        external = row.external or brings_outside_words(tool)
        self._calls.open(row.call_id, Call(tool, external, None))
        text = text.strip()
        self._give(Item(TOOL_CALL, text, ordinal, at, self._cwd, tool, row.call_id, None, external))

    def _output(self, row: UsualRow, text: str, ordinal: int, at: float | None) -> None:
        call = self._calls.answer(row.call_id)
        tool, external = row.tool or NAMELESS_TOOL, row.external
        if call is not None:
            tool, external = row.tool or call.tool, external or call.external
        else:
            external = external or brings_outside_words(tool)
        if text or row.exit_code is not None:
            code = row.exit_code
            self._give(Item(TOOL_OUTPUT, text, ordinal, at, self._cwd, tool, row.call_id, code, external))
