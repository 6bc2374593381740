"""What of a server's own words may be shown: without secrets, without the key, and without what we had sent it."""

from collections.abc import Callable
from typing import TypeAlias

from memoryd.llm.question import ModelTurn, Question, ToolTurn, Turn, UserTurn
from memoryd.text import plain

Show: TypeAlias = Callable[[str], str]
"""Turns a server's words into words that may stand in an error."""

MAX_SHOWN_CHARACTERS = 240
MIN_KEY_CHARACTERS = 6  # a shorter "key" is a placeholder of a local server and would blot out ordinary words
SAME_CHARACTERS = (
    16  # so many letters and digits in a row that also stand in the request are an echo, not a coincidence
)
WITHHELD = "(its words repeat the request and are withheld)"
KEY_MARK = "[REDACTED_SECRET]"


def visible(text: str, *, clean: Show, key: str | None, content: str) -> str:
    """Return `text` on one line, redacted, cut, or a note in its place when it repeats `content`.

    Servers echo keys in their refusals and whole messages in their validation errors; neither may reach a log or the
    ledger, nor what steers a terminal. The text is redacted before it is cut, so that no half of a secret stays.
    """
    seen = plain(text)
    hidden = seen.replace(key, KEY_MARK) if key and len(key) >= MIN_KEY_CHARACTERS else seen
    line = " ".join(clean(hidden).split())
    shown = line if len(line) <= MAX_SHOWN_CHARACTERS else f"{line[:MAX_SHOWN_CHARACTERS]}…"
    return WITHHELD if _repeats(shown, content) else shown


def content_of(question: Question) -> str:
    """Return everything in a question that came from sessions or memory, as one text to compare with."""
    return "\n".join(_text(turn) for turn in question.turns)


def _text(turn: Turn) -> str:
    match turn:
        case UserTurn(text):
            return text
        case ModelTurn(text, calls):
            return "\n".join((text, *(call.arguments for call in calls)))
        case ToolTurn(results):
            return "\n".join(result.output for result in results)


def _repeats(shown: str, content: str) -> bool:
    """Compare letters and digits only: escapes, quotes and line breaks differ between a request and its echo."""
    said, sent = _squeezed(shown), _squeezed(content)
    windows = range(len(said) - SAME_CHARACTERS + 1)
    return any(said[start : start + SAME_CHARACTERS] in sent for start in windows)


def _squeezed(text: str) -> str:
    return "".join(filter(str.isalnum, text))
