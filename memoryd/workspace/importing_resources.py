"""A memory file of Claude Code as it lies here: a resource of an extension, its head written by us, its words theirs.

Claude Code's own front matter says in which session a file was written and what kind of memory it is, in newer versions
one level deeper (claude-code 2.1: `originSessionId`, `type: user | feedback | project | reference`).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from memoryd.text import on_one_line
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import EXTENSIONS

CLAUDE: Final = f"{EXTENSIONS}/claude"
FROM: Final = "Claude Code, its own memory of a project"
PERSONS: Final = frozenset({"user", "feedback"})
"""The kinds that say what the person is like and wants."""

_HEAD: Final = re.compile(
    r"\A---\nfrom: (?P<source>[^\n]+)\nproject: (?P<project>[^\n]*)\nfile: (?P<file>[^\n]*)\n---\n"
)
_OWN: Final = re.compile(r"\A\s*---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_SESSION: Final = re.compile(
    r"^[ \t]*originSessionId:[ \t]*[\"']?([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})\b", re.MULTILINE
)
_KIND: Final = re.compile(r"^[ \t]*type:[ \t]*[\"']?(\w+)", re.MULTILINE)
_RESOURCE: Final = re.compile(rf"{EXTENSIONS}/[^/]+/resources/[^/]+\.md")


@dataclass(frozen=True, slots=True)
class Imported:
    """One memory file: the project's directory, or what its folder was called; `session` "" where nothing says it."""

    project: str
    file: str
    session: str
    kind: str
    body: str


def render_imported(project: str, file: str, text: str) -> str:
    """Return the text of a resource: what it is and where it comes from, then the words of the file."""
    head = ["---", f"from: {FROM}", f"project: {on_one_line(project)}", f"file: {on_one_line(file)}", "---", ""]
    return "\n".join([*head, text.strip("\n"), ""])


def parse_imported(text: str) -> Imported | None:
    """Read a resource back; None for one that no import wrote."""
    head = _HEAD.match(text)
    if head is None or head["source"] != FROM:
        return None
    body = text[head.end() :]
    own = _OWN.match(body)
    said = own[1] if own else ""
    kind = _KIND.search(said)
    return Imported(
        project=head["project"],
        file=head["file"],
        session=session_of(body),
        kind=kind[1].lower() if kind else "",
        body=body[own.end() :] if own else body,
    )


def session_of(text: str) -> str:
    """Return the session in which a memory file of Claude Code says that it was written, "" where it does not."""
    own = _OWN.match(text)
    found = _SESSION.search(own[1]) if own else None
    return found[1].lower() if found else ""


def imported_in(folder: Folder) -> Mapping[str, Imported]:
    """Return the resources of a folder that an import wrote, by path, in the order of their paths."""
    texts = ((path, folder.files[path]) for path in sorted(folder.files) if _RESOURCE.fullmatch(path))
    return {path: each for path, text in texts if (each := parse_imported(text)) is not None}


def written_in(folder: Folder, threads: Collection[str]) -> frozenset[str]:
    """Return the resources that were written in one of these sessions."""
    return frozenset(path for path, each in imported_in(folder).items() if each.session in threads)
