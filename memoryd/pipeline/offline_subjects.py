"""Whether a later statement of a person replaces an earlier one: the same subject, and not both can hold.

Only words are compared, so the rules are narrow; and whoever asks shows both statements in order, so that a reader can
see what was replaced.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+(?:[._/@+#-][^\W_]+)*[+#]?", re.UNICODE)
_STOP_WORDS: Final = """
a an the this that these those it its is are be was were been of to in on at by for from with without as and or
but so then if when i i'd i'm we you he she they my our your me us them do does did don don't not no never
always ever only just please use using used run runs put keep make go get let lets let's want wants like prefer
prefers rather instead than over now here there all every any each new should must can could would will shall
may might have has had actually really also too again still first last more most very said told remember mind
stop longer anymore sure thing things way one ones what which who how why where before after during into out up
down repo repository project code codebase general default everything everywhere time always switch back stick
everyone add later changed forget after ab jetzt bitte immer nie niemals statt nicht sondern und oder der die
das ein eine mit für von in ich wir toujours jamais plutôt que au lieu de la le les un une et ou siempre nunca
en lugar vez el los las una y o que
"""
_STOP: Final = frozenset(_STOP_WORDS.split())
_REJECTED: Final = re.compile(
    r"\b(?:instead of|rather than|in place of|no longer|not|over|stop|don't|do not|never|avoid|statt|anstatt"
    r"|plutôt que|au lieu d[eu]?|en (?:lugar|vez) de)\s+"
    r"([^,.;:()]{1,80})",
    re.IGNORECASE,
)
_NEGATIVE: Final = re.compile(
    r"^\W*(?:please |and |but |so |we |i |(?:no|actually)\W+)*(?:don't|do not|never|stop|avoid|no longer|not"
    r"|nie|niemals|jamais|nunca)\b",
    re.IGNORECASE,
)
_MIND_CHANGE: Final = re.compile(
    r"\b(?:actually|changed my mind|on second thoughts?|after all|no longer|anymore|forget what i said|scrap"
    r"|scratch that|instead|doch lieber|finalement|mejor)\b",
    re.IGNORECASE,
)
_CLAUSE_END: Final = re.compile(
    r"\s+(?:and|but|because|since|so|when|if|for|in|on|und|weil|parce|porque)\s+", re.IGNORECASE
)

ENOUGH_SHARED: Final = 0.5
"""Share of the smaller statement's words that makes two statements speak of one subject."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The words of a statement that matter: all, those it turns down, and whether it is a prohibition."""

    terms: frozenset[str]
    rejected: frozenset[str]
    is_negative: bool
    changes_mind: bool


def terms_of(text: str) -> list[str]:
    """Return the words of `text` that carry its subject, lower-cased, plural `s` dropped, in order, each once."""
    words = (word.casefold() for word in _WORD.findall(text.replace("’", "'").replace("n't", " not")))
    return list(
        dict.fromkeys(_singular(word) for word in words if word not in _STOP and (len(word) > 1 or word.isdigit()))
    )


@lru_cache(maxsize=16_384)
def subject_of(text: str) -> Subject:
    """Reduce a statement to its subject; cached, because each is compared with every other of its directory."""
    plain = text.replace("’", "'")
    rejected = {
        term for piece in _REJECTED.findall(plain) for term in terms_of(_CLAUSE_END.split(piece, maxsplit=1)[0])
    }
    return Subject(
        terms=frozenset(terms_of(plain)),
        rejected=frozenset(rejected),
        is_negative=bool(_NEGATIVE.search(plain)),
        changes_mind=bool(_MIND_CHANGE.search(plain)),
    )


def replaces(later: str, earlier: str) -> bool:
    """Whether the later statement takes the place of the earlier one."""
    new, old = subject_of(later), subject_of(earlier)
    shared = new.terms & old.terms
    if not shared:
        return False
    return _turns_down(new, old) or _flips(new, old, shared) or _changes_one_slot(new, old, shared)


def _turns_down(new: Subject, old: Subject) -> bool:
    """The later one rejects by name what the earlier one asked for."""
    wanted_before = old.terms - old.rejected
    hits = new.rejected & wanted_before
    return bool(hits) and len(hits) >= ENOUGH_SHARED * len(new.rejected)


def _flips(new: Subject, old: Subject, shared: frozenset[str]) -> bool:
    """One is a prohibition and the other is not, of nearly the same words; or a change of mind says so itself."""
    if new.is_negative != old.is_negative:
        return len(shared) >= ENOUGH_SHARED * len(new.terms | old.terms)
    containment = len(shared) / min(len(new.terms), len(old.terms))
    return new.changes_mind and len(shared) > 1 and containment >= ENOUGH_SHARED


def _changes_one_slot(new: Subject, old: Subject, shared: frozenset[str]) -> bool:
    """The same sentence with one word exchanged: "two spaces" and "four spaces"."""
    return len(new.terms - old.terms) == 1 == len(old.terms - new.terms) and len(shared) > 1


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
