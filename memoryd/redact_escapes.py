"""Texts as they read once the escapes in them are undone, so that a secret is known however it was written down.

Serialisers escape more than they must: .NET writes `+` and `"` as `\\u002B` and `\\u0022`, PHP `/` as `\\/`, Go `<` as
`\\u003c`, templates `=` as `&#x3D;`. What was found in the undone text is then taken out of the text as it stands.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Final

_ESCAPE: Final = re.compile(
    r"\\\\{0,7}(?:(?P<slash>/)|(?:u00|x)(?P<code>[2-7][0-9a-fA-F]|0[9aAdD]))"
    r"|&(?:amp;){0,3}(?P<entity>quot|apos|lt|gt|#0{0,3}(?:3[2-9]|[4-9]\d|1[01]\d|12[0-6])|#[xX]0{0,3}[2-7][0-9a-fA-F]);"
)
"""Of ASCII, in JSON and in the languages like it, at any depth; and in HTML, escaped again or not."""
_BEHIND_A_STROKE: Final = re.compile(r"\\(?:/|u00|x)")
"""Begins with what is rare, and so is looked for at memory speed."""
_KEPT: Final = "\\\x7f"
"""What stays escaped: with another backslash another escape would read as another."""
_QUOTES: Final = "\"'`"
"""How many backslashes stand before a quote tells how deep it is: all but that of the escape stay."""
REACH: Final = 4096
"""A secret that is known only by an undone escape lies within so many characters of one: the longest keys do."""


@dataclass(frozen=True, slots=True)
class Undone:
    """A text without its escapes; `place` says where in the text one of its places was."""

    text: str
    _ends: list[int]
    _ends_before: list[int]

    def lines(self) -> Iterator[tuple[int, int]]:
        """Yield in order where the runs of lines begin and end in which an escape was undone, or near which."""
        begin = end = 0
        for at in self._ends:
            if at + REACH <= end:
                continue
            start = self.text.rfind("\n", 0, max(0, at - REACH)) + 1
            if start > end:
                if end:
                    yield begin, end
                begin = start
            newline = self.text.find("\n", at + REACH)
            end = len(self.text) if newline < 0 else newline
        yield begin, end

    def place(self, at: int) -> int:
        """Return the place of the escaped text for a place of this one; an escape is never split."""
        nearest = bisect_right(self._ends, at) - 1
        return at if nearest < 0 else self._ends_before[nearest] + at - self._ends[nearest]


def undo_escapes(text: str) -> Undone | None:
    """Return `text` without its escapes; None where it has none."""
    if not (("\\" in text and _BEHIND_A_STROKE.search(text)) or ("&" in text and _ESCAPE.search(text))):
        return None
    pieces: list[str] = []
    ends: list[int] = []
    ends_before: list[int] = []
    length = position = 0
    for found in _ESCAPE.finditer(text):
        character = _character(found)
        if character in _KEPT:
            continue
        start = found.start()
        if character in _QUOTES and found["code"]:
            start = text.rindex("\\", start, found.end())
        pieces += (text[position:start], character)
        length += start - position + 1
        position = found.end()
        ends.append(length)
        ends_before.append(position)
    return Undone("".join([*pieces, text[position:]]), ends, ends_before) if pieces else None


def _character(escape: re.Match[str]) -> str:
    if escape["slash"]:
        return "/"
    return chr(int(escape["code"], 16)) if escape["code"] else unescape(f"&{escape['entity']};")
