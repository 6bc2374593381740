"""Whatever a person puts into the memory folder, and whenever: no run dies of it, and nothing of it is lost."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from memoryd.daemon.endings import Ending
from memoryd.pipeline.consolidate import publish_decided
from memoryd.workspace.layout import Home
from tests.pipeline.test_consolidate import FIRST, SECOND, enqueue, memory, remember, run
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in
from tests.support.log_lines import LogLines
from tests.workspace.factories import a_repository, git

MINE = b"What I wrote.\n"
THIRD = "01a226ab-5fe7-707c-80dd-7a6d93907105"
Deed = Callable[[Path], None]


@dataclass
class Person:
    """Does something when a run passes a point, once."""

    deed: Deed
    at: str
    folder: Path
    is_done: bool = False

    def reached(self, point: str) -> None:
        if point == self.at and not self.is_done:
            self.is_done = True
            self.deed(self.folder)


def put(path: Path, data: bytes = MINE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def in_place_of(path: Path, act: Callable[[Path], object]) -> None:
    """Put something where another thing stands, which the person moves away."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    act(path)


def a_nested_repository(folder: Path) -> None:
    put(folder / "project/notes.md")
    git(folder / "project", "init", "-q")


def a_symlink(folder: Path) -> None:
    put(folder.parent / "outside.md")
    (folder / "link.md").symlink_to(folder.parent / "outside.md")
    (folder / "skills").mkdir(exist_ok=True)
    (folder / "skills/linked").symlink_to(folder.parent)


NEW_FILES = ("mine.md", "skills/mine/SKILL.md", "git~1", "a\\b.md")
"""A file, a skill, a name that only other systems mind, a name with a backslash: none is in the way of another."""


def new_files(folder: Path) -> None:
    for path in NEW_FILES:
        put(folder / path)


INPUTS: dict[str, tuple[Deed, tuple[str, ...]]] = {
    "new files": (new_files, NEW_FILES),
    "a file where the summaries belong": (
        lambda folder: in_place_of(folder / "rollout_summaries", put),
        ("rollout_summaries.set-aside-1",),
    ),
    "a folder where the raw memories belong": (
        lambda folder: in_place_of(folder / "raw_memories.md", lambda path: put(path / "x.md")),
        ("raw_memories.md.set-aside-1/x.md",),
    ),
    "a folder where the handbook belongs": (
        lambda folder: in_place_of(folder / "MEMORY.md", lambda path: put(path / "x.md")),
        ("MEMORY.md.set-aside-1/x.md",),
    ),
    "a folder where a summary belongs": (
        lambda folder: in_place_of(
            next(path for path in sorted((folder / "rollout_summaries").iterdir()) if "tabs" in path.name),
            lambda path: put(path / "x.md"),
        ),
        (),
    ),
}
NO_INPUTS: dict[str, Deed] = {
    "big.md": lambda folder: put(folder / "big.md", MINE * 200_000),
    "logo.png": lambda folder: put(folder / "logo.png", b"\x89PNG\x00" + MINE),
    ".MEMORY.md.swp": lambda folder: put(folder / ".MEMORY.md.swp"),
    "MEMORY.md~": lambda folder: put(folder / "MEMORY.md~"),
    ".obsidian/app.json": lambda folder: put(folder / ".obsidian/app.json"),
    "keys.md": lambda folder: put(folder / "keys.md", b"token ghp_" + b"a1B2" * 9 + b"\n" + MINE),
    "link.md": a_symlink,
    "project/notes.md": a_nested_repository,
    "extensions": lambda folder: in_place_of(folder / "extensions", put),
}
"""Too large, binary, an editor's swap file and backup, hidden, with a secret, a link, a repository, in the way."""
POINTS = ("before", "evidence_staged", "before_rename:MEMORY.md")


async def after_a_person(tmp_path: Path, clock: FakeClock, deed: Deed, point: str) -> Home:
    """Let a person act before or in the middle of a run; a further run must be accepted, too."""
    chosen = settings_in(tmp_path)
    person = Person(deed, point, chosen.home / "memories")
    async with a_house(chosen, clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
    async with a_house(chosen, clock, reached=person.reached) as context:
        await remember(context, SECOND, "Never deploy the shop on Fridays")
        person.reached("before")
        done = await run(context)
        assert done.ending is Ending.PUBLISHED, done
        assert person.is_done
        assert "Fridays" in memory(context)
        await remember(context, THIRD, "Always squash before a merge")
        done = await run(context)
        assert done.ending is Ending.PUBLISHED, done
        for word in ("tabs", "Fridays", "squash"):
            assert word in memory(context)
            assert word in (context.home.memories / "raw_memories.md").read_text()
        assert sum(path.is_file() for path in (context.home.memories / "rollout_summaries").iterdir()) == 3
        await enqueue(context)
        assert (await run(context)).ending in (Ending.UNCHANGED, Ending.PUBLISHED)
    return context.home


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", INPUTS)
async def test_what_a_person_puts_in_is_taken_in_and_never_lost(
    tmp_path: Path, clock: FakeClock, name: str, point: str
) -> None:
    """It shows in the next diff, and is part of what is accepted then."""
    deed, paths = INPUTS[name]
    home = await after_a_person(tmp_path, clock, deed, point)
    memories, repo = home.memories, a_repository(home)
    accepted = repo.accepted()
    assert accepted is not None
    if not paths:
        (found,) = memories.glob("rollout_summaries/*.set-aside-1/x.md")
        paths = (found.relative_to(memories).as_posix(),)
    for path in paths:
        assert (memories / path).read_bytes() == MINE
        assert repo.read(accepted, path) == MINE


@pytest.mark.parametrize("point", ["before", "before_rename:MEMORY.md"])
async def test_what_is_no_input_stays_where_it_is_and_in_no_history(
    tmp_path: Path, clock: FakeClock, point: str
) -> None:
    def deed(folder: Path) -> None:
        for act in NO_INPUTS.values():
            act(folder)

    home = await after_a_person(tmp_path, clock, deed, point)
    history = git(home.memories, "log", "--all", "--name-only", "--format=").split("\n")
    for path in NO_INPUTS:
        assert MINE in (home.memories / path).read_bytes(), path
        assert path not in history


async def test_a_pipe_a_socket_and_a_device_hold_nobody_up(tmp_path: Path, clock: FakeClock) -> None:
    def deed(folder: Path) -> None:
        os.mkfifo(folder / "pipe.md")
        os.mkfifo(folder / "skills.md")
        if os.geteuid() == 0:
            os.mknod(folder / "null.md", 0o600 | 0o020000, os.makedev(1, 3))

    home = await after_a_person(tmp_path, clock, deed, "before")
    assert (home.memories / "pipe.md").exists()


async def test_what_was_moved_aside_is_said(tmp_path: Path, clock: FakeClock) -> None:
    deed, _ = INPUTS["a file where the summaries belong"]
    log = LogLines()
    await after_a_person(tmp_path, clock, deed, "before")
    (line,) = log.events("folder.cleared")
    assert line["names"] == ["rollout_summaries.set-aside-1"]


async def test_a_branch_a_commit_a_stash_and_a_merge_of_the_persons_are_survived(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The person uses git in the folder as they like: what they committed is in the history, whatever HEAD is."""
    chosen = settings_in(tmp_path)
    async with a_house(chosen, clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        folder, repo = context.home.memories, context.repository
        git(folder, "checkout", "-qb", "mine")
        put(folder / "committed.md")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "mine")
        theirs = git(folder, "rev-parse", "HEAD").strip()
        put(folder / "committed.md", MINE + b"and stashed\n")
        git(folder, "stash", "-q")
        await remember(context, SECOND, "Never deploy the shop on Fridays")
        assert (await run(context)).ending is Ending.PUBLISHED
        assert repo.is_ancestor(theirs, repo.accepted() or "")
        git(folder, "stash", "pop", "-q")
        assert (folder / "committed.md").read_bytes() == MINE + b"and stashed\n"

        git(folder, "checkout", "-qb", "side", theirs, "-f")
        put(folder / "side.md")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "side")
        side = git(folder, "rev-parse", "HEAD").strip()
        git(folder, "checkout", "-q", "-f", "mine")
        git(folder, "merge", "-q", "--no-ff", "-m", "merged", "side")
        await remember(context, THIRD, "Always squash before a merge")
        assert (await run(context)).ending is Ending.PUBLISHED
        assert repo.is_ancestor(side, repo.accepted() or "")
        assert (folder / "side.md").read_bytes() == MINE
        assert "squash" in memory(context)


async def test_in_the_middle_of_a_persons_rebase_their_head_is_left_alone(tmp_path: Path, clock: FakeClock) -> None:
    chosen = settings_in(tmp_path)
    async with a_house(chosen, clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        folder, repo = context.home.memories, context.repository
        for branch, text in (("one", b"one\n"), ("two", b"two\n")):
            git(folder, "checkout", "-qb", branch, "main")
            put(folder / "mine.md", text)
            git(folder, "add", "-A")
            git(folder, "commit", "-qm", branch)
        with pytest.raises(Exception, match="rebase"):
            git(folder, "rebase", "one")
        head = repo.head()
        await remember(context, SECOND, "Never deploy the shop on Fridays")
        assert (await run(context)).ending is Ending.PUBLISHED
        assert repo.head() == head
        assert "Fridays" in memory(context)
        git(folder, "rebase", "--abort")
        await publish_decided(context)
        two = git(folder, "rev-parse", "two").strip()
        await remember(context, THIRD, "Always squash before a merge")
        assert (await run(context)).ending is Ending.PUBLISHED
        assert "squash" in memory(context)
        assert (folder / "mine.md").read_bytes() == b"two\n"
        assert repo.resolve(f"refs/memoryd/kept/{two}") == two or repo.is_ancestor(two, repo.accepted() or "")
