"""The OpenAI Responses format: POST {base_url}/responses, stateless (`store: false`)."""

from collections.abc import Mapping, Sequence

from memoryd.errors import MalformedReply
from memoryd.llm.codec import Structure, bearer
from memoryd.llm.fields import arguments_at, count_at, object_at, objects_at, picked, text_at
from memoryd.llm.openai_responses_stream import assemble_responses
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

UNFINISHED = ("failed", "cancelled", "queued", "in_progress")


class OpenAIResponses:
    """Codec of the Responses format. It holds nothing."""

    path = "/responses"
    ladder: tuple[Structure, ...] = (Structure.JSON_SCHEMA, Structure.JSON_OBJECT, Structure.PROMPT)
    limit_names: tuple[str, ...] = ("max_output_tokens",)
    limit_is_required = False
    streaming: JsonObject = {"stream": True}  # noqa: RUF012 - never written

    def headers(self, key: str | None) -> Mapping[str, str]:
        """Return the header that carries the key."""
        return bearer(key)

    def assemble(self, events: Sequence[JsonObject]) -> JsonObject | None:
        """Return the response of a stream (openai_responses_stream.py)."""
        return assemble_responses(events)

    def encode(self, question: Question, structure: Structure) -> JsonObject:
        """Return the request body; reasoning comes back encrypted, since nothing is stored at the server."""
        body: dict[str, object] = {
            "model": question.model,
            "instructions": instructions_for(question, structure),
            "input": [item for turn in question.turns for item in _items(turn)],
            "store": False,
        }
        if question.effort:
            body["reasoning"] = {"effort": question.effort}
            body["include"] = ["reasoning.encrypted_content"]
        if question.schema and structure is not Structure.PROMPT:
            body["text"] = {"format": _format(question.schema, structure)}
        if question.tools:
            body["tools"] = [_tool(tool) for tool in question.tools]
        if question.max_output_tokens is not None:
            body["max_output_tokens"] = question.max_output_tokens
        return body

    def decode(self, body: JsonObject) -> Answer:
        """Return the answer; output items of unknown types are ignored. Raises MalformedReply without any list."""
        if not isinstance(body.get("output"), list):
            raise MalformedReply("the reply has no list `output`, so it is no Responses object")
        status = text_at(body, "status")
        if status in UNFINISHED:
            raise MalformedReply(f"the reply's status is `{status}`, so there is no answer in it")
        items = objects_at(body, "output")
        parts = [part for item in items if item.get("type") == "message" for part in objects_at(item, "content")]
        text = "".join(text_at(part, "text") for part in parts if part.get("type") == "output_text")
        refusal = "".join(text_at(part, "refusal") for part in parts if part.get("type") == "refusal")
        calls = tuple(_call(item) for item in items if item.get("type") == "function_call")
        refused = any(part.get("type") == "refusal" for part in parts)
        stop = _stop(body, refused=refused, calls=calls)
        return Answer(
            text=refusal if refused else text,
            calls=calls,
            raw=items,
            usage=self.usage(body) or Usage(measured=False),
            stop=stop,
            model=text_at(body, "model"),
        )

    def usage(self, body: JsonObject) -> Usage | None:
        """Return the tokens that the body reports, None when it reports none: no request is without input."""
        usage = object_at(body, "usage")
        if not count_at(usage, "input_tokens"):
            return None
        return Usage(
            input=count_at(usage, "input_tokens"),
            output=count_at(usage, "output_tokens"),
            cached=count_at(object_at(usage, "input_tokens_details"), "cached_tokens"),
            reasoning=count_at(object_at(usage, "output_tokens_details"), "reasoning_tokens"),
            written=count_at(object_at(usage, "input_tokens_details"), "cache_write_tokens"),
        )


def _items(turn: Turn) -> list[JsonObject]:
    match turn:
        case UserTurn(text):
            return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]
        case ToolTurn(results):
            return [
                {"type": "function_call_output", "call_id": result.call_id, "output": result.output}
                for result in results
            ]
        case ModelTurn():
            return _replayed(turn)


def _replayed(turn: ModelTurn) -> list[JsonObject]:
    """Send a former answer back: with its reasoning when the server gave it in a form that it can read again.

    Reasoning without encrypted content exists only at a server that stores it, and messages that name it by their id
    would be refused; such a turn goes back as plain text and calls.
    """
    if not turn.raw:
        return _plain(turn)
    reasoning = [item for item in turn.raw if item.get("type") == "reasoning"]
    if any(not text_at(item, "encrypted_content") for item in reasoning):
        return _plain(turn)
    return [item for raw in turn.raw if (item := _replayed_item(raw)) is not None]


def _plain(turn: ModelTurn) -> list[JsonObject]:
    """Render a turn without wire items; llama-server knows a message of the model's by its type alone."""
    said: list[JsonObject] = [{"type": "message", "role": "assistant", "content": turn.text}] if turn.text else []
    return said + [_call_item(call) for call in turn.calls]


def _replayed_item(item: JsonObject) -> JsonObject | None:
    """Return the fields of an output item that may stand in an input, None for items that we do not replay."""
    match item.get("type"):
        case "message":
            content = [part for raw in objects_at(item, "content") if (part := _replayed_part(raw)) is not None]
            return {
                **picked(item, ("type", "id", "phase")),
                "role": "assistant",
                "status": text_at(item, "status") or "completed",
                "content": content,
            }
        case "reasoning":
            summary = [picked(part, ("type", "text")) for part in objects_at(item, "summary")]
            return {**picked(item, ("type", "id", "encrypted_content")), "summary": summary}
        case "function_call":
            return _call_item(_call(item))
        case _:
            return None


def _replayed_part(part: JsonObject) -> JsonObject | None:
    match part.get("type"):
        case "output_text":
            return {"type": "output_text", "text": text_at(part, "text"), "annotations": []}
        case "refusal":
            return {"type": "refusal", "refusal": text_at(part, "refusal")}
        case _:
            return None


def _format(schema: Schema, structure: Structure) -> JsonObject:
    if structure is Structure.JSON_SCHEMA:
        return {"type": "json_schema", "name": schema.name, "strict": True, "schema": schema.schema}
    return {"type": "json_object"}


def _tool(tool: ToolSpec) -> JsonObject:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": True,
    }


def _call(item: JsonObject) -> ToolCall:
    call_id = text_at(item, "call_id") or text_at(item, "id")
    return ToolCall(call_id=call_id, name=text_at(item, "name"), arguments=arguments_at(item, "arguments"))


def _call_item(call: ToolCall) -> JsonObject:
    return {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}


def _stop(body: JsonObject, *, refused: bool, calls: tuple[ToolCall, ...]) -> Stop:
    if text_at(body, "status") == "incomplete":
        reason = text_at(object_at(body, "incomplete_details"), "reason")
        return Stop.REFUSAL if reason == "content_filter" else Stop.LENGTH
    if refused:
        return Stop.REFUSAL
    return Stop.TOOL_CALLS if calls else Stop.COMPLETE
