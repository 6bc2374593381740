"""The read tools, case by case: offsets, windows, cursors, context, symlinks, hidden names."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.agent.literal import Literal, Mode
from memoryd.errors import StorageError, UsageError
from memoryd.recall.reading import PAGE_BYTES, Page, list_folder, read_lines, rendered, search_literally
from memoryd.redact import Redactor
from tests.agent.factories import a_folder

KEY = "sk-proj-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7" * 3
PEM = (
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nAgEAAoIBAQC7VJTUt9Us8cKj\n-----END PRIVATE KEY-----"
)


@pytest.fixture
def memories(tmp_path: Path) -> Path:
    return a_folder(tmp_path)


def clean(text: str) -> str:
    return Redactor().clean(text)


def read(memories: Path, path: str, line_offset: int = 1, max_lines: int = 100) -> str:
    return read_lines(memories, path, line_offset=line_offset, max_lines=max_lines, clean=clean)


def search(
    memories: Path, wanted: Literal, *, path: str = "", context: int = 0, cursor: str = "", limit: int = 200
) -> Page:
    return search_literally(memories, wanted, path=path, context=context, cursor=cursor, limit=limit, clean=clean)


def found(memories: Path, *queries: str, mode: Mode = Mode.ANY, within: int = 1, **how: bool) -> list[str]:
    page = search(memories, Literal(queries, mode, within, **{"normalised": False, **how}))
    return [f"{each.path}:{each.line}-{each.end_line}" for each in page.matches]


# list


def test_a_list_names_paths_from_the_root_and_no_hidden_one(memories: Path) -> None:
    assert list_folder(memories, "") == "MEMORY.md\nraw_memories.md\nrollout_summaries/\nskills/"
    assert list_folder(memories, "skills/") == "skills/release/"


def test_a_list_shows_no_symlink(memories: Path) -> None:
    (memories / "link.md").symlink_to("MEMORY.md")
    (memories / "folder").symlink_to("skills")
    assert list_folder(memories, "") == "MEMORY.md\nraw_memories.md\nrollout_summaries/\nskills/"


# read


def test_lines_are_read_with_the_numbers_by_which_they_are_cited(memories: Path) -> None:
    assert read(memories, "MEMORY.md") == "1\t# Task Group: one\n2\tscope: all"


def test_reading_begins_at_a_one_based_line(memories: Path) -> None:
    assert read(memories, "raw_memories.md", 3) == "3\trun `make test-unit` first"
    assert read(memories, "raw_memories.md", 1, 1) == "1\t# Raw Memories\n[... truncated: continue with line_offset=2]"
    with pytest.raises(UsageError, match="line_offset 4 is past the end: the file has 3 lines"):
        read(memories, "raw_memories.md", 4)


def test_reading_is_cut_at_20000_tokens_and_goes_on_where_it_says(memories: Path) -> None:
    lines = [f"{number} " + "é" * 300 for number in range(1, 1001)]
    (memories / "MEMORY.md").write_text("\n".join(lines) + "\n")
    seen: list[str] = []
    while len(seen) < len(lines):
        answer = read(memories, "MEMORY.md", len(seen) + 1, 100_000)
        assert len(answer.encode()) <= PAGE_BYTES + 60
        body, _, note = answer.rpartition("\n[")
        seen += [row.partition("\t")[2] for row in (body if note.endswith("]") else answer).split("\n")]
    assert seen == lines


def test_what_is_read_holds_no_secret_and_keeps_its_line_numbers(memories: Path) -> None:
    (memories / "MEMORY.md").write_text(f"one\nkey {KEY}\n{PEM}\nseven\n")
    answer = read(memories, "MEMORY.md")
    assert KEY not in answer
    assert "MIIE" not in answer
    assert answer.split("\n")[0] == "1\tone"
    assert answer.split("\n")[-1] == "7\tseven"
    assert read(memories, "MEMORY.md", 7) == "7\tseven"


def test_what_a_crash_or_a_person_left_otherwise_than_as_text_is_refused(memories: Path) -> None:
    (memories / "picture.md").write_bytes(b"\x89PNG\xff")
    with pytest.raises(UsageError, match="no UTF-8 text"):
        read(memories, "picture.md")


# what matches


def test_any_query_matches_a_line(memories: Path) -> None:
    assert found(memories, "SCOPE", "raw") == ["MEMORY.md:2-2", "raw_memories.md:1-1"]


def test_all_queries_match_on_the_same_line_only(memories: Path) -> None:
    assert found(memories, "make", "first", mode=Mode.ALL) == ["raw_memories.md:3-3"]
    assert found(memories, "Task", "scope", mode=Mode.ALL) == []


@pytest.mark.parametrize(
    ("within", "expected"),
    [
        (1, []),
        (2, ["MEMORY.md:8-9"]),
        (3, ["MEMORY.md:1-3", "MEMORY.md:8-9"]),
        (6, ["MEMORY.md:1-3", "MEMORY.md:3-8", "MEMORY.md:8-9"]),
    ],
)
def test_all_queries_match_within_so_many_lines_as_the_innermost_windows(
    memories: Path, within: int, expected: list[str]
) -> None:
    (memories / "MEMORY.md").write_text("alpha\n\nbeta\n\n\n\n\nalpha\nbeta\nbeta\n")
    assert found(memories, "alpha", "beta", mode=Mode.NEAR, within=within) == expected


def test_one_line_that_holds_all_is_the_smallest_window(memories: Path) -> None:
    (memories / "MEMORY.md").write_text("alpha\nbeta alpha\nbeta\n")
    assert found(memories, "alpha", "beta", mode=Mode.NEAR, within=3) == ["MEMORY.md:2-2"]


def test_windows_do_not_reach_from_one_file_into_the_next(memories: Path) -> None:
    (memories / "MEMORY.md").write_text("alpha\n")
    (memories / "raw_memories.md").write_text("beta\n")
    assert found(memories, "alpha", "beta", mode=Mode.NEAR, within=50) == []


def test_letter_case_counts_only_when_asked_for(memories: Path) -> None:
    assert found(memories, "make") == ["raw_memories.md:3-3", "rollout_summaries/2026-one.md:4-4"]
    assert found(memories, "make", case_sensitive=True) == ["raw_memories.md:3-3"]


def test_normalised_queries_match_letters_and_digits_alone(memories: Path) -> None:
    assert found(memories, "Make_Test unit") == []
    assert found(memories, "Make_Test unit", normalised=True) == ["raw_memories.md:3-3"]
    assert found(memories, "Make_Test unit", normalised=True, case_sensitive=True) == []
    assert found(memories, "make_test.unit", normalised=True, case_sensitive=True) == ["raw_memories.md:3-3"]
    assert found(memories, "-s-o", normalised=True) == []


# where, in which order, how much


def test_a_search_stays_below_its_path(memories: Path) -> None:
    wanted = Literal(("make",))
    assert [each.path for each in search(memories, wanted, path="rollout_summaries").matches] == [
        "rollout_summaries/2026-one.md"
    ]
    assert [each.path for each in search(memories, wanted, path="raw_memories.md").matches] == ["raw_memories.md"]
    with pytest.raises(UsageError, match="does not exist"):
        search(memories, wanted, path="nowhere")


def test_context_is_told_from_matches_and_gaps_are_marked(memories: Path) -> None:
    (memories / "MEMORY.md").write_text("a\nneedle 1\nb\nneedle 2\nc\nd\ne\nneedle 3\n")
    assert rendered(search(memories, Literal(("needle",)), context=1)) == (
        "MEMORY.md-1- a\nMEMORY.md:2: needle 1\nMEMORY.md-3- b\nMEMORY.md:4: needle 2\nMEMORY.md-5- c\n"
        "--\nMEMORY.md-7- e\nMEMORY.md:8: needle 3"
    )


def test_a_window_is_shown_whole(memories: Path) -> None:
    (memories / "MEMORY.md").write_text("alpha\nbetween\nbeta\nafter\n")
    page = search(memories, Literal(("alpha", "beta"), Mode.NEAR, 3))
    assert rendered(page) == "MEMORY.md:1: alpha\nMEMORY.md:2: between\nMEMORY.md:3: beta"


def test_nothing_found_is_said(memories: Path) -> None:
    assert rendered(search(memories, Literal(("absent",)))) == "[no match]"


def test_matches_are_sorted_by_path_then_line(memories: Path) -> None:
    for name in ("b.md", "a-1.md", "a/c.md", "a.md"):
        (memories / name).parent.mkdir(exist_ok=True)
        (memories / name).write_text("needle\nneedle\n")
    places = [(each.path, each.line) for each in search(memories, Literal(("needle",))).matches]
    assert places == sorted(places)
    assert len(places) == 8


@pytest.mark.parametrize("limit", [1, 7, 200, 10_000])
def test_a_cursor_goes_on_behind_the_last_match_until_there_are_no_more(memories: Path, limit: int) -> None:
    for name in ("MEMORY.md", "raw_memories.md", "rollout_summaries/2026-one.md"):
        (memories / name).write_text("needle\n" * 100)
    seen: list[tuple[str, int]] = []
    cursor = ""
    while True:
        page = search(memories, Literal(("needle",)), cursor=cursor, limit=limit)
        assert len(page.matches) <= min(limit, 200)
        seen += [(each.path, each.line) for each in page.matches]
        if page.cursor is None:
            break
        assert rendered(page).endswith(f"[more matches: go on with cursor={page.cursor}]")
        cursor = page.cursor
    assert len(seen) == len(set(seen)) == 300
    assert seen == sorted(seen)


def test_a_cursor_holds_when_the_memory_changes_meanwhile(memories: Path) -> None:
    (memories / "MEMORY.md").write_text("needle\n" * 5)
    cursor = search(memories, Literal(("needle",)), limit=3).cursor
    assert cursor == "MEMORY.md:3"
    (memories / "MEMORY.md").write_text("needle\n" * 4)
    (memories / "AAA.md").write_text("needle\n")
    assert [each.line for each in search(memories, Literal(("needle",)), cursor=cursor).matches] == [4]


@pytest.mark.parametrize(
    "cursor", ["x", "MEMORY.md", ":4", "MEMORY.md:", "MEMORY.md:-1", "MEMORY.md:1e3", "a:" + "9" * 40, "a:²"]
)
def test_what_is_no_cursor_is_refused(memories: Path, cursor: str) -> None:
    with pytest.raises(UsageError, match="no cursor"):
        search(memories, Literal(("x",)), cursor=cursor)


def test_a_page_is_bounded_in_bytes_too(memories: Path) -> None:
    (memories / "MEMORY.md").write_text(("needle " + "x" * 500 + "\n") * 200)
    page = search(memories, Literal(("needle",)), context=2)
    assert len(rendered(page).encode()) <= PAGE_BYTES + 100
    assert page.cursor


def test_a_search_neither_shows_a_secret_nor_tells_whether_it_is_there(memories: Path) -> None:
    (memories / "MEMORY.md").write_text(f"the key is {KEY}\n{PEM}\nplain key\n")
    assert KEY not in rendered(search(memories, Literal(("key",))))
    assert rendered(search(memories, Literal((KEY[:20],)))) == "[no match]"
    assert [each.line for each in search(memories, Literal(("plain",))).matches] == [6]


# paths

ATTACKS = [
    "../config.toml",
    "rollout_summaries/../../config.toml",
    "/etc/passwd",
    "//etc/passwd",
    "./MEMORY.md",
    ".git/config",
    "skills/.hidden/SKILL.md",
    "MEMORY.md\0.txt",
    "MEMORY.md\n",
    "skills//release",
    "skills\\release",
    "．．/config.toml",
    "x" * 10_000,
    "a/" * 5_000,
    "~/.ssh/id_ed25519",
    "link.md",
    "folder/config.toml",
    "hard.md",
    "fifo",
    "memory.md",
]
DOORS: list[Callable[[Path, str], object]] = [
    read,
    lambda memories, path: search(memories, Literal(("secret",)), path=path),
    list_folder,
]


@pytest.fixture
def besieged(memories: Path) -> Path:
    secret = memories.parent / "config.toml"
    secret.write_text("secret\n")
    (memories / "link.md").symlink_to(secret)
    (memories / "folder").symlink_to(memories.parent)
    (memories / "hard.md").hardlink_to(secret)
    (memories / "skills" / ".hidden").mkdir()
    (memories / "skills" / ".hidden" / "SKILL.md").write_text("secret\n")
    os.mkfifo(memories / "fifo")
    return memories


@pytest.mark.parametrize("door", DOORS, ids=["read", "search", "list"])
@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: path[:24])
def test_no_path_leads_out_of_the_folder(besieged: Path, door: Callable[[Path, str], object], path: str) -> None:
    with pytest.raises(UsageError):
        door(besieged, path)


def test_what_may_not_be_named_is_not_found_either(besieged: Path) -> None:
    assert rendered(search(besieged, Literal(("secret", "[core]")))) == "[no match]"


def test_without_a_memory_there_is_nothing_to_read_and_a_way_to_one(tmp_path: Path) -> None:
    for door in DOORS:
        with pytest.raises(StorageError, match=r"no memory yet \(`memoryd sync`"):
            door(tmp_path / "none", "MEMORY.md")


def test_a_memory_folder_that_is_a_link_is_not_followed(memories: Path) -> None:
    link = memories.with_name("link")
    link.symlink_to(memories)
    for door in DOORS:
        with pytest.raises(StorageError, match="is a symbolic link"):
            door(link, "MEMORY.md")
