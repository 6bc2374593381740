"""Codex's own memory, made by the real program, becomes ours: same rows, same files, and no churn on top of it."""

import os
import re
from pathlib import Path
from sqlite3 import Connection

import pytest

from memoryd.daemon.endings import Ending
from memoryd.errors import UsageError
from memoryd.ledger import claims, jobs, outputs, overview, publications, sessions
from memoryd.ledger.states import JobKind, Status
from memoryd.pipeline.context import Context
from memoryd.pipeline.discover import Discovery
from memoryd.pipeline.forget import forget, reset
from memoryd.pipeline.import_codex import import_codex
from memoryd.pipeline.undo import undo
from memoryd.workspace.folder import Folder
from memoryd.workspace.gauge import MAX_FILES
from memoryd.workspace.history import Change, entries
from tests.pipeline.test_consolidate import a_consolidator, enqueue, memory, remember, run, selected
from tests.support.clock import FakeClock
from tests.support.codex_memories import (
    FIRST,
    RECORDED,
    RECORDED_AT,
    SECOND,
    THREADS,
    a_codex_memory,
    everything_below,
    execute,
    rows_of,
)
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import good_model
from tests.support.secrets import SHAPES
from tests.support.sessions import a_rollout

OTHER = "0194f5a6-89ab-7cde-8123-456789abcdef"
COLUMNS = (
    "thread_id, source_updated_at, raw_memory, rollout_summary, rollout_slug, generated_at, usage_count, last_usage,"
    " selected_for_phase2, selected_for_phase2_source_updated_at"
)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(RECORDED_AT)


def bullets_of(text: str) -> list[str]:
    return [row for row in text.split("\n") if row.startswith("- ") and "rollout_summaries/" not in row]


def our_rows(context: Context) -> list[tuple[object, ...]]:
    return rows_of(context.ledger.path, COLUMNS)


async def a_new_session(context: Context) -> None:
    await remember(context, OTHER, "Never deploy the shop on Fridays", cwd="/home/dev/shop")


async def test_the_rows_and_the_files_are_the_same_and_nothing_is_sent_or_written_there(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I7, and the Must-show: a real folder, imported."""
    codex, client = a_codex_memory(tmp_path / "codex"), Answering(good_model)
    before = everything_below(codex)
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        report = await import_codex(context, [codex])

        assert our_rows(context) == rows_of(codex / "memories_1.sqlite", COLUMNS)
        ours = Folder.read(context.home.memories).files
    theirs = Folder.read(RECORDED / FIRST).files
    assert ours.keys() == theirs.keys()
    for path in ("MEMORY.md", "memory_summary.md", "raw_memories.md", "skills/finish-a-change/SKILL.md"):
        assert ours[path] == theirs[path]
    for path in (path for path in theirs if path.startswith("rollout_summaries/")):
        assert ours[path].replace("agent: codex\n", "").rstrip("\n") == theirs[path].rstrip("\n")
    assert (report.sessions, report.bullets, report.left_out) == ({"imported": 3}, 9, [])
    assert client.asked == []
    assert everything_below(codex) == before


@pytest.mark.parametrize("generation", [FIRST, SECOND])
async def test_a_second_import_finds_nothing_new(tmp_path: Path, clock: FakeClock, generation: str) -> None:
    codex = a_codex_memory(tmp_path / "codex", [generation])
    async with a_house(settings_in(tmp_path), clock) as context:
        first = await import_codex(context, [codex])
        rows, commit = our_rows(context), context.repository.accepted()
        second = await import_codex(context, [codex])
        assert (first.is_news, second.is_news, second.sessions) == (True, False, {"unchanged": 3})
        assert (our_rows(context), context.repository.accepted()) == (rows, commit)


@pytest.mark.parametrize("model", [None, good_model], ids=["offline", "scripted"])
async def test_a_consolidation_on_top_finds_nothing_to_do_and_the_next_keeps_every_bullet(
    tmp_path: Path, clock: FakeClock, model: object
) -> None:
    """The Must-show: accepted without churn (I4), and the words stay (I10)."""
    client = Answering(good_model) if model else None
    codex = a_codex_memory(tmp_path / "codex")
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        await import_codex(context, [codex])
        imported = Folder.read(context.home.memories).files
        done = await run(context)
        assert done.ending is Ending.UNCHANGED, done
        assert client is None or client.asked == []
        assert Folder.read(context.home.memories).files == imported

        await a_new_session(context)
        done = await run(context)
        assert done.ending is Ending.PUBLISHED, done
        after = Folder.read(context.home.memories).files
        assert set(bullets_of(imported["MEMORY.md"])) <= set(bullets_of(after["MEMORY.md"]))
        preferences = imported["memory_summary.md"].partition("## User preferences")[2].partition("## What's")[0]
        assert set(bullets_of(preferences)) <= set(bullets_of(after["memory_summary.md"]))
        assert "Fridays" in after["MEMORY.md"]
        assert await selected(context) == sorted([*THREADS, OTHER])

        await enqueue(context)
        assert (await run(context)).ending is Ending.UNCHANGED


@pytest.mark.parametrize("model", [None, good_model], ids=["offline", "scripted"])
async def test_the_second_generation_has_no_handbook_and_the_next_consolidation_writes_one(
    tmp_path: Path, clock: FakeClock, model: object
) -> None:
    codex = a_codex_memory(tmp_path / "codex", [SECOND])
    client = Answering(good_model) if model else None
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        await import_codex(context, [codex])
        assert (context.home.memories / "memory_summary.md").read_text() == (
            RECORDED / SECOND / "memory_summary.md"
        ).read_text()
        done = await run(context)
        assert done.ending is Ending.PUBLISHED, done
        assert all(f"thread_id={thread}" in memory(context) for thread in THREADS)
        assert "- In billing, amounts stay integers in cents." in (
            context.home.memories / "memory_summary.md"
        ).read_text().split("\n")


async def test_sessions_that_lie_there_are_not_extracted_again_until_they_grow(
    tmp_path: Path, clock: FakeClock
) -> None:
    codex = a_codex_memory(tmp_path / "codex")
    path = a_rollout(codex, now=RECORDED_AT, idle_hours=9, thread_id=THREADS[0])
    execute(codex / "state_5.sqlite", "UPDATE threads SET rollout_path = ? WHERE id = ?", str(path), THREADS[0])
    async with a_house(settings_in(tmp_path), clock) as context:
        await import_codex(context, [codex])
        report = await Discovery(context).run_once(ignore_idle=True)
        assert (report.seen, report.enqueued) == (1, 0)

        with path.open("a") as file:
            file.write(path.read_text().splitlines()[-1] + "\n")
        report = await Discovery(context).run_once(ignore_idle=True)
        assert report.enqueued == 1


async def test_a_session_that_codex_remembered_before_its_last_words_is_extracted(
    tmp_path: Path, clock: FakeClock
) -> None:
    codex = a_codex_memory(tmp_path / "codex")
    path = a_rollout(codex, now=RECORDED_AT, idle_hours=1, thread_id=THREADS[0])
    execute(codex / "state_5.sqlite", "UPDATE threads SET rollout_path = ? WHERE id = ?", str(path), THREADS[0])
    async with a_house(settings_in(tmp_path), clock) as context:
        await import_codex(context, [codex])
        assert (await Discovery(context).run_once(ignore_idle=True)).enqueued == 1


async def test_a_home_that_has_memories_keeps_them_and_takes_the_others_in_beside_them(
    tmp_path: Path, clock: FakeClock
) -> None:
    codex = a_codex_memory(tmp_path / "codex")
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, OTHER, "Never round before the sum", cwd="/home/dev/billing")
        await run(context)
        before = memory(context)
        report = await import_codex(context, [codex])
        text = memory(context)
        assert text.startswith(before.rstrip("\n"))
        assert "# Task Group: /home/dev/billing (imported from Codex)\n" in text
        assert set(bullets_of((RECORDED / FIRST / "MEMORY.md").read_text())) <= set(bullets_of(text))
        assert report.sessions == {"imported": 3}
        assert await selected(context) == sorted([*THREADS, OTHER])

        done = await run(context)
        assert done.ending in {Ending.PUBLISHED, Ending.UNCHANGED}, done
        assert set(bullets_of((RECORDED / FIRST / "MEMORY.md").read_text())) <= set(bullets_of(memory(context)))
        assert "Never round before the sum" in memory(context)


async def test_what_memoryd_made_of_a_session_stays_and_the_handbook_names_its_summary(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Codex dates a row by its file, here two hours after the last word."""
    codex = a_codex_memory(tmp_path / "codex")
    path = a_rollout(codex, now=RECORDED_AT, idle_hours=10, thread_id=THREADS[0])
    execute(codex / "state_5.sqlite", "UPDATE threads SET rollout_path = ? WHERE id = ?", str(path), THREADS[0])
    async with a_house(settings_in(tmp_path), clock, client=Answering(good_model)) as context:
        own = -(9 * 3600)
        await remember(context, THREADS[0], "Always use tabs in the Makefile", cwd="/home/dev/paginator", at=own)
        report = await import_codex(context, [codex])
        assert report.sessions == {"imported": 2, "left_out": 1}
        row = await context.ledger.read(outputs.get, THREADS[0])
        assert row is not None
        assert "tabs" in row.raw_memory
        text = memory(context)
        named = re.findall(r"rollout_summaries/[^ ]+[.]md", text)
        assert len(named) == 3
        assert all((context.home.memories / name).is_file() for name in named)
        assert (await run(context)).ending is Ending.UNCHANGED


async def test_the_import_is_an_entry_of_the_history_and_can_be_undone(tmp_path: Path, clock: FakeClock) -> None:
    codex = a_codex_memory(tmp_path / "codex")
    async with a_house(settings_in(tmp_path), clock) as context:
        report = await import_codex(context, [codex])
        (entry,) = entries(context.repository, limit=5)
        assert (entry.change, entry.result) == (Change.IMPORT, report.commit)
        assert entry.trailers["Imported-From"] == "Codex"
        valid = await context.ledger.read(claims.valid)
        assert {claim.author for claim in valid} == {"person"}
        await undo(context)
        assert "Task Group" not in memory(context)


async def test_after_a_reset_everything_can_be_imported_again(tmp_path: Path, clock: FakeClock) -> None:
    codex = a_codex_memory(tmp_path / "codex")
    async with a_house(settings_in(tmp_path), clock) as context:
        await import_codex(context, [codex])
        rows = our_rows(context)
        await reset(context)
        assert our_rows(context) == []
        report = await import_codex(context, [codex])
        assert report.sessions == {"imported": 3}
        assert our_rows(context) == rows
        assert memory(context) == (RECORDED / FIRST / "MEMORY.md").read_text()
        summary = context.home.memories / "memory_summary.md"
        assert summary.read_text() == (RECORDED / FIRST / "memory_summary.md").read_text()


@pytest.mark.parametrize("died_at", ["import_written", "import_decided"])
async def test_an_import_that_was_killed_is_brought_to_its_end_by_the_next(
    tmp_path: Path, clock: FakeClock, died_at: str
) -> None:
    """I1: what was decided is put in place first, and a row that was stored waits for its consolidation."""
    codex = a_codex_memory(tmp_path / "codex")

    def die(point: str) -> None:
        if point == died_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        async with a_house(settings_in(tmp_path), clock, reached=die) as context:
            await import_codex(context, [codex])
    async with a_house(settings_in(tmp_path), clock) as context:
        assert await context.ledger.read(overview.list_jobs, kind=JobKind.CONSOLIDATE, status=Status.PENDING)
        again = await import_codex(context, [codex])
        assert memory(context) == (RECORDED / FIRST / "MEMORY.md").read_text()
        assert again.sessions == {"unchanged": 3}
        assert await context.ledger.read(publications.pending) is None


async def test_what_was_forgotten_or_is_not_to_be_remembered_stays_away(tmp_path: Path, clock: FakeClock) -> None:
    codex = a_codex_memory(tmp_path / "codex")
    execute(codex / "state_5.sqlite", "UPDATE threads SET memory_mode = 'disabled' WHERE id = ?", THREADS[1])
    async with a_house(settings_in(tmp_path), clock) as context:
        first = await import_codex(context, [codex])
        assert first.sessions == {"imported": 2, "left_out": 1}
        await forget(context, [THREADS[0]])
        again = await import_codex(context, [codex])
        assert again.sessions == {"unchanged": 1, "left_out": 2}
        assert await context.ledger.read(outputs.get, THREADS[0]) is None
        assert "calc.py, success" not in memory(context).partition("billing")[0]


async def test_a_later_state_of_ours_stays_and_a_later_one_of_codex_comes(tmp_path: Path, clock: FakeClock) -> None:
    codex = a_codex_memory(tmp_path / "codex")
    store = codex / "memories_1.sqlite"
    async with a_house(settings_in(tmp_path), clock) as context:
        await import_codex(context, [codex])
        execute(store, "UPDATE stage1_outputs SET source_updated_at = 5 WHERE thread_id = ?", THREADS[0])
        later = "UPDATE stage1_outputs SET source_updated_at = source_updated_at + 60, raw_memory = 'anew'"
        execute(store, f"{later} WHERE thread_id = ?", THREADS[1])
        report = await import_codex(context, [codex])
        assert report.sessions == {"imported": 1, "unchanged": 1, "left_out": 1}
        kept, new = [await context.ledger.read(outputs.get, thread) for thread in THREADS[:2]]
        assert kept is not None
        assert kept.source_updated_at > 5
        assert new is not None
        assert new.raw_memory == "anew"
        assert (await run(context)).ending is Ending.PUBLISHED


async def test_no_secret_of_codex_comes_along(tmp_path: Path, clock: FakeClock) -> None:
    """I6."""
    codex, secret = a_codex_memory(tmp_path / "codex"), SHAPES["openai project"]
    execute(codex / "memories_1.sqlite", "UPDATE stage1_outputs SET raw_memory = raw_memory || ?", f"\nkey: {secret}\n")
    handbook = codex / FIRST / "MEMORY.md"
    handbook.write_text(handbook.read_text() + f"- the key is {secret} [Task 1]\n")
    async with a_house(settings_in(tmp_path), clock) as context:
        await import_codex(context, [codex])
        assert "the key is [REDACTED_SECRET" in memory(context)
        assert all(secret not in text for text in Folder.read(context.home.memories).files.values())
        assert secret.encode() not in context.ledger.path.read_bytes()
        assert all(secret not in str(row) for row in our_rows(context))


async def test_no_secret_in_a_files_name_comes_along_either(tmp_path: Path, clock: FakeClock) -> None:
    """I6: names stand in commits, in the ledger and in the report; a summary is called as memoryd would call it."""
    codex, secret = a_codex_memory(tmp_path / "codex"), SHAPES["github classic"]
    folder = codex / "memories"
    for path in (f"skills/{secret}/SKILL.md", f"{secret}.md", f"{secret}.bin"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(b"text" if path.endswith(".md") else b"\0")
    summary = next(folder.glob("rollout_summaries/*invoice_rounding.md"))
    summary.rename(renamed := summary.with_name(summary.name.replace("invoice_rounding", secret)))
    handbook = folder / "MEMORY.md"
    handbook.write_text(handbook.read_text().replace(summary.name, renamed.name))
    async with a_house(settings_in(tmp_path), clock) as context:
        report = await import_codex(context, [codex])
        assert report.files["left_out"] == 3
        assert secret not in repr(report.as_json())
        assert secret.encode() not in context.ledger.path.read_bytes()
        files = Folder.read(context.home.memories).files
        (named,) = [path for path in files if path.startswith(f"rollout_summaries/{summary.stem[:24]}")]
        assert Path(named).name in files["MEMORY.md"]
        assert all(secret not in f"{path} {text}" for path, text in files.items())
        assert secret not in repr(context.repository.files(report.commit or ""))


async def test_what_nobody_sees_does_not_come_and_keeps_no_consolidation_from_its_end(
    tmp_path: Path, clock: FakeClock
) -> None:
    codex = a_codex_memory(tmp_path / "codex")
    added = "\n- seen\0 \x1b[2J\u202eonly [Task 1]\r\n"
    execute(codex / "memories_1.sqlite", "UPDATE stage1_outputs SET rollout_summary = rollout_summary || ?", added)
    execute(codex / "memories_1.sqlite", "UPDATE stage1_outputs SET raw_memory = raw_memory || ?", added)
    execute(codex / "memories_1.sqlite", "UPDATE stage1_outputs SET rollout_slug = ? ", "a\0b")
    handbook = codex / "memories" / "MEMORY.md"
    text = handbook.read_text() + added.replace("\0", "")
    handbook.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    async with a_house(settings_in(tmp_path), clock) as context:
        report = await import_codex(context, [codex])
        assert report.sessions == {"imported": 3}
        assert memory(context) == (RECORDED / FIRST / "MEMORY.md").read_text() + "\n- seen only [Task 1]\n"
        await a_new_session(context)
        await run(context)
        assert "- seen only [Task 1]" in memory(context)
        files = Folder.read(context.home.memories)
        assert not files.odd
        assert not any(set(text) & set("\0\r\x1b\u202e\ufeff") for text in files.files.values())


async def test_a_damaged_database_is_named_and_the_folder_tells_what_it_was_made_of(
    tmp_path: Path, clock: FakeClock
) -> None:
    codex = a_codex_memory(tmp_path / "codex", [FIRST])
    (codex / "memories_1.sqlite").write_bytes(b"no database at all" * 500)
    async with a_house(settings_in(tmp_path), clock) as context:
        report = await import_codex(context, [codex])
        assert report.sessions["imported"] == 3
        assert any("memories_1.sqlite" in what for what, _ in report.left_out)
        assert (await run(context)).ending is Ending.UNCHANGED


async def test_rows_that_nobody_could_have_written_are_left_out_one_by_one(tmp_path: Path, clock: FakeClock) -> None:
    codex = a_codex_memory(tmp_path / "codex", [FIRST])
    store = codex / "memories_1.sqlite"
    insert = "INSERT INTO stage1_outputs VALUES (?, ?, ?, ?, NULL, ?, NULL, NULL, 0, NULL)"
    execute(store, insert, "a\nb", 1, "x", "x", 1)
    execute(store, insert, "no-time", "never", "x", "x", 1)
    execute(store, insert, "far", 2**60, "x", "x", 1)
    execute(store, insert, "huge", 1, "x" * 1_000_001, "x", 1)
    execute(store, insert, "empty", 1, " ", "\n", 1)
    async with a_house(settings_in(tmp_path), clock) as context:
        report = await import_codex(context, [codex])
        assert report.sessions == {"imported": 3, "left_out": 5}


async def test_links_pipes_and_binaries_of_a_hostile_folder_do_not_come(tmp_path: Path, clock: FakeClock) -> None:
    codex, outside = a_codex_memory(tmp_path / "codex", [FIRST]), tmp_path / "outside.md"
    outside.write_text("not Codex's")
    folder = codex / FIRST
    (folder / "link.md").symlink_to(outside)
    (folder / "skills" / "out").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.md")
    (folder / "huge.md").write_text("x" * (1024 * 1024 + 1))
    (folder / "binary.md").write_bytes(b"\x00\xff")
    (folder / "plain.md").write_text("a person's own file\n")
    execute(codex / "state_5.sqlite", "UPDATE threads SET rollout_path = ?", str(outside))
    async with a_house(settings_in(tmp_path), clock) as context:
        report = await import_codex(context, [codex])
        ours = Folder.read(context.home.memories)
        assert ours.odd == {}
        assert ours.text("plain.md") == "a person's own file\n"
        assert {what for what, _ in report.left_out} == {"link.md", "skills/out", "pipe.md", "huge.md", "binary.md"}
        row = await context.ledger.read(sessions.get_exact, THREADS[0])
        assert row is not None
        assert row.size == 0


async def test_a_folder_of_more_than_anybodys_memory_is_refused(tmp_path: Path, clock: FakeClock) -> None:
    codex = a_codex_memory(tmp_path / "codex", [FIRST])
    for number in range(MAX_FILES + 1):
        (codex / FIRST / f"{number}.md").touch()
    async with a_house(settings_in(tmp_path), clock) as context:
        with pytest.raises(UsageError, match="more than a memory"):
            await import_codex(context, [codex])
        assert our_rows(context) == []


async def test_a_home_without_a_memory_is_an_error_that_says_what_to_do(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "codex").mkdir()
    async with a_house(settings_in(tmp_path), clock) as context:
        with pytest.raises(UsageError, match="no memory of Codex") as raised:
            await import_codex(context, [tmp_path / "codex"])
        assert "--from" in raised.value.remedy


async def test_a_consolidation_that_runs_meanwhile_is_ended_and_begins_anew(tmp_path: Path, clock: FakeClock) -> None:
    codex = a_codex_memory(tmp_path / "codex", [FIRST])
    async with a_house(settings_in(tmp_path), clock) as context:
        await a_new_session(context)
        clock.jump(1)
        lease = await context.ledger.write(_claim, clock.now())
        await import_codex(context, [codex])
        assert lease is not None
        assert not await context.ledger.write(_is_held, lease)
        clock.jump(700)
        done = await a_consolidator(context).run_once()
        assert done is not None
        assert done.ending is Ending.PUBLISHED


def _claim(conn: Connection, now: float) -> jobs.Lease | None:
    return jobs.claim(
        conn,
        kind=JobKind.CONSOLIDATE,
        now=now,
        worker_id="other",
        lease_seconds=60,
        max_running=1,
        max_attempts=3,
        retry_cap=60,
    )


def _is_held(conn: Connection, lease: jobs.Lease) -> bool:
    return any(row.job_key == lease.job_key for row in jobs.running(conn))
