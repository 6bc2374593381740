"""What both memory files share in form: problems with their lines, no bold, no placeholders, `-` bullets."""

import re
from dataclasses import dataclass
from typing import Final

_CODE: Final = re.compile(r"`[^`]*`")
_BOLD: Final = re.compile(r"(?<![\w/*])\*\*(?=[^\s*])[^*]*(?<=[^\s*])\*\*(?![\w/*])")
_OTHER_BULLET: Final = re.compile(r"\s*(?:[*+•]|\d{1,9}[.)])[ \t]+\S")
_TEMPLATE_PART: Final = re.compile(
    r"<[^<>]*>|\.{3}|…|todo|tbd|untitled|unnamed|placeholder|title|name|description", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that does not follow the structure; `message` is written for the one who has to mend it."""

    line: int
    message: str


def form_problem(line: str) -> str:
    """Say what is wrong with the form of a line whatever it means, "" when nothing is."""
    if is_other_bullet(line):
        return "a list item that does not begin with `- `"
    if "**" in line and _BOLD.search(_CODE.sub("", line)):
        return "bold text; write it plainly"
    return ""


def is_other_bullet(line: str) -> bool:
    """Say whether a line is an item of a list that uses other marks than `- `."""
    return _OTHER_BULLET.match(line) is not None


def is_placeholder(title: str) -> bool:
    """Say whether a heading's text is empty or was left as the template has it; a path is a name, whatever it says."""
    if title.strip().startswith("/") and "<" not in title:
        return False
    parts = [part.strip() for part in re.split(r"[/,]", title) if part.strip()]
    return bool(_TEMPLATE_PART.fullmatch(title.strip())) or all(_TEMPLATE_PART.fullmatch(part) for part in parts)
