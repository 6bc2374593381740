"""Acceptance: what must stand in no line that a run wrote."""

import re
from typing import Final

from memoryd.redact import Redactor
from memoryd.workspace.comparison import Comparison
from memoryd.workspace.handbook import parse_bullet

_CUT: Final = r"(?:unchanged|omitted|elided|truncated|as before|as above|for brevity)"
_GONE: Final = rf"(?:{_CUT}|kept|same|continued?|no changes?)"
_THING: Final = r"(?:rest|remainder|remaining|others?|existing|previous|earlier|unchanged|omitted|same)"
_DOTS: Final = r"(?:\.{3,}|…)"
_THE: Final = r"(?:the |all )?"
_SHORT: Final = r"[^\])>}]{0,80}"
_CODE: Final = re.compile(r"`[^`]*`")
_LEAD: Final = re.compile(r"^[\s>#*-]*(?:<!--|//)?\s*")
_TITLE: Final = re.compile(r"#+ (?:Task Group|Task \d+):(.*)", re.IGNORECASE)
_OMITTED: Final = r"unchanged|omitted|elided|truncated|snip(?:ped)?"
_ELSEWHERE: Final = r"rest|remainder|remaining|others|existing|previous|earlier|same|above|etc|changes?"
_REMARK: Final = (
    rf"{_OMITTED}|{_ELSEWHERE}|the|all|other|of|in|as|is|are|was|were|stays?|remains?|keep|kept|leave|left|here|before"
    r"|for|brevity|no|not|changed|and|so|on|this|files?|handbook|memory|contents?|text|sections?|blocks?|bullets?|tasks?"
    r"|groups?|entry|entries|lines?|items?|version|see|continued?|more|with|to|be|from|it"
)
_OMITTED_WORD, _ELSEWHERE_WORD, _REMARK_WORD = (re.compile(words) for words in (_OMITTED, _ELSEWHERE, _REMARK))
_MOST_REMARK_WORDS: Final = 12
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
    return any(pattern.search(plain) for pattern in _PLACEHOLDERS) or _speaks_of_omission_alone(line[:2000])


def _speaks_of_omission_alone(line: str) -> bool:
    """Say whether all words of a line are those of a remark such as `<!-- other bullets unchanged -->`.

    Without a wrapper or dots around it only a plain word of leaving out will do: "keep existing files" is a statement.
    """
    title = _TITLE.fullmatch(line.strip())
    lead = _LEAD.match(line)
    bare = title[1] if title else line[lead.end() if lead else 0 :]
    inner = parse_bullet(bare.strip()).text.strip("-=~ \t")
    core = inner.strip("[](){}<>*_`!-. …\t")
    is_wrapped = inner != core or "<!--" in line or line.lstrip().startswith("//")
    words = core.casefold().replace("memory.md", "file").split()
    words = [word.strip(",;:.…") for word in words]
    if not words:
        return "…" in inner or "..." in inner
    if len(words) > _MOST_REMARK_WORDS or not all(map(_REMARK_WORD.fullmatch, words)):
        return False
    return any(map(_OMITTED_WORD.fullmatch, words)) or (is_wrapped and any(map(_ELSEWHERE_WORD.fullmatch, words)))


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
