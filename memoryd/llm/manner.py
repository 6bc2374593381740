"""How one server takes a question: what it refused by name is given up, one step a request. Pure.

The steps: the structure goes down its ladder, the reasoning effort is left out, the limit of the answer is called by
its next name, or halved where it is more than the model can say. A bad answer is no reason for a step.
"""

from dataclasses import dataclass, replace
from typing import Final

from memoryd.errors import (
    EffortUnsupported,
    ModelError,
    OutputLimitTooLarge,
    OutputLimitUnsupported,
    StructureUnsupported,
)
from memoryd.llm.codec import Codec, Structure
from memoryd.llm.question import JsonObject, Question
from memoryd.llm.structure import next_rung

LEAST_OUTPUT_TOKENS: Final = 1_024
"""A model that may not say even this much cannot write a memory; the refusal is an error then."""

WITHOUT_EFFORT: Final = "no-effort"


@dataclass(frozen=True, slots=True)
class Manner:
    """What the requests to one model carry. `limit_name` is None for a server that takes no limit of the answer."""

    structure: Structure
    limit_name: str | None
    with_effort: bool = True
    most_output_tokens: int | None = None


def first_manner(codec: Codec, structure: Structure | None = None) -> Manner:
    """Return how a model is asked that has refused nothing yet."""
    return Manner(structure or codec.ladder[0], codec.limit_names[0])


def manner_in_words(manner: Manner) -> str:
    """Return a manner as one line, to be kept: its structure, then whatever else differs from the usual."""
    words: list[str] = [manner.structure.value, f"limit={manner.limit_name or ''}"]
    if not manner.with_effort:
        words.append(WITHOUT_EFFORT)
    if manner.most_output_tokens is not None:
        words.append(f"most={manner.most_output_tokens}")
    return " ".join(words)


def manner_of_words(codec: Codec, text: str) -> Manner:
    """Return the manner that was kept; words that this format does not know are as if they had not been kept."""
    structure, *others = text.split() or [""]
    usual = first_manner(codec)
    values = dict(word.partition("=")[::2] for word in others)
    limit = values.get("limit", usual.limit_name)
    most = values.get("most", "")
    return Manner(
        structure=Structure(structure) if structure in codec.ladder else usual.structure,
        limit_name=limit if limit in codec.limit_names else usual.limit_name if limit else _none_allowed(codec),
        with_effort=WITHOUT_EFFORT not in values,
        most_output_tokens=int(most) if most.isascii() and most.isdigit() and len(most) < len("1000000000") else None,
    )


def _none_allowed(codec: Codec) -> str | None:
    return codec.limit_names[0] if codec.limit_is_required else None


def in_manner(question: Question, manner: Manner) -> Question:
    """Return the question without what its server refused."""
    effort = question.effort if manner.with_effort else None
    limits = [tokens for tokens in (question.max_output_tokens, manner.most_output_tokens) if tokens is not None]
    return replace(question, effort=effort, max_output_tokens=min(limits, default=None))


def encoded(codec: Codec, question: Question, manner: Manner, *, stream: bool) -> JsonObject:
    """Return the request body in the server's manner."""
    body = dict(codec.encode(in_manner(question, manner), manner.structure))
    usual = codec.limit_names[0]
    if manner.limit_name != usual and usual in body:
        limit = body.pop(usual)
        if manner.limit_name is not None:
            body[manner.limit_name] = limit
    return {**body, **codec.streaming} if stream else body


def stepped_down(codec: Codec, question: Question, manner: Manner, error: ModelError) -> Manner | None:
    """Return the manner to try after a refusal that names a parameter, None when nothing is left to give up."""
    asked = in_manner(question, manner)
    match error:
        case StructureUnsupported():
            below = next_rung(codec.ladder, manner.structure) if question.schema else None
            return replace(manner, structure=below) if below else None
        case EffortUnsupported():
            return replace(manner, with_effort=False) if asked.effort else None
        case OutputLimitTooLarge():
            fewer = (asked.max_output_tokens or 0) // 2
            return replace(manner, most_output_tokens=fewer) if fewer >= LEAST_OUTPUT_TOKENS else None
        case OutputLimitUnsupported():
            return _by_next_name(codec, manner) if asked.max_output_tokens else None
        case _:
            return None


def _by_next_name(codec: Codec, manner: Manner) -> Manner | None:
    """Some servers know the limit by its old name only, some models by its new one, and a few take none at all."""
    if manner.limit_name is None:
        return None
    left = codec.limit_names[codec.limit_names.index(manner.limit_name) + 1 :]
    if not left and codec.limit_is_required:
        return None
    return replace(manner, limit_name=next(iter(left), None))
