"""`memoryd search`: what is found is told with its place and its ground; of what is not, what helps is said."""

import pytest

from memoryd.control.memory_tools import rows_of
from memoryd.recall.search import Hit, Kind
from tests.control.conftest import THREAD, Shell


@pytest.fixture
def remembering(shell: Shell) -> Shell:
    shell.record()
    assert shell("sync", "--now").code == 0
    return shell


def test_a_hit_is_told_with_place_ground_scope_day_and_session(remembering: Shell) -> None:
    said = remembering("search", "which", "indentation:", "tabs", "in", "a", "Makefile?")

    assert said.code == 0
    first = said.out.splitlines()[0]
    path, _, facts = first.partition("  ")
    name, _, line = path.rpartition(":")
    row = (remembering.home.memories / name).read_text().split("\n")[int(line) - 1]
    assert "tabs" in row
    assert facts.startswith("bullet, [stated], ")
    assert f"from {THREAD}" in said.out


def test_of_many_sessions_behind_a_hit_the_last_are_named() -> None:
    names = tuple(f"session-{number}" for number in range(7))
    hit = Hit("MEMORY.md", 3, 3, Kind.BULLET, "global", "stated", None, "tabs", "tabs", names, None, 1.0)
    assert list(rows_of([hit], str))[-1] == "  from session-2, session-3, session-4, session-5, session-6, and 2 more"


def test_json_holds_the_same_and_more(remembering: Shell) -> None:
    told = remembering("search", "tabs Makefile", "--limit", "1", "--json")

    assert (told.code, told.json["query"], told.json["why_not"]) == (0, "tabs Makefile", None)
    (hit,) = told.json["hits"]
    assert (hit["path"], hit["kind"], hit["mark"], hit["threads"]) == ("MEMORY.md", "bullet", "stated", [THREAD])
    assert "tabs" in hit["text"]


def test_filters_reach_the_search(remembering: Shell) -> None:
    def kinds(*options: str) -> set[str]:
        return {hit["kind"] for hit in remembering("search", "tabs", *options, "--json").json["hits"]}

    assert kinds("--kind", "summary", "--kind", "task") <= {"summary", "task"}
    assert kinds("--mark", "stated") == {"bullet"}
    assert kinds("--mark", "verified", "--mark", "ad-hoc note") == set()
    assert kinds("--since", "2001-01-01") >= {"bullet"}
    assert kinds("--max-age", "3000d") >= {"bullet"}
    assert kinds("--scope", "project", "--cwd", "/nowhere") <= {"bullet", "skill"}


def test_literal_texts_are_found_by_line(remembering: Shell) -> None:
    said = remembering("search", "--all", "tabs", "Makefile")

    assert said.code == 0
    assert said.out.startswith("MEMORY.md:")
    assert remembering("search", "--any", "no such words", "nor these").code == 1
    (match, *_) = remembering("search", "--near", "3", "tabs", "--json").json["matches"]
    assert "tabs" in "\n".join(match["shown"])
    assert remembering("search", "--any", "tabs", "--path", "../..").code == 2
    assert remembering("search", "--any", "tabs", "--cursor", "nowhere").code == 2


def test_nothing_found_is_said_with_what_else_to_try_and_ends_with_1(remembering: Shell) -> None:
    said = remembering("search", "zeppelin")

    assert said.code == 1
    assert "try other words" in said.out
    assert remembering("search", "zeppelin", "--json").json["hits"] == []


def test_before_any_memory_that_is_what_is_said(shell: Shell) -> None:
    said = shell("search", "tabs")

    assert said.code == 1
    assert "there is no memory yet" in said.out


def test_a_folder_that_is_not_indexed_yet_is_told_from_one_that_holds_nothing(shell: Shell) -> None:
    shell("sync", "--now")
    said = shell("search", "tabs")

    assert said.code == 1
    assert "nothing is indexed yet" in said.out


@pytest.mark.parametrize(
    "words",
    [
        ("???",),
        ("tabs", "--kind", "poem"),
        ("tabs", "--mark", "sure"),
        ("tabs", "--scope", "moon"),
        ("tabs", "--max-age", "soon"),
        ("tabs", "--max-age", "0s"),
        ("tabs", "--since", "yesterday"),
        ("tabs", "--since", "9999-01-01"),
        ("tabs", "--since", "2026-01-01", "--max-age", "1d"),
        ("tabs", "--any", "--all"),
        ("tabs", "--limit", "0"),
    ],
    ids=" ".join,
)
def test_wrong_use_ends_with_2(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell("search", *words).code == 2


def test_a_daemon_is_not_needed_and_the_ledger_is_not_written(remembering: Shell) -> None:
    before = remembering.home.ledger_file.read_bytes()

    assert remembering("search", "tabs").code == 0
    assert remembering.home.ledger_file.read_bytes() == before
