"""Which rows of a fork are copies: those that begin both files, in the same order."""

import pytest

from memoryd.sources.copies import CopiedBeginning


@pytest.mark.parametrize(
    ("fork", "relatives", "copied"),
    [
        ("abcd", ["abx"], "ab"),
        ("abcd", ["abcd"], "abcd"),
        ("abcd", ["abcdefg"], "abcd"),
        ("abcd", ["xabcd"], ""),
        ("abcd", ["a", "abc"], "abc"),
        ("abxcd", ["abcd"], "ab"),
        ("abcd", [], ""),
        ("abcd", [""], ""),
    ],
)
def test_what_begins_both_is_a_copy(fork: str, relatives: list[str], copied: str) -> None:
    beginning = CopiedBeginning(relatives)
    assert "".join(row for row in fork if beginning.covers(row)) == copied


def test_rows_without_an_id_are_passed_over() -> None:
    beginning = CopiedBeginning([[None, "a", None, None, "b"]])
    assert [beginning.covers(row) for row in ("a", None, "b", "c", "b")] == [True, False, True, False, False]
