"""I10 against I12: what came with an import is kept like a person's words, and goes with the session it came from."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memoryd.daemon.endings import Ending
from memoryd.pipeline.context import Context
from memoryd.pipeline.forget import Forgotten, forget
from memoryd.pipeline.import_codex import import_codex
from memoryd.pipeline.importing import recorded_statements
from memoryd.pipeline.undo import undo
from memoryd.workspace.authorship import person_lines
from memoryd.workspace.folder import Folder
from memoryd.workspace.layout import MEMORY_FILE, SUMMARY_FILE
from memoryd.workspace.notes import write_note
from memoryd.workspace.purging_remains import BROUGHT, FILED, NOTED, SHARED, WRITTEN
from tests.pipeline.test_consolidate import memory, remember, run
from tests.support.clock import FakeClock
from tests.support.codex_memories import FIRST, RECORDED, RECORDED_AT, THREADS, a_codex_memory
from tests.support.house import a_house, settings_in

OTHER = "0194f5a6-89ab-7cde-8123-456789abcdef"
ROUNDING = "range(total // size) forgets the last page when a rest remains"
"""Said by the first session alone."""
CENTS = "In billing, amounts stay integers in cents."
"""Of the summary, and of what only the third session was about."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(RECORDED_AT)


@asynccontextmanager
async def an_import(tmp_path: Path, clock: FakeClock) -> AsyncIterator[tuple[Context, Path]]:
    """A house that has imported Codex's memory, and that memory."""
    codex = a_codex_memory(tmp_path / "codex", [FIRST])
    async with a_house(settings_in(tmp_path), clock) as context:
        await import_codex(context, [codex])
        yield context, codex


def summary(context: Context) -> str:
    return (context.home.memories / SUMMARY_FILE).read_text()


def everything(context: Context) -> bytes:
    """Return what stands in the folder's files and in every object of its history."""
    objects = context.repository.run("cat-file", "--batch-all-objects", "--batch", "--unordered")
    files = "\n".join(Folder.read(context.home.memories).files.values())
    return objects + files.encode() + context.ledger.path.read_bytes()


def persons(context: Context) -> list[str]:
    commit = context.repository.accepted()
    assert commit is not None
    rows = memory(context).split("\n")
    return [rows[number - 1] for number in sorted(person_lines(context.repository, commit, MEMORY_FILE))]


def reasons(done: Forgotten, words: str) -> set[tuple[str, str]]:
    return {(each.path, each.why) for each in done.remains if words in each.text}


def of_one_task(codex: Path) -> None:
    """Let one task of Codex's handbook rest on two sessions, and a statement cite that task."""
    handbook = codex / FIRST / MEMORY_FILE
    text = handbook.read_text()
    rows = [row for row in text.split("\n") if row.startswith("- rollout_summaries/")]
    handbook.write_text(text.replace(rows[1], f"{rows[1]}\n{rows[0]}"))


@pytest.mark.parametrize("shared", [False, True], ids=["a-task-each", "one-task"])
async def test_a_purge_takes_what_an_import_brought_of_the_session_and_leaves_the_rest_protected_i12(
    tmp_path: Path, clock: FakeClock, *, shared: bool
) -> None:
    codex = a_codex_memory(tmp_path / "codex", [FIRST])
    if shared:
        of_one_task(codex)
    async with a_house(settings_in(tmp_path), clock) as context:
        await import_codex(context, [codex])
        assert ROUNDING.encode() in everything(context)
        done = await forget(context, [THREADS[0]], purge=True)
        assert ROUNDING.encode() not in everything(context)
        assert "prefer that you always run the tests" not in memory(context)
        assert ("pytest -q" in memory(context)) is not shared  # a purge takes what cites a task that names the session
        assert done.remains == ()
        amounts = [row for row in persons(context) if "amounts stay integers" in row]
        assert len(amounts) == 1

        await remember(context, OTHER, "Never deploy the shop on Fridays", cwd="/home/dev/shop")
        assert (await run(context)).ending is Ending.PUBLISHED
        assert amounts[0] in memory(context).split("\n")
        assert amounts[0] in persons(context)
        assert CENTS in summary(context)
        assert ROUNDING.encode() not in everything(context)


async def test_what_cites_nothing_goes_by_its_words_and_a_second_purge_takes_what_the_first_left(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with an_import(tmp_path, clock) as (context, _):
        await forget(context, [THREADS[0]], purge=True)
        assert CENTS in summary(context)
        done = await forget(context, [THREADS[2]], purge=True)
        assert b"cents" not in everything(context)
        assert "pytest -q" in memory(context)
        assert done.remains == ()


async def test_without_a_purge_what_other_sessions_support_stays_and_is_named(tmp_path: Path, clock: FakeClock) -> None:
    async with an_import(tmp_path, clock) as (context, _):
        done = await forget(context, [THREADS[0]])
        assert ROUNDING not in memory(context)
        shared = "The unit tests of paginator are run with python -m unittest, and end with OK."
        assert f"- {shared} [Task 1]" in memory(context)
        assert reasons(done, shared) == {(MEMORY_FILE, SHARED)}
        assert any(shared in row for row in persons(context))


async def test_what_the_person_edited_after_the_import_or_wrote_stays_and_is_named(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I10."""
    codex = a_codex_memory(tmp_path / "codex", [FIRST])
    of_one_task(codex)
    async with a_house(settings_in(tmp_path), clock) as context:
        await import_codex(context, [codex])
        handbook = context.home.memories / MEMORY_FILE
        text = handbook.read_text().replace("-> run pytest -q first", "-> run pytest -q, then ruff")
        handbook.write_text(
            text.replace("- range(total", "- My own: range(total").replace("calc.py [Task 1]", "calc.py [Task 2]")
        )
        done = await forget(context, [THREADS[0]], purge=True)
        assert "then ruff" in memory(context)
        assert "My own: range(total" in memory(context)
        assert reasons(done, "My own") == {(MEMORY_FILE, WRITTEN)}
        assert reasons(done, "then ruff") == {(MEMORY_FILE, WRITTEN)}
        assert "integers in cents" in memory(context)

        done = await forget(context, [THREADS[2]], purge=True)
        assert "integers in cents" not in memory(context)
        assert "My own: range(total" in memory(context)


async def test_every_other_line_that_speaks_of_the_session_is_named_with_its_reason(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with an_import(tmp_path, clock) as (context, _):
        write_note(context.home, f"see session {THREADS[0]} for the pager", now=clock.now())
        (context.home.memories / "own.md").write_text("nothing\nfrom now on\nthe off-by-one bug was it\n")
        extension = context.home.memories / "extensions" / "claude"
        (extension / "resources").mkdir(parents=True)
        (extension / "instructions.md").write_text("the off-by-one bug in instructions is the format's\n")
        (extension / "resources" / "a.md").write_text("one of finishing\n")
        done = await forget(context, [THREADS[0]], purge=True)
        assert {(each.path.partition("/notes/")[0], each.line, each.why) for each in done.remains} == {
            ("extensions/ad_hoc", 1, NOTED),
            ("extensions/claude/resources/a.md", 1, BROUGHT),
            ("own.md", 3, FILED),
        }
        assert {each.how for each in done.remains if each.why != NOTED} == {
            "it has words that only the session had: off, one",
            "it has words that only the session had: one, finishing",
        }


async def test_what_was_forgotten_does_not_come_back_with_a_later_state_of_the_folder(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with an_import(tmp_path, clock) as (context, codex):
        await forget(context, [THREADS[0], THREADS[2]], purge=True)
        handbook = codex / FIRST / MEMORY_FILE
        handbook.write_text(handbook.read_text() + "- A rest of one page is a page. [Task 1]\n")
        (codex / FIRST / "own.md").write_text("a later file\n")
        report = await import_codex(context, [codex])
        assert report.files["imported"] == 2  # own.md, and a scope for the index of the summary
        assert ROUNDING.encode() not in everything(context)
        assert b"cents" not in everything(context)
        assert "A rest of one page" not in memory(context)


async def test_a_session_that_codex_does_not_want_remembered_brings_no_statement_either(
    tmp_path: Path, clock: FakeClock
) -> None:
    codex = a_codex_memory(tmp_path / "codex", [FIRST])
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, THREADS[0], "Always use tabs in the Makefile")
        await forget(context, [THREADS[0]])
        await import_codex(context, [codex])
        assert ROUNDING not in memory(context)
        assert CENTS in summary(context)
        assert "The user works on small Python projects" in summary(context)


async def test_the_record_of_what_came_keeps_no_text_and_loses_what_was_purged(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with an_import(tmp_path, clock) as (context, _):
        whole = await context.ledger.read(recorded_statements)
        assert (
            len(whole)
            == len(
                {
                    row
                    for row in (RECORDED / FIRST / MEMORY_FILE).read_text().split("\n")
                    if row.startswith("- ") and "[Task" in row
                }
            )
            + 3
        )
        await forget(context, [THREADS[0]], purge=True)
        left = await context.ledger.read(recorded_statements)
        assert left < whole


async def test_an_import_that_was_undone_and_put_back_is_forgotten_all_the_same(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with an_import(tmp_path, clock) as (context, _):
        await undo(context)
        assert ROUNDING not in memory(context)
        await undo(context)
        assert ROUNDING in memory(context)
        await forget(context, [THREADS[0]], purge=True)
        assert ROUNDING.encode() not in everything(context)


async def test_an_undo_after_a_forgetting_brings_nothing_of_it_back(tmp_path: Path, clock: FakeClock) -> None:
    async with an_import(tmp_path, clock) as (context, _):
        await remember(context, OTHER, "Never deploy the shop on Fridays", cwd="/home/dev/shop")
        await run(context)
        await forget(context, [THREADS[0]])
        await undo(context)
        assert "Fridays" not in memory(context)
        assert ROUNDING not in memory(context)
        assert "integers in cents" in memory(context)
