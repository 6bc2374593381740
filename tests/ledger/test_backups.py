"""Backups: whole, private, one a day, three kept; sound ones are found again, and the log is cut."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memoryd.errors import DiskFull
from memoryd.ledger import backups, meta, publications
from memoryd.ledger.backups import Made, Skipped
from memoryd.ledger.database import Ledger
from memoryd.ledger.publications import NewPublication
from tests.support.clock import FakeClock

DAY = 86_400
NOON = 1_700_049_600.0  # 2023-11-15T12:00:00Z


async def back_up(ledger: Ledger, now: float = NOON, **changes: object) -> Made | Skipped:
    return await ledger.apart(backups.back_up, ledger.path, now=now, **changes)  # type: ignore[arg-type]  # by name


def names(path: Path) -> list[str]:
    return sorted(each.name for each in backups.folder_of(path).iterdir())


async def test_a_backup_holds_what_is_still_in_the_log_and_is_private(ledger: Ledger, path: Path) -> None:
    await ledger.write(meta.put, "colour", "green")

    made = await back_up(ledger)

    copy = path.parent / "backups" / "ledger-2023-11-15.sqlite3"
    assert made == Made(copy, 0)
    assert names(path) == [copy.name]
    assert copy.stat().st_mode & 0o777 == 0o600
    assert copy.parent.stat().st_mode & 0o777 == 0o700
    async with await Ledger.open(copy, clock=FakeClock(), read_only=True) as reader:
        assert await reader.read(meta.get, "colour") == "green"


async def test_there_is_one_backup_a_utc_day_and_missed_days_cost_nothing(ledger: Ledger, path: Path) -> None:
    assert isinstance(await back_up(ledger), Made)
    assert await back_up(ledger, NOON + 11 * 3600) == Skipped("not_due")
    assert isinstance(await back_up(ledger, NOON + 12 * 3600), Made)
    assert isinstance(await back_up(ledger, NOON + 40 * DAY), Made)
    assert names(path) == [
        "ledger-2023-11-15.sqlite3",
        "ledger-2023-11-16.sqlite3",
        "ledger-2023-12-25.sqlite3",
    ]


async def test_the_oldest_go_when_there_are_more_than_three(ledger: Ledger, path: Path) -> None:
    made = [await back_up(ledger, NOON + day * DAY) for day in range(5)]

    assert [each.removed for each in made if isinstance(each, Made)] == [0, 0, 0, 1, 1]
    assert names(path) == [f"ledger-2023-11-{day}.sqlite3" for day in (17, 18, 19)]


def test_a_backup_from_the_future_was_dated_by_a_wrong_clock_and_comes_last() -> None:
    there = ["ledger-2031-01-01.sqlite3", "ledger-2023-11-13.sqlite3", "notes.txt", "ledger-2023-11-15.sqlite3"]

    assert backups.newest_first(there, "2023-11-15") == [
        "ledger-2023-11-15.sqlite3",
        "ledger-2023-11-13.sqlite3",
        "ledger-2031-01-01.sqlite3",
    ]


async def test_no_backup_is_made_while_the_disk_is_nearly_full(ledger: Ledger, path: Path) -> None:
    outcome = await back_up(ledger, free_bytes=lambda _folder: 10_000)

    assert isinstance(outcome, Skipped)
    assert outcome.reason == "disk_nearly_full"
    assert "10000 bytes are free" in outcome.detail
    assert not backups.folder_of(path).exists()


async def test_no_backup_holds_a_publication_that_is_not_in_place(ledger: Ledger, path: Path) -> None:
    """Restored, it would be put over a newer memory."""
    await ledger.write(publications.decide, NewPublication("c" * 40, None), attempt_id=1, now=NOON)

    assert await back_up(ledger) == Skipped("publication_pending")
    assert names(path) == []


async def test_no_backup_goes_to_where_a_link_in_place_of_the_folder_leads(ledger: Ledger, tmp_path: Path) -> None:
    """I7."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    backups.folder_of(ledger.path).symlink_to(elsewhere)
    outcome = await back_up(ledger)
    assert isinstance(outcome, Skipped)
    assert outcome.reason == "folder_is_a_link"
    assert list(elsewhere.iterdir()) == []


async def test_what_an_interrupted_backup_left_is_replaced(ledger: Ledger, path: Path) -> None:
    folder = backups.folder_of(path)
    folder.mkdir()
    (folder / "ledger-2023-11-15.sqlite3.unfinished").write_text("half")

    assert isinstance(await back_up(ledger), Made)
    assert names(path) == ["ledger-2023-11-15.sqlite3"]


async def test_a_backup_that_cannot_be_written_leaves_nothing_behind(ledger: Ledger, path: Path) -> None:
    backups.folder_of(path).write_text("a file in its place")

    with pytest.raises(Exception, match=r"cannot look after|Not a directory|File exists"):
        await back_up(ledger)
    assert (await ledger.read(meta.get, "colour")) is None


async def test_the_newest_sound_backup_is_found(ledger: Ledger, path: Path) -> None:
    for day in range(3):
        await back_up(ledger, NOON + day * DAY)
    folder = backups.folder_of(path)
    (folder / "ledger-2023-11-17.sqlite3").write_bytes(os.urandom(8192))
    spoil(folder / "ledger-2023-11-16.sqlite3")

    found = backups.sound_backups(path, now=NOON + 3 * DAY)

    assert found == [folder / "ledger-2023-11-15.sqlite3"]
    assert sorted(each.name for each in folder.iterdir()) == names(path)


def spoil(database: Path) -> None:
    """Overwrite the last pages, which hold rows, with garbage."""
    with database.open("r+b") as file:
        file.seek(-8 * 4096, os.SEEK_END)
        file.write(os.urandom(8 * 4096))


READER = """
import sqlite3, sys
reader = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, isolation_level=None)
reader.execute("BEGIN")
seen = reader.execute("SELECT value FROM meta WHERE key = 'row 0'").fetchall()
print("reading", flush=True)
sys.stdin.read()
assert reader.execute("SELECT value FROM meta WHERE key = 'row 0'").fetchall() == seen
"""


@contextmanager
def an_open_reader(path: Path) -> Iterator[None]:
    """Another process that reads, and sees the same until it ends, whatever is written."""
    words = [sys.executable, "-c", READER, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"
        yield
        reader.stdin.close()
        assert reader.wait(30) == 0


def churn(conn: sqlite3.Connection, batch: int) -> None:
    for row in range(20):
        meta.put(conn, f"row {row}", f"{batch} " + chr(97 + batch % 26) * 4_000)


async def churn_5000_rows(ledger: Ledger, looks: Callable[[], object] = lambda: None) -> None:
    for batch in range(250):
        await ledger.write(churn, batch)
        looks()


async def test_the_log_grows_under_an_open_reader_and_is_cut_when_it_has_gone(ledger: Ledger, path: Path) -> None:
    await ledger.write(churn, 0)
    with an_open_reader(path):
        await churn_5000_rows(ledger)
        held = backups.log_bytes(path)
        assert held > backups.LOG_LIMIT
        assert await ledger.apart(backups.shorten_log) is False
        assert backups.log_bytes(path) >= held

    assert await ledger.apart(backups.shorten_log) is True
    assert backups.log_bytes(path) == 0
    sizes: list[int] = []
    await churn_5000_rows(ledger, lambda: sizes.append(backups.log_bytes(path)))
    assert 0 < max(sizes) < backups.LOG_LIMIT
    assert str(await ledger.read(meta.get, "row 0")).startswith("249 ")
    assert path.stat().st_size < 2_000_000


async def test_without_a_reader_the_log_stays_bounded_by_itself(ledger: Ledger, path: Path) -> None:
    sizes: list[int] = []
    await churn_5000_rows(ledger, lambda: sizes.append(backups.log_bytes(path)))
    assert 0 < max(sizes) < backups.LOG_LIMIT


def test_a_ledger_without_a_log_has_none_to_cut(path: Path) -> None:
    assert backups.log_bytes(path) == 0


async def test_a_full_disk_during_a_backup_is_said(ledger: Ledger, path: Path) -> None:
    def no_room(_folder: Path) -> int:
        raise OSError(28, "No space left on device")

    with pytest.raises(DiskFull, match="No space left"):
        await back_up(ledger, free_bytes=no_room)
