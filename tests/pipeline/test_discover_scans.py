"""The scan is the truth: which folders a scan looks into, and what becomes of roots that come and go."""

import os
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memoryd.daemon.worker import Worker
from memoryd.ledger import jobs, sessions
from memoryd.ledger.states import JobKind
from memoryd.pipeline.context import Context
from memoryd.pipeline.discover import Discovery, ScanReport
from memoryd.pipeline.extract import extract
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in
from tests.support.log_lines import LogLines
from tests.support.sessions import a_rollout

DAY = 86_400.0
FULL = 1_800.0


@asynccontextmanager
async def a_scanned_house(
    folder: Path, clock: FakeClock, count: int = 1
) -> AsyncIterator[tuple[Context, Discovery, list[Path]]]:
    """A house that has seen sessions of a week ago, in folders that have been quiet since."""
    paths = [
        a_rollout(folder / "codex", now=clock.now(), idle_hours=7 * 24, turns=[f"Do {number}"])
        for number in range(count)
    ]
    for path in paths:
        make_quiet(path, folder / "codex", clock.now() - 7 * DAY)
    async with a_house(settings_in(folder), clock) as context:
        discovery = Discovery(context)
        await discovery.run_once()
        yield context, discovery, paths


def make_quiet(path: Path, home: Path, at: float) -> None:
    for folder in path.parents:
        if folder.is_relative_to(home):
            os.utime(folder, (at, at))


def append(path: Path, at: float) -> None:
    with path.open("a") as file:
        file.write("\n")
    os.utime(path, (at, at))


async def test_a_quick_scan_does_not_look_into_quiet_folders_and_a_full_one_does(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I13: what is appended to an old session is seen at the latest by the next full scan."""
    async with a_scanned_house(tmp_path, clock) as (_context, discovery, (path,)):
        append(path, clock.now() - 6 * DAY)
        await clock.advance(FULL - 1)
        quick = await discovery.run_once()
        assert (quick.full, quick.seen, quick.opened) == (False, 0, 0)
        await clock.advance(1)

        full = await discovery.run_once()

        assert (full.full, full.seen, full.opened) == (True, 1, 1)


async def test_a_hint_makes_a_quick_scan_look_where_it_points(tmp_path: Path, clock: FakeClock) -> None:
    async with a_scanned_house(tmp_path, clock, count=2) as (_context, discovery, paths):
        append(paths[1], clock.now())
        discovery.hint([str(paths[1])])

        report = await discovery.run_once()

        assert (report.full, report.opened) == (False, 1)
        assert (await discovery.run_once()).opened == 0


async def test_a_folder_is_looked_into_while_anything_in_it_is_recent(tmp_path: Path, clock: FakeClock) -> None:
    async with a_scanned_house(tmp_path, clock) as (_context, discovery, (path,)):
        append(path, clock.now())
        discovery.hint([str(path)])
        await discovery.run_once()
        append(path, clock.now() + 60)
        make_quiet(path, tmp_path / "codex", clock.now() - 7 * DAY)

        assert (await discovery.run_once()).opened == 1


async def test_a_new_file_and_a_new_folder_are_seen_by_a_quick_scan(tmp_path: Path, clock: FakeClock) -> None:
    async with a_scanned_house(tmp_path, clock) as (_context, discovery, (path,)):
        copied = path.with_name(path.name.replace(path.stem[-36:], "0194f5a6-89ab-7cde-8123-456789abcdef"))
        shutil.copy2(path, copied)
        a_rollout(tmp_path / "codex", now=clock.now(), turns=["Today"])

        report = await discovery.run_once()

        assert (report.full, report.opened) == (False, 2)


async def test_sessions_are_found_behind_links_and_in_roots_that_appear_or_are_made_anew(
    tmp_path: Path, clock: FakeClock
) -> None:
    elsewhere, codex = tmp_path / "elsewhere", tmp_path / "codex"
    async with a_house(settings_in(tmp_path), clock) as context:
        discovery = Discovery(context)
        assert (await discovery.run_once()).missing_roots == [codex]
        a_rollout(elsewhere, now=clock.now())
        codex.symlink_to(elsewhere)
        report = await discovery.run_once()
        assert (report.missing_roots, report.opened) == ([], 1)

        codex.unlink()
        (codex / "sessions" / "2023").mkdir(parents=True)
        (codex / "sessions" / "2023" / "11").symlink_to(elsewhere / "sessions" / "2023" / "11")
        a_rollout(codex, now=clock.now() - 40 * DAY, turns=["Other work"])

        report = await discovery.run_once()

        assert report.opened == 1
        assert len(await context.ledger.read(sessions.list_sessions)) == 2


async def test_a_disk_that_is_gone_is_said_once_forgets_nothing_and_stops_nobody_else(
    tmp_path: Path, clock: FakeClock
) -> None:
    """A session that was gone when its turn came is extracted when it is back; what was extracted is not, anew (I4)."""
    log = LogLines()
    for number in range(12):
        a_rollout(tmp_path / "codex", now=clock.now(), turns=[f"Do {number}"])
    async with a_house(settings_in(tmp_path), clock) as context:
        discovery = Discovery(context)
        worker = Worker(context, kind=JobKind.STAGE1, run=extract, worker_id="test")
        assert (await discovery.run_once()).enqueued == 12
        await worker.run_once()
        (tmp_path / "codex" / "sessions").rename(tmp_path / "unmounted")
        (tmp_path / "codex" / "sessions").mkdir()
        for _ in range(2):
            await clock.advance(FULL)
            await discovery.run_once()
        while await worker.run_once():
            pass
        (said,) = log.events("sessions.dwindled")
        assert (said["agent"], said["before"], said["present"]) == ("codex", 12, 0)
        assert len(await context.ledger.read(sessions.list_sessions)) == 12

        (tmp_path / "codex" / "sessions").rmdir()
        (tmp_path / "unmounted").rename(tmp_path / "codex" / "sessions")
        await clock.advance(FULL)
        report = await discovery.run_once()

        assert (report.opened, report.enqueued, report.excluded) == (11, 11, Counter())
        assert await _run_all(worker) == 11
        assert (await discovery.run_once()).enqueued == 0
        assert await context.ledger.read(jobs.running) == []


async def _run_all(worker: Worker) -> int:
    done = 0
    while await worker.run_once():
        done += 1
    return done


async def test_names_that_are_no_text_are_counted_once_and_stop_nobody(tmp_path: Path, clock: FakeClock) -> None:
    log = LogLines()
    good = a_rollout(tmp_path / "codex", now=clock.now())
    odd = os.fsencode(good.parent) + b"/rollout-\xff-0194f5a6-89ab-7cde-8123-456789abcdef.jsonl"
    try:
        os.link(good, odd)
    except OSError:
        pytest.skip("this file system takes no such names")
    async with a_house(settings_in(tmp_path), clock) as context:
        discovery = Discovery(context)
        reports: list[ScanReport] = [await discovery.run_once(), await discovery.run_once()]

        assert [report.unreadable for report in reports] == [1, 0]
        assert [dict(report.excluded) for report in reports] == [{"unreadable": 1}] * 2
        assert reports[0].enqueued == 1
        assert await context.ledger.read(sessions.problem_files) != []
    assert "\\udcff" in log.events("session.unreadable")[0]["path"]
