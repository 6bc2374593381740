"""The stream of items of one Claude Code session: row by row, with what is seen on the way gathered in the Reading."""

from collections.abc import Generator
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from msgspec import Raw, structs

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
from memoryd.sources.claude_tools import MEDIA, OpenCalls, call_item, result_items
from memoryd.sources.claude_words import Words, split_words
from memoryd.sources.items import Item, ItemKind
from memoryd.sources.jsonl import SessionBytes
from memoryd.sources.parts import Spot
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
MAX_ANSWER_CHARACTERS = 64 * 1024  # a longer one goes on in an item of its own
OTHER_AGENTS = frozenset({"peer", "teammate", "coordinator", "agent"})

Told = tuple[Item, str | None]
"""An item, and the id of its message where it is an answer of the assistant's (empty: it has none)."""


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
            for item, message_id in session.told(record):
                if message_id is None:
                    yield from stream.give(item)
                else:
                    yield from stream.answer(item, message_id, undecided=True)
    for item, message_id in session.end_answer():
        yield from stream.answer(item, message_id, undecided=True)
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
        self._spoken: tuple[Item, str] | None = None  # an answer that may go on, and the id of its message

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

    def told(self, record: Record) -> list[Told]:
        """Return what is told by now; an answer waits for the next row, in which it may go on."""
        spot = Spot(record.ordinal, record.at, record.cwd)
        if record.type == ASSISTANT:
            return self._assistant(decode_message(record.row.message), spot)
        if record.type == USER:
            items = self._user(record, spot)
        else:
            items = self._queued(as_fields(record.row.attachment), spot)
        return [*self.end_answer(), *((item, None) for item in items)] if items else []

    def end_answer(self) -> list[tuple[Item, str]]:
        """Return the answer that was still going on, if there is one."""
        ended = self._spoken
        self._spoken = None
        return [] if ended is None else [ended]

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

    def _user(self, record: Record, spot: Spot) -> list[Item]:
        items: list[Item] = []
        words: list[Words] = []
        for block in decode_blocks(decode_message(record.row.message).content):
            kind = block.kind
            if kind.endswith(RESULT_SUFFIX):
                items += result_items(block, record.row.result, spot, self._calls, self._reading.dropped)
            elif kind in MEDIA:
                self._reading.dropped[MEDIA[kind]] += 1
            else:
                words += self._words(as_text(block.text) or "", record.speaker)
        return items + self._items(words, spot)

    def _queued(self, fields: dict[str, Raw], spot: Spot) -> list[Item]:
        if (as_text(fields.get("type")), is_true(fields.get("isMeta"))) != ("queued_command", False):
            return []
        speaker = origin_kind(fields.get("origin"))
        mode = as_text(fields.get("commandMode")) or PROMPT_MODE
        words: list[Words] = []
        for block in decode_blocks(fields.get("prompt")):
            words += self._words(as_text(block.text) or "", speaker or ("human" if mode == PROMPT_MODE else mode))
        return self._items(words, spot)

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

    def _items(self, words: list[Words], spot: Spot) -> list[Item]:
        return [
            Item(kind, "\n\n".join(words.text for words in run), spot.ordinal, spot.at, spot.cwd)
            for kind, run in groupby(words, key=attrgetter("kind"))
        ]

    def _assistant(self, message: Message, spot: Spot) -> list[Told]:
        if message.model == SYNTHETIC:
            self._reading.dropped["synthetic"] += 1
            return []
        message_id = message.id if isinstance(message.id, str) else ""
        told: list[Told] = []
        for block in decode_blocks(message.content):
            if block.kind == "text":
                told += self._answer((as_text(block.text) or "").strip(), message_id, spot)
            elif items := self._deed(block, spot):
                told += self.end_answer()
                told += [(item, None) for item in items]
        return told

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

    def _answer(self, text: str, message_id: str, spot: Spot) -> list[tuple[Item, str]]:
        """Take in a text of the assistant, and return the one before unless it goes on: texts of one message do."""
        before = self._spoken[0] if self._spoken is not None and self._spoken[1] == message_id else None
        if before is not None and message_id and len(before.text) < MAX_ANSWER_CHARACTERS:
            self._spoken = (structs.replace(before, text=f"{before.text}\n\n{text}".strip()), message_id)
            return []
        ended = self.end_answer()
        self._spoken = (Item(ItemKind.ASSISTANT_FINAL, text, spot.ordinal, spot.at, spot.cwd), message_id)
        return ended


def _may_be_queued(attachment: Raw) -> bool:
    return QUEUED in bytes(memoryview(attachment)[:QUEUED_WITHIN_BYTES])
