import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.workspace.handbook import (
    Bullet,
    Handbook,
    Mark,
    Section,
    SummaryFile,
    Task,
    TaskGroup,
    parse_bullet,
    parse_handbook,
    render_handbook,
)
from tests.workspace.factories import MEMORY


def problems(text: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.message) for problem in parse_handbook(text).problems]


def problems_of(old: str, new: str) -> list[str]:
    """Return what a change of the good handbook brings."""
    assert old in MEMORY
    return [message for _, message in problems(MEMORY.replace(old, new, 1))]


def test_a_good_handbook_has_no_problem_and_its_values() -> None:
    handbook = parse_handbook("> No model wrote this.\n\n" + MEMORY)
    assert handbook.problems == ()
    assert handbook.preamble == ("> No model wrote this.",)
    (group,) = handbook.groups
    assert (group.title, group.cwd, group.reuse_rule, group.line) == ("shop", "/home/dev/shop", "same repository", 3)
    assert group.scope == "the shop's backend; not its mobile app"
    first, second = group.tasks
    assert (first.number, first.title) == (1, "speed up the checkout, done")
    assert first.keywords == ("checkout", "postgres", "EXPLAIN ANALYZE")
    assert first.summary_files[0].path == "rollout_summaries/a.md"
    assert first.summary_files[0].note.endswith("thread_id=t, fast")
    assert second.summary_files[0].note == ""
    assert group.sections[Section.PREFERENCES] == (Bullet("use tabs, never spaces", (1, 2), Mark.STATED, line=29),)
    assert group.sections[Section.KNOWLEDGE][2] == Bullet("deploys happen on Fridays", ad_hoc=True, line=35)
    assert Section.FAILURES not in group.sections


def test_rendering_is_the_published_format_byte_for_byte() -> None:
    group = TaskGroup(
        title="shop",
        scope="s",
        cwd=None,
        reuse_rule="r",
        tasks=(Task(1, "t, done", (SummaryFile("rollout_summaries/a.md", "cwd=/a"),), ("x", "y")),),
        sections={
            Section.FAILURES: (Bullet("f", (1,), Mark.VERIFIED), Bullet("n", ad_hoc=True)),
            Section.PREFERENCES: (Bullet("p", (1,), Mark.STATED),),
        },
    )
    assert render_handbook(Handbook((group,), ("> preamble",))) == (
        "> preamble\n\n# Task Group: shop\nscope: s\napplies_to: cwd=any; reuse_rule=r\n\n## Task 1: t, done\n\n"
        "### rollout_summary_files\n\n- rollout_summaries/a.md (cwd=/a)\n\n### keywords\n\n- x, y\n\n"
        "## User preferences\n\n- p [Task 1] [stated]\n\n## Failures and how to do differently\n\n"
        "- f [Task 1] [verified]\n- n [ad-hoc note]\n"
    )


def test_the_good_handbook_survives_a_round_trip() -> None:
    assert render_handbook(parse_handbook(MEMORY)) == MEMORY
    assert render_handbook(Handbook()) == "\n"
    assert parse_handbook("\n") == Handbook()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# Task Group: shop", "Hello\n# Task Group: shop", "text before the first"),
        ("# Task Group: shop", "# Notes\n# Task Group: shop", "a heading before the first"),
        ("# Task Group: shop", "# Task Group: <cwd / project / workflow family>", "without a title of its own"),
        ("# Task Group: shop", "# Task Group:", "without a title of its own"),
        ("scope: the shop's backend; not its mobile app\n", "", "without its `scope:` line"),
        ("scope: the", "Scope of work: the\nscope: the", "neither `scope:` nor `applies_to:`"),
        ("applies_to: cwd=/home/dev/shop; reuse_rule=same repository\n", "", "without its `applies_to:"),
        ("; reuse_rule=same repository", "", "without its `applies_to:"),
        ("## Task 2", "## Task 3", "task number 3 where 2 is due"),
        ("1: speed up the checkout, done", "1: <description, outcome>", "a task without a title of its own"),
        ("## Task 2: move to pytest, done\n", "## Task 2: move to pytest, done\nprose\n", "a line of a task outside"),
        ("- rollout_summaries/b.md", "- b.md", "a row that is not `- rollout_summaries/"),
        ("- rollout_summaries/b.md\n", "- rollout_summaries/b.md\nrollout\n", "a row that does not begin with `- `"),
        ("### keywords\n\n- pytest\n", "### keywords\n", "a task without keywords"),
        ("### keywords\n\n- pytest", "### keywords\n\n- pytest\n\n### keywords", "a second `### keywords`"),
        ("## User preferences", "## User wishes\n## User preferences", "an unknown heading `## User wishes`"),
        ("## Reusable knowledge", "## User preferences", "a second `## User preferences`"),
        ("[Task 1][Task 2] [stated]", "", "does not end with its tasks and one mark"),
        ("[Task 1][Task 2] [stated]", "[stated]", "does not end with its tasks and one mark"),
        ("[Task 1][Task 2] [stated]", "[Task 1]", "does not end with its tasks and one mark"),
        ("[Task 1][Task 2] [stated]", "[Task 1][stated][verified]", "does not end with its tasks and one mark"),
        ("[Task 1][Task 2]", "[Task 1][Task 9]", "cites [Task 9], which its group does not have"),
        ("- use tabs", "* use tabs", "does not begin with `- `"),
        ("- use tabs", "1. use tabs", "does not begin with `- `"),
        ("- use tabs", "no bullet\n- use tabs", "no `- ` bullet"),
        ("use tabs", "use **tabs**", "bold text"),
        ("- use tabs, never spaces", "- ", "a bullet without a text"),
    ],
)  # fmt: skip
def test_what_does_not_follow_the_structure_is_named(old: str, new: str, message: str) -> None:
    assert any(message in problem for problem in problems_of(old, new))


def test_a_task_below_the_consolidated_sections_is_named() -> None:
    found = problems(MEMORY + "\n## Task 3: late, done\n\n### rollout_summary_files\n- rollout_summaries/a.md\n")
    assert [message.split(";")[0] for _, message in found] == [
        "a task below the consolidated sections",
        "a task without keywords under `### keywords`",
    ]


def test_a_part_of_a_task_below_a_section_is_named() -> None:
    assert any("belongs to a task" in message for _, message in problems(MEMORY + "\n### keywords\n- x\n"))


def test_problems_carry_their_line() -> None:
    assert problems(MEMORY.replace("[Task 1][Task 2] [stated]", "[Task 7] [stated]"))[0][0] == 27


def test_a_group_may_do_without_tasks_only_when_all_of_it_comes_from_notes() -> None:
    group = "# Task Group: g\nscope: s\napplies_to: cwd=any; reuse_rule=r\n\n## Reusable knowledge\n"
    assert problems(group + "- a [ad-hoc note]\n") == []
    assert "which only notes can do without" in problems(group)[0][1]
    assert len(problems(group + "- a [ad-hoc note]\n- b [Task 1] [stated]\n")) == 2


@pytest.mark.parametrize("cwd", ["any", "*", "ANY", "global", ""])
def test_a_group_for_any_directory_has_no_cwd(cwd: str) -> None:
    assert parse_handbook(f"# Task Group: g\napplies_to: cwd={cwd}; reuse_rule=r\n").groups[0].cwd is None


def test_glob_patterns_code_and_keyword_arguments_are_not_bold() -> None:
    for text in ("src/**/a.py and b/**/c.py", "`**x**`", "f(**a, **b)", "2 ** 3 ** 4", "**"):
        assert problems(MEMORY.replace("use tabs", text)) == []


def test_a_bullet_may_go_on_below_and_may_be_indented() -> None:
    handbook = parse_handbook(MEMORY.replace("- use tabs, never", "  - use tabs,\n    never"))
    assert handbook.problems == ()
    assert handbook.groups[0].sections[Section.PREFERENCES][0].text == "use tabs, never spaces"


def test_line_ends_of_other_systems_are_read() -> None:
    handbook = parse_handbook(MEMORY.replace("\n", "\r\n"))
    assert handbook == parse_handbook(MEMORY)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a [Task 1]  [Task 2] [inferred]", Bullet("a", (1, 2), Mark.INFERRED)),
        ("a [task 2][Task 2][STATED]", Bullet("a", (2,), Mark.STATED)),
        ("a[0] [Task 1] [verified]", Bullet("a[0]", (1,), Mark.VERIFIED)),
        ("a [verified]", Bullet("a", (), Mark.VERIFIED)),
        ("a [Task 3]", Bullet("a", (3,), None)),
        ("see [docs]", Bullet("see [docs]")),
        ("[Task 1] [stated]", Bullet("", (1,), Mark.STATED)),
        ("x [ad-hoc note]", Bullet("x", ad_hoc=True)),
        ("", Bullet("")),
        ("]", Bullet("]")),
    ],
)
def test_a_statement_is_told_from_what_it_rests_on(text: str, expected: Bullet) -> None:
    assert parse_bullet(text) == expected


ODD = (
    *("# Task Group:", "## Task 1:", "## Task 99999999999: x", "### keywords", "- ", "  more", "* x", "> p", "##"),
    *("- [Task 1] [stated]", "## User preferences", "\x00", "applies_to: cwd", "- rollout_summaries/x.md ("),
)
PIECES = st.sampled_from([*MEMORY.split("\n"), *ODD])


@given(st.one_of(st.text(), st.lists(PIECES, max_size=30).map("\n".join)))
def test_parsing_never_raises_and_every_problem_has_a_line_of_the_text(text: str) -> None:
    handbook = parse_handbook(text)
    assert all(1 <= problem.line <= text.count("\n") + 1 for problem in handbook.problems)
    assert parse_handbook(render_handbook(handbook)) is not None


WORDS = st.text("abc é:;()", min_size=1, max_size=12).map(lambda text: "w" + " ".join(text.split()) + "w")
BULLETS = st.builds(Bullet, WORDS, st.just((1,)), st.sampled_from(Mark)) | st.builds(
    Bullet, WORDS, ad_hoc=st.just(True)
)
GROUPS = st.builds(
    TaskGroup,
    title=WORDS,
    scope=WORDS,
    cwd=st.none() | WORDS.map(lambda word: "/" + word.replace(";", "")),
    reuse_rule=WORDS,
    tasks=st.builds(
        Task,
        st.just(1),
        WORDS,
        st.just((SummaryFile("rollout_summaries/a.md", "cwd=/a"),)),
        st.lists(WORDS, min_size=1, max_size=3).map(tuple),
    ).map(lambda task: (task,)),
    sections=st.dictionaries(st.sampled_from(Section), st.lists(BULLETS, min_size=1, max_size=3).map(tuple)),
)


@given(st.lists(GROUPS, max_size=3))
def test_what_is_rendered_is_parsed_back_without_a_problem(groups: list[TaskGroup]) -> None:
    text = render_handbook(Handbook(tuple(groups)))
    handbook = parse_handbook(text)
    assert handbook.problems == ()
    assert render_handbook(handbook) == text
    assert [(group.title, group.cwd) for group in handbook.groups] == [(group.title, group.cwd) for group in groups]


def test_a_directory_may_have_any_name() -> None:
    """What a directory is called must not be taken for the rule that follows it."""
    text = "# Task Group: g\nscope: s\napplies_to: cwd=/home/x; reuse_rule=evil; reuse_rule=r\n"
    (group,) = parse_handbook(text).groups
    assert (group.cwd, group.reuse_rule) == ("/home/x; reuse_rule=evil", "r")
