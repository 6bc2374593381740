"""Messages of a Claude Code session and the blocks in them; texts, arguments and results stay raw."""

from typing import Any

import msgspec
from msgspec import Raw

from memoryd.sources.rawjson import UNREADABLE, as_list, is_text


class Message(msgspec.Struct):
    """A message; one of the assistant's is spread over several rows, one per block, which share its id."""

    id: Any = None
    model: Any = None
    content: Raw = Raw()


class Block(msgspec.Struct):
    """A block of a message: a text, a call, a result, an image, ...; `kind` names it, empty when it does not say."""

    type: Any = None
    text: Raw = Raw()
    id: Raw = Raw()
    name: Raw = Raw()
    input: Raw = Raw()
    call_id: Raw = msgspec.field(default=Raw(), name="tool_use_id")
    content: Raw = Raw()
    is_error: Any = None

    @property
    def kind(self) -> str:
        """The block's type."""
        return self.type if isinstance(self.type, str) else ""


_message = msgspec.json.Decoder(Message)
_blocks = msgspec.json.Decoder(list[Block])
_block = msgspec.json.Decoder(Block)


def decode_message(raw: Raw) -> Message:
    """Decode a message; what is none has no content."""
    try:
        return _message.decode(raw)
    except UNREADABLE:
        return Message()


def decode_blocks(content: Raw | None) -> list[Block]:
    """Return the blocks of a content, or the one text that it is; what is no block is left out, a bare text is one."""
    if not content:
        return []
    if is_text(content):
        return [Block("text", content)]
    try:
        return _blocks.decode(content)
    except UNREADABLE:
        return [block for raw in as_list(content) if (block := _one(raw)) is not None]


def _one(raw: Raw) -> Block | None:
    if is_text(raw):
        return Block("text", raw)
    try:
        return _block.decode(raw)
    except UNREADABLE:
        return None
