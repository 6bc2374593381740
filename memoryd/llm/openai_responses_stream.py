"""Finding the response in a stream of the Responses format: its last event holds the whole of it. Pure."""

from collections.abc import Sequence

from memoryd.llm.fields import count_at, object_at, objects_at, text_at
from memoryd.llm.question import JsonObject

ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done")


def assemble_responses(events: Sequence[JsonObject]) -> JsonObject | None:
    """Return the response, or the error that stood in the stream; None when no event ended it.

    Some servers leave `output` empty in the last event: then it is what the finished items were.
    """
    items: dict[int, JsonObject] = {}
    for event in events:
        kind = text_at(event, "type")
        if kind == "error" or (not kind and event.get("error")):
            return {"error": event.get("error") or {key: event.get(key) for key in ("code", "message", "param")}}
        if kind == "response.output_item.done":
            items[count_at(event, "output_index")] = object_at(event, "item")
        if kind in ENDS:
            response = object_at(event, "response")
            if objects_at(response, "output") or not items:
                return response
            return {**response, "output": [items[place] for place in sorted(items)]}
    return None
