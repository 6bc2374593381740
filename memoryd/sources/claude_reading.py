"""The stream of items of one Claude Code session: row by row, with what is seen on the way gathered in the Reading."""

from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import groupby

from msgspec import Raw

from memoryd.sources.claude_branches import Abandoned, CopiedRows, find_abandoned
from memoryd.sources.claude_messages import Block, Message, decode_blocks, decode_message
from memoryd.sources.claude_records import (
    ASSISTANT,
    ATTACHMENT,
    CONVERSATION,
    USER,
    Record,
    decode_record,
    is_known,
    is_subagent,
    last_time,
    origin_kind,
)
from memoryd.sources.claude_tools import MEDIA, OpenCalls, Spot, call_item, result_items
from memoryd.sources.claude_words import Words, split_words
from memoryd.sources.items import Item, ItemKind
from memoryd.sources.jsonl import SessionBytes
from memoryd.sources.rawjson import as_fields, as_text, is_true
from memoryd.sources.reader import Reading
from memoryd.sources.stream import ItemStream

QUEUED = b'"queued_command"'  # what a person typed while the agent was busy; it never becomes a row of its own
QUEUED_WITHIN_BYTES = 8192  # where an attachment tells its type; some hold 100 KB, and there are many of them
PROMPT_MODE = "prompt"
SYNTHETIC = "<synthetic>"  # the model of messages that the program wrote itself
REASONING = frozenset({"thinking", "redacted_thinking"})
CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
RESULT_SUFFIX = "tool_result"  # tool_result, web_search_tool_result, mcp_tool_result, ...
OTHER_AGENTS = frozenset({"peer", "teammate", "coordinator", "agent"})


def read_items(source: SessionBytes, reading: Reading, copied: CopiedRows) -> Generator[Item, None, None]:
    """Yield a session's items in the order of the file and fill `reading`.

    A first pass over the bytes looks for rewinds. Raises SessionWithoutItems at the end when there were bytes and
    nothing in them was understood.
    """
    stream = ItemStream(reading)
    session = _Session(stream, find_abandoned(source), copied, is_subagent=is_subagent(source.path))
    for line in source.lines():
        record = decode_record(line)
        if record is None:
            stream.miss(line)
        elif session.sees_evidence(record):
            yield from session.said(record)
    yield from session.end_answer()
    stream.see(last_time(source), is_damaged=False)
    yield from stream.finish(source)


class _Session:
    """What must be remembered from one row to the next."""

    def __init__(self, stream: ItemStream, abandoned: Abandoned, copied: CopiedRows, *, is_subagent: bool) -> None:
        self._stream = stream
        self._reading = stream.reading
        self._abandoned = abandoned
        self._copied = copied
        self._is_subagent = is_subagent
        self._calls = OpenCalls()
        self._spoken: tuple[str, Item] | None = None  # the message id and text of an answer that may go on

    def sees_evidence(self, record: Record) -> bool:
        """Take in the next row, and say whether somebody said or did something in it that counts."""
        if record.is_damaged:
            self._reading.bad_lines += 1
        kind = record.type
        if kind in CONVERSATION or (kind == ATTACHMENT and _may_be_queued(record.row.attachment)):
            reason = self._why_dropped(record)
            self._stream.know(reason or None)
            return not reason
        if is_known(kind):
            self._stream.know()
        else:
            self._reading.unknown[kind] += 1
        return False

    def end_answer(self) -> Iterator[Item]:
        """Give out the answer that was still going on."""
        if self._spoken is not None:
            message_id, item = self._spoken
            self._spoken = None
            yield from self._stream.answer(item, message_id, undecided=True)

    def said(self, record: Record) -> Iterator[Item]:
        """Yield the items of a row that are decided now."""
        spot = Spot(record.ordinal, record.at, record.cwd)
        if record.type == ASSISTANT:
            yield from self._assistant(decode_message(record.row.message), spot)
            return
        if record.type == USER:
            items = self._user(record, spot)
        else:
            items = self._queued(as_fields(record.row.attachment), spot)
        for item in items:
            yield from self._push(item)

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

    def _user(self, record: Record, spot: Spot) -> Iterator[Item]:
        words: list[Words] = []
        for block in decode_blocks(decode_message(record.row.message).content):
            if block.kind.endswith(RESULT_SUFFIX):
                yield from result_items(block, record.row.result, spot, self._calls, self._reading.dropped)
            elif block.kind in MEDIA:
                self._reading.dropped[MEDIA[block.kind]] += 1
            else:
                words += self._words(as_text(block.text) or "", record.speaker)
        yield from self._items(words, spot)

    def _queued(self, fields: dict[str, Raw], spot: Spot) -> Iterator[Item]:
        if (as_text(fields.get("type")), is_true(fields.get("isMeta"))) != ("queued_command", False):
            return
        speaker = origin_kind(fields.get("origin"))
        mode = as_text(fields.get("commandMode")) or PROMPT_MODE
        words: list[Words] = []
        for block in decode_blocks(fields.get("prompt")):
            words += self._words(as_text(block.text) or "", speaker or ("human" if mode == PROMPT_MODE else mode))
        yield from self._items(words, spot)

    def _words(self, text: str, speaker: str) -> list[Words]:
        """Split a text of a user row; a row that says it is not a person's holds no human words."""
        if speaker in OTHER_AGENTS:
            return [Words(ItemKind.OTHER_AGENT, text.strip())] if text.strip() else []
        if speaker not in ("", "human"):
            self._reading.dropped["notification"] += 1
            return []
        found = split_words(text, self._reading.dropped)
        if self._is_subagent:  # it is the agent that called it who speaks to it
            return [replace(words, kind=ItemKind.OTHER_AGENT) for words in found]
        return found

    def _items(self, words: list[Words], spot: Spot) -> Iterator[Item]:
        for kind, run in groupby(words, key=lambda words: words.kind):
            yield Item(kind, "\n\n".join(words.text for words in run), spot.ordinal, spot.at, spot.cwd)

    def _assistant(self, message: Message, spot: Spot) -> Iterator[Item]:
        if message.model == SYNTHETIC:
            self._reading.dropped["synthetic"] += 1
            return
        message_id = message.id if isinstance(message.id, str) else ""
        for block in decode_blocks(message.content):
            if block.kind == "text":
                yield from self._answer(as_text(block.text) or "", message_id, spot)
            else:
                for item in self._deed(block, spot):
                    yield from self._push(item)

    def _deed(self, block: Block, spot: Spot) -> list[Item]:
        """Read what an assistant's message holds besides text: calls, and results of what runs at the server."""
        kind = block.kind
        if kind in CALLS:
            return [call_item(block, spot, self._calls)]
        if kind.endswith(RESULT_SUFFIX):
            return result_items(block, None, spot, self._calls, self._reading.dropped)
        if kind in REASONING or kind in MEDIA:
            self._reading.dropped[MEDIA.get(kind, "reasoning")] += 1
        else:
            self._reading.unknown[f"{ASSISTANT}.{kind}"] += 1
        return []

    def _answer(self, text: str, message_id: str, spot: Spot) -> Iterator[Item]:
        """Take in a text of the assistant; several texts of one message are one answer."""
        if self._spoken is not None and message_id and self._spoken[0] == message_id:
            before = self._spoken[1]
            self._spoken = (message_id, replace(before, text=f"{before.text}\n\n{text.strip()}".strip()))
            return
        yield from self.end_answer()
        self._spoken = (message_id, Item(ItemKind.ASSISTANT_FINAL, text.strip(), spot.ordinal, spot.at, spot.cwd))

    def _push(self, item: Item) -> Iterator[Item]:
        yield from self.end_answer()
        yield from self._stream.give(item)


def _may_be_queued(attachment: Raw) -> bool:
    return QUEUED in bytes(memoryview(attachment)[:QUEUED_WITHIN_BYTES])
