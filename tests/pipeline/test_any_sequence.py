"""Whatever happens in whatever order: the memory is whole, what a person wrote stands, what is forgotten stays gone.

I3, I10: after each step the folder is HEAD plus the person's edits; where a step dies on its way, every file that
agents read is that of some version, with the person's lines.
"""

import asyncio
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


class Died(BaseException):
    """The process ends at a point, as far as the process itself can tell."""


@dataclass
class World:
    """What the test knows: the person's lines, what was forgotten, and where the next step is to die."""

    home: Path
    lines: list[str] = field(default_factory=list)
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
            ["consolidate", "consolidate", "consolidate", "edit", "undo", "undo", "accept", "reject", "die", "forget"]
        ),
        st.integers(0, 9),
    ),
    min_size=4,
    max_size=9,
)


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
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
        case "edit":
            edit(world, number)
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
    if world.lines and number > 7:
        gone = world.lines.pop()
        file.write_text(text.replace(f"{gone}\n", "", 1))
        return
    world.lines.append(f"{PERSON}{world.grown}-{len(world.lines)}-{number}.")
    file.write_text(f"{world.lines[-1]}\n{text}")


def without_persons(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(PERSON))


def assert_person(world: World) -> None:
    """I10: what the person wrote and did not take out stands, once."""
    file = world.memories / "MEMORY.md"
    rows = file.read_text().split("\n") if file.exists() else []
    assert [rows.count(line) for line in world.lines] == [1] * len(world.lines), (world.lines, rows)


async def assert_in_place(context: Context, world: World) -> None:
    """The folder is HEAD plus the person's edits."""
    assert_person(world)
    repo, live = context.repository, Folder.read(world.memories)
    head = repo.head() if repo.git_dir.exists() else None
    if head is None:
        assert set(live.files) <= {"MEMORY.md"}
        return
    assert head == repo.accepted()
    assert set(live.files) == repo.files(head)
    texts = {path: data.decode() for path, data in repo.read_all(head, sorted(live.files)).items()}
    assert {path: without_persons(text) for path, text in live.files.items()} == {
        path: without_persons(text) for path, text in texts.items()
    }
    for thread in world.forgotten:
        assert not any(WORDS[thread] in text for text in live.files.values()), thread


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
        assert without_persons(file.read_text()) in versions, path
