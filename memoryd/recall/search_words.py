"""Words as search takes them: of a question, in which no character is syntax, and of a text, for the index.

The index stems English words and folds case and accents by itself. What it cannot know is made here: the parts of
identifiers (`maxRetryCount`, `max_retry_count` and `max-retry-count` find each other), and pairs of characters for
scripts that put no space between words.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

MAX_QUESTION: Final = 4_000
"""Characters of a question that are looked at; the rest of a pasted log adds nothing but time."""
MAX_TERMS: Final = 32
MIN_PREFIX: Final = 4
"""A word of fewer characters begins too many others."""

_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_RUN: Final = re.compile(r"[^\W_]+(?:[-_./:\\#@+]+[^\W_]+)*")
_HUMPED: Final = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
MAX_PARTS: Final = 16
"""An identifier of more parts is none, but a key or a blob."""
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f]+"
)

_STOP_WORDS: Final = """
a about after again all also am an and any anything are as ask at be been before being best both but by can
cannot come could did do does doing done each either else ever every for from get gets give go goes going got
had has have having he her here him his how i if in into is isn it its just know let like made make makes many
may me might mine more most much must my myself need needs no nor not now of off on once one only onto or other
our ours out over own please put same say says shall she should so some something still such take tell than that
the their them then there these they thing things this those though to too under until up upon us use used uses
using very want wants was way we were what whatever when where whether which while who whom whose why will with
within without would yet you your yours
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())
"""Words that a question is made of, and an answer is not found by."""


@dataclass(frozen=True, slots=True)
class Term:
    """Something to look for, in one of its spellings, each some words in a row.

    `parts`: what is looked for instead when it stands nowhere so. `is_prefix`: the last word is the beginning of one.
    """

    spellings: tuple[tuple[str, ...], ...]
    parts: tuple[str, ...] = ()
    is_prefix: bool = False

    @property
    def expression(self) -> str:
        """Render it for FTS5: quoted, so that nothing in it is syntax; only letters and digits are in it at all."""
        return " OR ".join(f'"{" ".join(words)}"{"*" if self.is_prefix else ""}' for words in self.spellings)

    @property
    def words(self) -> tuple[str, ...]:
        """Its words as they were asked for."""
        return self.spellings[0]


def word(text: str, *, is_prefix: bool = False) -> Term:
    """Return the term that is one word."""
    return Term(((text,),), is_prefix=is_prefix)


def terms_of(question: str) -> tuple[Term, ...]:
    """Return what a question looks for, each term once, in its order; empty when it has no letter and no digit.

    An identifier is one term: its parts in a row, or written together.
    """
    text = unicodedata.normalize("NFC", question[:MAX_QUESTION])
    found = list(_terms(text))
    telling = [term for term in found if len(term.words) > 1 or term.words[0] not in STOP_WORDS]
    return tuple(dict.fromkeys(telling or found))[:MAX_TERMS]


def parts_of(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Return what is looked for when terms are found nowhere: the parts of identifiers that tell something."""
    parts = (part for term in terms for part in term.parts if len(part) > 1 and part not in STOP_WORDS)
    return tuple(map(word, dict.fromkeys(parts)))[:MAX_TERMS]


def prefixes_of(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Return the beginnings of words: what is asked for when the words themselves find too little."""
    words = (each for term in terms for each in (term.parts or term.words) if len(each) >= MIN_PREFIX)
    return tuple(word(each, is_prefix=True) for each in dict.fromkeys(words))[:MAX_TERMS]


def any_of(terms: Iterable[Term]) -> str:
    """Return the FTS5 expression that one of these terms makes true."""
    return " OR ".join(term.expression for term in terms)


def handles_of(text: str) -> str:
    """Return what the index is to know of a text beside its words: parts of identifiers, and pairs of characters."""
    text = unicodedata.normalize("NFC", text)
    found = []
    for _, parts in _identifiers(text):
        found += [" ".join(parts), "".join(parts)]
    found += [" ".join(pairs) for pairs in map(_pairs, _UNSPACED.findall(text)) if pairs]
    return "\n".join(dict.fromkeys(found))


def _terms(text: str) -> Iterator[Term]:
    for chunk in text.split():
        rest = chunk
        for whole, parts in _identifiers(chunk):
            plain = tuple(part.lower() for part in _WORD.findall(whole))
            spellings = dict.fromkeys((parts, plain, ("".join(parts),)))
            yield Term(tuple(spellings), tuple(dict.fromkeys((*plain, *parts))))
            rest = rest.replace(whole, " ", 1)
        for each in _WORD.findall(rest):
            for run in _UNSPACED.findall(each):
                yield from (word(pair) for pair in _pairs(run) or [run])
            yield from (word(spaced.lower()) for spaced in _UNSPACED.sub(" ", each).split())


def _identifiers(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what is written together of several words, with these."""
    for run in _RUN.findall(text):
        if run.isalpha() and not _HUMPED.search(run):
            continue  # most words are plain
        is_together = _HUMPED.search(run) or not run.isalnum()
        if is_together and not _UNSPACED.search(run) and 1 < len(parts := tuple(_parts(run))) <= MAX_PARTS:
            yield run, parts


def _parts(compound: str) -> list[str]:
    """Split at humps and at whatever is no letter and no digit."""
    return [
        part.lower() for word in _WORD.findall(compound) for part in (_HUMP.findall(word) if word.isascii() else [word])
    ]


def _pairs(run: str) -> list[str]:
    return [run[start : start + 2] for start in range(len(run) - 1)]
