"""Retention of history: bounded by age and size, and never in the way of what is decided, proposed or running."""

from pathlib import Path

import pytest

from memoryd.config import Settings
from memoryd.ledger import publications
from memoryd.pipeline.context import Context
from memoryd.pipeline.keep_history import keep_history
from memoryd.pipeline.undo import undo
from memoryd.workspace.git import DAEMON
from memoryd.workspace.history import Change, entries
from memoryd.workspace.repository import accept
from tests.pipeline.test_consolidate import FIRST, SECOND, memory, remember, run
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in

DAY = 86_400


async def an_old_history(context: Context) -> None:
    """A consolidation, and thirty more versions that differ in the time of their commit alone."""
    await remember(context, FIRST, "Always use tabs in the Makefile")
    await run(context)
    repo = context.repository
    tip = repo.accepted()
    assert tip is not None
    tree, at = repo.tree_of(tip), context.clock.now()
    for _ in range(30):
        tip = repo.commit_tree(tree, [tip], "Undo\n\nChange: undo\n", author=DAEMON, at=at)
    accept(repo, tip)


async def test_old_changes_become_one_and_everything_goes_on(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path, consolidate__history_max_age="10d"), clock) as context:
        await an_old_history(context)
        before = memory(context)
        assert await keep_history(context) == 0
        clock.jump(12 * DAY)

        assert await keep_history(context) == 11

        repo = context.repository
        assert repo.accepted() == repo.head()
        assert memory(context) == before
        found = entries(repo, limit=99)
        assert len(found) == 21
        assert found[-1].change is Change.SHORTENING
        assert repo.run("status", "--porcelain").decode() == ""
        assert await keep_history(context) == 0
        await remember(context, SECOND, "Never deploy the shop on Fridays")
        assert (await run(context)).ending.value == "published"
        await undo(context)
        assert memory(context) == before


async def test_a_history_that_takes_too_much_is_halved(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path, consolidate__history_max_size=1), clock) as context:
        await an_old_history(context)
        assert await keep_history(context) == 11
        assert await keep_history(context) == 0


async def test_nothing_is_cut_while_something_is_decided(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path, consolidate__history_max_size=1), clock) as context:
        await an_old_history(context)
        accepted = context.repository.accepted()
        assert accepted is not None
        decided = publications.NewPublication(accepted, accepted)
        await context.ledger.write(publications.decide, decided, attempt_id=None, now=clock.now())
        assert await keep_history(context) == 0


class Died(BaseException):
    """The process ends here."""


async def die_at(tmp_path: Path, clock: FakeClock, point: str) -> None:
    """Cut the history until the process ends at a point."""

    def reached(name: str) -> None:
        if name == point:
            raise Died

    async with a_house(too_large(tmp_path), clock, reached=reached) as context:
        await an_old_history(context)
        await keep_history(context)


def too_large(tmp_path: Path) -> Settings:
    return settings_in(tmp_path, consolidate__history_max_size=1)


@pytest.mark.parametrize("point", ["history_written", "history_moved"])
async def test_a_crash_on_the_way_loses_nothing(tmp_path: Path, clock: FakeClock, point: str) -> None:
    """I1, I3."""
    with pytest.raises(Died):
        await die_at(tmp_path, clock, point)
    async with a_house(too_large(tmp_path), clock) as context:
        repo, before = context.repository, memory(context)
        assert repo.accepted() == repo.head()
        assert repo.run("fsck", "--no-dangling") == b""
        assert len(entries(repo, limit=99)) == (31 if point == "history_written" else 21)
        await remember(context, SECOND, "Never deploy the shop on Fridays")
        assert (await run(context)).ending.value == "published"
        await undo(context)
        assert memory(context) == before
