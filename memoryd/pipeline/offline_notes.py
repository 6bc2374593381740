"""Notes that a person left in extensions/ad_hoc/notes, a statement each line or paragraph."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.pipeline.offline_text import clip, is_quotable, plain
from memoryd.workspace.files import translated
from memoryd.workspace.layout import AD_HOC_NOTES
from memoryd.workspace.notes import is_request

MAX_LINES: Final = 40
MAX_LINE_CHARS: Final = 600
MIN_NAME_CHARS: Final = 4
"""A directory's last name counts as mentioned only when it is long enough not to be any word."""

_TIMED: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-")
_ITEM: Final = re.compile(r"^\s*(?:[-*+]|\d{1,2}[.)])\s+")


@dataclass(frozen=True, slots=True)
class Note:
    """A note's statements, and the one directory among the known ones that it names, None when it names none."""

    lines: tuple[str, ...]
    cwd: str | None


def read_notes(work: Path, *, cwds: Collection[str]) -> list[Note]:
    """Read the notes of a memory folder: every Markdown file that is not hidden, whoever named it.

    Those whose name begins with a time come first, in its order, the others after them by name: a file that a person
    drops has no time, and is taken for the newest word. Blank ones say nothing. Raises StorageError when one cannot be
    read.
    """
    folder = work / AD_HOC_NOTES
    with translated("read", folder):
        files = sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []
        files = [path for path in files if _is_note(path)]
        files.sort(key=lambda path: (_TIMED.match(path.name) is None, path.name))
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in files]
    said = [text for text in texts if not is_request(text)]
    return [Note(lines, _directory(text, cwds)) for text in said if (lines := statements_of(text))]


def _is_note(path: Path) -> bool:
    return path.suffix == ".md" and not path.name.startswith(".") and path.is_file() and not path.is_symlink()


def statements_of(text: str) -> tuple[str, ...]:
    """Split a note into statements, one line each; headings and front matter only say what it is about."""
    statements: list[str] = []
    open_paragraph = False
    for line in _without_front_matter(text).splitlines():
        if not line.strip() or line.lstrip().startswith(("#", "```")):
            open_paragraph = False
        elif _ITEM.match(line) or not open_paragraph:
            statements.append(_ITEM.sub("", line))
            open_paragraph = True
        else:
            statements[-1] += " " + line
    tidy = (clip(plain(statement), MAX_LINE_CHARS) for statement in statements)
    return tuple(statement for statement in tidy if is_quotable(statement))[:MAX_LINES]


def _without_front_matter(text: str) -> str:
    return re.sub(r"\A---\n.*?\n---\n", "", text, count=1, flags=re.DOTALL)


def _directory(text: str, cwds: Collection[str]) -> str | None:
    by_path = [cwd for cwd in cwds if re.search(rf"(?<![\w/.-]){re.escape(cwd)}(?![\w-])", text)]
    named = by_path or [cwd for cwd in cwds if _names(text, cwd.rstrip("/").rsplit("/", 1)[-1])]
    return named[0] if len(named) == 1 else None


def _names(text: str, name: str) -> bool:
    return (
        len(name) >= MIN_NAME_CHARS
        and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text, re.IGNORECASE) is not None
    )
