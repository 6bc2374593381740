"""Which statements came with an import and were not touched since: kept like a person's, forgotten like memoryd's own.

An import gives its statements to the person, so that every consolidation keeps their words. They are there because of
the sessions that another program had read all the same: when a person forgets such a session, they go with it. The
record is digests alone. What a person has edited since has another digest, or a commit of theirs as its last one.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from memoryd.workspace.authorship import given_back_lines
from memoryd.workspace.git import Repository
from memoryd.workspace.keeping import Guarded
from memoryd.workspace.outline import Line, read_outline, walk
from memoryd.workspace.protection import Protection

DIGEST_BYTES: Final = 12


def digest_of(key: str) -> str:
    """Return what a statement is recorded by; `key` is that of its Line: what it says, references and mark aside."""
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).hexdigest()


def brought(
    repo: Repository, commit: str, protection: Protection, recorded: Collection[str]
) -> Mapping[str, tuple[Line, ...]]:
    """Return, by file, the protected statements that an import brought and nobody has touched since (blocking)."""
    found = {}
    for path, guarded in protection.guarded.items() if recorded else ():
        given = given_back_lines(repo, commit, path)
        lines = [line for _, line in guarded.lines() if digest_of(line.key) in recorded]
        found[path] = tuple(line for line in lines if given.issuperset(_numbers(line)))
    return found


def without(protection: Protection, lines: Mapping[str, Iterable[Line]]) -> Protection:
    """Return the protection of everything but these statements."""
    return replace(
        protection,
        guarded={path: _without(guarded, lines.get(path, ())) for path, guarded in protection.guarded.items()},
    )


def standing_rows(text: str, lines: Iterable[Line]) -> frozenset[str]:
    """Return the rows of a text in which such a statement stands, whatever it cites there."""
    keys = {line.key for line in lines}
    return frozenset(row for _, line in walk(read_outline(text)) if line.key in keys for row in line.lines)


def _without(guarded: Guarded, lines: Iterable[Line]) -> Guarded:
    return replace(guarded, persons=guarded.persons - {number for line in lines for number in _numbers(line)})


def _numbers(line: Line) -> range:
    return range(line.number, line.number + len(line.lines))
