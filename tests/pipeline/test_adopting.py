"""A new ledger beside an older memory: what was lost is read back from the folder, and nothing changes there."""

from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.ledger import meta, outputs, sessions
from memoryd.ledger.outputs import SelectedOutput
from memoryd.pipeline.adopting import adopt_folder
from memoryd.pipeline.context import Context
from memoryd.pipeline.discover import Discovery
from memoryd.workspace.folder import Folder
from memoryd.workspace.rereading import reread
from tests.pipeline.test_consolidate import FIRST, SECOND, enqueue, remember, run
from tests.support.clock import FakeClock
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import good_model
from tests.support.log_lines import LogLines


async def forget_ledger(folder: Path, clock: FakeClock, client: Answering) -> dict[str, SelectedOutput]:
    """Let a memory be made of two sessions, and lose the ledger; the answer is what it held."""
    async with a_house(settings_in(folder), clock, client=client) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await remember(context, SECOND, "Never deploy the shop on Fridays", cwd="/home/dev/infra")
        await run(context)
        held = await everything(context)
    for path in context.home.path.glob("ledger.sqlite3*"):
        path.unlink()
    client.asked.clear()
    return held


async def everything(context: Context) -> dict[str, SelectedOutput]:
    found = [await context.ledger.read(outputs.get, thread) for thread in (FIRST, SECOND)]
    return {row.thread_id: replace(row, generated_at=0, started_at=None) for row in found if row is not None}


async def test_the_outputs_come_back_and_a_consolidation_finds_nothing_to_do(tmp_path: Path, clock: FakeClock) -> None:
    """I4: not one request."""
    log, client = LogLines(), Answering(good_model)
    held = await forget_ledger(tmp_path, clock, client)
    assert len(held) == 2
    before = Folder.read(tmp_path / "home" / "memories").files

    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        adopted = {
            thread: replace(
                row,
                raw_memory=held[thread].raw_memory.strip(),
                rollout_summary=held[thread].rollout_summary.rstrip("\n"),
            )
            for thread, row in held.items()
        }
        now = await everything(context)
        assert {key: (row.raw_memory.strip(), row.rollout_summary.strip(), row.stem) for key, row in now.items()} == {
            key: (row.raw_memory.strip(), row.rollout_summary.strip(), row.stem) for key, row in adopted.items()
        }
        assert all(row.selected_for_phase2 for row in now.values())
        report = await Discovery(context).run_once()
        assert (report.enqueued, report.edited) == (0, False)
        await enqueue(context)
        assert (await run(context)).ending.value == "unchanged"

    assert client.asked == []
    assert Folder.read(tmp_path / "home" / "memories").files == before
    assert [event["count"] for event in log.events("memory.adopted")] == [2]


async def test_what_was_adopted_is_neither_due_nor_taken_for_known(tmp_path: Path, clock: FakeClock) -> None:
    client = Answering(good_model)
    await forget_ledger(tmp_path, clock, client)
    async with a_house(settings_in(tmp_path), clock) as context:
        row = await context.ledger.read(sessions.get_exact, SECOND)
        assert row is not None
        assert (row.cwd, row.agent) == ("/home/dev/infra", "codex")
        assert set((await context.ledger.read(sessions.known_files)).values()) == {(0, 0)}
        due = await context.ledger.read(sessions.due, idle_before=float("inf"), newest_from=None, limit=10)
        assert due == []


async def test_a_ledger_that_has_begun_adopts_nothing(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        await context.ledger.write(meta.first_start, now=clock.now())
        await context.ledger.write(outputs.remove, FIRST)
        assert await adopt_folder(context) == 0
        assert await context.ledger.read(outputs.get, FIRST) is None


STEM = "2025-02-11T15-35-19-jqmb"
ENTRY = (
    f"# Raw Memories\n\n## Thread `{FIRST}`\nupdated_at: 2025-02-11T15:35:19+00:00\ncwd: unknown\n"
    f"rollout_path: unknown\nrollout_summary_file: {STEM}.md\n\nraw words\n\n"
)
SUMMARY = f"thread_id: {FIRST}\nagent: codex\nupdated_at: 2025-02-11T15:35:19+00:00\ncwd: unknown\n\nsummary\n\nmore\n"


def test_a_summary_is_read_back_without_its_header() -> None:
    files = {"raw_memories.md": ENTRY, f"rollout_summaries/{STEM}.md": SUMMARY}
    (found,) = reread(Folder(files))
    assert (found.raw_memory, found.rollout_summary, found.updated_at) == ("raw words", "summary\n\nmore", 1739288119)
    assert (found.slug, found.cwd, found.rollout_path, found.agent) == (None, None, None, "codex")


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"raw_memories.md": "# Raw Memories\n\nNo raw memories yet.\n"},
        {"raw_memories.md": ENTRY},
        {"raw_memories.md": ENTRY, f"rollout_summaries/{STEM}.md": SUMMARY.replace(FIRST, SECOND)},
        {"raw_memories.md": ENTRY, f"rollout_summaries/{STEM}.md": SUMMARY.replace("2025-02-11T15", "once")},
        {"raw_memories.md": ENTRY.replace(STEM, "odd name"), "rollout_summaries/odd name.md": SUMMARY},
    ],
)
def test_parts_that_do_not_fit_together_are_left_out(files: dict[str, str]) -> None:
    assert reread(Folder(files)) == []
