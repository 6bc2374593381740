"""Phrases by which people state lasting preferences and corrections, in English, German, French and Spanish.

A table and nothing else. A phrase belongs here when a sentence that holds it is a rule for next time, not a task, a
report or a question; tests/pipeline/test_offline_cues.py has sentences of both sorts.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Voice(StrEnum):
    """How a person gave a preference; the values are the words of a preference signal."""

    SAID = "said"
    ASKED = "asked"
    CORRECTED = "corrected"


@dataclass(frozen=True, slots=True)
class Cue:
    """A phrase that marks a preference. `lasting` ones hold in spite of words such as "today"."""

    name: str
    pattern: re.Pattern[str]
    voice: Voice = Voice.SAID
    lasting: bool = False


_LEAD: Final = (
    r"(?:^|[,;:(–—.!]\s*|\s-\s)"
    r"(?:(?:and|but|so|then|please|pls|also|just|ok|okay|oh|hey|hm+|well|yes|yeah|again|actually|no|nope|wait"
    r"|sorry|thanks|let's"
    r"|bitte|aber|und|also|por favor|pero|y|mais|et|s'il te plaît|stp)[\s,:.!]+){0,6}"
)
"""The beginning of a clause, and the small words that people put before what they want."""

_CHOICE: Final = (
    r"(?:use|prefer|go with|switch(?: back)? to|stick (?:to|with)|put|keep|write|call|name|run"
    r"|take|pick|choose|install|add|store|spell|make)"
)
_VERB: Final = (
    r"(?:use|prefer|go|switch|stick|put|keep|write|call|name|run|take|pick|choose|install|add|store|make|do"
    r"|leave|commit|push|format|sort|mark|test|check|ask|answer|reply|explain|show|tell|document|log|return|wrap"
    r"|avoid|import|export|split|group|squash|rebase|pin|lint|start|stop|set|read|save|create|open|follow|respect"
    r"|assume|treat|type|annotate|mention|link|include|exclude|update|remove|drop|skip|limit|cap|tag|default)"
)
_HABIT: Final = (
    r"(?:use|prefer|keep|write|call|name|commit|format|sort|mark|ask|answer|reply|spell|document|avoid|follow|respect"
    r"|assume|treat|annotate|stick|default)"
)
_THING: Final = r"(?:use|prefer|keep|spell|avoid|follow|respect|assume|stick|answer|reply|ask)"
"""What one does as a habit, and, narrower, what one does to every thing: "add tests for all" is a task."""

_PLACE: Final = r"in (?:this|our|the whole) (?:repo|repository|project|code ?base|service|team)"
_HABITUAL: Final = (
    r"(?:everywhere|by default|each time|every time|next time|whenever|as a rule|in general|in (?:the )?future"
    rf"|{_PLACE})\b"
)
_EVERY: Final = r"(?:for (?:all|every|any|new|everything)|in (?:all|every|any|new)|across (?:all|the))\b"


def _cue(name: str, pattern: str, voice: Voice = Voice.SAID, *, lasting: bool = False) -> Cue:
    return Cue(name, re.compile(pattern, re.IGNORECASE), voice, lasting)


CUES: Final[tuple[Cue, ...]] = (
    _cue(
        "i said",
        _LEAD + r"(?:as )?i (?:already |just )?(?:said|told you|asked (?:you )?(?:for|to)|meant)\b",
        Voice.CORRECTED,
    ),
    _cue(
        "changed my mind",
        r"\b(?:i(?:'ve| have)? changed my mind|on second thoughts?|(?:forget|scrap|ignore) what i said|scratch that)\b",
        Voice.CORRECTED,
        lasting=True,
    ),
    _cue(
        "from now on",
        r"\b(?:from (?:now|here|today) on(?:wards)?|going forward|from this point on|henceforth)\b",
        lasting=True,
    ),
    _cue(
        "no longer",
        _LEAD + r"(?:we|i|let's|do)\b.{0,40}\b(?:no longer|not\b.{0,60}\banymore|don't\b.{0,60}\banymore)\b",
        Voice.CORRECTED,
        lasting=True,
    ),
    _cue(
        "no, ...",
        r"^(?:no|nope|wrong|wait)\s*[,.:;!–—-]+\s*(?!(?:problem|worries|need|idea|thanks?|thank you|rush"
        r"|hurry)\b)(?:.{0,60}[,;]\s*)?"
        r"(?:please |just |do )*(?:"
        + _VERB
        + r"|don't|do not|never|always|not|you should|you must|we|it should|it must|it has to|that should|i "
        r"(?:want|need|prefer|like))\b",
        Voice.CORRECTED,
    ),
    _cue(
        "no, it is ...",
        r"^(?:no|nope|wrong)\s*[,.:;!–—-]+\s*(?:the|our|my|it|that|this)\b.{1,80}\b(?:(?:is|are)(?! (?:correct"
        r"|right|fine|ok|okay|good|perfect|all|enough|it|true)\b)|lives|belongs|goes"
        r"|runs|means|comes|must|should|may|cannot|can't|has to|needs to)\b",
        Voice.CORRECTED,
    ),
    _cue(
        "actually",
        r"^(?:(?:no|wait|hm+|oh|sorry|ok|okay)[\s,.:–—-]+)?actually\s*[,:–—-]?\s*(?:please |let's |just |do )*(?:"
        + _VERB
        + r"|don't|do not|never|always|we|i(?:'d)? (?:want|prefer|rather|like)|you should)\b",
        Voice.CORRECTED,
    ),
    _cue("stop doing", _LEAD + r"stop (?!ping\b|string\b|thing\b)\w+ing\b", Voice.CORRECTED),
    _cue(
        "not ..., but",
        r"(?:^not|\bnot (?:in|on|to|with|by|as|from|into|at|under|before|after|for|via)) [^,.;]{1,60},? but "
        r"(?!i\b|it\b|we\b|the test|still|that\b)",
        Voice.CORRECTED,
    ),
    _cue("instead", _LEAD + _CHOICE + r"\b.{1,160}\b(?:instead|rather than|in place of)\b", Voice.CORRECTED),
    _cue("x, not y", _LEAD + _CHOICE + r"\b[^,;]{1,100}(?:, (?:and )?| and )(?:not|never) \S"),
    _cue(
        "always",
        _LEAD + r"(?:you (?:should|must|can|may|need to)|we|i|i'd|it's best to|try to|make sure (?:to"
        r"|you))?\s*(?:always|never)\s+(?!mind\b|been\b|seen\b|had\b|heard\b|worked\b|got\b|did\b|was\b|again\b)\w",
        lasting=True,
    ),
    _cue(
        "want you to always",
        r"\b(?:i|we) (?:want|like|need|expect|prefer|ask)\b.{0,40}\b(?:to |that you |you )?(?:always|never)\b",
        lasting=True,
    ),
    _cue("must always", r"\bmust (?:always|never) (?!have\b|been\b)\w", lasting=True),
    _cue("i prefer", r"\b(?:i|we)(?:'d| would)?(?: (?:really|generally|usually|much|strongly))? (?:prefer|rather)\b"),
    _cue("prefer x", _LEAD + r"prefer\b.{2,}"),
    _cue(
        "i like",
        _LEAD + r"i (?:(?:really )?(?:don't|do not|dislike|hate)(?: (?:want|like))?|like (?:my|to|it when|the)|want "
        r"(?:all|every|my))\b(?! (?:know|think|see|understand|have|care|mind|remember|get)\b)",
    ),
    _cue(
        "remember",
        _LEAD + r"(?:remember|keep in mind|bear in mind|note for (?:later|next time|the future))\b(?:\s*[:,–—-]"
        r"|\s+(?:that|to|not to|we|i|the|our|this|it|always|never|for|when|in)\b)",
        lasting=True,
    ),
    _cue(
        "don't",
        _LEAD + r"(?:don't|do not|dont|avoid|refrain from) (?!worry|bother|stop|know|think|mind|see|understand"
        r"|forget|have"
        r"|get me|care|need)(?:ever |just |please )?\w",
        Voice.CORRECTED,
    ),
    _cue(
        "we don't",
        _LEAD + r"(?:here |in this \w+,? )?we (?:don't|do not|only|usually|normally|tend to) (?!know|think|see"
        r"|understand|have|need|get|care)\w",
    ),
    _cue(
        "our convention",
        r"\b(?:our|the|my) (?:convention|house style|rule|policy|standard|preference)s? "
        r"(?:here |for \w+ )?(?:is|are)\b",
        lasting=True,
    ),
    _cue(
        "here we",
        _LEAD + r"(?:here|in this (?:repo|repository|project|code ?base|service|team)),? we (?:use|do|put|keep|write"
        r"|call|run|name|want|like|stick|commit)\b",
    ),
    _cue("in general", _LEAD + _HABIT + r"\b.{1,200}\b" + _HABITUAL),
    _cue("of every one", _LEAD + _THING + r"\b.{1,200}\b" + _EVERY),
    _cue("at last always", _LEAD + _VERB + r"\b.{1,200}, always[.!]*$", lasting=True),
    _cue("make sure every time", _LEAD + r"make sure\b.{1,120}\b(?:before|after|when|on) (?:every|each|you)\b"),
    _cue(
        "want you to, when",
        r"\bi(?:'d like| want| expect| need) you (?:not to|to\b.{1,80}\b(?:before|after"
        r"|when|whenever|first)\b)",
    ),
    _cue("for the record", _LEAD + r"for the record\b.{4,}"),
    _cue("not how we do it", r"\bthat(?:'s| is) not how (?:we|i|this)\b", Voice.CORRECTED),
    _cue("we use it here", _LEAD + r"we(?:'re| are)? (?:use|using|do|doing|put|keep|write|call|name)\b.{1,80}\bhere\b"),
    _cue("we decided", _LEAD + r"we(?:'ve| have)? decided (?:to|that|against|on)\b"),
    _cue("only", _LEAD + r"only " + _HABIT + r"\b"),
    _cue("x, not y, in short", r"^[^\s,]+, not [^\s,]+[.!]*$", Voice.CORRECTED),
    _cue(
        "in general, first",
        r"^(?:please )?(?:"
        + _HABITUAL
        + "|"
        + _EVERY
        + r")"
        + r".{0,120}?[, ](?:please |you should |you must |we )?"
        + _VERB
        + r"\b",
    ),
    _cue("de: from now on", r"\b(?:ab (?:jetzt|sofort|heute)|von nun an|in zukunft|künftig|zukünftig)\b", lasting=True),
    _cue(
        "de: always",
        _LEAD + r"(?:(?:ich möchte|wir|du sollst|nutze?|verwende|benutze|schreib\w*|mach\w*|führ\w*"
        r"|lass)\b.{0,40})?\b(?:immer|niemals|nie|stets)\b(?! (?:noch|wieder|mehr))\s.{2,}",
        lasting=True,
    ),
    _cue("de: prefer", r"\b(?:ich bevorzuge|mir ist lieber|ich möchte lieber|wir bevorzugen)\b"),
    _cue(
        "de: instead",
        _LEAD + r"(?:nimm|nutze?|verwende|benutze|schreib|mach)\w*\b.{1,120}\b(?:statt|anstatt|anstelle)\b",
        Voice.CORRECTED,
    ),
    _cue("de: not but", r"\bnicht [^.;]{1,80}, sondern\b", Voice.CORRECTED),
    _cue("de: no", r"^nein\s*[,.:!–—-]+\s*(?!danke|alles)\S.{4,}", Voice.CORRECTED),
    _cue("de: remember", _LEAD + r"(?:merk(?:e)? dir|denk(?:e)? daran)\b", lasting=True),
    _cue("fr: from now on", r"\b(?:désormais|dorénavant|à partir de maintenant|à l'avenir)\b", lasting=True),
    _cue(
        "fr: always",
        _LEAD + r"(?:(?:\w+e|\w+ez|\w+er|fais|faites)\s+(?:toujours|jamais)|toujours \w+er|n'?e?\s?\w+(?:e|ez|s) "
        r"jamais|ne jamais)\b",
        lasting=True,
    ),
    _cue("fr: prefer", r"\bje préfère\b"),
    _cue(
        "fr: instead",
        _LEAD + r"(?:utilise|utilisez|prends|mets|écris|fais)\b.{1,120}\b(?:plutôt que|au lieu d[e'u])",
        Voice.CORRECTED,
    ),
    _cue("fr: remember", _LEAD + r"(?:souviens-toi|retiens|n'oublie pas)\b", lasting=True),
    _cue("es: from now on", r"\b(?:a partir de ahora|de ahora en adelante|en el futuro)\b", lasting=True),
    _cue("es: always", _LEAD + r"(?:siempre|nunca)\b.{2,}", lasting=True),
    _cue("es: prefer", r"\b(?:prefiero|preferimos)\b"),
    _cue(
        "es: instead",
        _LEAD + r"(?:usa|utiliza|pon|escribe|haz)\b.{1,120}\b(?:en lugar de|en vez de)\b",
        Voice.CORRECTED,
    ),
    _cue("es: remember", _LEAD + r"(?:recuerda|ten en cuenta)\b", lasting=True),
)
