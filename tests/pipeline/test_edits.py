"""What counts as a person's edit of the memory folder, and what is memoryd's own doing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from memoryd.daemon.passes import run_pass
from memoryd.ledger import jobs, publications
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.states import JobKind
from memoryd.pipeline.context import Context
from memoryd.pipeline.edits import notice_edits
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in
from tests.support.sessions import a_rollout


@asynccontextmanager
async def remembering(folder: Path, clock: FakeClock) -> AsyncIterator[Context]:
    """A house whose folder holds what one session taught."""
    a_rollout(folder / "codex", now=clock.now(), turns=["Never rebase the release branch."])
    async with a_house(settings_in(folder), clock) as context:
        report = await run_pass(context, backfill="recent")
        assert report.exit_code == 0
        yield context


async def test_what_memoryd_published_is_no_edit(tmp_path: Path, clock: FakeClock) -> None:
    async with remembering(tmp_path, clock) as context:
        assert not await notice_edits(context)


async def test_an_edit_is_noticed_once_and_consolidated_when_the_person_had_time_to_finish(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with remembering(tmp_path, clock) as context:
        with (context.home.memories / "MEMORY.md").open("a") as file:
            file.write("- Mine [Task 1] [stated]\n")

        assert await notice_edits(context)
        assert not await notice_edits(context)

        (waiting,) = await context.ledger.read(jobs.waiting, now=clock.now())
        assert (waiting.kind, waiting.wait_reason) == (JobKind.CONSOLIDATE, "debounce")


async def test_a_folder_in_which_a_publication_is_being_put_in_place_is_looked_at_afterwards(
    tmp_path: Path, clock: FakeClock
) -> None:
    """A scan in the middle of a publication used to take memoryd's own half of it for a person's edit."""
    async with remembering(tmp_path, clock) as context:
        accepted = context.repository.accepted()
        assert accepted is not None
        decided = NewPublication(accepted, None)
        number = await context.ledger.write(publications.decide, decided, attempt_id=1, now=clock.now())
        (context.home.memories / "raw_memories.md").write_text("half of it\n")

        assert not await notice_edits(context)

        await context.ledger.write(publications.mark_published, number, now=clock.now())
        assert await notice_edits(context)
