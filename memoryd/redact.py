"""Secrets taken out of text before it is sent, stored or logged.

Shapes that show by themselves what they are stand in redact_rules.py. Here are the values that are secret because of
the name before them (`FOO_TOKEN=`, `"password": "..."`, also inside escaped JSON), the user's own patterns, and the
replacing.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from memoryd.redact_escapes import undo_escapes
from memoryd.redact_patterns import kind_of, matches, read_pattern
from memoryd.redact_rules import DONE, RANKS, Span, shape_sources, shaped_spans

PLACEHOLDER: Final = re.compile(rf"{DONE}(?::[a-z0-9_]+)?\]")
MAX_PASSES: Final = 6
"""A replacement may uncover a secret that was glued to it: text is redacted again until nothing changes."""
RULES_VERSION: Final = 2
"""To be raised when the code around the patterns finds more than before: stored rows are then looked at again."""
_NAMED_RANK = RANKS + 1
"""A rule that knows the shape of a value knows its kind better than the name does."""
_CUSTOM_RANK = -2


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without the secrets that were found, and how many of each kind there were."""

    text: str
    kinds: dict[str, int] = field(default_factory=dict)


class Redactor:
    """Finds and replaces secrets; `patterns` are the user's own regular expressions, whose whole match goes.

    A group's name in a pattern is the kind of what it matches. Raises ConfigError for a pattern that is no regular
    expression, or could take for ever.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._patterns = tuple(read_pattern(pattern) for pattern in patterns)

    @property
    def fingerprint(self) -> str:
        """Return what is equal for redactors of the same rules and the same patterns of the user."""
        named = [(trigger, kind, word.pattern) for trigger, kind, word in _WORDS]
        around = [_ASSIGNED.pattern, _HARMLESS_TAIL.pattern, _STAND_IN.pattern]
        own = [pattern.pattern for pattern in self._patterns]
        return sha256(repr((RULES_VERSION, shape_sources(), named, around, own)).encode()).hexdigest()

    def redact(self, text: str) -> Redacted:
        """Return `text` with each secret replaced by `[REDACTED_SECRET:<kind>]`; redacting twice changes nothing."""
        kinds: Counter[str] = Counter()
        for _ in range(MAX_PASSES):
            spans = _merged(list(self._spans(text)))
            if not spans:
                break
            kinds.update(kind for _, _, _, kind in spans)
            text = _replaced(text, spans)
        return Redacted(text, dict(kinds))

    def clean(self, text: str) -> str:
        """Return `text` without its secrets."""
        return self.redact(text).text

    def contains_secret(self, text: str) -> bool:
        """Say whether `redact` would change `text`."""
        return next(self._spans(text), None) is not None

    def _spans(self, text: str) -> Iterator[Span]:
        yield from self._spans_as_it_stands(text)
        if undone := undo_escapes(text):
            for begin, stop in undone.lines():
                for start, end, rank, kind in self._spans_as_it_stands(undone.text[begin:stop]):
                    yield undone.place(begin + start), undone.place(begin + end), rank, kind

    def _spans_as_it_stands(self, text: str) -> Iterator[Span]:
        yield from shaped_spans(text)
        yield from named_spans(text)
        if self._patterns:
            yield from self._custom_spans(text)

    def _custom_spans(self, text: str) -> Iterator[Span]:
        """What the user's patterns match between the replacements, which no pattern may match again."""
        begin = 0
        for end, resume in [*(done.span() for done in PLACEHOLDER.finditer(text)), (len(text), len(text))]:
            piece = text[begin:end]
            for pattern in self._patterns:
                for start, stop in matches(pattern, piece):
                    yield begin + start, begin + stop, _CUSTOM_RANK, kind_of(pattern)
            begin = resume


def _merged(spans: list[Span]) -> list[Span]:
    """Join spans that overlap; the joined one bears the kind of the lowest rank."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span[0] < merged[-1][1]:
            last = merged.pop()
            rank, kind = min(last[2:], span[2:])
            merged.append((last[0], max(last[1], span[1]), rank, kind))
        else:
            merged.append(span)
    return merged


def _replaced(text: str, spans: list[Span]) -> str:
    pieces, position = [], 0
    for start, end, _, kind in spans:
        pieces += [text[position:start], f"[REDACTED_SECRET:{kind}]"]
        position = end
    return "".join([*pieces, text[position:]])


_KEYS = "api access secret private encryption signing account auth master subscription shared storage license"
_KEY = "|".join(f"(?<={word})|(?<={word}[ _-])" for word in _KEYS.split())

_WORDS: Final = tuple(
    (trigger, kind, re.compile(word))
    for trigger, kind, word in (
        ("passw", "password", r"passw(?:or)?[dt]s?"),
        ("passphrase", "password", "passphrases?"),
        ("pass", "password", r"(?<=[_-])pass(?![a-z])"),
        ("pass", "pass", r"(?<![a-z0-9_-])pass(?![a-z])"),
        ("pwd", "pass", r"(?<![a-z])pwd(?![a-z])"),
        ("secret", "secret", r"(?<!:)secrets?(?: access key)?"),
        ("token", "token", r"tokens?(?!i[sz])"),
        ("key", "api_key", rf"(?:{_KEY})keys?"),
        ("key", "key", r"(?<=_)key"),
        ("credential", "key", "credentials?"),
    )
)
"""Trigger, what its values are, and the word as it stands in a name (lower case)."""
_KIND_NAMES: Final = {"pass": "password", "key": "api_key"}

_ASSIGNED: Final = re.compile(
    r"(?P<tail>[a-z0-9_-]{0,40})(?P<close>\\{0,8}[\"'`])?\]?\*{0,2}(?:[ \t]?\[[^\]\n]{0,20}\])?"
    r"(?:(?P<tight>=(?![=>~ \t])|%3[ad]|\\u003[ad]|>(?=[^<\s]{1,200}</))"
    r"|[ \t]{0,8}:[ \t]{0,4}[a-z][\w.\[\]| ]{0,30}=(?!=)[ \t]{0,8}(?=[fbru]{0,2}\\{0,8}[\"'`])"
    r"|[ \t]{0,8}(?:[!=]==?|=>|:=|[=:](?!:))[ \t]{0,8}"
    r"|,\s{0,8}\\{0,8}[\"'`]?value\\{0,8}[\"'`]?[ \t]{0,4}[:=][ \t]{0,4}|(?:\\n|\n)[ \t]{0,12}value:[ \t]{1,4}"
    r"|(?P<flag>,[ \t]{0,4}(?=\\{0,8}[\"'])|[ \t]{1,4}))"
    r"(?:\*\*[ \t]{0,2})?(?:[fbru]{1,2}(?=\\{0,8}[\"'`]))?(?P<quote>(?P<one>\\{0,8}[\"'])(?P=one){2}|\\{0,8}[\"'`])?",
    re.IGNORECASE,
)
"""From a name's word to its value: rest of the name, closing quote, then `=`, `:`, `=>`, `"value":` or a space."""
_NAME_BEFORE: Final = re.compile(r"[A-Za-z0-9_-]*\Z")
_ESCAPED: Final = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[nrtbf])(?P<rest>[A-Za-z0-9_-]*)\Z")
"""A letter that ends an escape is none of the name that stands behind it."""
_LOOSE: Final = re.compile(r"(?:[^\s\"'`\\,;&|<>(){}\[\]]|\\(?![nrtu\"'\\]))+")
_WHOLE: Final = re.compile(r"(?:[^\s\"'`\\]|\\(?![nrtu\"'\\]))+")
_LINE_ENDS: Final = re.compile(r"[ \t]*(?:\Z|[\r\n\"'`#]|\\[nr\"])")

_HARMLESS_TAIL: Final = re.compile(
    r"(?:file|path|dir|ur[il]|name|ids?|count|counts|type|len|length|limit|max|min|budget|ttl|expiry|expires|usage|env|"
    r"var|ref|refs|class|format|field|header|kind|policy|manager|provider|endpoint|store|size|version|required|enabled|"
    r"index|scopes?|prefix|patterns?|regex|placeholder|prompt|label|hint|title|error|errors|status|config|age|colou?r|icon|theme)\Z",
    re.IGNORECASE,
)
"""`token_count`, `passwordField`, `secretName`: what such names hold is no secret."""
_STAND_IN: Final = re.compile(
    rf"{DONE}|\[?REDACTED|\$[({{]|\$[A-Z_][A-Z0-9_]*\Z|\$[a-z_][a-z0-9_]*\Z|\{{\{{|\{{[\w.\[\]\"']*\}}\Z|<|%\(|%[sdv]\Z|\*+\Z|"
    r"[a-z_-]{0,9}[_-](?:\.{3}|…)\Z|\.{3}|…|x{3,}\Z|(?:null|none|nil|true|false|undefined|required|optional|str|string|bytes|text|any|int|integer|number|"
    r"bool|boolean|object|secretstr|yes|no|on|off|auto|default|include|omit|lambda|same-origin|basic|bearer)\Z|"
    r"os\.environ|os\.getenv|process\.env|(?:~|\.{1,2})/",
    re.IGNORECASE,
)
"""Values that only stand for one: placeholders, variables, types, constants, paths."""
_NUMBER: Final = re.compile(r"[\d_,.]+[kKmMbB%]?")
_PATH: Final = re.compile(r"\\{0,8}/|[A-Za-z]:\\")
_CODE: Final = re.compile(r"[A-Za-z_][\w.]*[(\[]|[A-Za-z_]+(?:\.[A-Za-z_]+)+\Z|[A-Z]?[a-z]+(?:[A-Z][a-z]+)+\Z")
_SNAKE: Final = re.compile(r"[a-z0-9]*(?:_[a-z0-9]+)+")
_NO_SECRET_STARTS: Final = ("http://", "https://", "!", "@", "/")
_HASH: Final = re.compile(r"[0-9a-f]{32}(?:[0-9a-f]{8})?(?:[0-9a-f]{24})?|[0-9a-f-]{36}|sha\d+[-:].*", re.IGNORECASE)
_AFTER_A_PROMPT: Final = tuple(",;) +")
"""`getpass("Password: ", stream)`: there the quote ends a string, it begins none."""
_LEAST_PLAIN = 6
_LEAST_QUOTED = 8
_LEAST_RANDOM = 16


@dataclass(frozen=True, slots=True)
class _Value:
    """What was assigned to a name: `tight` when nothing but `=` stood between, `shouted` for a NAME_LIKE_THIS."""

    text: str
    kind: str
    name: str
    plural: bool
    shouted: bool
    quoted: bool
    tight: bool
    flag: bool
    ends_line: bool
    after: str


def named_spans(text: str) -> Iterator[Span]:
    """Yield the values that are secret because of the name that they are assigned to."""
    folded = (text if text.isascii() else text.replace("İ", "I")).lower()
    for trigger, kind, word in _WORDS:
        at = folded.find(trigger)
        while at >= 0:
            resume = at + len(trigger)
            found = word.match(folded, at)
            if found and (span := _assigned_span(text, kind, found)):
                yield (*span, _NAMED_RANK, _KIND_NAMES.get(kind, kind))
                resume = max(resume, span[1])
            at = folded.find(trigger, resume)


def _assigned_span(text: str, kind: str, word: re.Match[str]) -> tuple[int, int] | None:
    """Where the value of the name around `word` lies, if there is one and it is a secret."""
    assigned = _ASSIGNED.match(text, word.end())
    if assigned is None or _HARMLESS_TAIL.search(assigned["tail"]):
        return None
    name = _begun(text[max(0, word.start() - 40) : word.start()]) + text[word.start() : assigned.end("tail")]
    if assigned["flag"] and not name.startswith("--"):
        return None
    start, quote, shouted = assigned.end(), assigned["quote"], name.isupper()
    if quote and not assigned["close"] and text[start : start + 1] in _AFTER_A_PROMPT:
        return None
    end = (
        _quoted_end(text, start, quote) if quote else _plain_end(text, start, whole=shouted and bool(assigned["tight"]))
    )
    value = _Value(
        text[start:end],
        kind,
        name,
        plural=word[0].endswith("s") and not word[0].endswith("pass"),
        shouted=shouted,
        quoted=bool(quote),
        tight=bool(assigned["tight"]),
        flag=bool(assigned["flag"]),
        ends_line=bool(_LINE_ENDS.match(text, end)),
        after=text[end : end + 1],
    )
    return (start, end) if _is_secret(value) else None


def _begun(before: str) -> str:
    """Return what of a name stands before its word."""
    if "\\" in before and (escaped := _ESCAPED.search(before)):
        return escaped["rest"]
    found = _NAME_BEFORE.search(before)
    return found[0] if found else ""


def _quoted_end(text: str, start: int, quote: str) -> int:
    """Find where a quoted value ends: at a quote that is escaped as deep as the first one, at the line's end at last.

    Inside JSON that is itself a JSON string a quote bears 1 backslash, one level deeper 3, then 7.
    """
    depth = len(quote) - len(quote.lstrip("\\"))
    mark = quote[depth:]
    at = text.find(mark, start)
    while at >= 0:
        slashes = 0
        while at - slashes > start and text[at - slashes - 1] == "\\":
            slashes += 1
        if slashes < depth or (slashes - depth) % (2 * depth + 2) == 0:
            break
        at = text.find(mark, at + 1)
    end = len(text) if at < 0 else at - min(slashes, depth)
    newline = text.find("\n", start, end)
    return end if newline < 0 or len(mark) > 1 else newline


def _plain_end(text: str, start: int, *, whole: bool) -> int:
    """Find where a value without quotes ends; what is assigned to a shouted name runs on to the next white space."""
    found = (_WHOLE if whole else _LOOSE).match(text, start)
    if found is None:
        return start
    return start + len(found[0].rstrip(",;)]}>&|" if whole else ".:"))


def _is_secret(value: _Value) -> bool:
    if not value.text.strip() or _STAND_IN.match(value.text):
        return False
    if value.kind == "pass" and not (value.quoted or value.tight):
        return False
    if value.kind in ("pass", "key") and _PATH.match(value.text):
        return False
    if value.kind == "key":
        return value.shouted and _is_random(value.text)
    if _NUMBER.fullmatch(value.text):
        return _is_secret_number(value)
    return _is_secret_quoted(value) if value.quoted else _is_secret_plain(value)


def _is_random(text: str) -> bool:
    lengthy = len(text) >= _LEAST_RANDOM and not _HASH.fullmatch(text) and "://" not in text
    return lengthy and any(c.isdigit() for c in text) and any(c.isalpha() for c in text)


def _is_secret_number(value: _Value) -> bool:
    """A PIN is a secret, a count of tokens is none."""
    if value.kind in ("password", "secret") or (value.kind == "pass" and value.quoted):
        return len(value.text) >= 4
    return value.shouted and value.tight and not value.plural and len(value.text) >= _LEAST_QUOTED


def _is_secret_quoted(value: _Value) -> bool:
    if value.kind in ("password", "pass", "secret"):
        return True
    return len(value.text) >= (3 if value.shouted else _LEAST_QUOTED) and not any(c.isspace() for c in value.text)


def _is_secret_plain(value: _Value) -> bool:
    text = value.text
    if _CODE.match(text) or value.after in ("(", "[") or (text == value.name and not value.shouted):
        return False
    if value.tight:
        return len(text) >= 3 and not (text.isidentifier() and text.islower() and value.after in (",", ")", ".", "}"))
    if value.plural or _SNAKE.fullmatch(text) or "=" in text or text.startswith(_NO_SECRET_STARTS):
        return False
    if value.kind == "password" and (value.ends_line or value.flag) and len(text) >= _LEAST_PLAIN:
        return True
    digits = sum(c.isdigit() for c in text)
    return len(text) >= _LEAST_PLAIN and 0 < digits < len(text)
