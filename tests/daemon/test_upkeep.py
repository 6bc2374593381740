"""What is done once in a while, and that a clock in doubt keeps it from being done."""

import hashlib
import os
import sqlite3
import time
import zlib
from pathlib import Path

from memoryd.daemon.upkeep import BATCH, judge_clock, look_after
from memoryd.ledger import backups, publications, spend
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.spend import By
from memoryd.pipeline.context import Context
from memoryd.pipeline.plausibility import TRUST_SECONDS
from memoryd.workspace import shortening
from tests.ledger.directed.pruning import a_request
from tests.ledger.test_backups import an_open_reader, churn_5000_rows
from tests.pipeline.test_consolidate import FIRST, remember, run
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in
from tests.support.log_lines import LogLines

DAY = 86_400.0


def copies(context: Context) -> list[str]:
    folder = backups.folder_of(context.ledger.path)
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


async def test_upkeep_backs_up_once_a_day_and_cuts_the_log(tmp_path: Path, clock: FakeClock) -> None:
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        await look_after(context)
        await look_after(context)
        assert copies(context) == ["ledger-2023-11-14.sqlite3"]
        assert backups.log_bytes(context.ledger.path) == 0
        await clock.advance(DAY)
        await look_after(context)
        assert len(copies(context)) == 2
    assert len(log.events("ledger.copied")) == 2


async def test_a_long_log_is_cut_when_its_reader_has_gone(tmp_path: Path, clock: FakeClock) -> None:
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        await look_after(context)
        with an_open_reader(context.ledger.path):
            await churn_5000_rows(context.ledger)
            await look_after(context)
            assert backups.log_bytes(context.ledger.path) > backups.LOG_LIMIT
        assert log.events("checkpoint.prevented")
        await look_after(context)
        assert backups.log_bytes(context.ledger.path) == 0


def loose_objects(folder: Path, count: int) -> None:
    """Put objects there one by one, as every consolidation leaves some; nothing names them, for two days by now."""
    old = time.time() - 2 * DAY
    for number in range(count):
        blob = b"blob 8\0%08d" % number
        name = hashlib.sha1(blob).hexdigest()
        path = folder / name[:2] / name[2:]
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(zlib.compress(blob, 1))
        os.utime(path, (old, old))


async def test_loose_objects_of_the_history_are_packed_when_they_are_many(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await remember(context, FIRST, "Always use tabs in the Makefile")
        await run(context)
        objects = context.repository.git_dir / "objects"
        loose_objects(objects, shortening.MANY_LOOSE)
        await look_after(context)
        assert shortening.room(context.repository).loose < 10


async def test_a_clock_in_doubt_makes_no_backup_and_removes_none(tmp_path: Path, clock: FakeClock) -> None:
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        for _ in range(3):
            await look_after(context)
            await clock.advance(DAY)
        await look_after(context)
        there = copies(context)
        assert len(there) == 3

        clock.jump(40 * DAY)
        await look_after(context)
        await look_after(context)
        assert copies(context) == there
        assert [event["reason"] for event in log.events("clock.doubted")] == ["jumped"]

        for _ in range(24):
            await clock.advance(TRUST_SECONDS / 24)
            await look_after(context)
        assert len(log.events("clock.believed")) == 1
        assert copies(context)[-1] > there[-1]


async def test_a_backup_that_must_wait_is_said_with_its_reason(tmp_path: Path, clock: FakeClock) -> None:
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(publications.decide, NewPublication("c" * 40, None), attempt_id=1, now=clock.now())
        await look_after(context)
        assert copies(context) == []
    assert [event["reason"] for event in log.events("backup.skipped")] == ["publication_pending"]


async def test_a_clock_that_is_set_right_is_said_too(tmp_path: Path, clock: FakeClock) -> None:
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        clock.jump(-3 * 3_600)
        await judge_clock(context)
        clock.jump(3 * 3_600)
        await judge_clock(context)
    assert [event["event"] for event in log.events() if event["event"].startswith("clock.")] == [
        "clock.doubted",
        "clock.believed",
    ]


async def test_requests_of_long_ago_become_sums_once_a_day_unless_the_clock_is_in_doubt(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I9: what was spent stays accounted for."""
    log = LogLines()

    def live_long(conn: sqlite3.Connection) -> None:
        for number in range(BATCH + 1):
            a_request(conn, clock.now() - (300 + number % 7) * DAY, "memory_stage1", f"session {number}")

    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(live_long)
        before = await context.ledger.read(spend.usage, by=By.DAY, since=0)
        clock.jump(40 * DAY)
        await look_after(context)
        assert log.events("accounts.pruned") == []

        clock.jump(-40 * DAY)
        await look_after(context)
        await look_after(context)
        assert await context.ledger.read(spend.usage, by=By.DAY, since=0) == before
    assert [(event["requests"], event["count"]) for event in log.events("accounts.pruned")] == [(BATCH + 1, 0)]
