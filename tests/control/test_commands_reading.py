"""`memoryd read`, `list` and literal `search`: what the tools of the same names do, for agents without a server."""

import json

import pytest

from tests.control.conftest import Shell


@pytest.fixture
def memory(shell: Shell) -> Shell:
    folder = shell.home.memories
    (folder / "skills" / "release").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Task Group: shop\nscope: all\n\nUse Tabs.\nrun make test-unit\n")
    (folder / "skills" / "release" / "SKILL.md").write_text("Use tabs, too.\n")
    return shell


def test_read_prints_numbered_lines_and_says_where_to_go_on(memory: Shell) -> None:
    assert memory("read", "MEMORY.md", "--line-offset", "2", "--max-lines", "1").out == (
        "2\tscope: all\n[... truncated: continue with --line-offset 3]\n"
    )
    assert memory("read", "MEMORY.md", "--plain", "--line-offset", "4").out == "Use Tabs.\nrun make test-unit\n"
    assert memory("read", "MEMORY.md", "--line-offset", "4", "--json").json == {
        "path": "MEMORY.md",
        "line_offset": 4,
        "text": "Use Tabs.\nrun make test-unit",
    }


def test_list_prints_what_a_folder_holds(memory: Shell) -> None:
    assert memory("list").out == "MEMORY.md\nskills/\n"
    assert memory("list", "skills", "--json").json == {"path": "skills", "entries": ["skills/release/"]}


def test_a_literal_search_prints_lines_and_none_is_exit_1(memory: Shell) -> None:
    assert (
        memory("search", "--any", "TABS").out == "MEMORY.md:4: Use Tabs.\nskills/release/SKILL.md:1: Use tabs, too.\n"
    )
    assert memory("search", "--any", "Tabs", "--case-sensitive").out == "MEMORY.md:4: Use Tabs.\n"
    assert memory("search", "--all", "use", "too").out == "skills/release/SKILL.md:1: Use tabs, too.\n"
    assert (
        memory("search", "--near", "2", "tabs", "unit").out
        == "MEMORY.md:4: Use Tabs.\nMEMORY.md:5: run make test-unit\n"
    )
    assert memory("search", "--any", "make_test unit", "--normalised").out == "MEMORY.md:5: run make test-unit\n"
    assert memory("search", "--any", "Use Tabs", "--context", "1", "--path", "MEMORY.md").out == (
        "MEMORY.md-3- \nMEMORY.md:4: Use Tabs.\nMEMORY.md-5- run make test-unit\n"
    )
    none = memory("search", "--any", "zebra")
    assert (none.code, none.out) == (1, "[no match]\n")


def test_a_literal_search_goes_on_at_its_cursor(memory: Shell) -> None:
    first = memory("search", "--any", "use", "--limit", "1")
    assert first.out == "MEMORY.md:4: Use Tabs.\n[more matches: go on with --cursor MEMORY.md:4]\n"
    rest = memory("search", "--any", "use", "--cursor", "MEMORY.md:4", "--json").json
    assert [match["path"] for match in rest["matches"]] == ["skills/release/SKILL.md"]
    assert rest["cursor"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("read", "../config.toml"), '".." is not allowed'),
        (("read", "NOTHING.md"), "does not exist"),
        (("read", "MEMORY.md", "--line-offset", "9"), "past the end"),
        (("read", "MEMORY.md", "--line-offset", "0"), "no whole number from 1 on"),
        (("list", "/etc"), "is absolute"),
        (("search", "--any", " "), "none of them blank"),
        (("search", "--any", "x", "--cursor", "x"), "that is no cursor"),
        (("search", "--any", "x", "--path", ".git"), "hidden names"),
    ],
)
def test_what_is_refused_is_one_line_and_exit_2(memory: Shell, words: tuple[str, ...], said: str) -> None:
    refused = memory(*words)
    assert refused.code == 2
    assert said in refused.err
    assert refused.out == ""


def test_a_secret_that_a_person_wrote_down_is_not_printed(memory: Shell) -> None:
    key = "ghp_" + "aB3" * 12
    (memory.home.memories / "MEMORY.md").write_text(f"token {key}\n")
    for words in (("read", "MEMORY.md"), ("search", "--any", "token"), ("read", "MEMORY.md", "--json")):
        assert key not in json.dumps(memory(*words).out)


def test_a_name_in_brackets_is_an_entry_as_well(memory: Shell) -> None:
    (memory.home.memories / "skills" / "[draft]").mkdir(parents=True)
    assert json.loads(memory("list", "skills", "--json").out)["entries"] == ["skills/[draft]/", "skills/release/"]


@pytest.mark.parametrize("words", [("read", "MEMORY.md"), ("list",), ("search", "--any", "tabs")])
def test_before_there_is_a_memory_nothing_is_wrong_with_the_command(shell: Shell, words: tuple[str, ...]) -> None:
    said = shell(*words)
    assert (said.code, said.out) == (1, "")
    assert "there is no memory yet (`memoryd sync` makes it" in said.err
