"""The stream of items of one Qwen Code session, with what is seen on the way gathered in the Reading."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from msgspec import UNSET

from memoryd.sources.gemini_items import Telling
from memoryd.sources.gemini_parts import Content, has_texts, parse_content, usual_content
from memoryd.sources.gemini_tools import parse_call
from memoryd.sources.identity import instant_of, last_instant
from memoryd.sources.items import Item
from memoryd.sources.jsonl import SessionBytes
from memoryd.sources.parts import Spot
from memoryd.sources.qwen_branches import Abandoned, CopiedRows
from memoryd.sources.qwen_records import (
    ASSISTANT,
    CONVERSATION,
    SYSTEM,
    TOOL_RESULT,
    USER,
    Row,
    UsualRow,
    decode_row,
    decode_usual,
    glances,
    last_time,
    shell_exit_code,
)
from memoryd.sources.rawjson import as_fields, as_text, is_true
from memoryd.sources.reader import Reading

REAL_USER, MID_TURN, NOTIFICATION = "real_user", "mid_turn_user_message", "notification"
TELLING_SUBTYPES = frozenset({"chat_compression", "slash_command"})  # of the program's own rows
MID_TURN_PREFIX = "[User message received during tool execution]:"


def read_items(
    source: SessionBytes, reading: Reading, copied: CopiedRows, *, is_subagent: bool
) -> Generator[Item, None, None]:
    """Yield a session's items in the order of the file and fill `reading`; a first pass looks for rewinds.

    Raises SessionWithoutItems at the end when there were bytes and nothing in them was understood.
    """
    session = _Session(reading, Abandoned(glances(source.lines())), copied, is_subagent=is_subagent)
    for line in source.lines():
        usual = decode_usual(line)
        items = session.take_usual(usual, line.index) if usual is not None else None
        if items is None:
            row, is_bad = decode_row(line)
            reading.bad_lines += is_bad
            if row is not None:
                yield from session.take(row, line.index)
        elif items:
            yield from items
    at = last_time(source)
    reading.record_bytes = source.size
    reading.timed = at is not None
    reading.last_record_at = last_instant(at, source)
    yield from session.telling.finish(f"{source.path}", source.size)


class _Session:
    """What must be remembered from one row to the next."""

    def __init__(self, reading: Reading, abandoned: Abandoned, copied: CopiedRows, *, is_subagent: bool) -> None:
        self.telling = Telling(reading)
        self._reading = reading
        self._abandoned = abandoned
        self._copied = copied
        self._is_subagent = is_subagent
        self._awaits_expansion = False  # a command of the person's was sent on: the next prompt is what it stands for
        self._readers: dict[str, Callable[[Row, Content, Spot], Iterable[Item]]] = {
            USER: self._user,
            ASSISTANT: self._assistant,
            TOOL_RESULT: self._tool_result,
        }

    def take_usual(self, row: UsualRow, index: int) -> Sequence[Item] | None:
        """Return the items of a row that is as nearly all are; None for one that needs a closer look."""
        kind, subtype = row.type, row.subtype
        is_spoken = kind in CONVERSATION and row.message is not UNSET
        if row.side_chain or self._copied or not (is_spoken or (kind == SYSTEM and subtype not in TELLING_SUBTYPES)):
            return None
        if row.message is UNSET:
            self.telling.understood += 1
            return ()
        content = usual_content(row.message.parts)
        if kind == USER or not has_texts(content):
            return None  # whose words they are is worth a closer look, and there are few
        self.telling.understood += 1
        if index in self._abandoned:
            self._reading.dropped["rolled_back"] += 1
            return ()
        if content.dropped:
            self._reading.dropped.update(content.dropped)
        spot = Spot(index, instant_of(row.timestamp), row.cwd or None)
        if kind == ASSISTANT:
            return self._said(content, row.uuid, spot)
        return self.telling.responses(content.responses, spot, row.exit_code if len(content.responses) == 1 else None)

    def take(self, row: Row, index: int) -> Iterator[Item]:
        """Take in the next row and yield the items that are decided now."""
        kind = row.kind
        if kind != SYSTEM and kind not in CONVERSATION:
            self._reading.unknown[kind or "row"] += 1
            return
        self.telling.understood += 1
        reason = self._reason_to_drop(row, index)
        if reason is not None:
            self._reading.dropped[reason] += kind in CONVERSATION
        elif kind == SYSTEM:
            yield from self._system(row, index)
        else:
            spot = Spot(index, row.at, as_text(row.cwd) or None)
            content = parse_content(as_fields(row.message).get("parts"))
            self._reading.dropped.update(content.dropped)
            yield from self._readers[kind](row, content, spot)

    def _reason_to_drop(self, row: Row, index: int) -> str | None:
        if row.is_side_chain and not self._is_subagent:
            return "side_chain"
        if index in self._abandoned:
            return "rolled_back"
        return "copied" if row.uuid in self._copied else None

    def _system(self, row: Row, index: int) -> Iterator[Item]:
        subtype = as_text(row.subtype)
        if subtype == "chat_compression":
            self._reading.dropped["compaction"] += 1
        elif subtype == "slash_command":
            payload = as_fields(row.payload)
            if as_text(payload.get("phase")) == "invocation" and is_true(payload.get("sentToModel")):
                self._awaits_expansion = True
                spot = Spot(index, row.at, as_text(row.cwd) or None)
                yield from self.telling.user([as_text(payload.get("rawCommand")) or ""], spot)

    def _user(self, row: Row, content: Content, spot: Spot) -> Iterator[Item]:
        is_expansion, self._awaits_expansion = self._awaits_expansion, False
        subtype = as_text(row.subtype)
        if subtype == NOTIFICATION:
            yield from self.telling.other_agent(content.texts, spot)
        elif not _is_human(row):
            self._reading.dropped["harness"] += 1
        elif is_expansion and subtype != MID_TURN:
            self._reading.dropped["expansion"] += 1
        else:
            yield from self.telling.user(_typed(row, content), spot)
        yield from self.telling.responses(content.responses, spot)

    def _assistant(self, row: Row, content: Content, spot: Spot) -> Sequence[Item]:
        return self._said(content, as_text(row.uuid), spot)

    def _said(self, content: Content, message_id: str | None, spot: Spot) -> Sequence[Item]:
        self._awaits_expansion = False
        given = [*self.telling.assistant(content, message_id, spot)]
        for raw in content.calls:
            given += self.telling.call(parse_call(raw), spot)
        return given

    def _tool_result(self, row: Row, content: Content, spot: Spot) -> Sequence[Item]:
        exit_code = shell_exit_code(row) if len(content.responses) == 1 else None
        return self.telling.responses(content.responses, spot, exit_code)


def _is_human(row: Row) -> bool:
    """Tell a prompt of the person's from one of the program's; older versions do not name the source."""
    provenance = as_text(row.provenance)
    if provenance is not None:
        return provenance == REAL_USER
    return as_text(row.subtype) in (None, MID_TURN)


def _typed(row: Row, content: Content) -> list[str]:
    """Return what the person typed: the words for the screen where there are such, else the words for the model."""
    shown = as_text(as_fields(row.payload).get("displayText"))
    texts = [shown] if shown and shown.strip() else list(content.texts)
    if texts and as_text(row.subtype) == MID_TURN:
        texts[0] = texts[0].lstrip().removeprefix(MID_TURN_PREFIX)
    return texts
