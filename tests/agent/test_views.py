"""What list, read and search answer: exact text, bounds, and the word that something was cut."""

from pathlib import Path

import pytest

from memoryd.agent import views
from memoryd.agent.files import Folder
from memoryd.agent.refusals import RefusalKind, RefusedError
from memoryd.agent.tools import ListFiles, ReadFile, SearchFiles
from memoryd.agent.views import READ_BYTES, look
from tests.agent.factories import a_folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return a_folder(tmp_path)


@pytest.fixture
def folder(root: Path) -> Folder:
    return Folder.at(root)


def kind_of(folder: Folder, request: ListFiles | ReadFile | SearchFiles) -> RefusalKind:
    with pytest.raises(RefusedError) as refused:
        look(folder, request)
    return refused.value.kind


def test_list_names_one_path_a_line_relative_to_the_memory_folder(folder: Folder) -> None:
    assert look(folder, ListFiles("")) == "MEMORY.md\nraw_memories.md\nrollout_summaries/\nskills/"
    assert look(folder, ListFiles("rollout_summaries/")) == "rollout_summaries/2026-one.md"
    assert look(folder, ListFiles("skills")) == "skills/release/"


def test_an_empty_folder_says_so(folder: Folder, root: Path) -> None:
    (root / "extensions").mkdir()
    assert look(folder, ListFiles("extensions")) == "[empty folder]"


def test_a_long_list_is_bounded_and_says_so(folder: Folder, root: Path) -> None:
    (root / "many").mkdir()
    for number in range(views.MAX_ENTRIES + 1):
        (root / "many" / f"{number:05}").touch()
    lines = look(folder, ListFiles("many")).split("\n")
    assert lines[views.MAX_ENTRIES - 1] == f"many/{views.MAX_ENTRIES - 1:05}"
    assert lines[views.MAX_ENTRIES :] == ["[2000 of 2001 entries shown]"]


def test_a_short_file_is_read_as_it_is(folder: Folder) -> None:
    assert look(folder, ReadFile("raw_memories.md", 1, 2000)) == "# Raw Memories\n\nrun `make test-unit` first"


def test_a_range_says_where_to_go_on(folder: Folder, root: Path) -> None:
    (root / "MEMORY.md").write_text("one\ntwo\nthree\nfour\n")
    assert look(folder, ReadFile("MEMORY.md", 2, 2)) == "two\nthree\n[... truncated: continue with line_offset=4]"
    assert look(folder, ReadFile("MEMORY.md", 4, 2)) == "four"


def test_a_read_past_the_end_says_how_long_the_file_is(folder: Folder) -> None:
    with pytest.raises(RefusedError, match="line_offset 4 is past the end: the file has 3 lines") as refused:
        look(folder, ReadFile("raw_memories.md", 4, 1))
    assert refused.value.kind is RefusalKind.PAST_END


def test_an_empty_file_says_so(folder: Folder, root: Path) -> None:
    (root / "MEMORY.md").write_text("")
    assert look(folder, ReadFile("MEMORY.md", 1, 10)) == "[empty file]"


def test_a_long_file_is_cut_at_whole_lines_and_can_be_read_to_its_end(folder: Folder, root: Path) -> None:
    lines = [f"{number:06} " + "é" * 100 for number in range(2000)]
    (root / "long.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    seen: list[str] = []
    while len(seen) < len(lines):
        answer = look(folder, ReadFile("long.md", len(seen) + 1, 10_000))
        assert len(answer.encode()) <= READ_BYTES + 100
        body, _, note = answer.rpartition("\n[")
        shown = (body if note.endswith("]") else answer).split("\n")
        seen += shown
    assert seen == lines


def test_a_line_that_alone_is_too_long_is_cut_and_said(folder: Folder, root: Path) -> None:
    (root / "long.md").write_text("x" * (READ_BYTES + 5) + "\nnext\n")
    answer = look(folder, ReadFile("long.md", 1, 10))
    assert answer == (
        "x" * READ_BYTES
        + "\n[line 1 is cut: it is longer than 80000 bytes]\n[... truncated: continue with line_offset=2]"
    )
    assert look(folder, ReadFile("long.md", 2, 10)) == "next"


def test_other_line_separators_do_not_change_line_numbers(folder: Folder, root: Path) -> None:
    (root / "MEMORY.md").write_bytes("a\u2028b\x0cc\r\nd\n".encode())
    assert look(folder, ReadFile("MEMORY.md", 2, 1)) == "d"


def test_what_is_no_text_is_not_read(folder: Folder, root: Path) -> None:
    (root / "image.png").write_bytes(b"\x89PNG\xff")
    assert kind_of(folder, ReadFile("image.png", 1, 1)) is RefusalKind.NOT_TEXT
    assert kind_of(folder, SearchFiles(("PNG",), "image.png")) is RefusalKind.NOT_TEXT
    assert "image" not in look(folder, SearchFiles(("PNG",), ""))


def test_search_finds_any_query_ignoring_case_sorted_by_path_then_line(folder: Folder) -> None:
    assert look(folder, SearchFiles(("MAKE", "scope"), "")) == (
        "MEMORY.md:2: scope: all\n"
        "raw_memories.md:3: run `make test-unit` first\n"
        "rollout_summaries/2026-one.md:4: Make it so"
    )


def test_search_also_compares_letters_and_digits_only(folder: Folder) -> None:
    assert look(folder, SearchFiles(("make TEST unit",), "")) == "raw_memories.md:3: run `make test-unit` first"
    assert look(folder, SearchFiles(("-s-o",), "")) == "[no match]"


def test_search_stays_below_the_path_it_is_given(folder: Folder) -> None:
    assert look(folder, SearchFiles(("make",), "rollout_summaries/")) == "rollout_summaries/2026-one.md:4: Make it so"
    assert look(folder, SearchFiles(("make",), "raw_memories.md")) == "raw_memories.md:3: run `make test-unit` first"
    assert kind_of(folder, SearchFiles(("make",), "none")) is RefusalKind.NOT_FOUND


def test_search_sees_no_hidden_file(folder: Folder) -> None:
    assert look(folder, SearchFiles(("[core]",), "")) == "[no match]"


def test_search_shows_at_most_200_lines_and_says_so(folder: Folder, root: Path) -> None:
    (root / "many.md").write_text("needle\n" * 201)
    lines = look(folder, SearchFiles(("needle",), "")).split("\n")
    assert lines[199] == "many.md:200: needle"
    assert lines[200:] == ["[the first 200 matches shown: search for something narrower, or below a narrower path]"]
    (root / "many.md").write_text("needle\n" * 200)
    assert look(folder, SearchFiles(("needle",), "")).count("\n") == 199


def test_search_shortens_a_long_line(folder: Folder, root: Path) -> None:
    (root / "long.md").write_text("needle " + "x" * 10_000)
    answer = look(folder, SearchFiles(("needle",), "long.md"))
    assert answer.endswith("x [line cut]")
    assert len(answer) < 700


def test_search_stops_at_a_bound_of_bytes_and_says_so(folder: Folder, root: Path) -> None:
    for number in range(5):
        with (root / f"huge{number}.md").open("wb") as file:
            file.write(b"needle\n")
            file.truncate(15 << 20)
    answer = look(folder, SearchFiles(("needle",), ""))
    assert "huge0.md:1: needle" in answer
    assert "[too much to search: stopped before huge4.md" in answer
