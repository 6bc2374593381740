"""The stream of items of one session in the generic format: row by row, with what is seen on the way in the Reading."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from memoryd.sources.calls import brings_outside_words, call_text
from memoryd.sources.codex_tools import Call, OpenCalls
from memoryd.sources.copies import CopiedBeginning, ids_in
from memoryd.sources.generic_records import (
    ASSISTANT,
    CALL,
    CONTEXT,
    DEVELOPER,
    OTHER_AGENT,
    OUTPUT,
    SESSION,
    USER,
    Row,
    UsualRow,
    content,
    decode_row,
    decode_usual,
    parse_session,
)
from memoryd.sources.identity import instant_of
from memoryd.sources.items import Item, ItemKind, SessionFile
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.parts import Spot
from memoryd.sources.rawjson import as_fields, as_int, as_list, as_text, is_true
from memoryd.sources.reader import Reading
from memoryd.sources.stream import ItemStream

MAX_KNOWN_IDS = 16_384  # a row that is written again stands near the first
PLAIN = {
    USER: ItemKind.HUMAN,
    CONTEXT: ItemKind.HARNESS_CONTEXT,
    OTHER_AGENT: ItemKind.OTHER_AGENT,
}
NAMELESS_TOOL = "tool"


def read_items(source: SessionBytes, reading: Reading, relatives: Sequence[SessionFile]) -> Generator[Item, None, None]:
    """Yield a session's items in the order of the file and fill `reading`.

    Raises SessionWithoutItems at the end when there were bytes and nothing in them was understood.
    """
    session = _Session(ItemStream(reading), CopiedBeginning(ids_in(file, row_id_of) for file in relatives))
    for line in source.lines():
        if items := session.take(line):
            yield from items
    yield from session.stream.finish(source)


def row_id_of(line: Line) -> str | None:
    """Return the id of the row that a line holds; None where it holds none, or one without an id."""
    row = decode_row(line)
    return None if row is None else row.row_id


class _Session:
    """What must be remembered from one row to the next."""

    def __init__(self, stream: ItemStream, copied: CopiedBeginning) -> None:
        self.stream = stream
        self._copied = copied
        self._cwd: str | None = None
        self._calls = OpenCalls()
        self._known: dict[int, None] = {}  # hashes of ids
        self._readers: dict[str, Callable[[Row, Spot], Iterable[Item]]] = {
            **dict.fromkeys(PLAIN, self._plain),
            ASSISTANT: self._assistant,
            CALL: self._call,
            OUTPUT: self._output,
        }

    def take(self, line: Line) -> Iterable[Item]:
        """Take in the next line and return the items that are decided now."""
        usual = decode_usual(line)
        return self._other(line) if usual is None else self._usual(usual, line.index)

    def _usual(self, row: UsualRow, index: int) -> Sequence[Item]:
        """Return the items of a row that is as nearly all are."""
        at = None if row.at is None else instant_of(row.at)
        self.stream.see(at, is_damaged=False)
        if row.cwd:
            self._cwd = row.cwd
        is_copy = self._copied.covers(row.id)
        if is_copy or self._is_repeated(row.id):
            self.stream.know("copied" if is_copy else "repeated")
            return ()
        self.stream.know()
        kind, text, spot = row.type, row.text.strip(), Spot(index, at, self._cwd)
        if kind == OUTPUT:
            return self._answered(row.tool, row.call_id, text, row.exit_code, spot, is_external=row.external)
        if kind == CALL:
            return self._called(spot, row.tool or NAMELESS_TOOL, text, row.call_id, is_external=row.external)
        if kind == ASSISTANT:
            return self._said(text, row.final, row.id, spot)
        return self.stream.give(Item(PLAIN[kind], text, index, at, self._cwd))

    def _other(self, line: Line) -> Iterable[Item]:
        """Return the items of any other row, member by member."""
        row = decode_row(line)
        if row is None:
            self.stream.miss(line)
            return ()
        self.stream.see(row.at, is_damaged=row.is_damaged)
        self._cwd = as_text(row.fields.get("cwd")) or self._cwd
        is_copy = self._copied.covers(row.row_id)
        if row.type == SESSION:
            self.stream.know()
            self.stream.reading.memory_mode = parse_session(row).memory_mode or self.stream.reading.memory_mode
        elif row.type == DEVELOPER:
            self.stream.know("developer")
        elif row.type not in self._readers:
            self.stream.reading.unknown[row.name] += 1
        elif is_copy or self._is_repeated(row.row_id):
            self.stream.know("copied" if is_copy else "repeated")
        else:
            self.stream.know()
            return self._readers[row.type](row, Spot(row.ordinal, row.at, self._cwd))
        return ()

    def _is_repeated(self, row_id: str | None) -> bool:
        if row_id is None:
            return False
        digest = hash(row_id)
        if digest in self._known:
            return True
        self._known[digest] = None
        if len(self._known) > MAX_KNOWN_IDS:
            del self._known[next(iter(self._known))]
        return False

    def _words(self, row: Row) -> str:
        text, media = content(row.fields)
        if media:
            self.stream.reading.dropped.update(media)
        return text

    def _plain(self, row: Row, spot: Spot) -> Iterable[Item]:
        text = self._words(row)
        return self.stream.give(Item(PLAIN[row.type], text, spot.ordinal, spot.at, spot.cwd)) if text else ()

    def _assistant(self, row: Row, spot: Spot) -> Iterator[Item]:
        final = row.fields.get("final")
        is_final = is_true(final) if final and bytes(final) in (b"true", b"false") else None
        if text := self._words(row):
            yield from self._said(text, is_final, row.row_id, spot)
        for raw in as_list(row.fields.get("tool_calls")):
            call = as_fields(raw)
            function = as_fields(call.get("function"))
            tool = as_text(function.get("name")) or NAMELESS_TOOL
            text = call_text(tool, function.get("arguments"))
            is_external = is_true(row.fields.get("external"))
            yield from self._called(spot, tool, text, as_text(call.get("id")), is_external=is_external)

    def _said(self, text: str, is_final: bool | None, message_id: str | None, spot: Spot) -> Sequence[Item]:
        kind = ItemKind.ASSISTANT_COMMENTARY if is_final is False else ItemKind.ASSISTANT_FINAL
        item = Item(kind, text, spot.ordinal, spot.at, spot.cwd)
        return self.stream.answer(item, message_id, undecided=is_final is None)

    def _call(self, row: Row, spot: Spot) -> Iterable[Item]:
        tool = as_text(row.fields.get("tool")) or NAMELESS_TOOL
        text = self._words(row) or call_text(tool, row.fields.get("arguments"))
        call_id, is_external = as_text(row.fields.get("call_id")), is_true(row.fields.get("external"))
        return self._called(spot, tool, text, call_id, is_external=is_external)

    def _called(self, spot: Spot, tool: str, text: str, call_id: str | None, *, is_external: bool) -> Sequence[Item]:
        external = is_external or brings_outside_words(tool)
        self._calls.open(call_id, Call(tool, external, None))
        return self.stream.give(_tool_item(ItemKind.TOOL_CALL, text, spot, tool, call_id, external=external))

    def _output(self, row: Row, spot: Spot) -> Iterable[Item]:
        fields = row.fields
        call_id = as_text(fields.get("call_id")) or as_text(fields.get("tool_call_id"))
        tool = as_text(fields.get("tool")) or as_text(fields.get("name"))
        text, exit_code = self._words(row), as_int(fields.get("exit_code"))
        if not text and exit_code is None:
            return ()
        return self._answered(tool, call_id, text, exit_code, spot, is_external=is_true(fields.get("external")))

    def _answered(
        self, named: str | None, call_id: str | None, text: str, exit_code: int | None, spot: Spot, *, is_external: bool
    ) -> Sequence[Item]:
        call = self._calls.answer(call_id)
        tool = named or (call.tool if call else NAMELESS_TOOL)
        external = is_external or (call.external if call else brings_outside_words(tool))
        item = _tool_item(ItemKind.TOOL_OUTPUT, text, spot, tool, call_id, external=external, exit_code=exit_code)
        return self.stream.give(item)


def _tool_item(
    kind: ItemKind,
    text: str,
    spot: Spot,
    tool: str,
    call_id: str | None,
    *,
    external: bool,
    exit_code: int | None = None,
) -> Item:
    return Item(kind, text, spot.ordinal, spot.at, spot.cwd, tool, call_id, exit_code, external)
