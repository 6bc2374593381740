"""A program that works in the same folder at the same time, and means harm: what it swaps in leads nowhere."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from memoryd.agent.errand import Workplace, take_back
from memoryd.agent.files import Folder
from memoryd.agent.hands import Deed, perform
from memoryd.agent.refusals import RefusalKind
from memoryd.agent.tools import DeleteFile, EditFile, ListFiles, ReadFile, SearchFiles, WriteFile
from memoryd.errors import StorageError
from tests.agent.factories import a_folder, everything_in

CANARY = "the neighbour's secret"
ROUNDS = 150


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return a_folder(tmp_path)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A neighbour, laid out like the folder so that a path through a link to it would find everything."""
    folder = tmp_path / "outside"
    (folder / "release").mkdir(parents=True)
    for name in ("release/SKILL.md", "SKILL.md", "MEMORY.md"):
        (folder / name).write_text(CANARY)
    return folder


@contextmanager
def swapping(place: Path, target: Path, spare: Path) -> Iterator[None]:
    """Swap a symlink in for what stands at a place, and out again, as fast as it goes."""
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            with suppress(OSError):
                place.rename(spare)
            with suppress(OSError):
                place.symlink_to(target)
            with suppress(OSError):
                place.unlink()
            with suppress(OSError):
                spare.rename(place)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("swapped", ["skills", "skills/release", "skills/release/SKILL.md", "MEMORY.md"])
def test_nothing_is_read_or_written_through_what_is_swapped_in(
    root: Path, outside: Path, tmp_path: Path, swapped: str
) -> None:
    """I7: between any check and any use."""
    targets = {"skills": outside, "skills/release": outside / "release"}
    target = targets.get(swapped, outside / "MEMORY.md")
    before, folder = everything_in(outside), Folder.at(root)
    path = "MEMORY.md" if swapped == "MEMORY.md" else "skills/release/SKILL.md"
    deeds: list[Deed] = []
    with swapping(root / swapped, target, tmp_path / "spare"):
        for number in range(ROUNDS):
            with suppress(StorageError):
                deeds.append(perform(folder, WriteFile(path, f"written {number}")))
                deeds.append(perform(folder, ReadFile(path, 1, 10)))
                deeds.append(perform(folder, EditFile(path, "secret", "public")))
                deeds.append(perform(folder, SearchFiles(("secret",), "")))
                deeds.append(perform(folder, ListFiles("skills")))
                deeds.append(perform(folder, DeleteFile(path)))
    assert everything_in(outside) == before
    assert not any(CANARY in deed.answer for deed in deeds)
    assert all(deed.answer.startswith("error: ") for deed in deeds if deed.refusal is not None)


def test_a_hard_link_is_refused_and_what_it_names_stays(root: Path, outside: Path) -> None:
    (root / "MEMORY.md").unlink()
    os.link(outside / "MEMORY.md", root / "MEMORY.md")
    (root / "skills/linked").mkdir()
    os.link(outside / "SKILL.md", root / "skills/linked/SKILL.md")
    folder = Folder.at(root)
    for path in ("MEMORY.md", "skills/linked/SKILL.md"):
        for request in (
            ReadFile(path, 1, 10),
            WriteFile(path, "mine"),
            EditFile(path, "secret", "public"),
            DeleteFile(path),
        ):
            deed = perform(folder, request)
            assert deed.refusal is RefusalKind.NOT_REGULAR
            assert CANARY not in deed.answer
    assert CANARY not in perform(folder, SearchFiles(("secret",), "")).answer
    assert (outside / "MEMORY.md").read_text() == CANARY


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_device(path: Path) -> None:
    os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))


def a_hard_link(path: Path) -> None:
    os.link(path.parents[3] / "outside/SKILL.md", path)


def a_symlink(path: Path) -> None:
    path.symlink_to(path.parents[3] / "outside/SKILL.md")


def a_loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize("make", [a_pipe, a_device, a_hard_link, a_symlink, a_loop], ids=lambda make: make.__name__)
def test_what_a_hostile_program_leaves_is_not_taken_back(
    root: Path, outside: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """It does not hang on a pipe or an endless device, either; the good part is taken."""
    if make is a_device and os.geteuid() != 0:
        pytest.skip("only root makes devices")
    copy = tmp_path / "copy"
    (copy / "skills/evil").mkdir(parents=True)
    (copy / "MEMORY.md").write_text("good\n")
    make(copy / "skills/evil/SKILL.md")
    take_back(Workplace(root, copy))
    assert (root / "MEMORY.md").read_text() == "good\n"
    assert not (root / "skills/evil").exists()
    assert CANARY.encode() not in b"".join(path.read_bytes() for path in root.rglob("*.md"))


@pytest.mark.parametrize(
    "path",
    [
        *("../../x", "/x", "//x", "/./x", "skills/../../x", "skills/./x/SKILL.md", "MEMORY.md\0.txt", "..\\x", "C:\\x"),
        *("\u2024\u2024/x", "\uff0e\uff0e/x", "..\u2215x", "skills\u2044x", "\u2025/x", "skills/\u2026/x.md"),
        *("MEMORY.MD", "memory.md", "Memory_summary.md", "SKILLS/x/SKILL.md", "MEMORY.md ", " MEMORY.md", "MEMORY.md."),
        *(".git/hooks/post-commit", ".git/config", "skills/x/.git/hooks/post-commit", "skills/.git/SKILL.md", ".env"),
        *("x" * 300, "skills/" + "x" * 300 + "/SKILL.md", "skills/" + "x/" * 200 + "SKILL.md", "a" * 100_000),
        *("raw_memories.md", "rollout_summaries/x.md", "extensions/ad_hoc/notes/x.md", "phase2_workspace_diff.md"),
        *("skills/x/SKILL.md/y", "skills//SKILL.md", "skills/x/", "~/x", "$HOME/x", "file:///etc/passwd", "%2e%2e/x"),
    ],
)
def test_no_other_path_is_written(root: Path, path: str) -> None:
    """Each is answered with an error that has a kind to count."""
    before = everything_in(root)
    deed = perform(Folder.at(root), WriteFile(path, "mine"))
    assert deed.answer.startswith("error: ")
    assert deed.refusal is not None
    assert everything_in(root) == before
