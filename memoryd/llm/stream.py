"""Server-sent events: telling a stream from another body, and the data of its events. Pure.

What the events add up to is each wire format's own business (`Codec.assemble`). A `data` line holds one JSON object
in every format; the event's name is repeated inside it, so only `error` has to be taken from the name.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Final

END: Final = "[DONE]"
"""What ends a stream of chat completions; it is handed on as an event of this type."""

STARTS: Final = ("data:", "event:", ": ")


def is_stream(headers: Mapping[str, str], text: str) -> bool:
    """Say whether a body is a stream of events: by its content type, or by its first line where that is wrong."""
    kind = next((value for key, value in headers.items() if key.lower() == "content-type"), "")
    if "text/event-stream" in kind.lower():
        return not text.lstrip("\ufeff \r\n").startswith("{")
    return text.lstrip("\ufeff \r\n").startswith(STARTS)


def events_in(text: str) -> Iterator[str]:
    """Yield the data of each event as JSON text, lines of one event joined by line breaks; comments are left out.

    An `error` event whose data is prose is given the shape of an error object.
    """
    name, data = "", list[str]()
    for line in (*text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""):
        if line:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                data.append(value)
            elif field == "event":
                name = value
        elif data:
            event = "\n".join(data)
            if name == "error" and not event.lstrip().startswith("{"):
                event = json.dumps({"error": event})
            yield json.dumps({"type": END}) if event.strip() == END else event
            name, data = "", []
