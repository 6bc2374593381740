import pytest

from memoryd.ledger.claim_identity import MOST_CANDIDATES, Wording, Wordings


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("run `make check` before a commit", "Run make check before every commit", True),
        ("when tests are run: make test-unit", "when tests are run, use make test-unit", True),
        ("use tabs", "never use tabs", False),
        ("don't rebase the release branch", "do rebase the release branch", False),
        ("don't rebase the release branch", "never rebase the release branch", True),
        ("the database listens on port 5433", "the database listens on port 5434", False),
        ("deploys happen on Fridays", "the parser keeps comments", False),
        ("", "", False),
    ],
)
def test_a_rewording_has_most_words_and_all_denials_and_numbers(one: str, other: str, *, same: bool) -> None:
    assert Wording.of(one).is_reworded_as(Wording.of(other)) is same
    assert Wording.of(other).is_reworded_as(Wording.of(one)) is same


def test_the_most_alike_comes_first_and_other_places_are_not_looked_at() -> None:
    texts = {1: "use uv here", 2: "use uv here today", 3: "use uv here"}
    wordings = Wordings(texts, {1: "a", 2: "a", 3: "b"})

    assert [each.key for each in wordings.like("use uv here", "a", lambda _key: True)] == [1, 2]
    assert [each.key for each in wordings.like("use uv here", "a", lambda key: key == 2)] == [2]


def test_only_so_many_are_compared_in_full() -> None:
    texts = {number: f"fact {number} is rare" for number in range(60)}
    wordings = Wordings(texts, dict.fromkeys(texts, "a"))

    found = wordings.like("fact 7 is rare", "a", lambda _key: True)

    assert (len(found), found[0].key) == (MOST_CANDIDATES, 7)
