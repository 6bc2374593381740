"""What search finds follows the memory: a publication, an undo, a person's edit, a crash, a forgetting."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.errors import StorageError
from memoryd.ledger import search as index
from memoryd.pipeline.context import Context, in_thread
from memoryd.pipeline.edits import notice_edits
from memoryd.pipeline.forget import forget, reset
from memoryd.pipeline.undo import undo
from memoryd.recall.search import Hit, Kind, Question, search
from tests.pipeline.test_consolidate import FIRST, SECOND, enqueue, memory, remember, run
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in
from tests.support.log_lines import LogLines
from tests.support.secrets import SHAPES

TABS = "Always use tabs in the Makefile"
FRIDAYS = "Never deploy the shop on Fridays"


async def find(context: Context, words: str, kind: Kind | None = Kind.BULLET) -> list[Hit]:
    kinds = frozenset({kind} if kind else ())
    question = Question(words, kinds=kinds)
    return list(await context.ledger.read(search, context.home, question, now=context.clock.now()))


def stands(context: Context, hit: Hit) -> bool:
    """Whether the line that a hit names is the one that it shows; a task's is its heading."""
    row = (context.home.memories / hit.path).read_text().split("\n")[hit.line - 1]
    return row.startswith("## Task ") if hit.kind is Kind.TASK else hit.text.split("\n")[0] in row


async def test_what_is_published_is_found_where_it_stands_and_what_is_undone_is_not(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, TABS)
        await run(context)
        assert await find(context, "deploy on Fridays") == []
        await remember(context, SECOND, FRIDAYS, cwd="/home/dev/infra")
        await run(context)

        (hit, *_) = found = await find(context, "may I deploy the shop on a Friday?")
        assert (hit.mark, hit.scope, hit.threads) == ("stated", "/home/dev/infra", (SECOND,))
        assert all(stands(context, each) for each in found)
        assert all(stands(context, each) for each in await find(context, "tabs Makefile deploy Fridays", None))

        await undo(context)
        assert await find(context, "deploy on Fridays", None) == []
        assert await find(context, "tabs")


async def test_a_persons_edit_is_found_once_the_scan_has_noticed_it(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, TABS)
        await run(context)
        text = memory(context)
        (context.home.memories / "MEMORY.md").write_text(text + "- Ask Ada about the cellar [ad-hoc note]\n")

        assert await notice_edits(context)

        (hit,) = await find(context, "who knows the cellar")
        assert (hit.text, hit.mark) == ("Ask Ada about the cellar", "ad-hoc note")
        assert stands(context, hit)


async def test_a_folder_that_comes_back_is_found_again(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, TABS)
        await run(context)
        for path in context.home.memories.iterdir():
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        assert await find(context, "tabs", None) == []

        await notice_edits(context)

        assert await find(context, "tabs")


async def test_a_crash_between_a_publication_and_its_index_is_made_up_for_by_the_next_start(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I1."""

    def dies(_commit: str) -> None:
        raise StorageError("the disk went away")

    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, TABS)
        with pytest.raises(StorageError):
            await run(replace(context, refresh_recall=dies))
        assert TABS in memory(context)
        assert await find(context, "tabs") == []

    async with a_house(settings_in(tmp_path), clock) as context:
        assert await find(context, "tabs")


async def test_an_index_that_is_lost_is_made_anew(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, TABS)
        await run(context)
        paths = await context.ledger.read(index.indexed_paths)
        nothing = index.Change(dict.fromkeys(paths), {})
        await context.ledger.write(index.replace_entries, nothing, made_as="an older way")

    async with a_house(settings_in(tmp_path), clock) as context:
        assert await find(context, "tabs")


async def test_where_nothing_has_changed_nothing_is_read_or_written(tmp_path: Path, clock: FakeClock) -> None:
    """I4: not at a refresh, a scan, a consolidation without news, or a start."""
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, TABS)
        await run(context)
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        await notice_edits(context)
        await enqueue(context)
        await run(context)
        accepted = context.repository.accepted()
        assert accepted is not None
        await in_thread(context.refresh_recall, accepted)

        assert log.events("search.refreshed") == []


@pytest.mark.parametrize("purge", [False, True])
async def test_what_is_forgotten_is_not_found(tmp_path: Path, clock: FakeClock, *, purge: bool) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, TABS)
        await remember(context, SECOND, FRIDAYS, cwd="/home/dev/infra")
        await run(context)
        assert await find(context, "Fridays", None)

        await forget(context, [SECOND], purge=purge)

        assert await find(context, "Fridays", None) == []
        assert await find(context, "tabs")
        assert b"Fridays" not in context.home.ledger_file.read_bytes() or not purge


async def test_a_reset_leaves_nothing_to_be_found_and_no_byte_of_the_index_i12(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, TABS)
        await run(context)

        await reset(context)

        assert await context.ledger.read(index.is_empty)
        left = [context.home.ledger_file, *context.home.path.glob("ledger.sqlite3-*")]
        assert [file.name for file in left if b"makefil" in file.read_bytes().lower()] == []


async def test_a_name_with_a_secret_is_not_in_the_index(tmp_path: Path, clock: FakeClock) -> None:
    """I6."""
    secret = SHAPES["github classic"]
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, TABS)
        await run(context)
        skill = context.home.memories / "skills" / secret / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text("---\nname: pruning\n---\n\n# Pruning\n\nPrune the orchard in February.\n")
        await notice_edits(context)
        assert await find(context, "prune the orchard", Kind.SKILL) == []
        assert secret.encode() not in context.ledger.path.read_bytes()
