"""The confined folder against real files: nothing outside is read or changed, whatever is asked."""

import errno
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.agent import files
from memoryd.agent.files import MAX_TOTAL_FILES, MAX_WRITE_BYTES, Entry, Folder
from memoryd.agent.hands import perform
from memoryd.agent.refusals import RefusalKind, RefusedError
from memoryd.agent.tools import DeleteFile, EditFile, ListFiles, ReadFile, SearchFiles, WriteFile
from memoryd.errors import DiskFull, StorageError
from tests.agent.factories import a_folder, everything_in, names_in

CANARY = "the neighbour's secret"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return a_folder(tmp_path)


@pytest.fixture
def folder(root: Path) -> Folder:
    return Folder.at(root)


def refused(act: Callable[[], object]) -> RefusalKind:
    with pytest.raises(RefusedError) as error:
        act()
    return error.value.kind


def test_a_folder_lists_its_visible_names_in_order(folder: Folder, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to(root / "MEMORY.md")
    assert [(entry.name, entry.is_folder) for entry in folder.entries(())] == [
        ("MEMORY.md", False),
        ("raw_memories.md", False),
        ("rollout_summaries", True),
        ("skills", True),
    ]


def test_a_walk_gives_every_visible_file_with_its_path(folder: Folder) -> None:
    assert sorted(path for path, _ in folder.walk(())) == [
        ("MEMORY.md",),
        ("raw_memories.md",),
        ("rollout_summaries", "2026-one.md"),
        ("skills", "release", "SKILL.md"),
    ]


def test_a_walk_passes_over_a_folder_that_goes_meanwhile(folder: Folder, root: Path) -> None:
    walk = folder.walk(())
    first = next(walk)
    (root / "skills" / "release" / "SKILL.md").unlink()
    (root / "skills" / "release").rmdir()
    (root / "skills").rmdir()
    (root / "skills").symlink_to(root / "rollout_summaries")
    assert [path for path, _ in (first, *walk)] == [
        ("MEMORY.md",),
        ("raw_memories.md",),
        ("rollout_summaries", "2026-one.md"),
    ]


def test_a_listed_file_that_is_swapped_for_a_symlink_or_goes_is_not_read(folder: Folder, root: Path) -> None:
    assert folder.read(("rollout_summaries", "2026-one.md"), listed=True).startswith(b"thread_id")
    (root / "MEMORY.md").unlink()
    with pytest.raises(RefusedError) as refused:
        folder.read(("MEMORY.md",), listed=True)
    assert refused.value.kind is RefusalKind.NOT_FOUND
    (root / "MEMORY.md").symlink_to(root / "raw_memories.md")
    with pytest.raises(RefusedError) as refused:
        folder.read(("MEMORY.md",), listed=True)
    assert refused.value.kind is RefusalKind.SYMLINK


def test_a_walk_ends_at_the_depth_that_paths_may_have(folder: Folder, root: Path) -> None:
    deep = root.joinpath(*"abcdefg")
    deep.mkdir(parents=True)
    (deep / "reachable.md").write_text("x")
    (deep / "h").mkdir()
    (deep / "h" / "too_deep.md").write_text("x")
    names = {path[-1] for path, _ in folder.walk(())}
    assert "reachable.md" in names
    assert "too_deep.md" not in names


def test_a_written_file_holds_exactly_what_was_given_and_leaves_nothing_beside_it(folder: Folder, root: Path) -> None:
    assert folder.write(("memory_summary.md",), "v1\r\né".encode())
    assert (root / "memory_summary.md").read_bytes() == "v1\r\né".encode()
    assert (root / "memory_summary.md").stat().st_mode & 0o777 == 0o600
    assert not [name for name in names_in(root) if name.endswith(".tmp")]


def test_writing_what_stands_there_already_changes_nothing(folder: Folder, root: Path) -> None:
    before = (root / "MEMORY.md").stat().st_ino
    assert not folder.write(("MEMORY.md",), (root / "MEMORY.md").read_bytes())
    assert (root / "MEMORY.md").stat().st_ino == before


def test_a_new_skill_gets_its_folders(folder: Folder, root: Path) -> None:
    folder.write(("skills", "deploy", "scripts", "go.sh"), b"echo\n")
    assert (root / "skills" / "deploy" / "scripts" / "go.sh").read_text() == "echo\n"
    assert (root / "skills" / "deploy").stat().st_mode & 0o777 == 0o700


def test_skills_may_be_created_where_there_were_none(tmp_path: Path) -> None:
    folder = Folder.at(tmp_path)
    folder.write(("skills", "a", "SKILL.md"), b"x")
    assert (tmp_path / "skills" / "a" / "SKILL.md").read_bytes() == b"x"


def test_deleting_the_last_file_of_a_skill_takes_its_folders_along(folder: Folder, root: Path) -> None:
    folder.write(("skills", "deploy", "scripts", "go.sh"), b"echo\n")
    folder.delete(("skills", "deploy", "scripts", "go.sh"))
    assert names_in(root / "skills") == ["release"]


def test_deleting_one_of_two_files_keeps_the_folder(folder: Folder, root: Path) -> None:
    folder.write(("skills", "release", "more.md"), b"x")
    folder.delete(("skills", "release", "more.md"))
    assert names_in(root / "skills" / "release") == ["SKILL.md"]


@pytest.mark.parametrize("parts", [("raw_memories.md",), ("rollout_summaries", "2026-one.md")])
def test_evidence_is_neither_written_nor_deleted(folder: Folder, root: Path, parts: tuple[str, ...]) -> None:
    before = everything_in(root)
    assert refused(lambda: folder.write(parts, b"x")) is RefusalKind.NOT_WRITABLE
    assert refused(lambda: folder.delete(parts)) is RefusalKind.NOT_WRITABLE
    assert everything_in(root) == before


def test_a_symlink_is_refused_at_every_component(folder: Folder, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "SKILL.md").write_text(CANARY)
    (root / "skills" / "linked").symlink_to(outside)
    (root / "memory_summary.md").symlink_to(outside / "SKILL.md")
    for act in (
        lambda: folder.read(("memory_summary.md",)),
        lambda: folder.write(("memory_summary.md",), b"x"),
        lambda: folder.delete(("memory_summary.md",)),
        lambda: folder.read(("skills", "linked", "SKILL.md")),
        lambda: folder.write(("skills", "linked", "SKILL.md"), b"x"),
        lambda: folder.write(("skills", "linked", "new.md"), b"x"),
        lambda: folder.delete(("skills", "linked", "SKILL.md")),
        lambda: folder.entries(("skills", "linked")),
        lambda: folder.is_folder(("skills", "linked")),
    ):
        assert refused(act) is RefusalKind.SYMLINK
    assert everything_in(outside) == {"SKILL.md": CANARY.encode()}
    assert (root / "memory_summary.md").is_symlink()


def test_a_dangling_symlink_is_refused_rather_than_written_through(folder: Folder, root: Path, tmp_path: Path) -> None:
    (root / "memory_summary.md").symlink_to(tmp_path / "created")
    assert refused(lambda: folder.write(("memory_summary.md",), b"x")) is RefusalKind.SYMLINK
    assert not (tmp_path / "created").exists()


@pytest.mark.parametrize("swapped", ["MEMORY.md", "skills"])
def test_a_symlink_swapped_in_between_look_and_open_is_not_followed(
    root: Path, tmp_path: Path, swapped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    (outside / "release").mkdir(parents=True)
    (outside / "release" / "SKILL.md").write_text(CANARY)
    folder = Folder.at(root)
    real_open = os.open

    def open_after_swap(path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == swapped and not (root / swapped).is_symlink():
            (root / swapped).rename(tmp_path / "away")
            (root / swapped).symlink_to(outside / "release" / "SKILL.md" if swapped == "MEMORY.md" else outside)
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_after_swap)  # the operating system's side of the race, not our code
    parts = ("MEMORY.md",) if swapped == "MEMORY.md" else ("skills", "release", "SKILL.md")
    assert refused(lambda: folder.read(parts)) is RefusalKind.SYMLINK


def test_a_file_that_vanishes_between_look_and_open_is_not_found(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder.at(root)
    real_open = os.open

    def open_after_removal(path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "MEMORY.md":
            (root / "MEMORY.md").unlink()
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_after_removal)  # the operating system's side of the race, not our code
    assert refused(lambda: folder.read(("MEMORY.md",))) is RefusalKind.NOT_FOUND


def test_what_is_no_regular_file_is_never_opened(folder: Folder, root: Path) -> None:
    os.mkfifo(root / "memory_summary.md")
    assert refused(lambda: folder.read(("memory_summary.md",))) is RefusalKind.NOT_REGULAR
    assert refused(lambda: folder.write(("memory_summary.md",), b"x")) is RefusalKind.NOT_REGULAR
    assert refused(lambda: folder.delete(("memory_summary.md",))) is RefusalKind.NOT_REGULAR
    assert refused(lambda: folder.read(("skills",))) is RefusalKind.NOT_REGULAR
    assert refused(lambda: folder.read(())) is RefusalKind.NOT_REGULAR


def test_a_socket_is_no_regular_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("MEMORY.md")
        assert refused(lambda: Folder.at(tmp_path).read(("MEMORY.md",))) is RefusalKind.NOT_REGULAR


def test_a_name_is_taken_exactly_as_it_is_spelled(folder: Folder, root: Path) -> None:
    for parts in (("memory.md",), ("Skills", "release", "SKILL.md"), ("skills", "Release", "SKILL.md")):
        with pytest.raises(RefusedError, match="did you mean") as error:
            folder.read(parts)
        assert error.value.kind is RefusalKind.NAME_DIFFERS
    folder.write(("skills", "release", "notes.md"), b"x")
    assert refused(lambda: folder.write(("skills", "release", "Notes.md"), b"y")) is RefusalKind.NAME_DIFFERS
    assert names_in(root / "skills" / "release") == ["SKILL.md", "notes.md"]


def test_a_missing_path_is_not_found(folder: Folder) -> None:
    assert refused(lambda: folder.read(("none.md",))) is RefusalKind.NOT_FOUND
    assert refused(lambda: folder.entries(("none",))) is RefusalKind.NOT_FOUND
    assert refused(lambda: folder.entries(("MEMORY.md",))) is RefusalKind.NOT_FOUND
    assert refused(lambda: folder.read(("MEMORY.md", "x"))) is RefusalKind.NOT_FOUND
    assert refused(lambda: folder.delete(("memory_summary.md",))) is RefusalKind.NOT_FOUND


def test_a_file_where_a_skill_should_be_is_not_written_over(folder: Folder, root: Path) -> None:
    (root / "skills" / "flat").write_text("x")
    assert refused(lambda: folder.write(("skills", "flat", "SKILL.md"), b"x")) is RefusalKind.NOT_FOUND
    assert (root / "skills" / "flat").read_text() == "x"


def test_a_file_holds_at_most_one_mebibyte(folder: Folder) -> None:
    assert folder.write(("MEMORY.md",), b"x" * MAX_WRITE_BYTES)
    assert refused(lambda: folder.write(("MEMORY.md",), b"x" * (MAX_WRITE_BYTES + 1))) is RefusalKind.TOO_LARGE


def test_all_written_files_together_are_limited_but_may_always_shrink(folder: Folder, root: Path) -> None:
    for number in range(7):
        folder.write(("skills", "big", f"{number}.md"), b"x" * MAX_WRITE_BYTES)
    folder.write(("MEMORY.md",), b"x" * (MAX_WRITE_BYTES - 100))
    assert refused(lambda: folder.write(("memory_summary.md",), b"x" * 200)) is RefusalKind.TOO_LARGE
    assert folder.write(("MEMORY.md",), b"small")
    assert folder.write(("memory_summary.md",), b"x" * 200)


def test_the_number_of_written_files_is_limited(folder: Folder, root: Path) -> None:
    (root / "skills" / "many").mkdir()
    for number in range(MAX_TOTAL_FILES):
        (root / "skills" / "many" / f"{number}").touch()
    assert refused(lambda: folder.write(("skills", "many", "one-more"), b"x")) is RefusalKind.TOO_LARGE
    assert folder.write(("skills", "many", "0"), b"x")


def test_a_file_too_large_to_read_is_refused(folder: Folder, root: Path) -> None:
    with (root / "huge.md").open("wb") as file:
        file.truncate(files.MAX_READ_BYTES + 1)
    assert refused(lambda: folder.read(("huge.md",))) is RefusalKind.TOO_LARGE


def test_the_root_must_be_a_real_directory(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").touch()
    for name in ("link", "file", "missing"):
        with pytest.raises(StorageError, match=name):
            Folder.at(tmp_path / name)


def test_a_root_that_was_replaced_is_no_longer_used(folder: Folder, root: Path, tmp_path: Path) -> None:
    root.rename(tmp_path / "away")
    root.mkdir()
    with pytest.raises(StorageError, match="replaced"):
        folder.write(("MEMORY.md",), b"x")
    assert names_in(root) == []


@pytest.mark.parametrize(("number", "error"), [(errno.ENOSPC, DiskFull), (errno.EIO, StorageError)])
def test_a_disk_that_refuses_leaves_the_old_file_whole(
    root: Path, number: int, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    folder, before = Folder.at(root), everything_in(root)
    monkeypatch.setattr(os, "rename", fail)  # the operating system, not our code
    with pytest.raises(error):
        folder.write(("MEMORY.md",), b"new")
    assert everything_in(root) == before


def test_a_folder_that_cannot_be_emptied_for_another_reason_is_an_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(os, "rmdir", fail)  # the operating system, not our code
    with pytest.raises(StorageError, match="input/output"):
        Folder.at(root).delete(("skills", "release", "SKILL.md"))


def test_no_descriptor_stays_open(folder: Folder) -> None:
    before = len(names_in(Path("/dev/fd")))
    for act in (
        lambda: folder.read(("skills", "release", "SKILL.md")),
        lambda: refused(lambda: folder.read(("skills", "release", "none"))),
        lambda: refused(lambda: folder.entries(("MEMORY.md", "x"))),
        lambda: folder.write(("MEMORY.md",), b"x"),
        lambda: list(folder.walk(())),
    ):
        act()
    assert len(names_in(Path("/dev/fd"))) == before


SPOKEN = st.sampled_from(
    [
        *("", ".", "..", "...", "/", "//", "~", "outside", "canary", "work", "MEMORY.md", "memory.md", "skills", "up"),
        *(".git", "hooks", "config", "root-link", "file-link", "SKILL.md", "a", "x:y"),
        *("\\..\\", "\0", "\u2024\u2024", "%2e%2e"),
    ]
)
PATHS = st.one_of(
    st.text(max_size=40),
    st.lists(SPOKEN, max_size=6).map("/".join),
    st.lists(st.one_of(SPOKEN, st.text(max_size=5)), max_size=5).map("/".join).map("/".__add__),
)


@pytest.fixture(scope="module")
def trap() -> Iterator[Path]:
    """A folder with symlinks out of it in every place that may be named, beside a neighbour that must stay as it is."""
    with tempfile.TemporaryDirectory() as name:
        at = Path(name)
        root = a_folder(at)
        (at / "outside").mkdir()
        (at / "outside" / "canary").write_text(CANARY)
        (root / "skills" / "up").symlink_to("../../outside")
        (root / "root-link").symlink_to(at / "outside")
        (root / "file-link").symlink_to(at / "outside" / "canary")
        (root / "skills" / "a").mkdir()
        (root / "skills" / "a" / "SKILL.md").symlink_to(at / "outside" / "canary")
        yield at


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=PATHS)
def test_no_path_whatsoever_reaches_outside_the_folder(trap: Path, path: str) -> None:
    folder = Folder.at(trap / "work")
    answers = [
        perform(folder, request).answer
        for request in (
            ListFiles(path),
            ReadFile(path, 1, 10),
            SearchFiles(("secret", "core"), path),
            WriteFile(path, "written by the agent"),
            EditFile(path, "secret", "public"),
            DeleteFile(path),
        )
    ]
    assert not any(CANARY in answer or "[core]" in answer for answer in answers)
    assert everything_in(trap / "outside") == {"canary": CANARY.encode()}
    assert names_in(trap) == ["outside", "work"]
    assert (trap / "work" / ".git" / "config").read_text() == "[core]\n"
    assert (trap / "work" / "root-link").is_symlink()


def test_an_entry_says_how_large_a_file_is(folder: Folder, root: Path) -> None:
    size = (root / "MEMORY.md").stat().st_size
    assert folder.entries(())[0] == Entry("MEMORY.md", is_folder=False, size=size)
