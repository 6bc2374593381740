"""A memory folder that was deleted: put back from its history, or rebuilt from what stage 1 kept; said once."""

import shutil
from pathlib import Path

import pytest

from memoryd.ledger import jobs
from memoryd.pipeline.edits import notice_edits
from memoryd.workspace import restoring
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import Home
from tests.pipeline.test_consolidate import FIRST, SECOND, memory, remember, run
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in
from tests.support.log_lines import LogLines

MINE = "- Ask Ada first\n"


def empty(home: Home) -> None:
    for path in home.memories.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (home.memories / ".DS_Store").write_bytes(b"")


@pytest.mark.parametrize("noticed_by", ["the scan", "a run"])
async def test_a_folder_that_was_emptied_comes_back_from_its_history(
    tmp_path: Path, clock: FakeClock, noticed_by: str
) -> None:
    """I10: it was no wish to forget everything, and costs no request."""
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        file = context.home.memories / "MEMORY.md"
        file.write_text(f"{memory(context)}{MINE}")
        await remember(context, SECOND, "Never deploy the shop on Fridays")
        await run(context)
        before = Folder.read(context.home.memories).files
        empty(context.home)
        if noticed_by == "the scan":
            assert not await notice_edits(context)
            assert not await notice_edits(context)
            assert Folder.read(context.home.memories).files == before
            assert await context.ledger.read(jobs.waiting, now=clock.now()) == []
        else:
            await remember(context, SECOND, "Never deploy the shop on Mondays", at=2)
            assert (await run(context)).ending == "published"
            assert set(Folder.read(context.home.memories).files) == set(before)
        assert MINE in memory(context)
        assert "tabs" in memory(context)
        assert [line["count"] for line in log.events("folder.restored")] == [len(before)]


@pytest.mark.parametrize("noticed_by", ["the scan", "a run"])
async def test_a_folder_that_is_gone_with_its_history_is_rebuilt_from_what_was_learned(
    tmp_path: Path, clock: FakeClock, noticed_by: str
) -> None:
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        before = set(Folder.read(context.home.memories).files)
        shutil.rmtree(context.home.memories)
        if noticed_by == "the scan":
            assert await notice_edits(context)
            assert not await notice_edits(context)
            clock.jump(context.settings.consolidate.debounce + 1)
        else:
            await remember(context, SECOND, "Never deploy the shop on Fridays")
        assert (await run(context)).ending == "published"
        assert "tabs" in memory(context)
        assert before <= set(Folder.read(context.home.memories).files)
        assert context.repository.accepted() is not None
        assert len(log.events("folder.missing")) == 1


async def test_a_crash_while_files_are_put_back_is_no_persons_deletion(tmp_path: Path, clock: FakeClock) -> None:
    passes = 4

    def still_ours() -> None:
        nonlocal passes
        passes -= 1
        if passes < 0:
            raise KeyboardInterrupt

    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        before = Folder.read(context.home.memories).files
        empty(context.home)
        with pytest.raises(KeyboardInterrupt):
            restoring.restore(context.home, context.repository, still_ours=still_ours)
        assert not restoring.is_lost(context.home)
        assert not await notice_edits(context)
        assert Folder.read(context.home.memories).files == before
        assert not (context.home.git_dir / "memoryd-restoring").exists()


async def test_a_new_home_has_lost_nothing(tmp_path: Path, clock: FakeClock) -> None:
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        assert not await notice_edits(context)
        shutil.rmtree(context.home.memories)
        assert not await notice_edits(context)
        assert log.events("folder.missing") == []
