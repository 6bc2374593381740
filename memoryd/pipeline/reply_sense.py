"""A reply that keeps to the schema and answers nothing: a placeholder, the question again, or one line for ever.

Only what no session can have taught is refused, whatever language and however loose a form an honest reply has; what
the evidence holds may be repeated. A memory that is merely poor is kept: the consolidation weighs it.
"""

import zlib
from functools import lru_cache
from typing import Final

from memoryd.errors import MalformedReply
from memoryd.pipeline.prompting import FENCE, QuestionParts
from memoryd.pipeline.reply import REMEDY, Stage1Reply
from memoryd.workspace.wording import words_of

LEAST_ECHO_CHARS: Final = 40
"""Shorter lines of the instructions are labels, which a reply is to have."""
LOOP_BYTES: Final = 4_000
LOOP_RATIO: Final = 0.02
"""Written text shrinks to a third or a quarter, a table of alike rows to a twentieth; a loop to a two hundredth."""
_LABELS: Final = ("#", "---")
_EMPTY: Final = frozenset(
    {
        "string",
        "str",
        "text",
        "null",
        "none",
        "nil",
        "na",
        "n a",
        "undefined",
        "empty",
        "raw memory",
        "rollout summary",
        "nothing",
        "nothing to remember",
        "no memory",
        "todo",
        "tbd",
    }
)
"""What stands in the place of a text, as words: type names, the names of the keys, and nothing at all in words."""


def refuse_nonsense(reply: Stage1Reply, asked: QuestionParts, evidence: str) -> Stage1Reply:
    """Return a reply that may be one. Raises MalformedReply, which never deletes or replaces a memory."""
    if reply.is_empty:
        return reply
    for name, text in (("raw_memory", reply.raw_memory), ("rollout_summary", reply.rollout_summary)):
        if why := _why_none(text, asked, evidence):
            raise MalformedReply(f"the model's answer is not a stage-1 reply: `{name}` {why}", remedy=REMEDY)
    return reply


def _why_none(text: str, asked: QuestionParts, evidence: str) -> str:
    words = words_of(text[:LOOP_BYTES])
    if not words or " ".join(words) in _EMPTY:
        return "is a placeholder; three empty strings say that there is nothing to remember"
    data = text.encode("utf-8", "replace")
    if len(data) >= LOOP_BYTES and len(zlib.compress(data)) < LOOP_RATIO * len(data):
        return "says the same over and over"
    if _repeats(text, asked, evidence):
        return "repeats the instructions instead of what the session taught"
    return ""


def _repeats(text: str, asked: QuestionParts, evidence: str) -> bool:
    """Say whether most of a text is ours: lines of the instructions, or of the frame in which the evidence stood.

    The facts before the frame are to be repeated.
    """
    rows = [row for row in (line.strip() for line in text.split("\n")) if row and not _is_label(row)]
    frame = asked.opening.partition("\n\n")[2].replace(evidence, "")
    if any(row.startswith(FENCE) and row in frame for row in rows):
        return True
    ours = _long_lines(asked.instructions) | _long_lines(frame)
    echoed = [row for row in rows if row in ours]
    if not echoed or 2 * len(echoed) < len(rows):
        return False
    seen = " ".join(words_of(evidence))
    return any(" ".join(words_of(row)) not in seen for row in echoed)


@lru_cache(maxsize=4)
def _long_lines(text: str) -> frozenset[str]:
    return frozenset(row for row in map(str.strip, text.split("\n")) if len(row) >= LEAST_ECHO_CHARS)


def _is_label(row: str) -> bool:
    return row.startswith(_LABELS) or row.endswith(":")
