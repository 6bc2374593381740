"""The replies of the scripted server as streams of events, in pieces of a few characters, in every wire format."""

import json
from collections.abc import Iterator

from tests.support.model_asked import JsonBody, Recorded
from tests.support.model_replies import Reply, body_of

PIECE_CHARACTERS = 7


def stream_of(asked: Recorded, reply: Reply) -> list[bytes]:
    """Return the events of a reply, one after another as they are written; comments and pings are among them."""
    body = body_of(asked, reply)
    if asked.is_messages:
        return [_named(event) for event in _message_events(body, [call.arguments_text for call in reply.calls])]
    if asked.is_responses:
        return [_named(event) for event in _response_events(body)]
    wants_usage = bool((asked.body.get("stream_options") or {}).get("include_usage"))
    chunks = [_data(chunk) for chunk in _chat_chunks(body, wants_usage=wants_usage)]
    return [b": still here\n\n", *chunks, b"data: [DONE]\n\n"]


def _data(event: JsonBody) -> bytes:
    return b"data: " + json.dumps(event, ensure_ascii=False).encode("utf-8", "replace") + b"\n\n"


def _named(event: JsonBody) -> bytes:
    return b"event: " + str(event["type"]).encode() + b"\n" + _data(event)


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE_CHARACTERS):
        yield text[start : start + PIECE_CHARACTERS]


def _chat_chunks(body: JsonBody, *, wants_usage: bool) -> Iterator[JsonBody]:
    (choice,) = body["choices"]
    message = choice["message"]
    head = {"id": body["id"], "object": "chat.completion.chunk", "created": body["created"], "model": body["model"]}

    def chunk(delta: JsonBody, finish_reason: str | None = None) -> JsonBody:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}

    yield chunk({"role": "assistant", "content": ""})
    for key in ("content", "refusal"):
        for piece in _pieces(message[key] or ""):
            yield chunk({key: piece})
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        begun = {"name": function["name"], "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": begun}]})
        for piece in _pieces(function["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, choice["finish_reason"])
    if wants_usage:
        yield {**head, "choices": [], "usage": body["usage"]}


def _response_events(body: JsonBody) -> Iterator[JsonBody]:
    begun = {**body, "status": "in_progress", "output": [], "usage": None}
    number = iter(range(1_000_000))
    for kind in ("response.created", "response.in_progress"):
        yield {"type": kind, "sequence_number": next(number), "response": begun}
    for place, item in enumerate(body["output"]):
        for kind in ("response.output_item.added", "response.output_item.done"):
            yield {"type": kind, "sequence_number": next(number), "output_index": place, "item": item}
    yield {"type": f"response.{body['status']}", "sequence_number": next(number), "response": body}


def _message_events(body: JsonBody, arguments: list[str]) -> Iterator[JsonBody]:
    usage = body["usage"]
    begun = {**body, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    for place, block in enumerate(body["content"]):
        yield from _block_events(place, block, arguments)
    delta = {key: body[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def _block_events(place: int, block: JsonBody, arguments: list[str]) -> Iterator[JsonBody]:
    empty: JsonBody
    match block["type"]:
        case "tool_use":
            empty = {"input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(arguments.pop(0))]
        case "thinking":
            empty = {"thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case _:
            empty = {"text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
    yield {"type": "content_block_start", "index": place, "content_block": {**block, **empty}}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": place, "delta": delta}
    yield {"type": "content_block_stop", "index": place}
