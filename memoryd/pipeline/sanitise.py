"""What is no evidence: private spans, memory that memoryd itself injected, and memoryd's own calls.

Sanitising is about whose words they are and comes first; secrets are taken out afterwards (redact.py).
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from memoryd.pipeline.own_calls import OwnCalls, Part
from memoryd.sources.items import Item, ItemKind
from memoryd.text import MARKER_OPEN, may_mention, plain


class Reason(StrEnum):
    """Why something was taken out of a session, as `explain` counts it."""

    PRIVATE = "private"
    MEMORY_BLOCK = "memory_block"
    OWN_CALL = "own_call"
    OWN_OUTPUT = "own_output"
    BASE64 = "base64"
    BLANK = "blank"


_OWN: Final = {Part.CALL: Reason.OWN_CALL, Part.OUTPUT: Reason.OWN_OUTPUT}
BASE64_MARK: Final = "[... base64 omitted ...]"
_LESS = r"(?:[<＜]|&(?:amp;){0,4}(?:lt|#0{0,4}60|#x0{0,4}3c);?|\\{1,8}(?:[<＜]|u003c|u\{0{0,4}3c\}|x3c|074)|%3c)"
_GREATER = r"(?:[>＞]|&(?:amp;){0,4}(?:gt|#0{0,4}62|#x0{0,4}3e);?|\\{1,8}(?:[>＞]|u003e|u\{0{0,4}3e\}|x3e|076)|%3e)"
_SLASH = r"(?:\\{0,8}[/／]|&(?:amp;){0,4}#(?:0{0,4}47|x0{0,4}2f);?|\\{1,8}(?:u002f|u\{0{0,4}2f\}|x2f|057)|%2f)"
"""Angle brackets and the slash as they are, in full width, and escaped: for HTML, JSON or a program's text (any number
of times), Markdown or a URL."""
_JOINERS = re.compile("[\xad\u034f\u180e\u200c\u200d\ufe00-\ufe0f]")
"""What nobody sees and some scripts need: it stays, but in a tag."""
_DATA_URL = re.compile(r"data:[\w/+.-]{1,80};base64,[A-Za-z0-9+/]{64,}={0,2}")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{1024,}={0,2}")
_TERMINAL = re.compile(r"\x1b(?:\[[0-9;?]{0,30}[ -/]{0,3}[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\))")


def sanitise(
    items: Iterable[Item], *, private_tags: Sequence[str], home: Path, dropped: Counter[str]
) -> Iterator[Item]:
    """Yield `items` without what must not be learned from; `dropped` counts by Reason what was taken out.

    A private span that is not closed hides the rest of its message, which are the items of the same ordinal: who spoke
    in it does not matter, only that what a program printed is no part of its call. The output of a call goes with the
    call.
    """
    private, own = _private_tags(private_tags), OwnCalls(home)
    opened: Item | None = None
    for item in items:
        if part := own.judge(item):
            dropped[_OWN[part]] += 1
            continue
        if opened is not None and _is_hidden(item, opened):
            dropped[Reason.PRIVATE] += 1
            continue
        stripped, blobs = _strip_unseen(item.text, private)
        dropped[Reason.BASE64] += blobs
        if stripped.open_at_end:
            opened = item
        dropped[Reason.PRIVATE] += stripped.spans
        bare = _strip_memory(stripped.text)
        dropped[Reason.MEMORY_BLOCK] += bare.spans
        if bare.text.strip() or item.exit_code is not None:
            yield item if bare.text == item.text else replace(item, text=bare.text)
        else:
            dropped[Reason.BLANK] += 1


def _is_hidden(item: Item, opened: Item) -> bool:
    """Say whether a span that was opened in an item before, and not closed there, goes on in this one."""
    answers = opened.kind is ItemKind.TOOL_CALL and item.kind is ItemKind.TOOL_OUTPUT
    return item.ordinal == opened.ordinal and not answers


@dataclass(frozen=True, slots=True)
class _Stripped:
    text: str
    spans: int
    open_at_end: bool = False


@dataclass(frozen=True, slots=True)
class _Tags:
    """The tags of these names, and the pattern of one of them."""

    names: Sequence[str]
    pattern: re.Pattern[str]

    def stand_in(self, text: str) -> bool:
        return may_mention(text, self.names) and self.pattern.search(text) is not None


def _private_tags(names: Sequence[str]) -> _Tags | None:
    """Match an opening or closing tag of one of `names`, raw, HTML-escaped or JSON-escaped, in any case.

    A tag without its end counts too, up to the next tag or the end of the text: what is private fails closed.
    """
    if not names:
        return None
    unended = rf"(?=\s|{_LESS})(?:(?!{_LESS}|{_GREATER}).)*(?:{_GREATER}|(?={_LESS})|\Z)"
    pattern = rf"{_tag_source(names)}(?:(?P<empty>{_SLASH})?{_GREATER}|{unended}|\Z)"
    return _Tags(names, re.compile(pattern, re.IGNORECASE | re.DOTALL))


def _tag_source(names: Sequence[str]) -> str:
    alternatives = "|".join(sorted((re.escape(name) for name in names), key=len, reverse=True))
    return rf"{_LESS}\s{{0,4}}(?P<close>{_SLASH})?\s{{0,4}}(?P<name>{alternatives})"


_MEMORY_NAMES: Final = (MARKER_OPEN.strip("<>"),)
_MEMORY_TAG: Final = re.compile(rf"{_tag_source(_MEMORY_NAMES)}(?:\s{{0,4}}{_GREATER}|\Z)", re.IGNORECASE)


def _strip_private(text: str, tags: _Tags | None) -> _Stripped:
    """Take out private spans, nested ones with what surrounds them; a closing tag alone goes as a tag.

    Spans of different names do not close each other. A tag that closes itself hides nothing, unless a closing one
    follows all the same: then it was meant to open.
    """
    if tags is None or not tags.stand_in(text):
        return _Stripped(text, 0)
    spans = _Spans()
    for tag in tags.pattern.finditer(text):
        spans.meet(tag, text)
    return spans.rest_of(text)


class _Spans:
    """The open tags of a text by name, and the pieces of it that stand in none."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._open: Counter[str] = Counter()
        self._empties: dict[str, int] = {}
        self._count = 0
        self._position = 0

    def meet(self, tag: re.Match[str], text: str) -> None:
        """Take in the next tag of `text`."""
        name = tag["name"].lower()
        if not self._open:
            self._pieces.append(text[self._position : tag.start()])
            self._position = tag.end()
        if tag["close"]:
            self._close(name)
        elif not tag["empty"]:
            self._count += not self._open
            self._open[name] += 1
        elif not self._open:
            self._empties[name] = len(self._pieces)
        if not self._open:
            self._position = tag.end()

    def _close(self, name: str) -> None:
        if not self._open and name in self._empties:
            del self._pieces[self._empties.pop(name) :]
            self._count += 1
        self._open[name] -= 1
        self._open = +self._open

    def rest_of(self, text: str) -> _Stripped:
        """Return what is left once there are no more tags."""
        pieces = self._pieces if self._open else [*self._pieces, text[self._position :]]
        return _Stripped(_joined(pieces), self._count, bool(self._open))


def _strip_unseen(text: str, tags: _Tags | None) -> tuple[_Stripped, int]:
    """Take out private spans, and what nobody sees; the count is of base64.

    A tag may stand inside a terminal's sequence, and a sequence inside a tag: neither hides the other. What looks like
    a tag is one, whatever stands in it that nobody sees.
    """
    raw = _strip_private(text, tags) if "\x1b" in text else _Stripped(text, 0)
    shown, blobs = _plain(raw.text)
    bare = _strip_private(_unjoined(plain(shown), tags), tags)
    return _Stripped(bare.text, raw.spans + bare.spans, raw.open_at_end or bare.open_at_end), blobs


def _unjoined(text: str, tags: _Tags | None) -> str:
    """Return a text without joiners if a tag is among what they join."""
    if tags is None or text.isascii() or not _JOINERS.search(text):
        return text
    bare = _JOINERS.sub("", text)
    return bare if tags.stand_in(bare) else text


def _strip_memory(text: str) -> _Stripped:
    """Take out memory blocks; what stands around them stays.

    A block ends at its own closing tag; where tags do not balance, because memory quotes a tag, at the last closing
    one; without any, at the end of the text.
    """
    tags = list(_MEMORY_TAG.finditer(text)) if may_mention(text, _MEMORY_NAMES) else []
    if not tags:
        return _Stripped(text, 0)
    last_close = max((tag.end() for tag in tags if tag["close"]), default=len(text))
    pieces: list[str] = []
    spans, depth, position = 0, 0, 0
    for tag in tags:
        if depth == 0:
            pieces.append(text[position : tag.start()])
            spans += 1
            position = tag.end()
        depth = max(0, depth - 1) if tag["close"] else depth + 1
        if depth == 0:
            position = tag.end()
    if depth:
        position = last_close if last_close > position else len(text)
    return _Stripped(_joined([*pieces, text[position:]]), spans)


def _joined(pieces: list[str]) -> str:
    """Join what is left with a space where two words, or two halves of a tag, would grow together."""
    text = ""
    out: list[str] = []
    for piece in filter(None, pieces):
        if text and not text[-1].isspace() and not piece[0].isspace():
            out.append(" ")
        out.append(piece)
        text = piece
    return "".join(out)


def _plain(text: str) -> tuple[str, int]:
    """Take out terminal escapes, long base64 and halves of characters; the count is of base64."""
    if "\x1b" in text:
        text = _TERMINAL.sub("", text).replace("\x1b", "")  # a sequence may have stood inside another
    text, urls = _DATA_URL.subn(BASE64_MARK, text) if ";base64," in text else (text, 0)
    text, blobs = _BASE64.subn(BASE64_MARK, text) if _has_long_word(text) else (text, 0)
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text, urls + blobs


def _has_long_word(text: str) -> bool:
    """Say whether 1,024 characters without a space may follow each other: such a run fills one of these blocks."""
    blocks = (text[start : start + 512] for start in range(0, len(text) - 511, 512))
    return len(text) >= 1024 and any(" " not in block and "\n" not in block for block in blocks)
