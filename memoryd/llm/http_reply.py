"""From an HTTP reply to the JSON object in it, or to the error that it stands for. Pure."""

import json

from memoryd.errors import MalformedReply
from memoryd.llm.classify import classify_http, error_in_body, quota_sentence
from memoryd.llm.endpoint import Endpoint
from memoryd.llm.http import HttpReply
from memoryd.llm.question import JsonObject
from memoryd.llm.visible import Show


def body_of(endpoint: Endpoint, reply: HttpReply, *, now: float, show: Show) -> JsonObject:
    """Return a reply's JSON object. Raises what the status, or an error inside a 200, stands for, or MalformedReply."""
    if not 200 <= reply.status < 300:
        raise classify_http(endpoint, reply.status, reply.headers, reply.text, now=now, show=show)
    body = _decoded(reply.text)
    if not isinstance(body, dict):
        raise quota_sentence(endpoint, reply.text) or _no_json(endpoint, reply)
    failure = error_in_body(endpoint, reply.headers, body, now=now, show=show)
    if failure is not None:
        raise failure
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


def _no_json(endpoint: Endpoint, reply: HttpReply) -> MalformedReply:
    kind = next((value for key, value in reply.headers.items() if key.lower() == "content-type"), "no content type")
    return MalformedReply(
        f"{endpoint.provider} answered {reply.status} with what is no JSON object ({kind.split(';')[0][:60]})",
        status=reply.status,
        remedy=f"check base_url in {endpoint.section} (now {endpoint.base_url})",
    )
