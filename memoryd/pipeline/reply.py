"""The stage-1 reply: its value, its strict schema, and the one parser that decides whether an answer is one.

A model may wrap the object in a fence, its own thoughts or a JSON string, put it among other words, or add keys: that
is salvaged, and so are line breaks and tabs inside strings that should have been escaped; but "nothing to remember"
counts only alone, as JSON without a fault and with exactly the keys of the schema. What would have to be guessed
(trailing commas, single quotes, a missing end) is not: the model is asked once more. Anything else that is not the
schema raises MalformedReply, and so never deletes or replaces a memory.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from memoryd.errors import MalformedReply

MAX_TEXT_BYTES: Final = 256 * 1024
"""Far above any honest memory; a model in a loop writes more, and the memory folder takes no file above 1 MiB."""

MAX_CANDIDATES: Final = 512
"""Braces at which an object is looked for in prose: enough for any reply, and a bound on hostile ones."""

STAGE1_SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "rollout_summary": {"type": "string"},
        "rollout_slug": {"type": ["string", "null"]},
        "raw_memory": {"type": "string"},
    },
    "required": ["rollout_summary", "rollout_slug", "raw_memory"],
    "additionalProperties": False,
}
"""The strict JSON schema of the reply, as it is sent to a model."""

_KEYS = frozenset({"rollout_summary", "rollout_slug", "raw_memory"})

# Some servers put the opening tag into the prompt, so that an answer holds only the closing one.
_THOUGHTS = re.compile(r'\A(?!\s*[{\["`]).*?</think(?:ing)?>', re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
REMEDY: Final = "the session is tried again; if it keeps happening, choose a model that keeps to a JSON schema"


@dataclass(frozen=True, slots=True)
class Stage1Reply:
    """What one session taught: `raw_memory` and `rollout_summary` as the prompt asks for, both empty for nothing."""

    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None

    @property
    def is_empty(self) -> bool:
        """Nothing to remember."""
        return not self.raw_memory and not self.rollout_summary


NOTHING: Final = Stage1Reply(raw_memory="", rollout_summary="", rollout_slug=None)
"""The valid answer of a session that taught nothing."""


def parse_reply(text: str) -> Stage1Reply:
    """Read a model's answer as a stage-1 reply.

    Raises MalformedReply, and nothing else, when it is not the schema after unwrapping; extra keys are dropped, a
    missing slug is null, blank strings count as empty.
    """
    bare = _THOUGHTS.sub("", text, count=1).strip().removeprefix("\ufeff")
    whole = _whole(bare)
    fields = whole if whole is not None else _among_words(bare)
    if fields is None:
        raise _malformed("it holds no JSON object" if text.strip() else "it is blank")
    summary = _required_text(fields, "rollout_summary")
    raw_memory = _required_text(fields, "raw_memory")
    slug = _slug(fields.get("rollout_slug"))
    if not summary and not raw_memory:
        if whole is None or fields.keys() != _KEYS:
            raise _malformed("it holds blank texts among other words or keys")
        return NOTHING
    if not summary or not raw_memory:
        blank = "raw_memory" if summary else "rollout_summary"
        raise _malformed(f"`{blank}` is blank while the other text is not")
    return Stage1Reply(raw_memory=raw_memory, rollout_summary=summary, rollout_slug=slug)


def _whole(bare: str) -> dict[str, object] | None:
    """Return the object that the whole text is, perhaps in a fence or as a JSON string."""
    value = _loads(_without_fence(bare))
    if isinstance(value, str):
        value = _loads(_without_fence(value.strip()))
    return value if isinstance(value, dict) else None


def _among_words(bare: str) -> dict[str, object] | None:
    """Return the one object among other words that looks like a reply, else the first."""
    found = list(_objects_within(bare))
    fitting = [fields for fields in found if "raw_memory" in fields and "rollout_summary" in fields]
    if len(fitting) > 1:
        raise _malformed(f"it holds {len(fitting)} replies instead of one")
    return next(iter(fitting or found), None)


def _without_fence(text: str) -> str:
    fenced = _FENCED.fullmatch(text)
    return fenced[1] if fenced else text


def _objects_within(text: str) -> Iterator[dict[str, object]]:
    """Yield the outermost JSON objects that stand in prose."""
    decoder = json.JSONDecoder(strict=False)  # lets control characters stand in strings, as small models write them
    position = 0
    for _ in range(MAX_CANDIDATES):
        position = text.find("{", position)
        if position < 0:
            return
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        position = end
        if isinstance(value, dict):
            yield value


def _loads(text: str) -> object:
    """Parse JSON, None when it is none; nesting bombs, oversized numbers and a name that is given twice are none."""
    try:
        parsed: object = json.loads(text.strip(), object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return None
    return parsed


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make an object of its members; where two have one name, nobody can tell which of them was meant."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name is given twice")
    return fields


def _required_text(fields: dict[str, object], name: str) -> str:
    if name not in fields:
        raise _malformed(f"`{name}` is missing")
    value = fields[name]
    if not isinstance(value, str):
        raise _malformed(f"`{name}` is {_kind(value)} instead of a string")
    kept = _without_surrogates(value).strip()
    if len(kept.encode()) > MAX_TEXT_BYTES:
        raise _malformed(f"`{name}` is larger than {MAX_TEXT_BYTES // 1024} KiB")
    return kept


def _slug(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _malformed(f"`rollout_slug` is {_kind(value)} instead of a string or null")
    return _without_surrogates(value).strip() or None


def _without_surrogates(text: str) -> str:
    """JSON can escape lone surrogates, which no file and no database can hold."""
    return text.encode("utf-8", "replace").decode()


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def _malformed(what: str) -> MalformedReply:
    return MalformedReply(f"the model's answer is not a stage-1 reply: {what}", remedy=REMEDY)
