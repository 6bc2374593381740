"""Stored rows under rules that came later."""

from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.ledger import jobs, meta, outputs
from memoryd.ledger.states import GLOBAL_KEY, JobKind
from memoryd.pipeline.context import Context
from memoryd.pipeline.rescan import RULES_KEY, rescan
from memoryd.redact import Redactor
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import MEMORY_FILE, SUMMARY_FILE
from tests.pipeline.test_consolidate import FIRST, SECOND, remember, run
from tests.support.clock import FakeClock
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import good_model
from tests.support.log_lines import LogLines

CODE = "ACME-4711"
PATTERN = r"ACME-\d+"


def with_pattern(context: Context) -> Context:
    return replace(context, redactor=Redactor([PATTERN]))


async def waits_for_consolidation(context: Context) -> str | None:
    job = await context.ledger.read(jobs.find, JobKind.CONSOLIDATE, GLOBAL_KEY)
    return job.enqueue_reason if job is not None and job.status == "pending" else None


async def test_rules_that_are_the_same_look_at_nothing(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        assert await rescan(context) == 0
        await remember(context, FIRST, f"the code is {CODE}")
        assert await context.ledger.read(meta.get, RULES_KEY) == context.redactor.fingerprint
        assert await rescan(context) == 0


@pytest.mark.parametrize("offline", [True, False])
async def test_what_a_new_pattern_knows_leaves_rows_and_files(tmp_path: Path, clock: FakeClock, offline: bool) -> None:
    """I6: rows at once, MEMORY.md and the evidence by the next consolidation, which is asked for."""
    client = None if offline else Answering(good_model)
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        await rescan(context)
        await remember(context, FIRST, f"Always deploy with the code {CODE} in the shop")
        await remember(context, SECOND, "Never deploy the shop on Fridays", cwd="/home/dev/infra")
        await run(context)
        folder = Folder.read(context.home.memories)
        assert CODE in folder.text(MEMORY_FILE)

        later = with_pattern(context)
        log = LogLines()
        assert await rescan(later) >= 1
        assert log.events("rules.changed")
        row = await later.ledger.read(outputs.get, FIRST)
        assert row is not None
        assert CODE not in row.raw_memory + row.rollout_summary
        assert await waits_for_consolidation(later) == "rules"

        await run(later)
        folder = Folder.read(later.home.memories)
        assert [path for path, text in folder.files.items() if CODE in text or CODE in path] == []
        assert "[REDACTED_SECRET:custom]" in "".join(folder.files.values())
        assert folder.text(SUMMARY_FILE).startswith("v1\n")
        assert await rescan(later) == 0
        assert await waits_for_consolidation(later) is None


async def test_a_line_of_a_person_with_what_is_a_secret_by_now_is_redacted_too(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with a_house(settings_in(tmp_path), clock, client=Answering(good_model)) as context:
        await rescan(context)
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        handbook = context.home.memories / MEMORY_FILE
        handbook.write_text(handbook.read_text() + f"- the person's own code is {CODE} [Task 1] [stated]\n")
        await remember(context, SECOND, "Never deploy the shop on Fridays", cwd="/home/dev/infra")
        await run(context)
        assert CODE in handbook.read_text()

        later = with_pattern(context)
        await rescan(later)
        await run(later)
        assert CODE not in handbook.read_text()


async def test_the_next_start_with_another_pattern_looks_at_the_rows(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, f"Always deploy with the code {CODE} in the shop")
    async with a_house(settings_in(tmp_path, privacy__patterns=[PATTERN]), clock) as context:
        row = await context.ledger.read(outputs.get, FIRST)
        assert row is not None
        assert CODE not in row.raw_memory + row.rollout_summary
        assert await waits_for_consolidation(context) == "rules"


async def test_a_rescan_that_was_interrupted_begins_again(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await rescan(context)
        await remember(context, FIRST, f"the code {CODE} is what the shop wants")

        class Interrupted(Exception):
            pass

        class Breaking(Redactor):
            def clean(self, text: str) -> str:
                raise Interrupted

        with pytest.raises(Interrupted):
            await rescan(replace(context, redactor=Breaking([PATTERN])))
        assert await rescan(with_pattern(context)) >= 1


async def test_a_folder_alone_that_holds_one_asks_for_a_consolidation(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock, client=Answering(good_model)) as context:
        await rescan(context)
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        notes = context.home.memories / "skills" / "x" / "SKILL.md"
        notes.parent.mkdir(parents=True)
        notes.write_text(f"---\nname: x\ndescription: {CODE}\n---\n\nDo it.\n")
        later = with_pattern(context)
        assert await rescan(later) == 0
        assert await waits_for_consolidation(later) == "rules"


def test_a_fingerprint_is_of_the_rules_and_the_patterns() -> None:
    assert Redactor().fingerprint == Redactor().fingerprint
    assert Redactor([PATTERN]).fingerprint not in (Redactor().fingerprint, Redactor(["other-.x"]).fingerprint)
