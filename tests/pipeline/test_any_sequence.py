"""Whatever happens in whatever order: the memory is whole, what a person wrote stands, what is forgotten stays gone.

I3, I10: after each step the folder is HEAD plus the person's edits; where a step dies on its way, every file that
agents read is that of some version, with the person's lines.

The few examples of the suite are for its speed. For more of them, each run with others:
`EXAMPLES=500 pytest tests/pipeline/test_any_sequence.py --hypothesis-seed=random`
"""

import asyncio
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.errors import UsageError
from memoryd.ledger import proposals, publications
from memoryd.pipeline.consolidate import publish_decided
from memoryd.pipeline.context import Context
from memoryd.pipeline.edits import notice_edits
from memoryd.pipeline.forget import forget, go_on_forgetting
from memoryd.pipeline.review import accept, reject
from memoryd.pipeline.undo import undo
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import ALWAYS_THERE
from tests.pipeline.test_consolidate import a_consolidator, remember
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in

Step: TypeAlias = tuple[str, int]

THREADS = [f"01a226ab-5fe7-707c-80dd-7a6d9390710{number}" for number in range(4)]
WORDS = ("tabs in the Makefile", "pytest before each commit", "squashed merges", "snake case in SQL")
POINTS = (
    "objects_written",
    "undo_written",
    "undo_decided",
    "acceptance_decided",
    "forgetting_begun",
    "acknowledged:memory_consolidate_global",
    "before_rename:MEMORY.md",
    "before_rename:memory_summary.md",
    "before_refs",
    "after_refs",
)
PERSON = "> Mine "
REWORDED = "(mine "
FILES = ("skills/mine/SKILL.md", "skills/mine/scripts/run.sh", "thoughts.md")
EXAMPLES = int(os.environ.get("EXAMPLES", "5"))


class Died(BaseException):
    """The process ends at a point, as far as the process itself can tell."""


@dataclass
class World:
    """What the test knows: what the person wrote, what was forgotten, and where the next step is to die.

    `lines` are lines of the person's own in the handbook, `files` files of theirs, None one that they removed again;
    `edited` is every file that differs from HEAD because of them, as they left it.
    """

    home: Path
    lines: list[str] = field(default_factory=list)
    files: dict[str, str | None] = field(default_factory=dict)
    edited: dict[str, str | None] = field(default_factory=dict)
    forgotten: set[int] = field(default_factory=set)
    grown: int = 0
    dies_at: str | None = None

    def reached(self, point: str) -> None:
        if self.dies_at is not None and point.startswith(self.dies_at):
            self.dies_at = None
            raise Died(point)

    @property
    def memories(self) -> Path:
        return self.home / "memories"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *["consolidate"] * 5,
                *["edit", "reword", "file"] * 2,
                *["undo"] * 2,
                "accept",
                "reject",
                "die",
                "forget",
                "delete",
            ]
        ),
        st.integers(0, 99),
    ),
    min_size=4,
    max_size=9,
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, manual=st.booleans())
def test_i3_i10_any_sequence_keeps_the_memory_whole_and_what_a_person_wrote(steps: list[Step], *, manual: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live_through(Path(folder), steps, manual=manual))


async def live_through(folder: Path, steps: list[Step], *, manual: bool) -> None:
    world, clock = World(folder / "home"), FakeClock()
    chosen = settings_in(folder, consolidate__review="manual" if manual else "auto")
    left = list(steps)
    while left:
        try:
            async with a_house(chosen, clock, reached=world.reached) as context:
                await go_on(context, world)
                while left:
                    await step(context, world, left.pop(0))
                    await assert_in_place(context, world)
        except Died:
            async with a_house(chosen, clock) as context:
                await assert_whole(context, world)


async def go_on(context: Context, world: World) -> None:
    """Do what a start does."""
    await publish_decided(context)
    await go_on_forgetting(context)
    await assert_in_place(context, world)


async def step(context: Context, world: World, what: Step) -> None:
    name, number = what
    context.clock.jump(1)  # type: ignore[attr-defined]  # what was enqueued at once is ready a moment later
    match name:
        case "consolidate":
            thread = number % len(THREADS)
            if thread not in world.forgotten:
                world.grown += 1
                words = f"Always use {WORDS[thread]}, for the {world.grown}. time"
                await remember(context, THREADS[thread], words, at=world.grown)
                context.clock.jump(1)  # type: ignore[attr-defined]  # as above
            await a_consolidator(context).run_once()
        case "edit" | "reword" | "file":
            {"edit": edit, "reword": reword, "file": change_file}[name](world, number)
            note_edits(context, world)
        case "delete":
            await delete(context, world, with_history=number % 2 == 0)
        case "undo":
            await allowing_refusal(undo(context, 1 + number % 2))
        case "accept" | "reject":
            waiting = await context.ledger.read(proposals.waiting)
            if waiting is not None:
                await allowing_refusal((accept if name == "accept" else reject)(context, waiting.id))
        case "die":
            world.dies_at = POINTS[number % len(POINTS)]
        case "forget":
            thread = number % len(THREADS)
            world.forgotten.add(thread)
            await allowing_refusal(forget(context, [THREADS[thread]]))


async def allowing_refusal(work: object) -> None:
    """Wait for a command that may rightly be refused."""
    try:
        await work  # type: ignore[misc]  # a coroutine of one command or another
    except UsageError:
        pass


def edit(world: World, number: int) -> None:
    """Write a line of one's own at the top of the handbook, or take one out again."""
    file = world.memories / "MEMORY.md"
    if not file.exists():
        return
    text = file.read_text()
    if world.lines and number > 70:
        gone = world.lines.pop()
        file.write_text(text.replace(f"{gone}\n", "", 1))
        return
    world.lines.append(f"{PERSON}{world.grown}-{len(world.lines)}-{number}.")
    file.write_text(f"{world.lines[-1]}\n{text}")


def reword(world: World, number: int) -> None:
    """Change any line of the two files, a heading or a row of structure as well, or take it out."""
    file = world.memories / ALWAYS_THERE[number % 2]
    rows = file.read_text().split("\n") if file.exists() else []
    places = [place for place, row in enumerate(rows) if row.strip() and not row.startswith(PERSON)]
    if not places:
        return
    place = places[number * 7 % len(places)]
    rows[place : place + 1] = [] if number % 5 == 0 else [f"{rows[place]} {REWORDED}{number})"]
    file.write_text("\n".join(rows))


def change_file(world: World, number: int) -> None:
    """Write a file of one's own, change it, or remove it."""
    path = FILES[number % len(FILES)]
    file = world.memories / path
    if world.files.get(path) is not None and number % 4 == 0:
        file.unlink()
        world.files[path] = None
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    world.files[path] = f"---\nname: mine\ndescription: {number}\n---\n# Mine\n"
    file.write_text(world.files[path] or "")


def note_edits(context: Context, world: World) -> None:
    """Take down in what the person's files differ from HEAD."""
    live, accepted = Folder.read(world.memories).files, texts_of_head(context)
    world.edited = {
        path: live.get(path) for path in live.keys() | accepted.keys() if live.get(path) != accepted.get(path)
    }


async def delete(context: Context, world: World, *, with_history: bool) -> None:
    """Delete the folder, of which comes back what its history holds; what the person wrote since is deleted."""
    accepted = {} if with_history else texts_of_head(context)
    for path in list(world.memories.iterdir()):
        if path.name != ".git" or with_history:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    world.lines = [row for row in accepted.get("MEMORY.md", "").split("\n") if row.startswith(PERSON)]
    world.files = {path: accepted.get(path) for path in FILES if path in accepted}
    world.edited = {}
    await notice_edits(context)


def texts_of_head(context: Context) -> dict[str, str]:
    repo = context.repository
    head = repo.head() if repo.git_dir.exists() else None
    if head is None:
        return {}
    return {path: data.decode() for path, data in repo.read_all(head, sorted(repo.files(head))).items()}


def without_persons(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(PERSON))


def assert_person(world: World) -> None:
    """I10: what the person wrote and did not take out stands, once; what they removed stays away."""
    file = world.memories / "MEMORY.md"
    rows = file.read_text().split("\n") if file.exists() else []
    assert [rows.count(line) for line in world.lines] == [1] * len(world.lines), (world.lines, rows)
    for path, text in world.files.items():
        own = world.memories / path
        assert (own.read_text() if own.exists() else None) == text, path


async def assert_in_place(context: Context, world: World) -> None:
    """The folder is HEAD plus the person's edits."""
    assert_person(world)
    repo, live = context.repository, Folder.read(world.memories).files
    accepted = texts_of_head(context)
    if repo.git_dir.exists() and repo.head() is not None:
        assert repo.head() == repo.accepted()
    for path in live.keys() | accepted.keys():
        allowed = [accepted.get(path), *([world.edited[path]] if path in world.edited else [])]
        assert live.get(path) in allowed, path
    for thread in world.forgotten:
        for text in live.values():
            assert not any(WORDS[thread] in row and REWORDED not in row for row in text.split("\n")), thread


async def assert_whole(context: Context, world: World) -> None:
    """I3: what agents read is some version's, whole, though the step died on its way."""
    assert_person(world)
    repo = context.repository
    decided = await context.ledger.read(publications.latest)
    if not repo.git_dir.exists():
        return
    known = repo.run("rev-list", "--all").decode().split() + ([decided.commit] if decided else [])
    for path in ALWAYS_THERE:
        file = world.memories / path
        if not file.exists():
            continue
        versions = {without_persons((repo.read(commit, path) or b"").decode()) for commit in known}
        assert file.read_text() == world.edited.get(path) or without_persons(file.read_text()) in versions, path
