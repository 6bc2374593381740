"""Which sentences of a person state a lasting preference or correct the agent: cue phrases, in four languages.

Precision before recall: a request for one task ("please fix the bug"), a report ("the test always fails"), a question
and small talk are none. The phrases are a table; `classify` is the only rule that reads it.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Voice(StrEnum):
    """How a person gave a preference; the values are the words of FORMATS section 4."""

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
    r"|bitte|aber|und|also|por favor|pero|y|mais|et|s'il te plaît|stp)[\s,:.!]+)*"
)
"""The beginning of a clause, and the small words that people put before what they want."""

_CHOICE: Final = (
    r"(?:use|prefer|go with|switch(?: back)? to|stick (?:to|with)|put|keep|write|call|name|run"
    r"|take|pick|choose|install|add|store|spell|make)"
)
_VERB: Final = (
    r"(?:use|prefer|go|switch|stick|put|keep|write|call|name|run|take|pick|choose|install|add|store|make|do"
    r"|leave|commit|push|format|sort|mark"
    r"|test|check|ask|answer|reply|explain|show|tell|document|log|return|wrap|avoid|import|export|split|group"
    r"|squash|rebase|pin|lint|start|stop"
    r"|set|read|save|create|open|follow|respect|assume|treat|type|annotate|mention|link|include|exclude|update"
    r"|remove|drop|skip|limit|cap|tag)"
)
_GENERAL: Final = (
    r"(?:everywhere|by default|each time|every time|whenever|as a rule|in general|in (?:the )?future|for (?:all"
    r"|every|any|new|everything)\b"
    r"|in (?:all|every|any|new)\b|in (?:this|our|the whole) (?:repo|repository|project|code ?base|service|team)"
    r"|across (?:all|the))"
)


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
        r"^(?:no|nope|wrong)\s*[,.:;!–—-]+\s*(?:the|our|my|it|that|this)\b.{1,80}\b(?:is|are|lives|belongs|goes"
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
        r"\bnot (?:in |on |to |with |by |as |a |an |the )?[^,.;]{1,60},? but (?!i\b|it\b|we\b|the test|still|that\b)",
        Voice.CORRECTED,
    ),
    _cue("instead", _LEAD + _CHOICE + r"\b.{1,160}\b(?:instead|rather than|in place of)\b", Voice.CORRECTED),
    _cue("x, not y", _LEAD + _CHOICE + r"\b[^,;]{1,100},? (?:and )?(?:not|never) \S"),
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
        _LEAD + r"(?:don't|do not|dont|avoid|refrain from) (?!worry|bother|know|think|mind|see|understand|forget|have"
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
        r"\b(?:our|the|my) (?:convention|house style|rule|policy|standard)s? (?:here |for \w+ )?(?:is|are)\b",
        lasting=True,
    ),
    _cue(
        "here we",
        _LEAD + r"(?:here|in this (?:repo|repository|project|code ?base|service|team)),? we (?:use|do|put|keep|write"
        r"|call|run|name|want|like|stick|commit)\b",
    ),
    _cue("in general", _LEAD + _VERB + r"\b.{1,200}" + _GENERAL),
    _cue(
        "in general, first",
        r"^(?:please )?" + _GENERAL + r".{0,120}?[, ](?:please |you should |you must |we )?" + _VERB + r"\b",
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

_ONLY_NOW: Final = re.compile(
    r"\b(?:for now|this time|just this once|only this once|right now|yet|today|tonight|(?:in|for|with) this "
    r"(?:pr|pull request|commit|change|branch|patch|one|task|case|session)"
    r"|until (?:i|we)|diesmal|heute|cette fois|esta vez)\b",
    re.IGNORECASE,
)
_POLITE_REQUEST: Final = re.compile(r"^(?:and |but |ok(?:ay)?,? )?(?:can|could|would|will) you\b", re.IGNORECASE)
_STRONG_IN_REQUEST: Final = re.compile(
    r"\b(?:from now on|going forward|always|never|instead|rather than)\b", re.IGNORECASE
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
    if not cue.lasting and (_ONLY_NOW.search(plain) or _REPORT.search(plain)):
        return None
    return Voice.ASKED if cue.voice is Voice.SAID and _PLEASE.search(plain) else cue.voice


def default_of(quote: str) -> str:
    """Return what a quoted preference asks for: the quote without the words that only lead in to it."""
    rest = quote.replace("’", "'")
    while (shorter := _LEAD_IN.sub("", rest, count=1)) != rest and len(shorter) > 2:
        rest = shorter
    return quote[len(quote) - len(rest) :].rstrip(" .!;,") or quote
