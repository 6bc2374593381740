import os
from pathlib import Path

import pytest

from memoryd.errors import DiskFull, StorageError
from memoryd.workspace.files import ensure_room, translated
from memoryd.workspace.folder import MAX_FILE_BYTES, Folder, Odd, folder_signature
from tests.workspace.factories import write_files


def test_text_files_are_inputs_and_everything_else_is_named_with_its_reason(tmp_path: Path) -> None:
    write_files(tmp_path, {"MEMORY.md": "é\r\n", "skills/x/SKILL.md": "s", ".git/HEAD": "x", ".gitignore": "*"})
    write_files(
        tmp_path, {"a.md~": "", "#a.md#": "", "x.swp": "", "nested/.git/HEAD": "", "nested/a.md": "", ".h/a": ""}
    )
    (tmp_path / "big.md").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    (tmp_path / "exact.md").write_bytes(b"x" * MAX_FILE_BYTES)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\x00")
    (tmp_path / "latin.txt").write_bytes(b"\xe9")
    (tmp_path / "link.md").symlink_to(tmp_path / "MEMORY.md")
    (tmp_path / "linked").symlink_to(tmp_path / "skills")
    (tmp_path / "new\nline.md").write_text("")
    os.mkfifo(tmp_path / "pipe")
    found = Folder.read(tmp_path)
    assert sorted(found.files) == ["MEMORY.md", "exact.md", "skills/x/SKILL.md"]
    assert found.text("MEMORY.md") == "é\r\n"
    assert found.text("absent") == ""
    assert found.odd == {
        ".gitignore": Odd.HIDDEN,
        ".h": Odd.HIDDEN,
        "#a.md#": Odd.EDITOR_FILE,
        "a.md~": Odd.EDITOR_FILE,
        "x.swp": Odd.EDITOR_FILE,
        "nested": Odd.REPOSITORY,
        "big.md": Odd.TOO_LARGE,
        "picture.png": Odd.BINARY,
        "latin.txt": Odd.BINARY,
        "link.md": Odd.SYMLINK,
        "linked": Odd.SYMLINK,
        "new\nline.md": Odd.BAD_NAME,
        "pipe": Odd.SPECIAL,
    }


def test_a_name_that_is_no_utf8_is_odd(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md"))).write_text("x")
    assert list(Folder.read(tmp_path).odd.values()) == [Odd.BAD_NAME]


def test_a_file_that_vanishes_or_may_not_be_read_is_odd(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("x")
    (tmp_path / "secret.md").chmod(0)
    expected = {} if os.geteuid() == 0 else {"secret.md": Odd.UNREADABLE}
    assert Folder.read(tmp_path).odd == expected


def test_a_folder_that_is_not_there_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot list"):
        Folder.read(tmp_path / "absent")


def test_the_signature_of_a_folder_changes_with_any_input_and_only_then(tmp_path: Path) -> None:
    write_files(tmp_path, {"MEMORY.md": "x", "skills/a/SKILL.md": "y"})
    first = folder_signature(tmp_path)
    write_files(tmp_path, {".git/index": "z"})
    assert folder_signature(tmp_path) == first
    os.utime(tmp_path / "MEMORY.md", ns=(1, 1))
    assert folder_signature(tmp_path) != first


def test_a_full_or_read_only_disk_is_told_apart_from_other_failures(tmp_path: Path) -> None:
    for number in (28, 30):
        with pytest.raises(DiskFull), translated("write", tmp_path):
            raise OSError(number, "no room")
    with pytest.raises(StorageError, match=r"cannot write .*denied") as caught, translated("write", tmp_path):
        raise OSError(13, "denied")
    assert not isinstance(caught.value, DiskFull)


def test_what_code_puts_together_from_all_sessions_may_be_larger_than_a_persons_file(tmp_path: Path) -> None:
    merged = "x" * (MAX_FILE_BYTES + 1)
    write_files(
        tmp_path, {"raw_memories.md": merged, "phase2_workspace_diff.md": merged, "notes/raw_memories.md": merged}
    )
    found = Folder.read(tmp_path)
    assert sorted(found.files) == ["phase2_workspace_diff.md", "raw_memories.md"]
    assert found.odd == {"notes/raw_memories.md": Odd.TOO_LARGE}


def test_work_that_must_be_kept_begins_only_where_there_is_room_for_it(tmp_path: Path) -> None:
    ensure_room(tmp_path, 1)
    with pytest.raises(DiskFull, match="bytes are free"):
        ensure_room(tmp_path, 1 << 62)
    with pytest.raises(StorageError, match="look for room"):
        ensure_room(tmp_path / "none", 1)
