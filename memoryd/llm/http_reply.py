"""From an HTTP reply to the JSON object in it, or to the error that it stands for. Pure.

A stream is read by what it is, not by what was asked for: some servers stream whatever one asks.
"""

import json
from collections.abc import Callable, Sequence
from typing import TypeAlias

from memoryd.errors import MalformedReply, Unreachable
from memoryd.llm.classify import classify_http, error_in_body, quota_sentence
from memoryd.llm.endpoint import Endpoint
from memoryd.llm.http import HttpReply
from memoryd.llm.question import JsonObject
from memoryd.llm.stream import events_in, is_stream
from memoryd.llm.visible import Show

Assemble: TypeAlias = Callable[[Sequence[JsonObject]], JsonObject | None]


def body_of(endpoint: Endpoint, reply: HttpReply, *, assemble: Assemble, now: float, show: Show) -> JsonObject:
    """Return a reply's JSON object, a stream's put together.

    Raises what the status, or an error inside a 200, stands for, MalformedReply when there is no JSON object, and
    Unreachable for a stream that ended before its end.
    """
    if not 200 <= reply.status < 300:
        raise classify_http(endpoint, reply.status, reply.headers, reply.text, now=now, show=show)
    body = _streamed(endpoint, reply, assemble) if is_stream(reply.headers, reply.text) else _decoded(reply.text)
    if not isinstance(body, dict):
        raise quota_sentence(endpoint, reply.text) or _no_json(endpoint, reply, show)
    failure = error_in_body(endpoint, reply.headers, body, now=now, show=show)
    if failure is not None:
        raise failure
    return body


def _streamed(endpoint: Endpoint, reply: HttpReply, assemble: Assemble) -> object:
    """Return the body that a stream adds up to, None for a stream without one event that could be read."""
    events = [event for data in events_in(reply.text) if isinstance(event := _decoded(data), dict)]
    if not events:
        return None
    body = assemble(events)
    if body is None:
        raise Unreachable(
            f"the stream of {endpoint.provider} at {endpoint.base_url} ended before the answer did",
            remedy=f"it is asked again later by itself; if it stays, turn stream off in {endpoint.section}",
        )
    return body


def _decoded(text: str) -> object:
    """Decode JSON, None when it is none. Half a surrogate pair, which no file or database takes, becomes `?`."""
    try:
        value = json.loads(text)
        if "\\ud" in text or "\\uD" in text:
            whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
            value = json.loads(whole)
    except (ValueError, RecursionError):
        return None
    return value


def _no_json(endpoint: Endpoint, reply: HttpReply, show: Show) -> MalformedReply:
    kind = next((value for key, value in reply.headers.items() if key.lower() == "content-type"), "no content type")
    return MalformedReply(
        f"{endpoint.provider} answered {reply.status} with what is no JSON object ({show(kind.split(';')[0])[:60]})",
        status=reply.status,
        remedy=f"check base_url in {endpoint.section} (now {endpoint.base_url})",
    )
