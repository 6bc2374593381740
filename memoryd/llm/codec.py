"""The contract of a wire format: pure functions between a question or an answer and the JSON of one endpoint."""

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
    """One wire format. Everything is pure; `ladder` lists the structures that the format knows, strictest first."""

    path: str
    ladder: tuple[Structure, ...]

    def encode(self, question: Question, structure: Structure) -> JsonObject:
        """Return the request body."""
        ...

    def decode(self, body: JsonObject) -> Answer:
        """Return the answer in a response body. Raises MalformedReply when there is none in it."""
        ...

    def usage(self, body: JsonObject) -> Usage | None:
        """Return what the body says of tokens, None when it says nothing."""
        ...
