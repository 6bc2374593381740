"""Acceptance: what must stand in no line that a run wrote."""

import re
from typing import Final

from memoryd.redact import Redactor
from memoryd.workspace.comparison import Comparison

_GONE: Final = r"(?:unchanged|omitted|elided|truncated|as before|as above|for brevity|kept|same|continued?|no changes?)"
_THING: Final = r"(?:rest|remainder|remaining|others?|existing|previous|earlier|unchanged|omitted|same)"
_DOTS: Final = r"(?:\.{3,}|…)"
_OPEN: Final = r"[\[(<{]"
_CLOSE: Final = r"[\])>}]"
_CODE: Final = re.compile(r"`[^`]*`")
_LEAD: Final = re.compile(r"^[\s>#*-]*(?:<!--|//)?\s*")
_PLACEHOLDERS: Final = (
    re.compile(rf"^{_DOTS}$"),
    re.compile(rf"^{_OPEN}?\s*{_DOTS}?\s*(?:the |all )?{_THING}\b[^.]{{0,80}}\b{_GONE}\b[^.]{{0,40}}$", re.IGNORECASE),
    re.compile(rf"^{_OPEN}\s*{_DOTS}?\s*{_GONE}\b[^.]{{0,60}}{_CLOSE}$", re.IGNORECASE),
    re.compile(rf"^{_OPEN}?\s*{_DOTS}\s*(?:the |all )?{_THING}\b.{{0,80}}$", re.IGNORECASE),
    re.compile(rf"{_DOTS}\s*{_OPEN}[^\])>}}]{{0,40}}\b{_GONE}\b", re.IGNORECASE),
    re.compile(
        rf"\[\s*{_DOTS}?\s*(?:the |all )?{_THING}\b[^\]]{{0,60}}\b{_GONE}\b[^\]]{{0,40}}\](?!\()", re.IGNORECASE
    ),
    re.compile(rf"\[\s*{_DOTS}?\s*(?:the )?(?:rest|remainder) of (?:the |this )?[^\]]{{0,60}}\](?!\()", re.IGNORECASE),
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
        added = compared.added_lines(path)
        if not redactor.contains_secret("\n".join(line for _, line in added)):
            continue
        lines = [str(number) for number, line in added if redactor.contains_secret(line)]
        where = f" line {', '.join(lines)}" if lines else ""
        complaints.append(f"{path}{where}: a secret; write [REDACTED_SECRET] in its place")
    return complaints
