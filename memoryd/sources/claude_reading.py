"""The stream of items of one Claude Code session: row by row, with what is seen on the way gathered in the Reading."""

from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import groupby

from msgspec import Raw

from memoryd.errors import SessionWithoutItems
from memoryd.sources.citations import parse_citations, strip_citations
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
from memoryd.sources.decoding import is_blank
from memoryd.sources.finals import FinalMessages
from memoryd.sources.identity import last_instant, message_key
from memoryd.sources.items import CitationSeen, Item, ItemKind
from memoryd.sources.jsonl import Line, SessionBytes
from memoryd.sources.rawjson import as_fields, as_text, is_true
from memoryd.sources.reader import Reading

QUEUED = b'"queued_command"'  # what a person typed while the agent was busy; it never becomes a row of its own
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
    session = _Session(reading, find_abandoned(source), copied, is_subagent=is_subagent(source.path))
    for line in source.lines():
        record = decode_record(line)
        if record is None:
            # a torn last line is not bad: the rest of it is still to come
            reading.bad_lines += line.ended and not is_blank(line)
        elif session.sees_evidence(record, line):
            yield from session.said(record)
    yield from session.finish(source)


class _Session:
    """What must be remembered from one row to the next."""

    def __init__(self, reading: Reading, abandoned: Abandoned, copied: CopiedRows, *, is_subagent: bool) -> None:
        self._reading = reading
        self._abandoned = abandoned
        self._copied = copied
        self._is_subagent = is_subagent
        self._understood = 0
        self._calls = OpenCalls()
        self._final = FinalMessages()
        self._spoken: tuple[str, Item] | None = None  # the message id and text of an answer that may go on

    def sees_evidence(self, record: Record, line: Line) -> bool:
        """Take in the next row, and say whether somebody said or did something in it that counts."""
        if record.is_damaged:
            self._reading.bad_lines += 1
        kind = record.type
        if kind in CONVERSATION or (kind == ATTACHMENT and QUEUED in (line.data or b"")):
            self._understood += 1
            reason = self._why_dropped(record)
            if reason:
                self._reading.dropped[reason] += 1
            return not reason
        if is_known(kind):
            self._understood += 1
        else:
            self._reading.unknown[kind] += 1
        return False

    def finish(self, source: SessionBytes) -> Iterator[Item]:
        """Yield what was held back, and settle what is known only at the end."""
        yield from self._end_answer()
        yield from self._final.flush()
        reading = self._reading
        reading.dropped = +reading.dropped
        reading.record_bytes = source.bytes_read
        at = last_time(source)
        reading.timed = at is not None
        reading.last_record_at = last_instant(at, source)
        if source.bytes_read and not self._understood:
            raise SessionWithoutItems(
                f"cannot read {source.path}: it has {source.bytes_read} bytes, and no record in them was understood",
                remedy="is it a session of a newer version of the agent?",
            )

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
        yield from self._end_answer()
        self._spoken = (message_id, Item(ItemKind.ASSISTANT_FINAL, text.strip(), spot.ordinal, spot.at, spot.cwd))

    def _end_answer(self) -> Iterator[Item]:
        if self._spoken is None:
            return
        message_id, item = self._spoken
        self._spoken = None
        cited = parse_citations(item.text)
        if cited is not None:
            key = message_id or message_key(item.text, item.at)
            self._reading.citations.append(CitationSeen(key, item.at, cited.entries, cited.thread_ids))
            item = replace(item, text=strip_citations(item.text).strip())
        if item.text:
            yield from self._final.push(item, undecided=True)

    def _push(self, item: Item) -> Iterator[Item]:
        yield from self._end_answer()
        yield from self._final.push(item)
