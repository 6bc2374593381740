"""The stream of items of one Qwen Code session, with what is seen on the way gathered in the Reading."""

from collections.abc import Callable, Sequence

from msgspec import UNSET

from memoryd.sources.gemini_items import Telling
from memoryd.sources.gemini_parts import Content, UsualPart, UsualResponse, parse_content, usual_content
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.parts import Spot
from memoryd.sources.qwen_branches import Abandoned, CopiedRows
from memoryd.sources.qwen_records import (
    ASSISTANT,
    CONVERSATION,
    SYSTEM,
    TOOL_RESULT,
    USER,
    USUAL,
    Row,
    UsualRow,
    decode_row,
    last_time,
    shell_exit_code,
)
from memoryd.sources.rawjson import as_fields, as_text, is_true
from memoryd.sources.reader import Reading, Stretches
from memoryd.sources.stream import ItemStream

REAL_USER, MID_TURN, NOTIFICATION = "real_user", "mid_turn_user_message", "notification"
TELLING_SUBTYPES = frozenset({"chat_compression", "slash_command"})  # of the program's own rows
MID_TURN_PREFIX = "[User message received during tool execution]:"


def read_items(source: SessionBytes, reading: Reading, copied: CopiedRows, *, is_subagent: bool) -> Stretches:
    """Yield a session's items in the order of the file and fill `reading`; a first pass looks for rewinds.

    Raises SessionWithoutItems at the end when there were bytes and nothing in them was understood.
    """
    session = _Session(ItemStream(reading), Abandoned(source), copied, is_subagent=is_subagent)
    yield from session.stream.rows(source, USUAL, session.usual, session.other)
    yield session.stream.end(source, last_time(source), source.size)


class _Session:
    """What must be remembered from one row to the next."""

    def __init__(self, stream: ItemStream, abandoned: Abandoned, copied: CopiedRows, *, is_subagent: bool) -> None:
        self.stream = stream
        self._telling = Telling(stream)
        self._reading = stream.reading
        self._abandoned = abandoned
        self._copied = copied
        self._is_plain = not abandoned and not copied  # every row counts, as in nearly every session
        self._is_subagent = is_subagent
        self._awaits_expansion = False  # a command of the person's was sent on: the next prompt is what it stands for
        self._readers: dict[str, Callable[[Row, Content, Spot], None]] = {
            USER: self._user,
            ASSISTANT: self._assistant,
            TOOL_RESULT: self._tool_result,
        }

    def usual(self, row: UsualRow, index: int) -> bool:
        """Take a row that is as nearly all are; one that may not count, or not be a person's, is turned down."""
        kind = row.type
        if row.side_chain or not self._is_plain:
            return False
        if kind == SYSTEM:
            is_taken = row.subtype not in TELLING_SUBTYPES
        elif row.message is None:
            is_taken = False
        elif kind == TOOL_RESULT:
            is_taken = self._usual_result(row, row.message.parts, index)
        else:
            is_taken = (kind == ASSISTANT or self._is_typed(row)) and self._usual_words(row, row.message.parts, index)
        if is_taken:
            self.stream.last = row
        return is_taken

    def _is_typed(self, row: UsualRow) -> bool:
        """Tell a row of a person's words, and of nothing else."""
        is_plain = row.subtype is None and not row.payload and not self._awaits_expansion
        return is_plain and row.type == USER and row.provenance == REAL_USER

    def _usual_result(self, row: UsualRow, parts: Sequence[UsualPart], index: int) -> bool:
        responses: list[UsualResponse] = []
        for part in parts:
            response = part.response
            if response is UNSET or response.response.text() is None:
                return False
            responses.append(response)
        self._telling.responses(responses, Spot(index, row.at.timestamp(), row.cwd or None), row.exit_code)
        return True

    def _usual_words(self, row: UsualRow, parts: Sequence[UsualPart], index: int) -> bool:
        content = usual_content(parts)
        if content is None or content.responses:
            return False
        for reason in content.dropped:
            self._reading.dropped[reason] += 1
        spot = Spot(index, row.at.timestamp(), row.cwd or None)
        if row.type == ASSISTANT:
            self._said(content, row.uuid, spot)
        else:
            self._telling.user(content.texts, spot)
        return True

    def other(self, line: Line) -> None:
        """Take any other line."""
        row, is_bad = decode_row(line)
        self._reading.bad_lines += is_bad
        if row is None:
            return
        kind = row.kind
        if kind != SYSTEM and kind not in CONVERSATION:
            self._reading.unknown[kind or "row"] += 1
            return
        reason = self._reason_to_drop(row, line.index)
        self.stream.know(reason if kind in CONVERSATION else None)
        if reason is not None:
            return
        spot = Spot(line.index, row.at, as_text(row.cwd) or None)
        if kind == SYSTEM:
            self._system(row, spot)
        else:
            content = parse_content(as_fields(row.message).get("parts"))
            self._reading.dropped.update(content.dropped)
            self._readers[kind](row, content, spot)

    def _reason_to_drop(self, row: Row, index: int) -> str | None:
        if row.is_side_chain and not self._is_subagent:
            return "side_chain"
        if index in self._abandoned:
            return "rolled_back"
        return "copied" if self._copied and as_text(row.uuid) in self._copied else None

    def _system(self, row: Row, spot: Spot) -> None:
        subtype = as_text(row.subtype)
        if subtype == "chat_compression":
            self._reading.dropped["compaction"] += 1
        elif subtype == "slash_command":
            payload = as_fields(row.payload)
            if as_text(payload.get("phase")) == "invocation" and is_true(payload.get("sentToModel")):
                self._awaits_expansion = True
                self._telling.user([as_text(payload.get("rawCommand")) or ""], spot)

    def _user(self, row: Row, content: Content, spot: Spot) -> None:
        is_expansion, self._awaits_expansion = self._awaits_expansion, False
        subtype = as_text(row.subtype)
        if subtype == NOTIFICATION:
            self._telling.other_agent(content.texts, spot)
        elif not _is_human(row):
            self._reading.dropped["harness"] += 1
        elif is_expansion and subtype != MID_TURN:
            self._reading.dropped["expansion"] += 1
        else:
            self._telling.user(_typed(row, content), spot)
        self._telling.responses(content.responses, spot)

    def _assistant(self, row: Row, content: Content, spot: Spot) -> None:
        self._said(content, as_text(row.uuid), spot)

    def _said(self, content: Content, message_id: str | None, spot: Spot) -> None:
        self._awaits_expansion = False
        self._telling.assistant(content.texts, message_id, spot)
        for called in content.calls:
            self._telling.call(called, spot)

    def _tool_result(self, row: Row, content: Content, spot: Spot) -> None:
        self._telling.responses(content.responses, spot, shell_exit_code(row))


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
