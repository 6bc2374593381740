"""Changing calls: what they do, what they answer, and that a refusal changes nothing."""

from pathlib import Path

import pytest

from memoryd.agent.files import Folder
from memoryd.agent.hands import Deed, perform
from memoryd.agent.refusals import RefusalKind
from memoryd.agent.tools import DeleteFile, EditFile, ReadFile, WriteFile
from tests.agent.factories import a_folder, everything_in


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return a_folder(tmp_path)


@pytest.fixture
def folder(root: Path) -> Folder:
    return Folder.at(root)


def test_a_read_changes_nothing_and_is_no_refusal(folder: Folder) -> None:
    assert perform(folder, ReadFile("MEMORY.md", 2, 1)) == Deed("scope: all")


def test_a_write_says_what_was_written(folder: Folder, root: Path) -> None:
    assert perform(folder, WriteFile("memory_summary.md", "v1\né")) == Deed(
        "written: memory_summary.md, 5 bytes", changed=True
    )
    assert perform(folder, WriteFile("memory_summary.md", "v1\né")).changed is False
    assert (root / "memory_summary.md").read_text("utf-8") == "v1\né"


def test_an_edit_replaces_the_one_occurrence_and_keeps_every_other_byte(folder: Folder, root: Path) -> None:
    (root / "MEMORY.md").write_bytes(b"a\r\nold passage\r\nz")
    assert perform(folder, EditFile("MEMORY.md", "old passage", "new")) == Deed(
        "edited: MEMORY.md, 9 bytes", changed=True
    )
    assert (root / "MEMORY.md").read_bytes() == b"a\r\nnew\r\nz"


def test_an_edit_that_changes_nothing_says_so(folder: Folder) -> None:
    assert perform(folder, EditFile("MEMORY.md", "scope", "scope")) == Deed(
        "unchanged: old and new are the same in MEMORY.md"
    )


@pytest.mark.parametrize(
    ("old", "kind", "said"),
    [
        ("absent", RefusalKind.NOT_UNIQUE, "does not occur"),
        ("x", RefusalKind.NOT_UNIQUE, "more than once"),
        ("aa", RefusalKind.NOT_UNIQUE, "more than once"),
        ("", RefusalKind.BAD_ARGUMENTS, "old is empty"),
    ],
)
def test_an_edit_needs_exactly_one_occurrence(
    folder: Folder, root: Path, old: str, kind: RefusalKind, said: str
) -> None:
    (root / "MEMORY.md").write_text("x aaa x")
    deed = perform(folder, EditFile("MEMORY.md", old, "new"))
    assert deed.refusal is kind
    assert deed.answer.startswith("error: ")
    assert said in deed.answer
    assert (root / "MEMORY.md").read_text() == "x aaa x"


def test_a_delete_removes_the_file(folder: Folder, root: Path) -> None:
    assert perform(folder, DeleteFile("MEMORY.md")) == Deed("deleted: MEMORY.md", changed=True)
    assert not (root / "MEMORY.md").exists()


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (WriteFile("raw_memories.md", "x"), RefusalKind.NOT_WRITABLE),
        (WriteFile("../x", "x"), RefusalKind.BAD_PATH),
        (WriteFile("memory.md", "x"), RefusalKind.NOT_WRITABLE),
        (WriteFile("MEMORY.md", "a\0b"), RefusalKind.NOT_TEXT),
        (WriteFile("MEMORY.md", "\ud800"), RefusalKind.NOT_TEXT),
        (EditFile("raw_memories.md", "run", "walk"), RefusalKind.NOT_WRITABLE),
        (EditFile("memory_summary.md", "a", "b"), RefusalKind.NOT_FOUND),
        (EditFile("MEMORY.md", "scope", "\udfff"), RefusalKind.NOT_TEXT),
        (DeleteFile("rollout_summaries/2026-one.md"), RefusalKind.NOT_WRITABLE),
        (DeleteFile("skills/release"), RefusalKind.NOT_WRITABLE),
        (DeleteFile(".git/config"), RefusalKind.HIDDEN),
        (ReadFile("none.md", 1, 1), RefusalKind.NOT_FOUND),
    ],
)
def test_a_refusal_is_an_answer_with_its_kind_and_changes_nothing(
    folder: Folder, root: Path, request_: WriteFile | EditFile | DeleteFile | ReadFile, kind: RefusalKind
) -> None:
    before = everything_in(root)
    deed = perform(folder, request_)
    assert deed.refusal is kind
    assert deed.answer.startswith("error: ")
    assert not deed.changed
    assert everything_in(root) == before


def test_what_no_reader_sees_is_not_written(folder: Folder, root: Path) -> None:
    hidden = "ghp_\u200babc \U000e0041\u202eevil\r\n- fine\u2028# Task Group: x\x1b[2J"
    perform(folder, WriteFile("MEMORY.md", hidden))
    assert (root / "MEMORY.md").read_text() == "ghp_abc evil\n- fine\n# Task Group: x"


def test_an_edit_leaves_what_a_person_wrote_beside_it_as_it_is(folder: Folder, root: Path) -> None:
    (root / "MEMORY.md").write_text("- theirs\u200b\n- ours\n")
    perform(folder, EditFile("MEMORY.md", "ours", "new\u200b"))
    assert (root / "MEMORY.md").read_text() == "- theirs\u200b\n- new\n"


def test_an_edit_of_binary_content_is_refused(folder: Folder, root: Path) -> None:
    (root / "MEMORY.md").write_bytes(b"\xff\xfe")
    assert perform(folder, EditFile("MEMORY.md", "a", "b")).refusal is RefusalKind.NOT_TEXT
