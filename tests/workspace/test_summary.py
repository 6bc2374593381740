import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.workspace.summary import (
    Day,
    OlderScope,
    Scope,
    Summary,
    Topic,
    index_of,
    parse_summary,
    profile_words,
    render_summary,
    summary_budget,
)
from tests.workspace.factories import SUMMARY


def problems(text: str) -> list[str]:
    return [problem.message for problem in parse_summary(text).problems]


def test_a_good_summary_has_no_problem_and_its_values() -> None:
    summary = parse_summary(SUMMARY + "\n#### /old\n\n- x: y\n  - desc: z\n    and more\n")
    assert summary.problems == ()
    assert (summary.profile, summary.preferences, summary.tips) == (
        ("Works on a shop.",),
        ("tabs",),
        ("run `make check`",),
    )
    (scope,) = summary.scopes
    assert (scope.name, scope.days[0].date) == ("/home/dev/shop", "2025-11-29")
    assert scope.days[0].topics == (Topic("shop", ("checkout", "postgres"), "the backend", "an index helped", line=21),)
    assert summary.older == (OlderScope("/old", (Topic("x", ("y",), "z and more", line=29),), line=27),)


def test_the_good_summary_survives_a_round_trip() -> None:
    assert render_summary(parse_summary(SUMMARY)) == SUMMARY


def test_an_empty_summary_is_rendered_with_all_its_sections() -> None:
    assert render_summary(Summary()) == (
        "v1\n\n## User Profile\n\n## User preferences\n\n## General Tips\n\n## What's in Memory\n\n"
        "### Older Memory Topics\n"
    )
    assert problems(render_summary(Summary())) == []


def test_rendering_is_the_published_format_byte_for_byte() -> None:
    summary = Summary(
        profile=("P.",),
        preferences=("p",),
        tips=("t",),
        scopes=(Scope("/a", (Day("2025-02-02", (Topic("x", ("k", "l"), "d", "n"), Topic("y"))), Day("2025-02-01"))),),
        older=(OlderScope("/b", (Topic("z", ("k",), "d"),)),),
    )
    assert render_summary(summary) == (
        "v1\n\n## User Profile\n\nP.\n\n## User preferences\n\n- p\n\n## General Tips\n\n- t\n\n## What's in Memory\n\n"
        "### /a\n\n#### 2025-02-02\n\n- x: k, l\n  - desc: d\n  - learnings: n\n- y:\n\n#### 2025-02-01\n\n"
        "### Older Memory Topics\n\n#### /b\n\n- z: k\n  - desc: d\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("v1\n", "v1 \n", "the first line is not exactly `v1`"),
        ("v1\n", "v2\n", "the first line is not exactly `v1`"),
        ("v1\n", "v1\nhello\n", "text above the first section"),
        ("## General Tips\n\n- run `make check`\n", "", "no section `## General Tips`"),
        ("## General Tips", "## User preferences", "a second `## User preferences`"),
        ("## User preferences", "## Tips", "an unknown heading `## Tips`"),
        ("- tabs", "tabs", "a line of `## User preferences` that is no `- ` bullet"),
        ("- tabs", "* tabs", "does not begin with `- `"),
        ("- tabs", "- **tabs**", "bold text"),
        ("#### 2025-11-29", "#### today", "no date like"),
        ("#### 2025-11-29", "#### 2025-11-28\n\n#### 2025-11-29", "a day above a later one"),
        ("### /home/dev/shop\n", "", "a day above the first"),
        ("- shop: checkout", "shop\n- shop: checkout", "neither a `- <topic>"),
        ("  - desc: the", "  - what: the", "neither `- desc:` nor `- learnings:`"),
        ("#### 2025-11-29\n", "", "a topic that stands below no day"),
        ("### Older Memory Topics", "### Older Memory Topics\n- x: y", "a topic that stands below no day"),
        ("### Older Memory Topics", "### Older Memory Topics\n### /late", "which comes last"),
    ],
)
def test_what_does_not_follow_the_structure_is_named(old: str, new: str, message: str) -> None:
    assert old in SUMMARY
    assert any(message in problem for problem in problems(SUMMARY.replace(old, new, 1)))


def test_sections_out_of_order_are_named() -> None:
    text = SUMMARY.replace("## User preferences", "## X").replace("## General Tips", "## User preferences")
    assert any("out of its place" in message for message in problems(text.replace("## X", "## General Tips")))


def test_line_1_is_compared_byte_for_byte() -> None:
    assert "the first line is not exactly `v1`" in problems(SUMMARY.replace("\n", "\r\n"))
    assert "the first line is not exactly `v1`" in problems("\ufeff" + SUMMARY)
    assert "the first line is not exactly `v1`" in problems("\n" + SUMMARY)


def test_bullets_may_go_on_below() -> None:
    assert parse_summary(SUMMARY.replace("- tabs", "- tabs,\n  never spaces")).preferences == ("tabs, never spaces",)


def test_the_budget_of_the_file_is_four_times_what_is_injected() -> None:
    assert summary_budget(2500) == 40_000


def test_the_profile_is_counted_in_words() -> None:
    assert profile_words(Summary(profile=("one two", "- three"))) == 4


@pytest.mark.parametrize(
    ("title", "cwd", "found"),
    [
        ("SHOP", None, True),
        ("sho", None, False),
        ("other", "/Home/dev/shop", True),
        ("other", "/home/dev", False),
        ("a: b", None, True),
        ("a", None, True),
        ("old", None, True),
        ("bare", None, True),
        ("x", "/old", True),
    ],
)
def test_a_group_is_reached_by_its_title_or_its_cwd(title: str, cwd: str | None, found: bool) -> None:
    rows = "- a: b: c, d\n- bare:\n"
    text = SUMMARY.replace("- shop:", f"{rows}- shop:") + "\n#### /old\n\n- old: x\n"
    assert index_of(parse_summary(text)).reaches(title=title, cwd=cwd) is found


PIECES = st.sampled_from(
    [*SUMMARY.split("\n"), "#### x", "###", "- ", "  x", "* y", "\x00", "### Older Memory Topics", "#"]
)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=30).map("\n".join)))
def test_parsing_never_raises_and_every_problem_has_a_line_of_the_text(text: str) -> None:
    summary = parse_summary(text)
    assert all(1 <= problem.line <= text.count("\n") + 1 for problem in summary.problems)
    assert render_summary(summary).startswith("v1\n")
