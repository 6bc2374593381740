"""Which words only the forgotten evidence has: by them what rests on it is known where nothing is cited."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from memoryd.workspace.wording import words_of

SHORTEST: Final = 3
"""Shorter words are everybody's."""
MANY: Final = 2
"""A line with so many words of the forgotten alone, or most of whose words nobody else has, rests on it."""
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")


class Words(Protocol):
    """What is looked for in a text."""

    def are_in(self, text: str) -> bool:
        """Say whether a text has it."""
        ...


@dataclass(frozen=True, slots=True)
class ForgottenWords:
    """The words of texts that go and of none that stays. `strict`: one of them is enough, as with a purge."""

    gone: frozenset[str] = frozenset()
    stays: frozenset[str] = frozenset()
    strict: bool = False

    @classmethod
    def of(cls, gone: Iterable[str], stays: Iterable[str], *, strict: bool) -> "ForgottenWords":
        """Compare what goes with what stays."""
        kept = frozenset(word for text in stays for word in _words(text))
        return cls(frozenset(word for text in gone for word in _words(text)) - kept, kept, strict)

    def are_in(self, text: str) -> bool:
        """Say whether a text rests on what was forgotten."""
        words = _words(text)
        hits = words & self.gone
        if not hits or self.strict:
            return bool(hits)
        return len(hits) >= MANY or 2 * len(words & self.stays) < len(words)

    def found_in(self, text: str) -> list[str]:
        """Return the words of a text that are of the forgotten alone, in their order."""
        return [word for word in dict.fromkeys(words_of(text)) if word in self.gone]

    def without(self, text: str) -> str:
        """Return a text without the sentences that rest on what was forgotten."""
        if not self.are_in(text):
            return text
        return " ".join(part for part in _SENTENCE.split(text) if not self.are_in(part))


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in words_of(text) if len(word) >= SHORTEST)
