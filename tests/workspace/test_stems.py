import pytest

from memoryd.workspace.stems import is_stem_of, session_stem, stamp_time, stem_of
from tests.workspace.factories import an_output


@pytest.mark.parametrize(
    ("thread_id", "at", "slug", "expected"),
    [
        ("0194f5a6-89ab-7cde-8123-456789abcdef", 0, None, "2025-02-11T15-35-19-jqmb"),
        ("01a226ab-5fe7-707c-80dd-7a6d93907104", 0, "My Slug/Here", "2026-11-29T09-38-15-xR3e-my_slug_here"),
        ("00000000-0000-4000-8000-000000000001", 123, "My Slug/Here", "1970-01-01T00-02-03-0001-my_slug_here"),
        ("not-a-uuid", 123, "___", "1970-01-01T00-02-03-GNP3"),
    ],
)
def test_stems_are_those_of_the_published_vectors(thread_id: str, at: float, slug: str | None, expected: str) -> None:
    assert session_stem(thread_id, at, slug) == expected


@pytest.mark.parametrize(
    ("thread_id", "expected"),
    [
        # the examples of RFC 9562, appendix A: 2022-02-22T19:22:22Z in versions 1, 6 and 7
        ("C232AB00-9414-11EC-B3C8-9F6BDECED846", "2022-02-22T19-22-22"),
        ("1EC9414C-232A-6B00-B3C8-9F6BDECED846", "2022-02-22T19-22-22"),
        ("017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "2022-02-22T19-22-22"),
    ],
)
def test_the_time_of_a_stem_is_that_inside_the_id(thread_id: str, expected: str) -> None:
    assert session_stem(thread_id, 0, None).startswith(expected)


def test_an_id_whose_time_lies_beyond_the_calendar_falls_back_to_the_sessions_time() -> None:
    assert session_stem("ffffffff-ffff-7fff-bfff-ffffffffffff", 123, None).startswith("1970-01-01T00-02-03-")


def test_a_slug_is_cut_at_60_characters_and_loses_trailing_underscores() -> None:
    assert session_stem("x", 0, "A" * 59 + "é" + "b").endswith("-" + "a" * 59)
    assert session_stem("x", 0, "a--ß").endswith("-a")
    assert session_stem("x", 0, "a--b").endswith("-a__b")


def test_the_stem_that_the_ledger_fixed_wins() -> None:
    assert stem_of(an_output(stem="fixed")) == "fixed"
    assert stem_of(an_output("not-a-uuid", stem=None, started_at=123, rollout_slug=None)) == "1970-01-01T00-02-03-GNP3"


def test_a_foreign_stem_is_taken_only_when_it_is_one_and_of_this_session() -> None:
    thread_id = "0194f5a6-89ab-7cde-8123-456789abcdef"
    assert is_stem_of("2025-02-11T15-35-19-jqmb", thread_id)
    assert is_stem_of("2025-02-11T15-35-19-jqmb-my_slug_here", thread_id)
    for stem in (
        "2025-02-11T15-35-19-jqmc-my_slug",
        "2025-02-11T15-35-19-jqmb-../x",
        "jqmb",
        "2025-02-11T15-35-19-jqmb-A",
    ):
        assert not is_stem_of(stem, thread_id)


def test_a_stamp_is_read_as_utc_and_anything_else_is_none() -> None:
    assert stamp_time("1970-01-01T00-02-03") == 123
    assert stamp_time("1970-13-01T00-02-03") is None
