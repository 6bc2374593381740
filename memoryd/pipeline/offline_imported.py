"""What Claude Code had noted, as statements for the offline writer: each says where it stands, none is judged.

The instructions of other extensions are prose for a model: only resources that an import wrote are understood here.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.pipeline.offline_notes import statements_of
from memoryd.pipeline.offline_text import one_line
from memoryd.workspace.folder import Folder
from memoryd.workspace.importing_resources import PERSONS, Imported, imported_in

LEAD: Final = "Claude Code noted in "
KEYWORDS: Final = ("claude code", "imported")
_FENCED: Final = re.compile(r"^[ \t]*(```|~~~).*?^[ \t]*\1[^\n]*$", re.DOTALL | re.MULTILINE)
_POINTER: Final = re.compile(r"\[[^\]]*\]\(\S+\.md\).*", re.DOTALL)
"""A row of Claude Code's index: what it points to comes itself."""
_NO_LETTER: Final = re.compile(r"[^A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class Noted:
    """One file's statements, and the directory for which they hold; `is_persons`: they say what the person wants."""

    cwd: str
    lines: tuple[str, ...]
    is_persons: bool


def read_imported(work: Path, *, cwds: Collection[str]) -> list[Noted]:
    """Read the imported memory files of a memory folder, those without a statement left out.

    `cwds` are the directories that are known: a project of which only the name of its folder is known is the one of
    them that Claude Code would call so. Raises StorageError when the folder cannot be read.
    """
    noted = [
        Noted(_directory(one_line(each.project), cwds), _statements(each), each.kind in PERSONS)
        for each in imported_in(Folder.read(work)).values()
    ]
    return [each for each in noted if each.lines and each.cwd]


def is_imported(statement: str) -> bool:
    """Say whether a statement is one of these."""
    return statement.startswith(LEAD)


def _statements(imported: Imported) -> tuple[str, ...]:
    name = one_line(imported.file) or "a file"
    said = statements_of(_FENCED.sub("", imported.body))
    return tuple(f"{LEAD}{name}: {line}" for line in said if not _POINTER.fullmatch(line) and not line.startswith("|"))


def _directory(project: str, cwds: Collection[str]) -> str:
    """Return the directory of a project; a name that is none of a directory stays, and is found by nobody's."""
    called = [cwd for cwd in cwds if _NO_LETTER.sub("-", cwd) == project]
    return called[0] if len(called) == 1 and not project.startswith("/") else project
