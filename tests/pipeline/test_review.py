"""`review`: with consolidate.review = "manual" nothing is published until a person has said so."""

from pathlib import Path

import pytest

from memoryd.daemon.endings import Ending
from memoryd.errors import UsageError
from memoryd.ledger import claims, holds, jobs, proposals, sessions
from memoryd.ledger.proposals import ProposalState
from memoryd.ledger.sessions import UserMode
from memoryd.ledger.states import JobKind, Status
from memoryd.pipeline.context import Context
from memoryd.pipeline.review import accept, reject
from memoryd.pipeline.undo import undo
from tests.pipeline.test_consolidate import FIRST, SECOND, enqueue, memory, remember, run, selected
from tests.support.clock import FakeClock
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import good_model

TABS, FRIDAYS = "Always use tabs in the Makefile", "Never deploy the shop on Fridays"


async def a_proposal(context: Context, thread: str = FIRST, words: str = TABS) -> int:
    await remember(context, thread, words, cwd=f"/home/dev/{thread[:4]}")
    assert (await run(context)).ending is Ending.PROPOSED
    waiting = await context.ledger.read(proposals.waiting)
    assert waiting is not None
    return waiting.id


def refs(context: Context) -> list[str]:
    return context.repository.run("for-each-ref", "--format=%(refname)", "refs/memoryd/proposals").decode().split()


async def test_a_result_waits_and_is_published_as_it_was_shown(tmp_path: Path, clock: FakeClock) -> None:
    client = Answering(good_model)
    async with a_house(settings_in(tmp_path, consolidate__review="manual"), clock, client=client) as context:
        number = await a_proposal(context)
        assert not (context.home.memories / "MEMORY.md").exists()
        assert await selected(context) == []
        assert refs(context) == [f"refs/memoryd/proposals/{number}"]
        asked = len(client.asked)
        await enqueue(context)
        assert (await run(context)).ending is Ending.UNCHANGED
        assert len(client.asked) == asked
        waiting = await context.ledger.read(proposals.waiting)
        assert waiting is not None

        with pytest.raises(UsageError, match="and not dead"):
            await accept(context, number, "dead")
        await accept(context, number, waiting.commit[:8])

        assert TABS in memory(context)
        assert await selected(context) == [FIRST]
        assert context.repository.accepted() == context.repository.head() == waiting.commit
        assert await context.ledger.read(claims.valid)
        assert refs(context) == []
        with pytest.raises(UsageError, match="it is accepted"):
            await accept(context, number)
        await enqueue(context)
        assert (await run(context)).ending is Ending.UNCHANGED
        assert len(client.asked) == asked


async def test_what_was_refused_is_not_proposed_again_until_it_changes(tmp_path: Path, clock: FakeClock) -> None:
    client = Answering(good_model)
    async with a_house(settings_in(tmp_path, consolidate__review="manual"), clock, client=client) as context:
        number = await a_proposal(context)
        reviewed = await reject(context, number)
        assert reviewed.held == (FIRST,)
        assert reviewed.proposal.state is ProposalState.REJECTED
        assert [row.because for row in await context.ledger.read(holds.held)] == ["rejected"]
        assert refs(context) == []
        asked = len(client.asked)
        await enqueue(context)
        await run(context)

        assert await context.ledger.read(proposals.waiting) is None or len(client.asked) == asked
        second = await a_proposal(context, SECOND, FRIDAYS)
        await accept(context, second)
        assert await selected(context) == [SECOND]
        await remember(context, FIRST, TABS, at=60)
        await run(context)
        third = await context.ledger.read(proposals.waiting)
        assert third is not None
        await accept(context, third.id)
        assert await selected(context) == [FIRST, SECOND]


async def test_a_newer_run_takes_the_place_of_what_waited(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path, consolidate__review="manual"), clock) as context:
        first = await a_proposal(context)
        second = await a_proposal(context, SECOND, FRIDAYS)
        with pytest.raises(UsageError, match="superseded"):
            await accept(context, first)
        assert refs(context) == [f"refs/memoryd/proposals/{second}"]
        await accept(context, second)
        assert await selected(context) == [FIRST, SECOND]


async def test_what_a_person_edits_before_accepting_is_merged(tmp_path: Path, clock: FakeClock) -> None:
    """I10."""
    async with a_house(settings_in(tmp_path, consolidate__review="manual"), clock) as context:
        await accept(context, await a_proposal(context))
        second = await a_proposal(context, SECOND, FRIDAYS)
        file = context.home.memories / "MEMORY.md"
        file.write_text("> Mine.\n" + file.read_text())
        await accept(context, second)
        assert memory(context).startswith("> Mine.\n")
        assert "Fridays" in memory(context)


@pytest.mark.parametrize("change", ["undo", "forbidden"])
async def test_a_proposal_whose_ground_has_changed_is_refused_and_made_anew(
    tmp_path: Path, clock: FakeClock, change: str
) -> None:
    async with a_house(settings_in(tmp_path, consolidate__review="manual"), clock) as context:
        await accept(context, await a_proposal(context))
        second = await a_proposal(context, SECOND, FRIDAYS)
        if change == "undo":
            await undo(context)
        else:
            await context.ledger.write(sessions.set_user_mode, FIRST, UserMode.DISABLED)
        with pytest.raises(UsageError, match=r"superseded|out of date"):
            await accept(context, second)
        assert refs(context) == []
        job = await context.ledger.read(jobs.find, JobKind.CONSOLIDATE, "global")
        assert job is not None
        assert job.status is Status.PENDING
        assert (await run(context)).ending is Ending.PROPOSED
        third = await context.ledger.read(proposals.waiting)
        assert third is not None
        await accept(context, third.id)
        assert await selected(context) == [SECOND]


async def test_what_git_lost_is_out_of_date(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path, consolidate__review="manual"), clock) as context:
        number = await a_proposal(context)
        context.repository.git_dir.rename(tmp_path / "away")
        context.repository.run("init", "--quiet")
        with pytest.raises(UsageError, match="out of date"):
            await accept(context, number)
        with pytest.raises(UsageError, match="no proposal 99"):
            await reject(context, 99)
