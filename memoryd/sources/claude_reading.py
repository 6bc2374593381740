"""The stream of items of one Claude Code session: row by row, with what is seen on the way gathered in the Reading."""

from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from msgspec import Raw, structs

from memoryd.sources.claude_branches import Abandoned, CopiedRows, find_abandoned
from memoryd.sources.claude_messages import Block, Message, ToolResult, decode_blocks, decode_message, decode_result
from memoryd.sources.claude_records import (
    ASSISTANT,
    ATTACHMENT,
    CONVERSATION,
    USER,
    USUAL,
    Record,
    UsualRow,
    decode_record,
    is_known,
    is_subagent,
    last_time,
    origin_kind,
)
from memoryd.sources.claude_tools import MEDIA, OpenCalls, call_item, result_item
from memoryd.sources.claude_words import Words, split_words
from memoryd.sources.items import ASSISTANT_FINAL, OTHER_AGENT, Item
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.parts import Spot
from memoryd.sources.rawjson import as_fields, as_text, is_true
from memoryd.sources.reader import Reading, Stretches
from memoryd.sources.stream import ItemStream

QUEUED = "queued_command"  # what a person typed while the agent was busy; it never becomes a row of its own
QUEUED_WITHIN_BYTES = 8192  # where an attachment tells its type; some hold 100 KB, and there are many of them
PROMPT_MODE = "prompt"
SYNTHETIC = "<synthetic>"  # the model of messages that the program wrote itself
REASONING = frozenset({"thinking", "redacted_thinking"})
CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
RESULT = RESULT_SUFFIX = "tool_result"  # and web_search_tool_result, mcp_tool_result, ...
MAX_ANSWER_CHARACTERS = 64 * 1024  # a longer one goes on in an item of its own
OTHER_AGENTS = frozenset({"peer", "teammate", "coordinator", "agent"})
_QUEUED_BYTES = f'"{QUEUED}"'.encode()
_TOLD_NOTHING = ToolResult()


def read_items(source: SessionBytes, reading: Reading, copied: CopiedRows) -> Stretches:
    """Yield a session's items in the order of the file and fill `reading`.

    A first pass over the bytes looks for rewinds. Raises SessionWithoutItems at the end when there were bytes and
    nothing in them was understood.
    """
    stream = ItemStream(reading)
    session = _Session(stream, find_abandoned(source), copied, is_subagent=is_subagent(source.path))
    yield from stream.rows(source, USUAL, session.usual, session.other)
    session.end_answer()
    yield stream.end(source, last_time(source), source.bytes_read)


class _Session:
    """What must be remembered from one row to the next."""

    def __init__(self, stream: ItemStream, abandoned: Abandoned, copied: CopiedRows, *, is_subagent: bool) -> None:
        self._stream = stream
        self._reading = stream.reading
        self._abandoned = abandoned
        self._copied = copied
        self._is_plain = not abandoned and not copied.size_bytes  # every row counts, as in nearly every session
        self._is_subagent = is_subagent
        self._calls = OpenCalls()
        self._spoken: tuple[Item, str] | None = None  # an answer that may go on, and the id of its message

    def usual(self, row: UsualRow, index: int) -> bool:
        """Take a row that is as nearly all are; a person's is turned down: whose words they are wants a closer look."""
        kind = row.type
        if kind in CONVERSATION:
            is_taken = self._usual_message(row, index)
        elif kind == ATTACHMENT:
            is_taken = row.attachment is not None and row.attachment.type != QUEUED
        else:
            is_taken = is_known(kind)
        if is_taken:
            self._stream.last = row
        return is_taken

    def _usual_message(self, row: UsualRow, index: int) -> bool:
        is_odd = row.side_chain or row.meta or row.compact_summary or row.transcript_only or row.api_error
        if is_odd or row.message is None or not self._is_plain:
            return False
        spot = Spot(index, row.at.timestamp() if row.at else None, row.cwd or None)
        if row.type == ASSISTANT:
            self._assistant(row.message, spot)
            return True
        content = row.message.content
        if isinstance(content, str) or any(block.type != RESULT for block in content):
            return False
        result = row.result if isinstance(row.result, ToolResult) else _TOLD_NOTHING
        for block in content:
            self._result(block, result, spot)
        return True

    def other(self, line: Line) -> None:
        """Take any other row."""
        record = decode_record(line)
        if record is None:
            self._stream.miss(line)
            return
        self._reading.bad_lines += record.is_damaged
        kind = record.type
        if kind in CONVERSATION or (kind == ATTACHMENT and _may_be_queued(record.row.attachment)):
            reason = self._why_dropped(record)
            self._stream.know(reason or None)
            if not reason:
                self._tell(record)
        elif is_known(kind):
            self._stream.know()
        else:
            self._reading.unknown[kind] += 1

    def _tell(self, record: Record) -> None:
        """Tell what a row holds; an answer waits for the next row, in which it may go on."""
        spot = Spot(record.ordinal, record.at, record.cwd)
        if record.type == ASSISTANT:
            self._assistant(decode_message(record.row.message), spot)
        elif record.type == USER:
            self._user(record, spot)
        else:
            self._queued(as_fields(record.row.attachment), spot)

    def end_answer(self) -> None:
        """Give out the answer that was still going on, if there is one."""
        if self._spoken is not None:
            item, message_id = self._spoken
            self._spoken = None
            self._stream.answer(item, message_id, undecided=True)

    def _give(self, item: Item) -> None:
        if self._spoken is not None:
            self.end_answer()
        self._stream.give(item)

    def _result(self, block: Block, result: ToolResult, spot: Spot) -> None:
        item = result_item(block, result, spot, self._calls, self._reading.dropped)
        if item is not None:
            self._give(item)

    def _why_dropped(self, record: Record) -> str:
        """Return why a row of the conversation is no evidence; empty when it is some."""
        if record.is_side_chain and not self._is_subagent:
            return "side_chain"
        if record.uuid in self._copied:
            return "copied"
        if record.ordinal in self._abandoned:
            return "rolled_back"
        if record.is_compaction:
            return "compaction"
        if record.is_api_error:
            return "api_error"
        return "harness" if record.is_meta else ""

    def _user(self, record: Record, spot: Spot) -> None:
        words: list[Words] = []
        for block in decode_message(record.row.message).blocks:
            kind = block.type
            if kind.endswith(RESULT_SUFFIX):
                self._say(words, spot)
                words = []
                self._result(block, decode_result(record.row.result), spot)
            elif kind in MEDIA:
                self._reading.dropped[MEDIA[kind]] += 1
            else:
                words += self._words(block.text or "", record.speaker)
        self._say(words, spot)

    def _queued(self, fields: dict[str, Raw], spot: Spot) -> None:
        if (as_text(fields.get("type")), is_true(fields.get("isMeta"))) != (QUEUED, False):
            return
        speaker = origin_kind(fields.get("origin"))
        mode = as_text(fields.get("commandMode")) or PROMPT_MODE
        words: list[Words] = []
        for block in decode_blocks(fields.get("prompt")):
            words += self._words(block.text or "", speaker or ("human" if mode == PROMPT_MODE else mode))
        self._say(words, spot)

    def _words(self, text: str, speaker: str) -> list[Words]:
        """Split a text of a user row; a row that says it is not a person's holds no human words."""
        if speaker in OTHER_AGENTS:
            return [Words(OTHER_AGENT, text.strip())] if text.strip() else []
        if speaker not in ("", "human"):
            self._reading.dropped["notification"] += 1
            return []
        found = split_words(text, self._reading.dropped)
        if self._is_subagent:  # it is the agent that called it who speaks to it
            return [replace(words, kind=OTHER_AGENT) for words in found]
        return found

    def _say(self, words: list[Words], spot: Spot) -> None:
        for kind, run in groupby(words, key=attrgetter("kind")):
            self._give(Item(kind, "\n\n".join(words.text for words in run), spot.ordinal, spot.at, spot.cwd))

    def _assistant(self, message: Message, spot: Spot) -> None:
        if message.model == SYNTHETIC:
            self._reading.dropped["synthetic"] += 1
            return
        for block in message.blocks:
            if block.type == "text":
                self._answer((block.text or "").strip(), message.id or "", spot)
            else:
                self._deed(block, spot)

    def _deed(self, block: Block, spot: Spot) -> None:
        """Read what an assistant's message holds besides text: calls, and results of what runs at the server."""
        kind = block.type
        if kind in CALLS:
            self._give(call_item(block, spot, self._calls))
        elif kind.endswith(RESULT_SUFFIX):
            self._result(block, _TOLD_NOTHING, spot)
        elif kind in REASONING or kind in MEDIA:
            self._reading.dropped[MEDIA.get(kind, "reasoning")] += 1
        else:
            self._reading.unknown[f"{ASSISTANT}.{kind}"] += 1

    def _answer(self, text: str, message_id: str, spot: Spot) -> None:
        """Take in a text of the assistant, and give out the one before unless it goes on: texts of one message do."""
        before = self._spoken[0] if self._spoken is not None and self._spoken[1] == message_id else None
        if before is not None and message_id and len(before.text) < MAX_ANSWER_CHARACTERS:
            self._spoken = (structs.replace(before, text=f"{before.text}\n\n{text}".strip()), message_id)
            return
        self.end_answer()
        self._spoken = (Item(ASSISTANT_FINAL, text, spot.ordinal, spot.at, spot.cwd), message_id)


def _may_be_queued(attachment: Raw) -> bool:
    return _QUEUED_BYTES in bytes(memoryview(attachment)[:QUEUED_WITHIN_BYTES])
