import sqlite3
from contextlib import closing

import pytest

from memoryd.ledger import claims, queries
from memoryd.ledger.claims import Author, Closing, NewClaim
from memoryd.workspace.claims import claims_of_folder, reparse, texts_of
from memoryd.workspace.folder import Folder
from tests.workspace.factories import MEMORY, NOW, A, B, a_folder, a_summary_file, files

SHOP = "/home/dev/shop"
EVERYWHERE = MEMORY.replace("cwd=/home/dev/shop; ", "cwd=any; ")


def scopes(folder: Folder, persons: tuple[str, ...] = ()) -> list[str]:
    return [claim.scope for claim in claims_of_folder(folder, persons)]


def test_each_bullet_becomes_a_claim_with_its_sessions() -> None:
    assert claims_of_folder(a_folder()) == [
        NewClaim("use tabs, never spaces", "User preferences", SHOP, "stated", (A, B)),
        NewClaim("`make check` runs all tests", "Reusable knowledge", SHOP, "verified", (B,)),
        NewClaim("port 5433 is the test database", "Reusable knowledge", SHOP, "verified", (A,)),
        NewClaim("deploys happen on Fridays", "Reusable knowledge", SHOP, "ad-hoc note", (), Author.NOTE),
    ]


def test_in_a_group_for_any_directory_only_what_the_user_or_a_note_says_is_global() -> None:
    assert scopes(a_folder(MEMORY=EVERYWHERE)) == ["global", SHOP, SHOP, "global"]


def test_a_persons_own_line_in_a_group_for_any_directory_is_global() -> None:
    line = "- port 5433 is the test database [Task 1] [verified]"
    assert scopes(a_folder(MEMORY=EVERYWHERE), (line,)) == ["global", SHOP, "global", "global"]


@pytest.mark.parametrize(
    ("other", "scope"),
    [("/home/dev/barn", "global"), ("/home/dev/shop/api", SHOP), ("/home/dev/shopping", "global"), ("unknown", SHOP)],
)
def test_what_sessions_of_two_projects_show_is_global(other: str, scope: str) -> None:
    assert scopes(a_folder(rollout_summaries__b=a_summary_file(B, cwd=other)))[0] == scope


def test_what_the_handbook_says_of_two_projects_is_global_in_both() -> None:
    barn = MEMORY.replace("Group: shop", "Group: barn").replace(f"cwd={SHOP}; ", "cwd=/home/dev/barn; ")
    folder = a_folder(
        MEMORY=MEMORY
        + "\n"
        + barn.replace("- port 5433", "- port 5444").replace("b.md", "c.md").replace("a.md", "c.md"),
        rollout_summaries__c=a_summary_file("c", cwd="/home/dev/barn"),
    )
    found = {(claim.text, claim.scope) for claim in claims_of_folder(folder)}
    assert ("`make check` runs all tests", "global") in found
    assert ("port 5444 is the test database", "/home/dev/barn") in found
    assert ("port 5433 is the test database", SHOP) in found


def test_a_persons_bullet_without_a_mark_is_a_claim_that_says_so() -> None:
    text = MEMORY.replace(" [Task 1][Task 2] [stated]", "").replace("- deploys", "- \n- deploys")
    found = claims_of_folder(Folder({**files(), "MEMORY.md": text}), ["- use tabs, never spaces"])
    assert found[0] == NewClaim("use tabs, never spaces", "User preferences", SHOP, "unmarked", (), Author.PERSON)
    assert len(found) == 4


def test_claims_follow_a_handbook_that_changed_outside_a_consolidation() -> None:
    """As after an undo: what went is closed with the reason of the change, and what stays is the same claim."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
        conn.executescript(queries.read("schema.sql"))
        reparse(conn, a_folder(), now=NOW)
        older = a_folder(MEMORY=MEMORY.replace("- port 5433 is the test database [Task 1] [verified]\n", ""))

        reparse(conn, older, now=NOW + 9)

        assert [row.id for row in claims.valid(conn)] == [1, 2, 4]
        closed = claims.get(conn, 3)
        assert closed is not None
        assert (closed.closed_because, closed.invalidated_at) == (Closing.REMOVED, int(NOW) + 9)


def test_what_stands_is_named_by_section_and_text() -> None:
    assert ("User preferences", "use tabs, never spaces") in texts_of(claims_of_folder(a_folder()))
