"""Which sentences of a person state a lasting preference or correct the agent.

Precision before recall: a request for one task ("please fix the bug"), a report ("the test always fails"), a question
and small talk are none.
"""

import re
from typing import Final

from memoryd.pipeline.offline_phrases import CUES, Voice

_ONLY_NOW: Final = re.compile(
    r"\b(?:for now|this time|just this once|only this once|right now|yet|today|tonight|(?:in|for|with) this "
    r"(?:pr|pull request|commit|change|branch|patch|one|task|case|session)"
    r"|until (?:i|we)|diesmal|heute|cette fois|esta vez)\b",
    re.IGNORECASE,
)
_CHOOSING: Final = re.compile(
    r"\b(?:option|variant|alternative|proposal|suggestion)\b"
    r"|\b(?:first|second|third|last|latter|former|other|this|that|your) (?:one|approach|solution|version|way)\b",
    re.IGNORECASE,
)
"""Picking one of the agent's proposals is an answer, no rule."""
_POLITE_REQUEST: Final = re.compile(r"^(?:and |but |ok(?:ay)?,? )?(?:can|could|would|will) you\b", re.IGNORECASE)
_STRONG_IN_REQUEST: Final = re.compile(
    r"\b(?:from now on|going forward|always|never|instead|rather than|in (?:the )?future)\b", re.IGNORECASE
)
_REPORT: Final = re.compile(
    r"\b(?:still (?:fails?|failing|broken|wrong|the same|not)|doesn't work|not working|same error"
    r"|i haven't|i didn't)\b",
    re.IGNORECASE,
)
_PLEASE: Final = re.compile(r"\b(?:please|pls|bitte|s'il te plaît|por favor|(?:can|could|would) you)\b", re.IGNORECASE)
_LEAD_IN: Final = re.compile(
    r"^(?:(?:no|nope|wrong|wait|stop|nein|non)\s*[,.:;!–—-]+\s*"
    r"|(?:sorry|actually|ok|okay|oh|hey|hm+|well|and|but|also|again|please|pls|bitte|mais|pero|por favor"
    r"|(?:from (?:now|here|today) on(?:wards)?|going forward|from this point on)|(?:as )?i (?:already )?(?:said"
    r"|told you)(?: that| to)?"
    r"|i(?:'ve| have)? changed my mind|on second thoughts?|scratch that|forget what i said"
    r"|(?:remember|keep in mind|bear in mind|note)(?: that)?|ab (?:jetzt|sofort)|von nun an|in zukunft"
    r"|désormais|dorénavant|à partir de maintenant"
    r"|a partir de ahora|de ahora en adelante|merk dir|recuerda|souviens-toi)(?=[\s,.:;!–—-])[\s,.:;!–—-]+)",
    re.IGNORECASE,
)
"""Words that only lead in; a verdict needs its comma, so that "stop adding" and "no longer use" stay whole."""


def classify(sentence: str) -> Voice | None:
    """Say how a sentence gives a lasting preference, None when it gives none."""
    plain = sentence.replace("’", "'").strip()
    asked_politely = bool(_POLITE_REQUEST.match(plain) and _STRONG_IN_REQUEST.search(plain))
    if plain.endswith("?"):
        return Voice.ASKED if asked_politely else None
    cue = next((cue for cue in CUES if cue.pattern.search(plain)), None)
    if cue is None:
        return Voice.ASKED if asked_politely else None
    if not cue.lasting and any(kind.search(plain) for kind in (_ONLY_NOW, _REPORT, _CHOOSING)):
        return None
    return Voice.ASKED if cue.voice is Voice.SAID and _PLEASE.search(plain) else cue.voice


def default_of(quote: str) -> str:
    """Return what a quoted preference asks for: the quote without the words that only lead in to it."""
    rest = quote.replace("’", "'")
    while (shorter := _LEAD_IN.sub("", rest, count=1)) != rest and len(shorter) > 2:
        rest = shorter
    return quote[len(quote) - len(rest) :].rstrip(" .!;,") or quote
