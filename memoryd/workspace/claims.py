"""What an accepted handbook claims, as rows of the ledger (DESIGN.md section 9)."""

from collections.abc import Mapping
from typing import Final

from memoryd.ledger.claims import NewClaim
from memoryd.workspace.comparison import Statement, statements
from memoryd.workspace.folder import Folder
from memoryd.workspace.handbook import parse_handbook
from memoryd.workspace.headers import Header, headers_of
from memoryd.workspace.layout import MEMORY_FILE

GLOBAL_SCOPE: Final = "global"
NOTED: Final = "ad-hoc note"
"""Status of what a note says; the others are the marks of the handbook."""
UNMARKED: Final = "unmarked"
"""Status of a person's bullet that has no mark."""


def claims_of_folder(folder: Folder) -> list[NewClaim]:
    """Return a claim for each bullet of a folder's MEMORY.md, in the order of the file, with its supporting sessions.

    Scope: the group's cwd; `global` where it applies to any.
    """
    headers = headers_of(folder)
    handbook = parse_handbook(folder.text(MEMORY_FILE))
    return [_claim(statement, headers) for statement in statements(handbook) if statement.bullet.text]


def _claim(statement: Statement, headers: Mapping[str, Header]) -> NewClaim:
    bullet = statement.bullet
    threads = {headers[path].thread_id for path in statement.files if path in headers}
    return NewClaim(
        text=bullet.text,
        section=statement.section.value,
        scope=statement.group.cwd or GLOBAL_SCOPE,
        status=NOTED if bullet.ad_hoc else bullet.mark.value if bullet.mark else UNMARKED,
        thread_ids=tuple(sorted(threads - {""})),
    )
