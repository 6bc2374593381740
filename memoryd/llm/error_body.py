"""What the body of a refusal says: every server has its own shape, and some have none."""

import json
from dataclasses import dataclass

from memoryd.llm.fields import an_object, object_at, objects_at, text_at
from memoryd.llm.question import JsonObject

MAX_PROSE_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class Said:
    """A server's reason. `code` joins its code, type and status words; `names` is searched for parameter names."""

    code: str = ""
    parameter: str = ""
    message: str = ""

    @property
    def names(self) -> str:
        """Everything that was said, in lower case."""
        return f"{self.code} {self.parameter} {self.message}".lower()


def read_error(text: str) -> Said:
    """Return what an error body says; a body that is no JSON object is its own message (a page of HTML is none)."""
    body = _decoded(text)
    if body is None:
        prose = text.strip()[:MAX_PROSE_CHARACTERS]
        return Said(message="" if prose.startswith("<") else prose)
    return said_in(body)


def said_in(body: JsonObject) -> Said:
    """Return what a JSON body says: the shapes of OpenAI, FastAPI, Ollama, llama.cpp, OpenRouter and Google."""
    error = object_at(body, "error")
    if not error and isinstance(body.get("error"), str):
        return Said(message=text_at(body, "error")[:MAX_PROSE_CHARACTERS])
    source = error or body
    codes = (_word(source, key) for key in ("code", "type", "status"))
    message = text_at(source, "message") or text_at(source, "detail") or _validation(body)
    return Said(
        code=" ".join(word for word in codes if word),
        parameter=text_at(source, "param"),
        message=message[:MAX_PROSE_CHARACTERS],
    )


def _decoded(text: str) -> JsonObject | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and value:
        value = value[0]
    return an_object(value) or None


def _word(source: JsonObject, key: str) -> str:
    value = source.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value)


def _validation(body: JsonObject) -> str:
    """Return places and reasons of a list of validation errors, without the `input` that it repeats."""
    return "; ".join(f"{_place(entry)}: {text_at(entry, 'msg')}" for entry in objects_at(body, "detail"))


def _place(entry: JsonObject) -> str:
    place = entry.get("loc")
    return ".".join(str(part) for part in place) if isinstance(place, list) else ""
