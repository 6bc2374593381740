"""What a client asked, independent of the wire format in which it asked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JsonBody = dict[str, Any]

STAGE1 = "stage1"
CONSOLIDATION = "consolidation"
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A tool call of ours that came back with its output."""

    name: str
    arguments: JsonBody
    output: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as it arrived; the value of a credential header is never kept."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: JsonBody = field(repr=False)

    @property
    def is_responses(self) -> bool:
        return self.path.partition("?")[0].endswith("/responses")

    @property
    def is_messages(self) -> bool:
        return self.path.partition("?")[0].endswith("/messages")

    @property
    def wants_stream(self) -> bool:
        return self.body.get("stream") is True

    @property
    def kind(self) -> str:
        """A consolidation carries tools; stage 1 carries a schema, in whatever words, and no tools."""
        if self.body.get("tools"):
            return CONSOLIDATION
        return STAGE1 if self.method == "POST" and (self.body.get("input") or self.body.get("messages")) else OTHER

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def instructions(self) -> str:
        if self.is_responses:
            return str(self.body.get("instructions") or "")
        if self.is_messages:
            return _text(self.body.get("system"))
        return "\n".join(_text(each.get("content")) for each in self._messages if each.get("role") == "system")

    @property
    def opening(self) -> str:
        """The first words of the user."""
        return next(iter(self.user_texts), "")

    @property
    def user_texts(self) -> list[str]:
        spoken = [each for each in self._messages if each.get("role") == "user" and not _is_of_results(each)]
        return [_text(each.get("content")) for each in spoken]

    @property
    def exchanges(self) -> list[Exchange]:
        """The tool calls of the conversation so far, each with what it answered, in order."""
        if self.is_messages:
            return _messages_exchanges(self._messages)
        return _responses_exchanges(self._messages) if self.is_responses else _chat_exchanges(self._messages)

    @property
    def _messages(self) -> list[JsonBody]:
        messages = self.body.get("input" if self.is_responses else "messages", [])
        if isinstance(messages, str):
            return [{"role": "user", "content": messages}]
        return [each for each in messages if isinstance(each, dict)]


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def _responses_exchanges(items: list[JsonBody]) -> list[Exchange]:
    outputs = {each["call_id"]: str(each["output"]) for each in items if each.get("type") == "function_call_output"}
    return [
        Exchange(each["name"], _arguments(each["arguments"]), outputs[each["call_id"]])
        for each in items
        if each.get("type") == "function_call" and each["call_id"] in outputs
    ]


def _chat_exchanges(messages: list[JsonBody]) -> list[Exchange]:
    outputs = {each["tool_call_id"]: _text(each["content"]) for each in messages if each.get("role") == "tool"}
    calls = [call for each in messages for call in each.get("tool_calls") or ()]
    return [
        Exchange(call["function"]["name"], _arguments(call["function"]["arguments"]), outputs[call["id"]])
        for call in calls
        if call["id"] in outputs
    ]


def _blocks(messages: list[JsonBody], kind: str) -> list[JsonBody]:
    contents = (each.get("content") for each in messages)
    return [part for parts in contents if isinstance(parts, list) for part in parts if part.get("type") == kind]


def _is_of_results(message: JsonBody) -> bool:
    return bool(_blocks([message], "tool_result"))


def _messages_exchanges(messages: list[JsonBody]) -> list[Exchange]:
    outputs = {each["tool_use_id"]: _text(each.get("content")) for each in _blocks(messages, "tool_result")}
    uses = _blocks(messages, "tool_use")
    return [Exchange(each["name"], each["input"], outputs[each["id"]]) for each in uses if each["id"] in outputs]


def _arguments(text: str) -> JsonBody:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
