"""Acceptance: what must stand in no line that a run wrote."""

import re
from typing import Final

from memoryd.redact import Redactor
from memoryd.workspace.comparison import Comparison

_CUT: Final = r"(?:unchanged|omitted|elided|truncated|as before|as above|for brevity)"
_GONE: Final = rf"(?:{_CUT}|kept|same|continued?|no changes?)"
_THING: Final = r"(?:rest|remainder|remaining|others?|existing|previous|earlier|unchanged|omitted|same)"
_DOTS: Final = r"(?:\.{3,}|…)"
_THE: Final = r"(?:the |all )?"
_SHORT: Final = r"[^\])>}]{0,80}"
_CODE: Final = re.compile(r"`[^`]*`")
_LEAD: Final = re.compile(r"^[\s>#*-]*(?:<!--|//)?\s*")
_WHOLE_LINE: Final = (
    _DOTS,
    rf"{_DOTS}\s*{_THE}{_THING}\b.{{0,80}}",
    rf"[\[(<{{]\s*{_DOTS}?\s*{_THE}{_THING}\b{_SHORT}\b{_GONE}\b{_SHORT}[\])>}}]\.?",
    rf"[\[(<{{]\s*{_DOTS}?\s*{_GONE}\b{_SHORT}[\])>}}]\.?",
    rf"[\[(<{{]\s*{_DOTS}{_SHORT}{_DOTS}\s*[\])>}}]",
    rf"{_THE}{_THING}(?: \w+){{0,4}} {_CUT}\.?",
)
_ANYWHERE: Final = (
    rf"{_DOTS}\s*[\[(<{{]{_SHORT}\b{_CUT}\b",
    rf"\[\s*{_DOTS}?\s*{_THE}{_THING}\b{_SHORT}\b{_GONE}\b{_SHORT}\](?!\()",
    rf"\[\s*{_DOTS}?\s*{_THE}(?:rest|remainder) of (?:the |this ){_SHORT}\](?!\()",
    rf"\[\s*{_DOTS}{_SHORT}\b{_CUT}\b{_SHORT}\]",
)
_PLACEHOLDERS: Final = tuple(
    re.compile(pattern, re.IGNORECASE) for pattern in (*(rf"^(?:{whole})$" for whole in _WHOLE_LINE), *_ANYWHERE)
)


def has_no_placeholder(compared: Comparison) -> list[str]:
    """A file is written whole: a line such as `[rest unchanged]` would stand for text that is lost."""
    return [
        f"{path} line {number}: a placeholder stands for omitted text; write the text itself"
        for path in compared.written()
        for number, line in compared.added_lines(path)
        if is_omission(line)
    ]


def is_omission(line: str) -> bool:
    """Say whether a line stands for text that was left out."""
    plain = _LEAD.sub("", _CODE.sub("``", line[:2000])).removesuffix("-->").strip()
    return any(pattern.search(plain) for pattern in _PLACEHOLDERS)


def has_no_secret(compared: Comparison, redactor: Redactor) -> list[str]:
    """No secret may enter a file; the complaint names the place and never the secret."""
    complaints = []
    for path in compared.written():
        if redactor.contains_secret(path):
            complaints.append("the name of a skill's file holds a secret; give it another name")
        if _brings_secret(compared, path, redactor):
            lines = [str(number) for number, line in compared.added_lines(path) if redactor.contains_secret(line)]
            where = f" line {', '.join(lines)}" if lines else ""
            complaints.append(f"{path}{where}: a secret; write [REDACTED_SECRET] in its place")
    return complaints


def _brings_secret(compared: Comparison, path: str, redactor: Redactor) -> bool:
    """Judge the whole file, so that a secret of several lines is seen; of a file that had one, the added lines."""
    text = compared.after.text(path)
    if redactor.contains_secret(compared.before.text(path)):
        text = "\n".join(line for _, line in compared.added_lines(path))
    return redactor.contains_secret(text)
