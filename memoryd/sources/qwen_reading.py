"""The stream of items of one Qwen Code session, with what is seen on the way gathered in the Reading."""

from collections.abc import Callable, Generator, Iterator

from memoryd.sources.gemini_items import Telling
from memoryd.sources.gemini_parts import Content, Spot, parse_content
from memoryd.sources.gemini_tools import parse_call
from memoryd.sources.identity import last_instant
from memoryd.sources.items import Item
from memoryd.sources.jsonl import SessionBytes
from memoryd.sources.qwen_branches import Abandoned, CopiedRows
from memoryd.sources.qwen_records import (
    ASSISTANT,
    CONVERSATION,
    SYSTEM,
    TOOL_RESULT,
    USER,
    Record,
    decode_record,
    records,
    shell_exit_code,
)
from memoryd.sources.rawjson import as_fields, as_text, is_true
from memoryd.sources.reader import Reading

REAL_USER, MID_TURN, NOTIFICATION = "real_user", "mid_turn_user_message", "notification"
MID_TURN_PREFIX = "[User message received during tool execution]:"


def read_items(
    source: SessionBytes, reading: Reading, copied: CopiedRows, *, is_subagent: bool
) -> Generator[Item, None, None]:
    """Yield a session's items in the order of the file and fill `reading`; a first pass looks for rewinds.

    Raises SessionWithoutItems at the end when there were bytes and nothing in them was understood.
    """
    session = _Session(reading, Abandoned(records(source.lines())), copied, is_subagent=is_subagent)
    for line in source.lines():
        record, is_bad = decode_record(line)
        reading.bad_lines += is_bad
        if record is not None:
            yield from session.take(record)
    yield from session.telling.finish(f"{source.path}", source.bytes_read)
    reading.record_bytes = source.bytes_read
    reading.timed = session.last_at is not None
    reading.last_record_at = last_instant(session.last_at, source)


class _Session:
    """What must be remembered from one row to the next."""

    def __init__(self, reading: Reading, abandoned: Abandoned, copied: CopiedRows, *, is_subagent: bool) -> None:
        self.telling = Telling(reading)
        self.last_at: float | None = None
        self._reading = reading
        self._abandoned = abandoned
        self._copied = copied
        self._is_subagent = is_subagent
        self._awaits_expansion = False  # a command of the person's was sent on: the next prompt is what it stands for
        self._readers: dict[str, Callable[[Record, Content, Spot], Iterator[Item]]] = {
            USER: self._user,
            ASSISTANT: self._assistant,
            TOOL_RESULT: self._tool_result,
        }

    def take(self, record: Record) -> Iterator[Item]:
        """Take in the next row and yield the items that are decided now."""
        self.last_at = record.at or self.last_at
        if record.type != SYSTEM and record.type not in CONVERSATION:
            self._reading.unknown[record.type or "row"] += 1
            return
        self.telling.understood += 1
        reason = self._reason_to_drop(record)
        if reason is not None:
            self._reading.dropped[reason] += record.type in CONVERSATION
            return
        spot = Spot(record.index, record.at, as_text(record.row.cwd) or None)
        if record.type == SYSTEM:
            yield from self._system(record, spot)
            return
        content = parse_content(as_fields(record.row.message).get("parts"))
        self._reading.dropped.update(content.dropped)
        yield from self._readers[record.type](record, content, spot)

    def _reason_to_drop(self, record: Record) -> str | None:
        if record.is_side_chain and not self._is_subagent:
            return "side_chain"
        if record.index in self._abandoned:
            return "rolled_back"
        return "copied" if record.row.uuid in self._copied else None

    def _system(self, record: Record, spot: Spot) -> Iterator[Item]:
        if record.subtype == "chat_compression":
            self._reading.dropped["compaction"] += 1
        elif record.subtype == "slash_command":
            payload = as_fields(record.row.payload)
            if as_text(payload.get("phase")) == "invocation" and is_true(payload.get("sentToModel")):
                self._awaits_expansion = True
                yield from self.telling.user([as_text(payload.get("rawCommand")) or ""], spot)

    def _user(self, record: Record, content: Content, spot: Spot) -> Iterator[Item]:
        is_expansion, self._awaits_expansion = self._awaits_expansion, False
        if record.subtype == NOTIFICATION:
            yield from self.telling.other_agent(content.texts, spot)
        elif not _is_human(record):
            self._reading.dropped["harness"] += 1
        elif is_expansion and record.subtype != MID_TURN:
            self._reading.dropped["expansion"] += 1
        else:
            yield from self.telling.user(_typed(record, content), spot)
        yield from self.telling.responses(content.responses, spot)

    def _assistant(self, record: Record, content: Content, spot: Spot) -> Iterator[Item]:
        self._awaits_expansion = False
        yield from self.telling.assistant(content, as_text(record.row.uuid), spot)
        for raw in content.calls:
            yield from self.telling.call(parse_call(raw), spot)

    def _tool_result(self, record: Record, content: Content, spot: Spot) -> Iterator[Item]:
        exit_code = shell_exit_code(record.row) if len(content.responses) == 1 else None
        yield from self.telling.responses(content.responses, spot, exit_code)


def _is_human(record: Record) -> bool:
    """Tell a prompt of the person's from one of the program's; older versions do not name the source."""
    provenance = as_text(record.row.provenance)
    if provenance is not None:
        return provenance == REAL_USER
    return record.subtype in ("", MID_TURN)


def _typed(record: Record, content: Content) -> list[str]:
    """Return what the person typed: the words for the screen where there are such, else the words for the model."""
    shown = as_text(as_fields(record.row.payload).get("displayText"))
    texts = [shown] if shown and shown.strip() else list(content.texts)
    if record.subtype == MID_TURN and texts:
        texts[0] = texts[0].lstrip().removeprefix(MID_TURN_PREFIX)
    return texts
