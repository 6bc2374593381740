"""Instructions that carry a schema in words, for the rungs of the ladder on which the server does not enforce it."""

import json

from memoryd.llm.codec import Structure
from memoryd.llm.question import Question

ASK_FOR_JSON = (
    "Answer with exactly one JSON object that satisfies this JSON schema, and with nothing else: no prose before or"
    " after it, no code fence.\n\n"
)


def instructions_for(question: Question, structure: Structure) -> str:
    """Return the question's instructions, with its schema appended wherever the server is not told to enforce it."""
    if question.schema is None or structure is Structure.JSON_SCHEMA:
        return question.instructions
    schema = json.dumps(question.schema.schema, ensure_ascii=False, separators=(",", ":"))
    return f"{question.instructions.rstrip()}\n\n{ASK_FOR_JSON}{schema}\n".lstrip("\n")


def next_rung(ladder: tuple[Structure, ...], rung: Structure) -> Structure | None:
    """Return the rung below, None at the bottom."""
    below = ladder.index(rung) + 1
    return ladder[below] if below < len(ladder) else None
