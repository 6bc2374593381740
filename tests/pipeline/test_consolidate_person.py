"""What a model is told about a person's lines, and what code then does about them (I10)."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.daemon.endings import Ending
from memoryd.ledger import sessions
from memoryd.ledger.sessions import UserMode
from memoryd.llm.question import Question, ToolTurn
from memoryd.pipeline.context import Context
from tests.pipeline.test_consolidate import FIRST, SECOND, enqueue, memory, remember, run
from tests.support.clock import FakeClock
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import agent_that_writes, good_files

MINE = "- Ask Ada first"
TABS = "Always use tabs in the Makefile"


def complaints(question: Question) -> list[str]:
    """What a question repeats of the complaints about earlier results."""
    outputs = [result.output for turn in question.turns if isinstance(turn, ToolTurn) for result in turn.results]
    return [line for output in outputs if output.startswith("rejected") for line in output.splitlines()[1:]]


def with_model(context: Context) -> tuple[Context, Answering]:
    """Have the agent write both files from the evidence alone, whatever stood there, and insist on it."""
    client = Answering(agent_that_writes(good_files))
    return replace(context, consolidate=replace(context.consolidate, client=client, model="model-1")), client


async def test_a_model_that_insists_on_losing_a_persons_line_finds_it_put_back(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        modelled, client = with_model(context)
        await remember(context, FIRST, TABS)
        await run(modelled)
        file = context.home.memories / "MEMORY.md"
        heading = "## User preferences\n"
        assert heading in memory(context)
        file.write_text(memory(context).replace(heading, f"{heading}\n{MINE}\n"))
        await remember(context, SECOND, "Never deploy the shop on Fridays")

        done = await run(modelled)

        assert done.ending is Ending.PUBLISHED, done
        told = [line for line in complaints(client.asked[-1]) if "Ask Ada first" in line]
        assert len(told) == 1
        assert "put it back there word for word" in told[0]
        assert memory(context).count(f"{MINE}\n") == 1
        assert "Fridays" in memory(context)
        await enqueue(context)
        asked = len(client.asked)
        assert (await run(modelled)).ending is not Ending.FAILED
        assert len(client.asked) == asked


async def test_a_model_that_repeats_what_a_person_deleted_is_told_and_it_stays_away(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        modelled, client = with_model(context)
        await remember(context, FIRST, TABS)
        await remember(context, SECOND, "Never deploy the shop on Fridays")
        await run(modelled)
        (unwanted,) = [line for line in memory(context).split("\n") if line.startswith("- ") and "[stated]" in line][:1]
        (context.home.memories / "MEMORY.md").write_text(memory(context).replace(f"{unwanted}\n", ""))
        await enqueue(context)

        done = await run(modelled)

        assert done.ending is Ending.PUBLISHED, done
        assert any("a person deleted" in line for line in complaints(client.asked[-1]))
        assert unwanted not in memory(context)


async def test_without_any_session_a_persons_line_stands_alone(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, TABS)
        await run(context)
        file = context.home.memories / "MEMORY.md"
        heading = "## User preferences\n"
        file.write_text(memory(context).replace(heading, f"{heading}\n{MINE}\n"))
        await context.ledger.write(sessions.set_user_mode, FIRST, UserMode.DISABLED)
        await enqueue(context)

        done = await run(context)

        assert done.ending is Ending.PUBLISHED, done
        assert list((context.home.memories / "rollout_summaries").glob("*.md")) == []
        assert f"{MINE}\n" in memory(context)
        assert "tabs" not in memory(context)


@pytest.mark.parametrize("end", ["finished", "left alone"])
async def test_a_person_in_the_middle_of_a_merge_is_waited_for(tmp_path: Path, clock: FakeClock, end: str) -> None:
    """I5: no request meanwhile, and it says why; what lies there for an hour is taken as it is."""
    async with a_house(settings_in(tmp_path), clock) as context:
        modelled, client = with_model(context)
        await remember(context, FIRST, TABS)
        await run(modelled)
        file, text = context.home.memories / "MEMORY.md", memory(context)
        file.write_text(f"{text}<<<<<<< HEAD\n{MINE}\n=======\n>>>>>>> other\n")
        os.utime(file, (clock.now(), clock.now()))
        await remember(context, SECOND, "Never deploy the shop on Fridays")
        asked, base = len(client.asked), context.repository.accepted()

        done = await run(modelled)

        assert (done.ending, done.reason) == (Ending.DEFERRED, "person_working")
        assert (len(client.asked), context.repository.accepted()) == (asked, base)
        if end == "finished":
            file.write_text(f"{text}{MINE}\n")
        clock.jump(60 if end == "finished" else 3600)
        assert (await run(modelled)).ending is Ending.PUBLISHED
        assert memory(context).count(f"{MINE}\n") == 1
        assert "Fridays" in memory(context)
