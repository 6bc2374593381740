"""What the scripted model server can answer: replies in every wire format, and everything that can go wrong."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.support.model_asked import JsonBody, Recorded

CREATED_AT = 1_700_000_000


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model. Arguments that are a string are sent as they are, also when they are no JSON."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)

    @property
    def arguments_text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer. `stop` is complete, length, content_filter or window (Messages alone has a word for that).

    `tokens` are (input, output). `streamed` None: as the request asks.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    refusal: str = ""
    stop: str = "complete"
    tokens: tuple[int, int] | None = None
    cached: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    streamed: bool | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """A refusal with a status, in the shape of OpenAI's errors, or of Anthropic's where it is asked in that format."""

    status: int
    message: str = "scripted failure"
    code: str | None = None
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> JsonBody:
        error = {"message": self.message, "type": "scripted_error", "param": self.param, "code": self.code}
        return {"error": error}

    def body_for(self, asked: Recorded) -> JsonBody:
        if not asked.is_messages:
            return self.body
        error = {"type": self.code or "invalid_request_error", "message": self.message}
        return {"type": "error", "error": error, "request_id": f"req_{asked.number}"}


@dataclass(frozen=True, slots=True)
class Raw:
    """Exactly these bytes with this status; the length header is right unless `headers` says otherwise."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hang:
    """No answer until the server closes, then the connection ends without one."""


@dataclass(frozen=True, slots=True)
class Drop:
    """The connection ends in the middle of the body of `reply`, or before any byte when `before_headers`."""

    reply: Reply = Reply(text="never seen in full")
    before_headers: bool = False


@dataclass(frozen=True, slots=True)
class HalfStream:
    """The first half of the events of `reply`, then the text `then`, and the body ends as if that were all."""

    reply: Reply = Reply(text="never seen in full")
    then: str = ""


@dataclass(frozen=True, slots=True)
class Slow:
    """The body of `reply` trickles: so many bytes, then a pause."""

    reply: Reply = Reply(text="slow")
    chunk_bytes: int = 16
    pause_seconds: float = 0.05


@dataclass(frozen=True, slots=True)
class Huge:
    """A 200 whose JSON body has so many bytes; it is never held in memory as a whole."""

    size_bytes: int


Scripted: TypeAlias = Reply | Status | Raw | Hang | Drop | HalfStream | Slow | Huge

GARBAGE = Raw(200, b"\x00\x01{not json", {"Content-Type": "application/json"})


def redirect(location: str, status: int = 307) -> Raw:
    """Return an answer that points elsewhere."""
    return Raw(status, b"", {"Location": location})


def tools(*calls: Call) -> Reply:
    """Return a reply that only calls tools."""
    return Reply(calls=calls)


def body_of(asked: Recorded, reply: Reply) -> JsonBody:
    """Render a reply in the format of its request."""
    if asked.is_messages:
        return messages_body(asked, reply)
    return responses_body(asked, reply) if asked.is_responses else chat_body(asked, reply)


def responses_body(asked: Recorded, reply: Reply) -> JsonBody:
    """Render a Response object, with an encrypted reasoning item when the request asked for one."""
    status = "completed" if reply.stop == "complete" else "incomplete"
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(reply.stop)
    output: list[JsonBody] = []
    if "reasoning.encrypted_content" in (asked.body.get("include") or ()):
        output.append(
            {
                "type": "reasoning",
                "id": f"rs_{asked.number}",
                "summary": [],
                "encrypted_content": f"thought {asked.number}",
            }
        )
    content: list[JsonBody] = []
    if reply.text:
        content.append({"type": "output_text", "text": reply.text, "annotations": []})
    if reply.refusal:
        content.append({"type": "refusal", "refusal": reply.refusal})
    if content:
        message = {"type": "message", "id": f"msg_{asked.number}", "role": "assistant", "status": status}
        output.append({**message, "content": content})
    for place, call in enumerate(reply.calls, 1):
        output.append(
            {
                "type": "function_call",
                "id": f"fc_{asked.number}_{place}",
                "call_id": _call_id(asked, place),
                "name": call.name,
                "arguments": call.arguments_text,
                "status": "completed",
            }
        )
    tokens_in, tokens_out = _tokens(asked, reply)
    return {
        "id": f"resp_{asked.number}",
        "object": "response",
        "created_at": CREATED_AT,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "metadata": {},
        "model": asked.model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": tokens_in,
            "input_tokens_details": {"cached_tokens": reply.cached, "cache_write_tokens": 0},
            "output_tokens": tokens_out,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens_in + tokens_out,
        },
    }


def chat_body(asked: Recorded, reply: Reply) -> JsonBody:
    """Render a ChatCompletion object."""
    message: JsonBody = {"role": "assistant", "content": reply.text or None, "refusal": reply.refusal or None}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": _call_id(asked, place),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments_text},
            }
            for place, call in enumerate(reply.calls, 1)
        ]
    finish = "tool_calls" if reply.calls else "stop"
    tokens_in, tokens_out = _tokens(asked, reply)
    return {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion",
        "created": CREATED_AT,
        "model": asked.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": finish if reply.stop == "complete" else reply.stop,
            }
        ],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
            "prompt_tokens_details": {"cached_tokens": reply.cached},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def messages_body(asked: Recorded, reply: Reply) -> JsonBody:
    """Render a Message object, with a signed thought when the request asked for effort."""
    content: list[JsonBody] = []
    if (asked.body.get("output_config") or {}).get("effort"):
        content.append({"type": "thinking", "thinking": "hm", "signature": f"signed {asked.number}"})
    if reply.text:
        content.append({"type": "text", "text": reply.text, "citations": None})
    for place, call in enumerate(reply.calls, 1):
        given = call.arguments if isinstance(call.arguments, Mapping) else {}
        content.append({"type": "tool_use", "id": _call_id(asked, place), "name": call.name, "input": dict(given)})
    reasons = {"length": "max_tokens", "content_filter": "refusal", "window": "model_context_window_exceeded"}
    reason = reasons.get(reply.stop, "tool_use" if reply.calls else "end_turn")
    tokens_in, tokens_out = _tokens(asked, reply)
    return {
        "id": f"msg_{asked.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": "refusal" if reply.refusal else reason,
        "stop_sequence": None,
        "stop_details": {"type": "refusal", "category": None, "explanation": reply.refusal} if reply.refusal else None,
        "usage": {
            "input_tokens": tokens_in - reply.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": reply.cached,
            "output_tokens": tokens_out,
        },
    }


def _call_id(asked: Recorded, place: int) -> str:
    return f"call_{asked.number}_{place}"


def _tokens(asked: Recorded, reply: Reply) -> tuple[int, int]:
    if reply.tokens is not None:
        return reply.tokens
    said = len(reply.text) + len(reply.refusal) + sum(len(call.arguments_text) for call in reply.calls)
    return len(json.dumps(asked.body)) // 4, max(1, said // 4)
