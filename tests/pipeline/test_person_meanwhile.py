"""A person who edits while the model thinks, or between any two steps of a publication: it stands, and is an input."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.llm.question import Answer, Question
from memoryd.pipeline.context import Context
from memoryd.workspace.layout import Home
from tests.pipeline.test_consolidate import FIRST, SECOND, enqueue, memory, remember, run
from tests.support.clock import FakeClock
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import agent_that_writes, good_files
from tests.workspace.factories import git

MINE = "- Ask Ada first"
SKILL = "---\nname: mine\ndescription: how I do it\n---\n# Mine\n\n1. Do it.\n"


def text(home: Home, path: str) -> str:
    return (home.memories / path).read_text()


def a_bullet(home: Home, path: str, word: str) -> str:
    return next(row for row in text(home, path).split("\n") if row.lstrip().startswith("- ") and word in row)


def put_in_place_of(home: Home, path: str, old: str, new: str) -> None:
    (home.memories / path).write_text(text(home, path).replace(f"{old}\n", new, 1))


def modelled(context: Context, happens: Callable[[], object]) -> tuple[Context, Answering]:
    """Have a model write both files from the evidence alone; `happens` while it thinks for the first time."""
    write, left = agent_that_writes(good_files), [happens]

    def answer(question: Question) -> Answer | str | Exception:
        if left:
            left.pop()()
        return write(question)

    client = Answering(answer)
    return replace(context, consolidate=replace(context.consolidate, client=client, model="model-1")), client


async def test_edits_during_the_model_call_stand_and_show_in_the_next_diff(tmp_path: Path, clock: FakeClock) -> None:
    """I10: a line more, a skill, a line of the summary less, and the very paragraph that the model rewrites."""
    async with a_house(settings_in(tmp_path), clock) as context:
        home = context.home
        first, _ = modelled(context, lambda: None)
        await remember(first, FIRST, "Always use tabs in the Makefile")
        await run(first)
        theirs = a_bullet(home, "MEMORY.md", "[stated]")
        gone = a_bullet(home, "memory_summary.md", "tabs")
        words = f"{theirs.split(' [Task')[0]}, but never in YAML [Task 1] [stated]"

        def edit() -> None:
            put_in_place_of(home, "MEMORY.md", theirs, f"{words}\n{MINE}\n")
            put_in_place_of(home, "memory_summary.md", gone, "")
            (home.memories / "skills/mine").mkdir(parents=True)
            (home.memories / "skills/mine/SKILL.md").write_text(SKILL)

        second, client = modelled(context, edit)
        await remember(second, SECOND, "Never deploy the shop on Fridays")
        done = await run(second)

        assert done.ending == "published", done
        assert "Fridays" in memory(context)
        assert memory(context).count(f"{MINE}\n") == 1
        assert words in memory(context).split("\n")
        assert theirs not in memory(context).split("\n")
        assert gone not in text(home, "memory_summary.md").split("\n")
        assert text(home, "skills/mine/SKILL.md") == SKILL
        assert git(home.memories, "status", "--porcelain").split("\n")[0].endswith("MEMORY.md")

        asked = len(client.asked)
        await enqueue(second)
        done = await run(second)
        assert done.ending == "published", done
        told = str(client.asked[asked].turns)
        for path in ("M MEMORY.md", "A skills/mine/SKILL.md"):
            assert path in told, told
        assert memory(context).count(f"{MINE}\n") == 1
        assert words in memory(context).split("\n")
        assert text(home, "skills/mine/SKILL.md") == SKILL


POINTS = (
    "evidence_staged", "agent_finished", "objects_written", "acknowledged:memory_consolidate_global",
    "before_rename:raw_memories.md", "before_rename:MEMORY.md", "before_rename:memory_summary.md", "before_refs",
    "after_refs",
)  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
async def test_edits_between_any_two_steps_stand(tmp_path: Path, clock: FakeClock, point: str) -> None:
    """I3, I10."""
    left: list[Home] = []

    def reached(at: str) -> None:
        if at == point and left:
            for path in ("MEMORY.md", "memory_summary.md"):
                file = left[0].memories / path
                heading = "## User preferences\n"
                file.write_text(file.read_text().replace(heading, f"{heading}\n{MINE}\n", 1))
            left.clear()

    async with a_house(settings_in(tmp_path), clock, reached=reached) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        left.append(context.home)
        await remember(context, SECOND, "Never deploy the shop on Fridays")
        assert (await run(context)).ending == "published"
        assert left == []
        for _ in range(2):
            for path in ("MEMORY.md", "memory_summary.md"):
                assert text(context.home, path).count(f"{MINE}\n") == 1, path
                assert "Fridays" in text(context.home, path)
            await enqueue(context)
            await run(context)
        assert git(context.home.memories, "status", "--porcelain") == ""
