"""The Messages format of Anthropic: POST {base_url}/v1/messages, as the API reference of version 2023-06-01 has it.

Effort is `output_config.effort`; whether and how a model thinks is left to its own default, and what it thought goes
back unchanged, signatures included, as the API demands. Conversations with tools mark what may be cached, since
nothing is cached here unless asked for and a consolidation sends its conversation again with each request.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from memoryd.errors import ContextOverflow, MalformedReply
from memoryd.llm.anthropic_stream import assemble_messages
from memoryd.llm.codec import Structure
from memoryd.llm.fields import arguments_at, count_at, object_at, objects_at, text_at
from memoryd.llm.question import (
    Answer,
    JsonObject,
    ModelTurn,
    Question,
    Stop,
    ToolCall,
    ToolSpec,
    ToolTurn,
    Turn,
    Usage,
    UserTurn,
)
from memoryd.llm.structure import instructions_for

VERSION: Final = "2023-06-01"
REQUIRED_OUTPUT_TOKENS: Final = 16_384
"""The format has no default for `max_tokens`; this stands where a question sets none."""
CACHED_TURNS: Final = 2
"""Of the last turns of ours the ends are marked: the newest for the next request, the one before for this one."""
CACHED: Final[JsonObject] = {"type": "ephemeral"}
EFFORTS: Final = {"minimal": "low", "none": "low"}
"""Words of other formats that this one does not know; all others go as they are."""
NO_TEXT: Final = "(nothing)"
"""Texts without a visible character are refused by the server."""
THOUGHTS: Final = ("thinking", "redacted_thinking")
STOPS: Final = {
    "refusal": Stop.REFUSAL,
    "max_tokens": Stop.LENGTH,
    "pause_turn": Stop.LENGTH,  # only tools of the server's own pause, and we send none: the answer is not whole
}


class Anthropic:
    """Codec of the Messages format. It holds nothing."""

    path = "/v1/messages"
    ladder: tuple[Structure, ...] = (Structure.JSON_SCHEMA, Structure.PROMPT)
    limit_names: tuple[str, ...] = ("max_tokens",)
    limit_is_required = True
    streaming: JsonObject = {"stream": True}  # noqa: RUF012 - a Mapping that nobody writes to

    def headers(self, key: str | None) -> Mapping[str, str]:
        """Return the version of the format, and the key in a header of its own."""
        return {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})

    def encode(self, question: Question, structure: Structure) -> JsonObject:
        """Return the request body."""
        cached = bool(question.tools)
        body: dict[str, object] = {
            "model": question.model,
            "max_tokens": question.max_output_tokens or REQUIRED_OUTPUT_TOKENS,
            "messages": _messages(question.turns, cached=cached),
        }
        instructions = instructions_for(question, structure)
        if instructions.strip():
            body["system"] = [{"type": "text", "text": instructions} | ({"cache_control": CACHED} if cached else {})]
        output: dict[str, object] = {}
        if question.effort:
            output["effort"] = EFFORTS.get(question.effort, question.effort)
        if question.schema and structure is Structure.JSON_SCHEMA:
            output["format"] = {"type": "json_schema", "schema": question.schema.schema}
        if output:
            body["output_config"] = output
        if question.tools:
            body["tools"] = [_tool(tool) for tool in question.tools]
        return body

    def decode(self, body: JsonObject) -> Answer:
        """Return the answer; blocks of unknown kinds are only kept.

        Raises MalformedReply without a list of blocks, and ContextOverflow when the window was full before the end.
        """
        if not isinstance(body.get("content"), list):
            raise MalformedReply("the reply has no list `content`, so it is no message")
        reason = text_at(body, "stop_reason")
        if reason == "model_context_window_exceeded":
            raise ContextOverflow("the model's context window was full before its answer ended")
        blocks = objects_at(body, "content")
        calls = tuple(_call(block) for block in blocks if block.get("type") == "tool_use")
        text = "".join(text_at(block, "text") for block in blocks if block.get("type") == "text")
        stop = STOPS.get(reason, Stop.TOOL_CALLS if calls else Stop.COMPLETE)
        if stop is Stop.REFUSAL:
            text = text or text_at(object_at(body, "stop_details"), "explanation")
        return Answer(
            text=text,
            calls=calls,
            raw=blocks,
            usage=self.usage(body) or Usage(measured=False),
            stop=stop,
            model=text_at(body, "model"),
        )

    def usage(self, body: JsonObject) -> Usage | None:
        """Return the tokens that the body reports, None when it reports none. `input_tokens` leaves out the cache."""
        usage = object_at(body, "usage")
        cached, written = count_at(usage, "cache_read_input_tokens"), count_at(usage, "cache_creation_input_tokens")
        whole = count_at(usage, "input_tokens") + cached + written
        if not whole:
            return None
        return Usage(
            input=whole,
            output=count_at(usage, "output_tokens"),
            cached=cached,
            reasoning=count_at(object_at(usage, "output_tokens_details"), "thinking_tokens"),
            written=written,
        )

    def assemble(self, events: Sequence[JsonObject]) -> JsonObject | None:
        """Return the message of a stream (anthropic_stream.py)."""
        return assemble_messages(events)


def _messages(turns: Sequence[Turn], *, cached: bool) -> list[JsonObject]:
    """Render the turns; those in which nothing was said leave no message: the server takes none without blocks."""
    spoken = [(turn, blocks) for turn in turns if (blocks := _blocks(turn))]
    ours = [place for place, (turn, _) in enumerate(spoken) if not isinstance(turn, ModelTurn)]
    marked = set(ours[-CACHED_TURNS:]) if cached else set[int]()
    return [
        {
            "role": "assistant" if isinstance(turn, ModelTurn) else "user",
            "content": [*blocks[:-1], {**blocks[-1], "cache_control": CACHED}] if place in marked else blocks,
        }
        for place, (turn, blocks) in enumerate(spoken)
    ]


def _blocks(turn: Turn) -> list[JsonObject]:
    match turn:
        case UserTurn(text):
            return [{"type": "text", "text": text if text.strip() else NO_TEXT}]
        case ToolTurn(results):
            return [{"type": "tool_result", "tool_use_id": each.call_id, "content": each.output} for each in results]
        case ModelTurn(raw=raw) if raw:
            return _replayed(raw)
        case ModelTurn(text, calls):
            said: list[JsonObject] = [{"type": "text", "text": text}] if text.strip() else []
            return said + [_use(call) for call in calls]


def _replayed(raw: Sequence[JsonObject]) -> list[JsonObject]:
    """Return a former answer's blocks unchanged, but for what the server would not take back.

    That is blank texts, inputs that are no object, and thoughts at the end, after which nothing was said.
    """
    blocks: list[JsonObject] = []
    for block in raw:
        if block.get("type") == "text" and not text_at(block, "text").strip():
            continue
        broken = block.get("type") == "tool_use" and not isinstance(block.get("input"), Mapping)
        blocks.append({**block, "input": {}} if broken else block)
    while blocks and blocks[-1].get("type") in THOUGHTS:
        blocks.pop()
    return blocks


def _call(block: JsonObject) -> ToolCall:
    return ToolCall(text_at(block, "id"), text_at(block, "name"), arguments_at(block, "input"))


def _use(call: ToolCall) -> JsonObject:
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        given = {}
    return {
        "type": "tool_use",
        "id": call.call_id,
        "name": call.name,
        "input": given if isinstance(given, dict) else {},
    }


def _tool(tool: ToolSpec) -> JsonObject:
    """Describe a tool; its input is validated by us, and `strict` would be refused by older models."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
