"""Putting the events of a streamed Messages reply together into the message that is not streamed. Pure."""

import json
from collections.abc import Sequence

from memoryd.llm.fields import count_at, object_at, text_at
from memoryd.llm.question import JsonObject

GROWING = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""The member of a block that each kind of piece is added to."""


def assemble_messages(events: Sequence[JsonObject]) -> JsonObject | None:
    """Return the message, or the error that stood in the stream; None when the message had not ended."""
    if failure := next((event["error"] for event in events if event.get("error")), None):
        return {"error": failure}
    message: dict[str, object] = {}
    blocks: dict[int, dict[str, object]] = {}
    inputs: dict[int, str] = {}
    for event in events:
        place = count_at(event, "index")
        match text_at(event, "type"):
            case "message_start":
                message |= object_at(event, "message")
            case "content_block_start":
                blocks[place] = dict(object_at(event, "content_block"))
            case "content_block_delta":
                _grow(blocks.setdefault(place, {"type": "text"}), inputs, place, object_at(event, "delta"))
            case "message_delta":
                _finish(message, event)
    return _whole(message, blocks, inputs) if message.get("stop_reason") else None


def _whole(message: JsonObject, blocks: dict[int, dict[str, object]], inputs: dict[int, str]) -> JsonObject:
    for place, text in inputs.items():
        blocks[place]["input"] = _input(text)
    return {**message, "content": [blocks[place] for place in sorted(blocks)]}


def _grow(block: dict[str, object], inputs: dict[int, str], place: int, delta: JsonObject) -> None:
    kind = text_at(delta, "type")
    if kind == "input_json_delta":
        inputs[place] = inputs.get(place, "") + text_at(delta, "partial_json")
    elif kind in GROWING:
        block[GROWING[kind]] = text_at(block, GROWING[kind]) + text_at(delta, GROWING[kind])


def _finish(message: dict[str, object], event: JsonObject) -> None:
    """Take the reason to stop, and the counts, which are of the whole message and replace those of its start."""
    message |= {key: value for key, value in object_at(event, "delta").items() if value is not None}
    counted = {key: value for key, value in object_at(event, "usage").items() if value is not None}
    message["usage"] = {**object_at(message, "usage"), **counted}


def _input(text: str) -> object:
    """Return a call's input; one that is no JSON object stays the text that it is, for its reader to refuse."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text
