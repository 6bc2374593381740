from memoryd.ledger.claims import NewClaim
from memoryd.workspace.claims import claims_of_folder
from memoryd.workspace.folder import Folder
from tests.workspace.factories import MEMORY, A, B, a_folder, files


def test_each_bullet_becomes_a_claim_with_its_sessions() -> None:
    assert claims_of_folder(a_folder()) == [
        NewClaim("use tabs, never spaces", "User preferences", "/home/dev/shop", "stated", (A, B)),
        NewClaim("`make check` runs all tests", "Reusable knowledge", "/home/dev/shop", "verified", (B,)),
        NewClaim("port 5433 is the test database", "Reusable knowledge", "/home/dev/shop", "verified", (A,)),
        NewClaim("deploys happen on Fridays", "Reusable knowledge", "/home/dev/shop", "ad-hoc note", ()),
    ]


def test_a_group_for_any_directory_has_global_claims() -> None:
    everywhere = MEMORY.replace("cwd=/home/dev/shop; ", "cwd=any; ")
    claims = claims_of_folder(Folder({**files(), "MEMORY.md": everywhere}))
    assert {claim.scope for claim in claims} == {"global"}


def test_a_persons_bullet_without_a_mark_is_a_claim_that_says_so() -> None:
    text = MEMORY.replace(" [Task 1][Task 2] [stated]", "").replace("- deploys", "- \n- deploys")
    claims = claims_of_folder(Folder({**files(), "MEMORY.md": text}))
    assert claims[0] == NewClaim("use tabs, never spaces", "User preferences", "/home/dev/shop", "unmarked", ())
    assert len(claims) == 4
