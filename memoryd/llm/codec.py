"""The contract of a wire format: pure functions between a question or an answer and the JSON of one endpoint."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from memoryd.llm.question import Answer, JsonObject, Question, Usage


class Structure(StrEnum):
    """How an answer's shape is asked for, strictest first. The answer is validated by its reader in every case."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT_SCHEMA = "json_object_schema"
    JSON_OBJECT = "json_object"
    PROMPT = "prompt"


class Codec(Protocol):
    """One wire format. Everything is pure.

    `ladder` lists the structures that the format knows, strictest first; `limit_names` the names of the answer's
    limit in tokens, of which `encode` writes the first; `streaming` is what a request for a stream carries besides.
    """

    path: str
    ladder: tuple[Structure, ...]
    limit_names: tuple[str, ...]
    limit_is_required: bool
    streaming: JsonObject

    def headers(self, key: str | None) -> Mapping[str, str]:
        """Return the headers that carry the key, and whatever else the format wants."""
        ...

    def encode(self, question: Question, structure: Structure) -> JsonObject:
        """Return the request body."""
        ...

    def decode(self, body: JsonObject) -> Answer:
        """Return the answer in a response body. Raises MalformedReply when there is none in it."""
        ...

    def usage(self, body: JsonObject) -> Usage | None:
        """Return what the body says of tokens, None when it says nothing."""
        ...

    def assemble(self, events: Sequence[JsonObject]) -> JsonObject | None:
        """Return the body that the events of a stream add up to, None when the stream ended before its end.

        An error in the stream becomes a body that carries `error`, as errors inside a 200 do.
        """
        ...


def bearer(key: str | None) -> Mapping[str, str]:
    """Return the header in which most formats carry the key."""
    return {"Authorization": f"Bearer {key}"} if key else {}
