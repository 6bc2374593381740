"""What is asked of a model and what it answered, without a word of any wire format.

A question is a whole conversation: instructions, then turns. An answer is text, tool calls, or both, with what it cost.
Both are frozen values; codecs turn them into JSON and back.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

JsonObject: TypeAlias = Mapping[str, object]
"""A decoded JSON object; its values are narrowed where they are read."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request. `cached` and `written` (to a cache) are parts of `input`, `reasoning` is one of `output`.

    `measured` is False when the server reported nothing and the numbers are our own estimate: they count against the
    caps, but nothing may be learned from them.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    measured: bool = True
    written: int = 0


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A function that the model may call; `parameters` is a strict JSON schema of type object."""

    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the model made; `arguments` is the JSON text as the model wrote it, not yet validated."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call answered."""

    call_id: str
    output: str


@dataclass(frozen=True, slots=True)
class UserTurn:
    """Text from our side."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """What the model said before; `raw` holds the wire items of its answer, so that they can be sent back unchanged."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    raw: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolTurn:
    """The results of the calls of the turn before, one for each call."""

    results: tuple[ToolResult, ...]


Turn: TypeAlias = UserTurn | ModelTurn | ToolTurn


@dataclass(frozen=True, slots=True)
class Schema:
    """The JSON schema that the answer's text must satisfy; `name` is [a-zA-Z0-9_-], at most 64 characters."""

    name: str
    schema: JsonObject


@dataclass(frozen=True, slots=True)
class Errand:
    """A folder in which an agent's own program is to work by itself, and for how long at the most."""

    folder: Path
    seconds: float


@dataclass(frozen=True, slots=True)
class Question:
    """One request's whole content. `effort` is the provider's word for reasoning effort, None to say nothing of it.

    `errand` is for a provider of kind `command` alone: work to be done, where the others are asked for calls of tools.
    """

    model: str
    effort: str | None
    instructions: str
    turns: tuple[Turn, ...]
    schema: Schema | None = None
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int | None = None
    errand: Errand | None = None


class Stop(StrEnum):
    """Why the model stopped."""

    COMPLETE = "complete"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `text` is empty when there was none; `model` is the name that the server gave, ours otherwise.

    With `Stop.REFUSAL` the text is the refusal, if the model gave one. With `Stop.LENGTH` text and calls may be cut.
    """

    text: str
    calls: tuple[ToolCall, ...]
    raw: tuple[JsonObject, ...]
    usage: Usage
    stop: Stop
    model: str

    def as_turn(self) -> ModelTurn:
        """Return this answer as a turn of the next question."""
        return ModelTurn(text=self.text, calls=self.calls, raw=self.raw)
