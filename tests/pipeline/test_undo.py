"""`undo`: the memory as it was before the last changes, whoever edited it since (I1, I3, I4, I10)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.daemon.endings import Ending
from memoryd.errors import UsageError
from memoryd.ledger import claims, holds, outputs, publications, sessions
from memoryd.ledger.claims import Closing
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.sessions import UserMode
from memoryd.llm.question import Answer, Question
from memoryd.llm.spend import Purpose
from memoryd.pipeline.consolidate import publish_decided
from memoryd.pipeline.context import Context
from memoryd.pipeline.forget import forget
from memoryd.pipeline.undo import undo
from memoryd.workspace.folder import Folder
from memoryd.workspace.git import DAEMON
from memoryd.workspace.history import Change, entries
from tests.pipeline.test_consolidate import FIRST, SECOND, THIRD, enqueue, memory, message_of, remember, run, selected
from tests.support.clock import FakeClock
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import good_model

TABS, FRIDAYS, CHANGELOG = (
    "Always use tabs in the Makefile",
    "Never deploy the shop on Fridays",
    "Always write the changelog first",
)
PERSONS = "> Ask me before you touch the cellar.\n"


async def two_versions(context: Context) -> tuple[str, str]:
    """Consolidate one session, then a second; return MEMORY.md after each."""
    await remember(context, FIRST, TABS)
    await run(context)
    first = memory(context)
    await remember(context, SECOND, FRIDAYS, cwd="/home/dev/infra")
    await run(context)
    return first, memory(context)


def assert_in_place(context: Context) -> None:
    """The folder is the accepted commit, byte for byte."""
    repo = context.repository
    assert repo.accepted() == repo.head()
    assert repo.run("status", "--porcelain", "--ignored").decode() == ""


async def test_the_memory_is_as_before_the_last_consolidation_and_undoing_that_brings_it_back(
    tmp_path: Path, clock: FakeClock
) -> None:
    client = Answering(good_model)
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        first, second = await two_versions(context)
        asked = len(client.asked)

        done = await undo(context)

        assert done is not None
        assert done.held == (SECOND,)
        assert memory(context) == first
        assert FRIDAYS not in (context.home.memories / "memory_summary.md").read_text()
        assert await selected(context) == [FIRST]
        assert_in_place(context)
        assert FRIDAYS not in {claim.text for claim in await context.ledger.read(claims.valid)}
        closed = [row for row in await context.ledger.read(claims.every, limit=99) if row.invalidated_at]
        assert {row.closed_because for row in closed} == {Closing.REMOVED}
        assert "Change: undo" in message_of(context, done.commit)

        again = await undo(context)

        assert again is not None
        assert again.held == ()
        assert memory(context) == second
        assert await selected(context) == [FIRST, SECOND]
        assert await context.ledger.read(holds.held) == []
        assert_in_place(context)
        assert [entry.change for entry in entries(context.repository, limit=9)] == [
            Change.UNDO,
            Change.UNDO,
            Change.CONSOLIDATION,
            Change.CONSOLIDATION,
        ]
        await enqueue(context)
        assert (await run(context)).ending.value == "unchanged"
        assert len(client.asked) == asked


@pytest.mark.parametrize("offline", [False, True])
async def test_what_was_undone_stays_out_until_its_session_grows(
    tmp_path: Path, clock: FakeClock, *, offline: bool
) -> None:
    client = None if offline else Answering(good_model)
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        await two_versions(context)
        await undo(context)
        await enqueue(context)

        assert (await run(context)).ending.value == "unchanged"
        await remember(context, THIRD, CHANGELOG)
        assert (await run(context)).ending.value == "published"
        assert await selected(context) == [FIRST, THIRD]
        assert "Fridays" not in memory(context)
        assert "changelog" in memory(context)

        await remember(context, SECOND, f"{FRIDAYS}. Not on Saturdays either", cwd="/home/dev/infra", at=60)
        await run(context)
        assert await selected(context) == [FIRST, SECOND, THIRD]
        assert "Fridays" in memory(context)


async def test_a_session_that_grew_stands_as_it_was_before(tmp_path: Path, clock: FakeClock) -> None:
    """The undone run had replaced what an older state of the session taught: that stays remembered meanwhile."""
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, TABS)
        await run(context)
        first = memory(context)
        await remember(context, FIRST, "Always use spaces in the Makefile", at=60)
        await run(context)
        assert "spaces" in memory(context)

        await undo(context)
        assert memory(context) == first
        (held,) = await context.ledger.read(holds.held)
        assert (held.standing_updated_at or 0) < held.source_updated_at
        await enqueue(context)
        assert (await run(context)).ending.value == "unchanged"
        await remember(context, SECOND, FRIDAYS)
        await run(context)
        assert "tabs" in memory(context)
        assert "spaces" not in memory(context)
        assert await selected(context) == [FIRST, SECOND]


async def test_several_changes_are_taken_back_at_once_and_more_than_there_are_is_refused(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        assert await undo(context) is None
        first, _ = await two_versions(context)
        await remember(context, THIRD, CHANGELOG)
        await run(context)
        with pytest.raises(UsageError, match="holds 3"):
            await undo(context, 4)

        await undo(context, 2)
        assert memory(context) == first
        await undo(context, 4)
        assert "Nothing is remembered" in memory(context)
        assert await selected(context) == []
        assert_in_place(context)


@pytest.mark.parametrize("committed", [False, True])
async def test_what_a_person_wrote_since_survives(tmp_path: Path, clock: FakeClock, *, committed: bool) -> None:
    """I10."""
    async with a_house(settings_in(tmp_path), clock) as context:
        first, second = await two_versions(context)
        file = context.home.memories / "MEMORY.md"
        file.write_text(PERSONS + second)
        if committed:
            context.repository.run("add", "-A")
            context.repository.run("commit", "-q", "-m", "Mine", "--author", "A Person <person@example.com>")

        await undo(context)

        assert memory(context) == PERSONS + first
        assert [entry.change for entry in entries(context.repository, limit=2)] == [Change.UNDO, Change.PERSON]
        await undo(context)
        assert memory(context) == PERSONS + second


async def test_a_line_that_the_undone_run_had_moved_survives_beside_a_newer_one(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I10: going back moves the one line to where the other stands by now."""
    async with a_house(settings_in(tmp_path), clock) as context:
        file = context.home.memories / "MEMORY.md"
        await remember(context, FIRST, TABS)
        await run(context)
        file.write_text("> Older.\n" + file.read_text())
        await remember(context, FIRST, "Always use spaces in the Makefile", at=60)
        await run(context)
        file.write_text("> Newer.\n" + file.read_text())

        await undo(context)

        rows = memory(context).split("\n")
        assert (rows.count("> Older."), rows.count("> Newer.")) == (1, 1)


async def test_a_skill_that_the_undone_run_wrote_goes_unless_a_person_changed_it(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await two_versions(context)
        repo, accepted = context.repository, context.repository.accepted()
        assert accepted is not None
        skills = {f"skills/{name}/SKILL.md": tmp_path / name for name in ("deploy", "mine")}
        for path in skills.values():
            path.write_text("---\nname: deploy\n---\nrun it\n")
        old = {path: context.home.memories / path for path in repo.files(accepted)}
        tree = repo.write_tree({**old, **skills})
        commit = repo.commit_tree(tree, [accepted], "Consolidate\n\nChange: consolidation\n", author=DAEMON, at=1)
        await context.ledger.write(
            publications.decide, NewPublication(commit, accepted), attempt_id=None, now=context.clock.now()
        )
        await publish_decided(context)
        mine = context.home.memories / "skills/mine/SKILL.md"
        mine.write_text(mine.read_text() + "and look at it\n")

        await undo(context)

        assert not (context.home.memories / "skills/deploy").exists()
        assert mine.read_text().endswith("run it\nand look at it\n")


async def test_what_may_not_be_remembered_any_more_does_not_come_back(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await two_versions(context)
        await context.ledger.write(sessions.set_user_mode, SECOND, UserMode.DISABLED)
        await enqueue(context)
        await run(context)
        assert "Fridays" not in memory(context)

        await undo(context)

        assert await selected(context) == [FIRST]
        names = {path.name for path in (context.home.memories / "rollout_summaries").iterdir()}
        assert len(names) == 1
        assert "Fridays" not in (context.home.memories / "raw_memories.md").read_text()


async def test_what_was_forgotten_stays_forgotten(tmp_path: Path, clock: FakeClock) -> None:
    """Neither its evidence nor what rests on it comes back with an earlier version."""
    async with a_house(settings_in(tmp_path), clock) as context:
        await two_versions(context)
        await remember(context, THIRD, CHANGELOG)
        await run(context)
        await forget(context, [SECOND])
        assert [entry.change for entry in entries(context.repository, limit=1)] == [Change.FORGETTING]

        done = await undo(context)

        assert done is not None
        assert [entry.change for entry in done.changes] == [Change.CONSOLIDATION]
        assert await selected(context) == [FIRST]
        assert "Makefile" in memory(context)
        for text in Folder.read(context.home.memories).files.values():
            assert "Fridays" not in text
            assert "changelog" not in text


async def test_a_secret_of_today_does_not_come_back_from_yesterday(tmp_path: Path, clock: FakeClock) -> None:
    """I6: an earlier version may be older than a pattern."""
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, "Always log in as zebra-4711")
        await run(context)
        await context.ledger.write(outputs.remove, FIRST)
        await remember(context, SECOND, FRIDAYS)
        await run(context)
        assert "zebra-4711" not in memory(context)
    async with a_house(settings_in(tmp_path, privacy__patterns=["zebra-[0-9]+"]), clock) as context:
        await undo(context)
        assert "zebra-4711" not in memory(context)


class Interrupted:
    """A model during whose first answer something else happens."""

    def __init__(self, happens: Callable[[], Awaitable[object]]) -> None:
        self._happens: Callable[[], Awaitable[object]] | None = happens
        self._model = Answering(good_model)

    async def ask(self, question: Question, purpose: Purpose) -> Answer:
        happens, self._happens = self._happens, None
        if happens is not None:
            await happens()
        return await self._model.ask(question, purpose)


async def test_a_run_at_work_writes_nothing_more_and_begins_anew(tmp_path: Path, clock: FakeClock) -> None:
    """I2: its ground was taken away."""
    async with a_house(settings_in(tmp_path), clock, client=Answering(good_model)) as context:
        first, _ = await two_versions(context)
        await remember(context, THIRD, CHANGELOG)
        interrupted = replace(
            context, consolidate=replace(context.consolidate, client=Interrupted(lambda: undo(context)))
        )

        assert (await run(interrupted)).ending is Ending.LEASE_LOST
        assert memory(context) == first
        assert (await run(context)).ending is Ending.PUBLISHED
        assert await selected(context) == [FIRST, THIRD]
        assert_in_place(context)
