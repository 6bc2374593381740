"""Putting the chunks of a streamed chat completion together into the body that is not streamed. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from memoryd.llm.fields import count_at, object_at, objects_at, text_at
from memoryd.llm.question import JsonObject
from memoryd.llm.stream import END

TEXTS = ("content", "refusal", "reasoning_content", "reasoning")
LISTS = ("reasoning_details",)


@dataclass(slots=True)
class _Call:
    call_id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _Choice:
    """The first choice, as far as it has come."""

    texts: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[object]] = field(default_factory=dict)
    calls: dict[int, _Call] = field(default_factory=dict)
    finish_reason: str = ""


def assemble_chat(events: Sequence[JsonObject]) -> JsonObject | None:
    """Return the completion, or the error that stood in the stream; None when neither a reason to stop nor an end came.

    Usage comes in a chunk of its own at the end, or in every chunk, the last of which is right.
    """
    chunks = [each for event in events for each in objects_at(event, "choices")]
    carriers = (*events, *chunks)
    if failure := next((each["error"] for each in carriers if each.get("error")), None):
        return {"error": failure}
    choice = _Choice()
    for each in chunks:
        if not count_at(each, "index"):
            _take(choice, each)
    if not choice.finish_reason and not any(text_at(event, "type") == END for event in events):
        return None
    usage = next((found for event in reversed(events) if (found := object_at(event, "usage"))), {})
    model = next((name for event in events if (name := text_at(event, "model"))), "")
    message = {"role": "assistant", "content": None, **choice.texts, **choice.lists}
    if choice.calls:
        message["tool_calls"] = [_tool_call(choice.calls[place]) for place in sorted(choice.calls)]
    return {
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": choice.finish_reason or None}],
        "usage": dict(usage),
    }


def _take(choice: _Choice, chunk: JsonObject) -> None:
    delta = object_at(chunk, "delta") or object_at(chunk, "message")
    choice.finish_reason = text_at(chunk, "finish_reason") or choice.finish_reason
    for key in TEXTS:
        if text := text_at(delta, key):
            choice.texts[key] = choice.texts.get(key, "") + text
    for key in LISTS:
        if entries := objects_at(delta, key):
            choice.lists.setdefault(key, []).extend(entries)
    for place, entry in enumerate(objects_at(delta, "tool_calls")):
        _take_call(choice.calls, entry, place)


def _take_call(calls: dict[int, _Call], entry: JsonObject, place: int) -> None:
    """Add a piece of a call. Some servers number none of them, and send each call whole: an id begins a new one."""
    index = count_at(entry, "index") if "index" in entry else (len(calls) if text_at(entry, "id") else place)
    call = calls.setdefault(index, _Call())
    function = object_at(entry, "function")
    call.call_id = text_at(entry, "id") or call.call_id
    call.name = text_at(function, "name") or call.name
    call.arguments += text_at(function, "arguments")


def _tool_call(call: _Call) -> JsonObject:
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }
