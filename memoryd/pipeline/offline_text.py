"""Words as they were said: sentences of a message, quoted verbatim with only the white space between words evened out.

Everything the offline writer quotes passes through here, so that a quote is always a piece of the evidence: cuts fall
between words and leave no mark, and what cannot stand on one line of Markdown is not quoted at all.
"""

import re
import unicodedata
from typing import Final

from memoryd.workspace.checks_text import is_omission

MAX_SENTENCE_CHARS: Final = 400
"""Longer "sentences" are pasted logs, not something a person said."""

MAX_SENTENCES: Final = 400
"""A message with more is a pasted document; its beginning is enough."""

MAX_VERDICT_CHARS: Final = 40

UNQUOTABLE: Final = frozenset({"Cc", "Cs"})
"""Unicode categories of control characters and lone surrogates."""

_FENCED = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_LIST_MARK = re.compile(r"^\s{0,3}(?:[-*+•]|\d{1,2}[.)])\s+")
_PASTED = re.compile(r"^(?:\s{4,}|\t|\s*>|\s*\||\s*(?:Traceback|File \"|at \S+\(|\d{4}-\d\d-\d\d[T ]\d\d:|[$#%] ))")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])\s*")
_ABBREVIATION = re.compile(
    r"(?:^|\W)(?:e\.g|i\.e|etc|vs|cf|approx|z\.\s?B|d\.\s?h|bzw|ca|Dr|Mr|Ms|p\.\s?ej)\.$", re.IGNORECASE
)
_LONE_VERDICT = re.compile(r"(?:(?:no|nope|nein|non|stop|halt|wait|wrong|falsch|actually)\b[.!,…\s]*)+", re.IGNORECASE)
_SMALL_TALK = re.compile(
    r"(?:hi|hey|hello|hallo|hola|salut|bonjour|servus|moin|yo|good (?:morning|afternoon|evening|night)|guten "
    r"(?:morgen|tag|abend)"
    r"|thanks?(?: you| a lot| so much)?|thx|ty|danke|merci|gracias|cheers|great|perfect|nice(?: work)?|awesome"
    r"|cool|super|ok(?:ay)?|yes|yep"
    r"|no|nope|sure|please|bye|see you|ciao|how are you|what'?s up|sounds good|looks good|lgtm|well done|good "
    r"job|there|again|today"
    r"|all good|that'?s all|never ?mind|no (?:problem|worries)|you|very much|doing|for (?:now|today)|until tomorrow"
    r"|everyone|codex|claude)",
    re.IGNORECASE,
)
_WORDS_BETWEEN = re.compile(r"[\s,.!?;:…)(\-–—👍🙂😀]+")
_BOLD = re.compile(r"(?<![\w/*])\*\*(?=[^\s*])([^*]*)(?<=[^\s*])\*\*(?![\w/*])")


def one_line(text: str) -> str:
    """Collapse white space, the only change a quote may see."""
    return " ".join(text.split())


def plain(text: str) -> str:
    """Return one line without bold: emphasis is mark-up, not words."""
    return one_line(_BOLD.sub(r"\1", text))


def is_quotable(text: str) -> bool:
    """Whether `text` can stand in a line of a memory file: not blank, no control, no surrogate, no bold.

    Nor may it read like a mark for text that was left out, which acceptance takes for a loss.
    """
    if not text.strip() or _BOLD.search(text) or is_omission(text):
        return False
    return text.isprintable() or not any(unicodedata.category(char) in UNQUOTABLE for char in text)


def clip(text: str, limit: int) -> str:
    """Return the beginning of one line, at most `limit` characters, cut between words where there are some."""
    if len(text) <= limit:
        return text
    head = text[:limit]
    if text[limit] != " " and " " in head:
        head = head[: head.rindex(" ")]
    return head.rstrip()


def sentences(message: str) -> list[str]:
    """Return what a person said in a message, a sentence each, in order.

    Fenced code, quoted lines, tables and pasted logs are left out, bold is taken as plain; a bare "No." stays with the
    sentence after it.
    """
    found: list[str] = []
    for paragraph in _paragraphs(_BOLD.sub(r"\1", _FENCED.sub("\n\n", message))):
        found += _joined(_split(paragraph))
        if len(found) >= MAX_SENTENCES:
            break
    return [one for one in found[:MAX_SENTENCES] if len(one) <= MAX_SENTENCE_CHARS and is_quotable(one)]


def is_small_talk(sentence: str) -> bool:
    """Whether a sentence is made of greetings, thanks and nods only."""
    rest = sentence.replace("’", "'")
    while rest := _WORDS_BETWEEN.sub(" ", rest).strip():
        greeting = _SMALL_TALK.match(rest)
        if greeting is None or (greeting.end() < len(rest) and rest[greeting.end()].isalnum()):
            return False
        rest = rest[greeting.end() :]
    return True


def as_code(text: str) -> str:
    """Put one line between backticks, doubled where it holds some itself."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _paragraphs(text: str) -> list[str]:
    """Join lines that were only wrapped; a list item, a blank or a short line ends a paragraph."""
    paragraphs: list[str] = []
    wrapped = False
    for line in text.splitlines():
        if not line.strip() or _PASTED.match(line):
            wrapped = False
            continue
        item = _LIST_MARK.sub("", line)
        if wrapped and item == line and line.lstrip()[:1].islower():
            paragraphs[-1] += " " + line
        else:
            paragraphs.append(item)
        wrapped = len(line) >= 60
    return paragraphs


def _split(paragraph: str) -> list[str]:
    pieces: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(paragraph):
        head = paragraph[start : end.end()]
        if _ABBREVIATION.search(head.rstrip()):
            continue
        pieces.append(one_line(head))
        start = end.end()
    pieces.append(one_line(paragraph[start:]))
    return [piece for piece in pieces if piece]


def _joined(pieces: list[str]) -> list[str]:
    """Keep a verdict that stands alone with what it is about."""
    joined: list[str] = []
    for piece in pieces:
        if joined and len(joined[-1]) <= MAX_VERDICT_CHARS and _LONE_VERDICT.fullmatch(joined[-1]):
            joined[-1] += " " + piece
        else:
            joined.append(piece)
    return joined
