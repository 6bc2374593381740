"""Messages of a Claude Code session, the blocks in them, and what a row tells of a tool's result."""

import msgspec
from msgspec import Raw

from memoryd.sources.rawjson import MAX_TEXT_BYTES, UNREADABLE, as_fields, as_list, as_text, is_text, is_true


class ResultPart(msgspec.Struct, gc=False):
    """A part of a result; what an image holds is passed over."""

    type: str = ""
    text: str | None = None
    tool_name: str | None = None
    title: str | None = None
    url: str | None = None


class Block(msgspec.Struct, gc=False):
    """A block of a message: a text, a call, a result, an image, ...; the arguments of a call stay raw."""

    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw()
    call_id: str | None = msgspec.field(default=None, name="tool_use_id")
    content: str | list[ResultPart] | None = None
    is_error: bool | None = None


class Message(msgspec.Struct, gc=False):
    """A message; one of the assistant's is spread over several rows, one per block, which share its id."""

    content: str | list[Block] = ""
    id: str | None = None
    model: str | None = None

    @property
    def blocks(self) -> list[Block]:
        """Its blocks; a bare text is one."""
        content = self.content
        return content if isinstance(content, list) else [Block("text", content)] if content else []


class ToolResult(msgspec.Struct, gc=False):
    """A row's own account of a result (toolUseResult): how it ended, and what was answered; the rest is passed over."""

    interrupted: bool = False
    background: str | None = msgspec.field(default=None, name="backgroundTaskId")
    code_meaning: str | None = msgspec.field(default=None, name="returnCodeInterpretation")
    answers: Raw = Raw()
    annotations: Raw = Raw()


class _Passed(msgspec.Struct, gc=False):
    """Any object."""


UsualResult = ToolResult | str | list[_Passed] | None

_message = msgspec.json.Decoder(Message)


def decode_message(raw: Raw) -> Message:
    """Decode a message; what is none has no content."""
    try:
        if len(raw) <= MAX_TEXT_BYTES:
            return _message.decode(raw)
    except UNREADABLE:
        pass
    fields = as_fields(raw)
    return Message(decode_blocks(fields.get("content")), as_text(fields.get("id")), as_text(fields.get("model")))


def decode_blocks(content: Raw | None) -> list[Block]:
    """Return the blocks of a content, or the one text that it is; what is no block is left out, a bare text is one."""
    if content and is_text(content):
        return [Block("text", as_text(content))]
    return [block for raw in as_list(content) if (block := _block(raw)) is not None]


def decode_result(raw: Raw) -> ToolResult:
    """Decode a row's own account of a result; one that is no object tells nothing."""
    fields = as_fields(raw) if raw and not is_text(raw) else {}
    return ToolResult(
        is_true(fields.get("interrupted")),
        as_text(fields.get("backgroundTaskId")),
        as_text(fields.get("returnCodeInterpretation")),
        fields.get("answers", Raw()),
        fields.get("annotations", Raw()),
    )


def _block(raw: Raw) -> Block | None:
    if is_text(raw):
        return Block("text", as_text(raw))
    fields = as_fields(raw)
    if not fields:
        return None
    content, is_error = fields.get("content"), bytes(fields.get("is_error", b""))
    return Block(
        as_text(fields.get("type")) or "",
        as_text(fields.get("text")),
        as_text(fields.get("id")),
        as_text(fields.get("name")),
        fields.get("input", Raw()),
        as_text(fields.get("tool_use_id")),
        as_text(content) if content and is_text(content) else [_part(part) for part in as_list(content)],
        is_error == b"true" if is_error in (b"true", b"false") else None,
    )


def _part(raw: Raw) -> ResultPart:
    fields = as_fields(raw)
    return ResultPart(
        as_text(fields.get("type")) or "",
        as_text(fields.get("text")),
        as_text(fields.get("tool_name")),
        as_text(fields.get("title")),
        as_text(fields.get("url")),
    )
