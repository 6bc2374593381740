"""The part of a text to show on one line: the one with the most of what was asked for."""

from collections.abc import Sequence
from typing import Final

from memoryd.recall.search_words import MIN_PREFIX, Term
from memoryd.text import ELLIPSIS, on_one_line

MAX_SNIPPET: Final = 240
"""Characters."""
_LEAD: Final = 40
"""Characters shown before the first word that was asked for."""


def snippet_of(text: str, terms: Sequence[Term]) -> str:
    """Return the text on one line, cut to the window of MAX_SNIPPET characters in which most terms begin."""
    line = " ".join(on_one_line(text).split())
    if len(line) <= MAX_SNIPPET:
        return line
    places = sorted(place for term in terms if (place := _place(line, term)) is not None)
    room = MAX_SNIPPET - 2 * len(ELLIPSIS)
    start = max(
        (max(0, place - _LEAD) for place in places),
        key=lambda at: sum(at <= place < at + room for place in places),
        default=0,
    )
    start = min(start, len(line) - room)
    if start > 0:
        start = max(line.rfind(" ", 0, start) + 1, start - _LEAD)
    cut = line[start : start + room].strip()
    before, after = ELLIPSIS if start else "", ELLIPSIS if start + room < len(line) else ""
    return f"{before}{cut}{after}"


def _place(line: str, term: Term) -> int | None:
    """Return where a term's first word, or its stem, begins; letter case aside."""
    word = term.words[0]
    place = line.casefold().find(word[: max(MIN_PREFIX, len(word) - 3)])
    return None if place < 0 else min(place, len(line) - 1)
