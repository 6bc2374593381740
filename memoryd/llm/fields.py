"""Reading a decoded JSON object without trusting it: every reader is total and answers an empty value instead."""

import json
from collections.abc import Mapping

from memoryd.llm.question import JsonObject

EMPTY: JsonObject = {}
MOST_COUNTED = 1_000_000_000
"""No request holds so many tokens; a server that says more would break every sum."""


def an_object(value: object) -> JsonObject:
    """Return `value` when it is a JSON object, an empty one otherwise."""
    return value if isinstance(value, Mapping) else EMPTY


def object_at(source: JsonObject, key: str) -> JsonObject:
    """Return the object under `key`, an empty one when there is none."""
    return an_object(source.get(key))


def objects_at(source: JsonObject, key: str) -> tuple[JsonObject, ...]:
    """Return the objects in the list under `key`; entries that are no objects are left out."""
    value = source.get(key)
    return tuple(entry for entry in value if isinstance(entry, Mapping)) if isinstance(value, list) else ()


def text_at(source: JsonObject, key: str) -> str:
    """Return the string under `key`, an empty one when there is none."""
    value = source.get(key)
    return value if isinstance(value, str) else ""


def count_at(source: JsonObject, key: str) -> int:
    """Return the whole number under `key`, never negative, at most MOST_COUNTED, 0 when there is none."""
    value = source.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        return 0
    return int(min(value, MOST_COUNTED))


def arguments_at(source: JsonObject, key: str) -> str:
    """Return a call's arguments as JSON text; some servers send them as an object instead of a string."""
    value = source.get(key)
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else ""


def picked(source: JsonObject, keys: tuple[str, ...]) -> dict[str, object]:
    """Return those of `keys` that the object holds with a value that is not null."""
    return {key: source[key] for key in keys if source.get(key) is not None}
