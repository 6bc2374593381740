"""A person's lines that a run lost go back to the end of their section (DESIGN.md section 7, invariant I10).

A line is the person's when its last author is not memoryd. It stays until the person removes it, or until every session
that it cites is gone. Headings and the fields below them are structure, not statements, and are not put back.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memoryd.workspace.comparison import statements
from memoryd.workspace.git import DAEMON, Repository
from memoryd.workspace.handbook import parse_handbook
from memoryd.workspace.layout import MEMORY_FILE

_STRUCTURE: Final = re.compile(r"#|(?:scope|applies_to):|v1$")
_EVIDENCE_ROW: Final = re.compile(r"\s*- (rollout_summaries/[^/\s()]+\.md)")

Headings = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PersonLine:
    """A line with the headings that it stands below, outermost first."""

    section: Headings
    text: str


def with_person_lines(text: str, live: str, *, repo: Repository, path: str, base: str, commit: str) -> str:
    """Return the text that a run is to leave at `path`, with the person's lines that it lost.

    Those of commit `base` that still stand in `live`, unless the evidence that they cite is not in `commit`.
    """
    missing = _stripped(live) - _stripped(text)
    if not missing:
        return text
    lines = _person_lines(repo, path, base=base, commit=commit)
    lost = [line for line in lines if line.text.strip() in missing]
    return put_back(text, lost) if lost else text


def put_back(text: str, lost: Sequence[PersonLine]) -> str:
    """Insert each line behind the last one of its section; headings that are gone come back with it."""
    lines = text.removesuffix("\n").split("\n")
    for line in lost:
        stacks = [stack if row.strip() else None for row, stack in zip(lines, _headings_above(lines), strict=True)]
        if line.section in stacks:
            end = 1 + max(number for number, stack in enumerate(stacks) if stack == line.section)
            lines.insert(end, line.text)
        else:
            _insert_with_headings(lines, stacks, line)
    return "\n".join(lines) + "\n"


def _insert_with_headings(lines: list[str], stacks: Sequence[Headings | None], line: PersonLine) -> None:
    """Insert a line whose section is gone below as many of its headings as still stand, and the others with it."""
    depth = max(depth for depth in range(len(line.section) + 1) if depth == 0 or line.section[:depth] in stacks)
    standing = line.section[:depth]
    below = [number for number, stack in enumerate(stacks) if stack is not None and stack[:depth] == standing]
    end = 1 + max(below, default=-1) if line.section else 0
    missing = [row for heading in line.section[depth:] for row in ("", heading)]
    lines[end:end] = [*missing, "", line.text] if missing else [line.text]


def _person_lines(repo: Repository, path: str, *, base: str, commit: str) -> Iterator[PersonLine]:
    blamed = repo.blame(base, path)
    lines = [line for _, line in blamed]
    files = repo.files(commit)
    unfounded = _unfounded("\n".join(lines), files) if path == MEMORY_FILE else frozenset()
    for number, ((author, line), section) in enumerate(zip(blamed, _headings_above(lines), strict=True), start=1):
        row = _EVIDENCE_ROW.match(line)
        is_statement = bool(line.strip()) and not _STRUCTURE.match(line) and (row is None or row[1] in files)
        if author != DAEMON.name and is_statement and number not in unfounded:
            yield PersonLine(section, line)


def _unfounded(handbook_text: str, files: Collection[str]) -> frozenset[int]:
    """Return the lines of bullets that cite tasks none of whose evidence is among the files."""
    return frozenset(
        statement.bullet.line
        for statement in statements(parse_handbook(handbook_text))
        if statement.bullet.task_refs and not any(file in files for file in statement.files)
    )


def _headings_above(lines: Sequence[str]) -> Iterator[Headings]:
    """Yield for each line the headings that it stands below; a heading stands below itself."""
    stack: Headings = ()
    for line in lines:
        if line.startswith("#"):
            level = _level(line)
            stack = (*(heading for heading in stack if _level(heading) < level), line.rstrip())
        yield stack


def _level(heading: str) -> int:
    return len(heading) - len(heading.lstrip("#"))


def _stripped(text: str) -> frozenset[str]:
    return frozenset(line.strip() for line in text.split("\n"))
