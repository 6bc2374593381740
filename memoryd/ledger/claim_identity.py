"""Whether a new wording is the same claim: a rule without a model, so that history does not depend on one.

Two texts of one section are one claim, reworded, when at least SAME_SHARE of their words are the same, they deny as
often, and they hold the same numbers: "use port 5434" is no rewording of "use port 5433", nor "never use tabs" of "use
tabs". What is less alike, or says the opposite, can still be what took a claim's place (SUCCESSOR_SHARE).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, TypeVar

SAME_SHARE: Final = 0.6
SUCCESSOR_SHARE: Final = 0.3
MOST_CANDIDATES: Final = 16
"""How many texts are compared with one in full: those that share the most of its rarer words."""
COMMON_WORD: Final = 64
"""A word of more texts than this finds no candidates: it keeps the work proportional to the size of the handbook."""

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_DENIALS: Final = re.compile(r"not|no|never|none|neither|nor|without|avoid|cannot|\w+n['’]t")

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a text, letter case aside, and what of them must stay the same in a rewording."""

    words: Counter[str]
    fixed: Counter[str]

    @classmethod
    def of(cls, text: str) -> "Wording":
        """Read a text."""
        words = Counter(_WORD.findall(text.casefold()))
        fixed: Counter[str] = Counter()
        for word, count in words.items():
            if _DENIALS.fullmatch(word):
                fixed["not"] += count
            elif any(character.isdigit() for character in word):
                fixed[word] += count
        return cls(words, fixed)

    def share(self, other: "Wording") -> float:
        """Return how much of both is the same, 0 to 1 (Sørensen and Dice, over words as often as they occur)."""
        total = self.words.total() + other.words.total()
        return 2 * (self.words & other.words).total() / total if total else 0.0

    def is_reworded_as(self, other: "Wording") -> bool:
        """Say whether both can be one claim."""
        return self.fixed == other.fixed and self.share(other) >= SAME_SHARE


@dataclass(frozen=True, slots=True)
class Likeness(Generic[K]):
    """How much of two texts is the same, and whether both can be one claim."""

    key: K
    share: float
    is_same: bool


class Wordings(Generic[K]):
    """Texts by key, to find those that are like another one without comparing each with each.

    `groups` names, for each key, where the text stands: only texts of one place are compared.
    """

    def __init__(self, texts: Mapping[K, str], groups: Mapping[K, Hashable]) -> None:
        self._wordings = {key: Wording.of(text) for key, text in texts.items()}
        self._holding: defaultdict[tuple[Hashable, str], list[K]] = defaultdict(list)
        for key, wording in self._wordings.items():
            for word in wording.words:
                self._holding[groups[key], word].append(key)

    def like(self, text: str, group: Hashable, is_related: Callable[[K], bool]) -> list[Likeness[K]]:
        """Return what of a place is most like a text, most alike first; the same input gives the same order."""
        wording = Wording.of(text)
        shared: Counter[K] = Counter()
        for word in wording.words:
            keys = self._holding.get((group, word), ())
            if len(keys) <= COMMON_WORD:
                shared.update(keys)
        related = (key for key, _ in shared.most_common() if is_related(key))
        found = [
            Likeness(key, wording.share(self._wordings[key]), wording.is_reworded_as(self._wordings[key]))
            for key in islice(related, MOST_CANDIDATES)
        ]
        return sorted(found, key=lambda each: -each.share)
