"""What an accepted handbook claims, as rows of the ledger."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath
from sqlite3 import Connection
from typing import Final

from memoryd.ledger.claims import Author, Circumstances, Closing, NewClaim, replace_claims
from memoryd.workspace.comparison import Statement, statements
from memoryd.workspace.folder import Folder
from memoryd.workspace.handbook import Mark, parse_handbook
from memoryd.workspace.headers import UNKNOWN, Header, headers_of
from memoryd.workspace.layout import MEMORY_FILE
from memoryd.workspace.notes import asked_to_forget, says

GLOBAL_SCOPE: Final = "global"
NOTED: Final = "ad-hoc note"
"""Status of what a note says; the others are the marks of the handbook."""
UNMARKED: Final = "unmarked"
"""Status of a person's bullet that has no mark."""


def claims_of_folder(folder: Folder, persons: Collection[str] = ()) -> list[NewClaim]:
    """Return a claim for each bullet of a folder's MEMORY.md, in the order of the file, with its supporting sessions.

    `persons` are the lines of the file that are a person's. Scope is `global` in two cases alone. Stated so: the bullet
    stands in a group for any directory, and is the user's word ([stated]), a note's or a person's own. Or seen in two
    projects: its sessions, or groups that say the same in the same section, are of two directories neither of which
    lies in the other. Otherwise it is the directory of the group, or, in a group for any, that of the sessions.
    """
    headers = headers_of(folder)
    text = folder.text(MEMORY_FILE)
    rows = text.split("\n")
    found = [statement for statement in statements(parse_handbook(text)) if statement.bullet.text]
    seen_in: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for statement in found:
        seen_in[_words(statement)].update(_projects(statement, headers))
    claims = []
    for statement in found:
        author = _author(statement, is_persons=rows[statement.bullet.line - 1] in persons)
        claims.append(_claim(statement, headers, author, seen_in[_words(statement)]))
    return claims


def texts_of(claims: Iterable[NewClaim]) -> frozenset[tuple[str, str]]:
    """Return section and text of claims: what stands, wherever it holds."""
    return frozenset((claim.section, claim.text) for claim in claims)


def not_forgotten(stood: Collection[tuple[str, str]], folder: Folder) -> frozenset[tuple[str, str]]:
    """Return those texts that no note of a folder asks to forget: the others were taken out on a person's word."""
    asked = asked_to_forget(folder)
    return frozenset(each for each in stood if not any(says(each[1], one) for one in asked))


def reparse(
    conn: Connection,
    folder: Folder,
    *,
    now: float,
    because: Closing = Closing.REMOVED,
    persons: Collection[str] = (),
) -> None:
    """Make the ledger's claims follow a handbook that changed outside a consolidation: an undo, an edit, a forgetting.

    Part of the transaction that decides the change; `because` is why the claims close that it leaves out.
    """
    replace_claims(conn, claims_of_folder(folder, persons), now=now, circumstances=Circumstances(because=because))


def _claim(statement: Statement, headers: Mapping[str, Header], author: Author, seen_in: Collection[str]) -> NewClaim:
    bullet = statement.bullet
    threads = {headers[path].thread_id for path in statement.files if path in headers}
    return NewClaim(
        text=bullet.text,
        section=statement.section.value,
        scope=_scope(statement, author, seen_in),
        status=NOTED if bullet.ad_hoc else bullet.mark.value if bullet.mark else UNMARKED,
        thread_ids=tuple(sorted(threads - {""})),
        author=author,
    )


def _scope(statement: Statement, author: Author, seen_in: Collection[str]) -> str:
    if _are_two_projects(seen_in):
        return GLOBAL_SCOPE
    if statement.group.cwd is not None:
        return statement.group.cwd
    if author is not Author.MEMORYD or statement.bullet.mark is Mark.STATED or not seen_in:
        return GLOBAL_SCOPE
    return min(seen_in, key=lambda cwd: (len(cwd), cwd))


def _author(statement: Statement, *, is_persons: bool) -> Author:
    if is_persons:
        return Author.PERSON
    return Author.NOTE if statement.bullet.ad_hoc else Author.MEMORYD


def _words(statement: Statement) -> tuple[str, str]:
    return (statement.section.value, statement.words)


def _projects(statement: Statement, headers: Mapping[str, Header]) -> set[str]:
    """Return the directories in which a statement was seen: that of its group, and those of its sessions."""
    found = {headers[path].cwd for path in statement.files if path in headers}
    return (found | {statement.group.cwd or ""}) - {"", UNKNOWN}


def _are_two_projects(directories: Collection[str]) -> bool:
    """Say whether two of the directories are none inside the other."""
    if len(directories) < 2:
        return False
    outermost = PurePosixPath(min(directories, key=lambda cwd: (len(cwd), cwd)))
    return not all(PurePosixPath(cwd).is_relative_to(outermost) for cwd in directories)
