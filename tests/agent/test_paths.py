"""Rules over the path string: what may be named, what may be written, and what the model hears otherwise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.agent.paths import check_writable, components, is_visible, same_but_for_case
from memoryd.agent.refusals import RefusalKind, RefusedError


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("", ()),
        ("MEMORY.md", ("MEMORY.md",)),
        ("rollout_summaries/a b-é.md", ("rollout_summaries", "a b-é.md")),
        ("skills/x/scripts/run.sh", ("skills", "x", "scripts", "run.sh")),
    ],
)
def test_an_honest_path_is_split_into_its_components(path: str, parts: tuple[str, ...]) -> None:
    assert components(path) == parts


def test_a_folder_may_be_named_as_list_files_writes_it() -> None:
    assert components("skills/", folder=True) == ("skills",)


@pytest.mark.parametrize(
    ("path", "kind", "said"),
    [
        ("/etc/passwd", RefusalKind.BAD_PATH, "absolute"),
        ("//etc/passwd", RefusalKind.BAD_PATH, "absolute"),
        ("/", RefusalKind.BAD_PATH, "absolute"),
        ("../secret", RefusalKind.BAD_PATH, "nothing above"),
        ("skills/../../secret", RefusalKind.BAD_PATH, "nothing above"),
        ("..", RefusalKind.BAD_PATH, "nothing above"),
        ("skills//x", RefusalKind.BAD_PATH, "empty component"),
        ("skills/", RefusalKind.BAD_PATH, "empty component"),
        (".", RefusalKind.BAD_PATH, 'itself is ""'),
        ("./MEMORY.md", RefusalKind.BAD_PATH, 'itself is ""'),
        (".git/hooks/post-commit", RefusalKind.HIDDEN, "hidden"),
        ("skills/x/.env", RefusalKind.HIDDEN, "hidden"),
        ("...", RefusalKind.HIDDEN, "hidden"),
        ("skills\\x", RefusalKind.BAD_PATH, "backslashes"),
        ("a\0b", RefusalKind.BAD_PATH, "control"),
        ("a\nb", RefusalKind.BAD_PATH, "control"),
        ("MEMORY\u200b.md", RefusalKind.BAD_PATH, "invisible"),
        ("a\u202emd.exe", RefusalKind.BAD_PATH, "invisible"),
        ("a\udc80", RefusalKind.BAD_PATH, "control"),
        ("\u2024\u2024/x", RefusalKind.BAD_PATH, "nothing above"),
        ("\u2024git/config", RefusalKind.HIDDEN, "hidden"),
        ("skills\uff0fx", RefusalKind.BAD_PATH, "look-alike"),
        ("skills\uff3cx", RefusalKind.BAD_PATH, "look-alike"),
        ("x" * 513, RefusalKind.BAD_PATH, "longer than 512"),
        ("é" * 128, RefusalKind.BAD_PATH, "longer than 255 bytes"),
        ("/".join("abcdefghi"), RefusalKind.BAD_PATH, "more than 8"),
    ],
)
def test_a_path_that_could_lead_elsewhere_is_refused_with_its_reason(path: str, kind: RefusalKind, said: str) -> None:
    with pytest.raises(RefusedError) as refused:
        components(path)
    assert refused.value.kind is kind
    assert said in refused.value.text
    assert refused.value.answer.startswith("error: ")


@pytest.mark.parametrize(
    "path", ["MEMORY.md", "memory_summary.md", "skills/a-1/SKILL.md", "skills/a/scripts/x.py", "skills/a/b/c/d.txt"]
)
def test_the_two_files_and_the_skills_may_be_written(path: str) -> None:
    check_writable(components(path))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "the folder itself"),
        ("raw_memories.md", "only MEMORY.md, memory_summary.md and skills/"),
        ("rollout_summaries/new.md", "only MEMORY.md"),
        ("extensions/ad_hoc/notes/x.md", "only MEMORY.md"),
        ("MEMORY.md/x", "only MEMORY.md"),
        ("memory.md", 'did you mean "MEMORY.md"?'),
        ("Memory_Summary.md", 'did you mean "memory_summary.md"?'),
        ("Skills/x/SKILL.md", 'did you mean "skills/x/SKILL.md"?'),
        ("ＭEMORY.md", 'did you mean "MEMORY.md"?'),
        ("skills", "skills/<name>/SKILL.md"),
        ("skills/SKILL.md", "skills/<name>/SKILL.md"),
        ("skills/Release/SKILL.md", "lower-case"),
        ("skills/-x/SKILL.md", "lower-case"),
        (f"skills/{'a' * 65}/SKILL.md", "lower-case"),
        ("skills/a/skill.md", "must be written SKILL.md"),
        ("skills/a/b c.md", "no name for a file"),
        ("skills/a/é.md", "no name for a file"),
        ("skills/a/-rf", "no name for a file"),
        (f"skills/a/{'b' * 101}", "no name for a file"),
        ("skills/a/b/c/d/e.md", "at most 3 levels"),
    ],
)
def test_anything_else_is_not_writable_and_the_model_hears_what_is(path: str, said: str) -> None:
    with pytest.raises(RefusedError) as refused:
        check_writable(components(path))
    assert said in refused.value.text


def test_a_name_on_disk_that_could_not_be_asked_for_is_invisible() -> None:
    names = ["MEMORY.md", ".git", "a\udcff", "new\nline", "a b"]
    assert [name for name in names if is_visible(name)] == ["MEMORY.md", "a b"]


def test_a_near_name_is_found_only_among_visible_ones() -> None:
    assert same_but_for_case("memory.MD", ["MEMORY.md", "other"]) == "MEMORY.md"
    assert same_but_for_case("other", ["MEMORY.md"]) is None


@given(st.text())
def test_whatever_is_accepted_holds_no_component_that_climbs_or_hides(path: str) -> None:
    try:
        parts = components(path)
    except RefusedError:
        return
    assert "/".join(parts) == path
    assert all(part and not part.startswith(".") and "\0" not in part for part in parts)
