"""The chat completions format of OpenAI and of nearly every other server: POST {base_url}/chat/completions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from memoryd.errors import MalformedReply
from memoryd.llm.codec import Structure, bearer
from memoryd.llm.fields import arguments_at, count_at, object_at, objects_at, picked, text_at
from memoryd.llm.openai_chat_stream import assemble_chat
from memoryd.llm.question import (
    Answer,
    JsonObject,
    ModelTurn,
    Question,
    Schema,
    Stop,
    ToolCall,
    ToolSpec,
    ToolTurn,
    Turn,
    Usage,
    UserTurn,
)
from memoryd.llm.structure import instructions_for

# Models that think aloud put it before the answer, between these tags, when their server does not split it off.
THINK_OPEN, THINK_CLOSE = "<think>", "</think>"

# Reasoning that some servers (DeepSeek, OpenRouter) want back in a turn that called tools, and in no other.
REASONING_KEYS = ("reasoning_content", "reasoning_details")


class OpenAIChat:
    """Codec of the chat completions format. It holds nothing."""

    path = "/chat/completions"
    ladder: tuple[Structure, ...] = (
        Structure.JSON_SCHEMA,
        Structure.JSON_OBJECT_SCHEMA,
        Structure.JSON_OBJECT,
        Structure.PROMPT,
    )
    limit_names: tuple[str, ...] = ("max_tokens", "max_completion_tokens")
    limit_is_required = False
    streaming: JsonObject = {"stream": True, "stream_options": {"include_usage": True}}  # noqa: RUF012 - never written

    def headers(self, key: str | None) -> Mapping[str, str]:
        """Return the header that carries the key."""
        return bearer(key)

    def assemble(self, events: Sequence[JsonObject]) -> JsonObject | None:
        """Return the completion of a stream (openai_chat_stream.py)."""
        return assemble_chat(events)

    def encode(self, question: Question, structure: Structure) -> JsonObject:
        """Return the request body. `max_tokens` is the name that most servers know; OpenAI's newer models refuse it."""
        system = {"role": "system", "content": instructions_for(question, structure)}
        body: dict[str, object] = {
            "model": question.model,
            "messages": [system, *(message for turn in question.turns for message in _messages(turn))],
        }
        if question.effort:
            body["reasoning_effort"] = question.effort
        if question.schema and structure is not Structure.PROMPT:
            body["response_format"] = _response_format(question.schema, structure)
        if question.tools:
            body["tools"] = [_tool(tool) for tool in question.tools]
        if question.max_output_tokens is not None:
            body["max_tokens"] = question.max_output_tokens
        return body

    def decode(self, body: JsonObject) -> Answer:
        """Return the first choice's answer. Raises MalformedReply when there is no choice with a message."""
        choice = next(iter(objects_at(body, "choices")), None)
        message = object_at(choice, "message") if choice else {}
        if choice is None or not message:
            raise MalformedReply("the reply has no choice with a message, so it is no chat completion")
        calls = _calls(message)
        refusal = text_at(message, "refusal") or _content(message, "refusal", "refusal")
        return Answer(
            text=refusal or _without_thoughts(_content(message, "text", "text")),
            calls=calls,
            raw=(_kept(message, calls),),
            usage=self.usage(body) or Usage(measured=False),
            stop=_stop(text_at(choice, "finish_reason"), refused=bool(refusal), calls=calls),
            model=text_at(body, "model"),
        )

    def usage(self, body: JsonObject) -> Usage | None:
        """Return the tokens that the body reports, None when it reports none: no request is without input."""
        usage = object_at(body, "usage")
        if not count_at(usage, "prompt_tokens"):
            return None
        return Usage(
            input=count_at(usage, "prompt_tokens"),
            output=count_at(usage, "completion_tokens"),
            cached=count_at(object_at(usage, "prompt_tokens_details"), "cached_tokens"),
            reasoning=count_at(object_at(usage, "completion_tokens_details"), "reasoning_tokens"),
            written=count_at(object_at(usage, "prompt_tokens_details"), "cache_write_tokens"),
        )


def _messages(turn: Turn) -> list[JsonObject]:
    match turn:
        case UserTurn(text):
            return [{"role": "user", "content": text}]
        case ToolTurn(results):
            return [{"role": "tool", "tool_call_id": each.call_id, "content": each.output} for each in results]
        case ModelTurn(raw=raw) if raw:
            return list(raw)
        case ModelTurn(text, calls):
            return [_assistant(text, calls)]


def _assistant(text: str, calls: tuple[ToolCall, ...]) -> dict[str, object]:
    """An assistant message; its content may be null only where it calls tools."""
    message: dict[str, object] = {"role": "assistant", "content": text if text or not calls else None}
    if calls:
        message["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
    return message


def _kept(message: JsonObject, calls: tuple[ToolCall, ...]) -> JsonObject:
    """Return the message as it is to be sent back in the next question."""
    kept = _assistant(_content(message, "text", "text"), calls)
    return {**kept, **picked(message, ("refusal", *(REASONING_KEYS if calls else ())))}


def _content(message: JsonObject, kind: str, key: str) -> str:
    """Return the texts of one kind of part; a content that is a plain string is of the kind `text`."""
    content = message.get("content")
    if isinstance(content, str):
        return content if kind == "text" else ""
    return "".join(text_at(part, key) for part in objects_at(message, "content") if part.get("type") == kind)


def _without_thoughts(text: str) -> str:
    start = text.lstrip()
    if not start.startswith(THINK_OPEN) or THINK_CLOSE not in start:
        return text
    return start.split(THINK_CLOSE, 1)[1].lstrip()


def _calls(message: JsonObject) -> tuple[ToolCall, ...]:
    """Return the calls of functions; one without an id gets its place in the list as its id."""
    calls = []
    for place, entry in enumerate(objects_at(message, "tool_calls"), 1):
        function = object_at(entry, "function")
        if function:
            call = ToolCall(text_at(entry, "id"), text_at(function, "name"), arguments_at(function, "arguments"))
            calls.append(call if call.call_id else replace(call, call_id=f"call_{place}"))
    return tuple(calls)


def _response_format(schema: Schema, structure: Structure) -> JsonObject:
    match structure:
        case Structure.JSON_SCHEMA:
            named = {"name": schema.name, "strict": True, "schema": schema.schema}
            return {"type": "json_schema", "json_schema": named}
        case Structure.JSON_OBJECT_SCHEMA:
            return {"type": "json_object", "schema": schema.schema}
        case _:
            return {"type": "json_object"}


def _tool(tool: ToolSpec) -> JsonObject:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters, "strict": True}
    return {"type": "function", "function": function}


def _stop(finish_reason: str, *, refused: bool, calls: tuple[ToolCall, ...]) -> Stop:
    if refused or finish_reason == "content_filter":
        return Stop.REFUSAL
    if finish_reason == "length":
        return Stop.LENGTH
    return Stop.TOOL_CALLS if calls else Stop.COMPLETE
