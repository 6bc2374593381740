"""The adapter: whole transactions on one thread, whatever happens to the tasks that asked for them."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memoryd.errors import DiskFull, LeaseLost, LedgerBusy, LedgerCorrupt, LedgerTooNew, StorageError
from memoryd.ledger import meta
from memoryd.ledger.database import Ledger
from memoryd.ledger.migrations import Migration, shipped
from tests.support.clock import FakeClock


def _put(conn: sqlite3.Connection, key: str, value: str) -> None:
    meta.put(conn, key, value)


def _put_and_break(conn: sqlite3.Connection, key: str) -> None:
    meta.put(conn, key, "half")
    raise RuntimeError("broken in the middle")


def _in_transaction(conn: sqlite3.Connection) -> bool:
    return conn.in_transaction


def _pragma(conn: sqlite3.Connection, name: str) -> object:
    return conn.execute(f"PRAGMA {name}").fetchone()[0]


def _ended(before: set[threading.Thread]) -> bool:
    """Tell whether every thread that was not there before ends."""
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
    return set(threading.enumerate()) <= before


async def _open(path: Path, *, read_only: bool = False) -> Ledger:
    return await Ledger.open(path, clock=FakeClock(), read_only=read_only)


async def test_what_a_transaction_returns_reaches_the_caller(ledger: Ledger) -> None:
    assert await ledger.write(meta.first_start, now=5.9) == 5


async def test_what_was_written_is_there_after_reopening(path: Path) -> None:
    async with await _open(path) as first:
        await first.write(_put, "colour", value="green")

    async with await _open(path) as second:
        assert await second.read(meta.get, "colour") == "green"


async def test_an_error_undoes_the_whole_transaction(ledger: Ledger) -> None:
    with pytest.raises(RuntimeError, match="broken in the middle"):
        await ledger.write(_put_and_break, "colour")

    assert await ledger.read(meta.get, "colour") is None


async def test_a_read_leaves_no_trace(ledger: Ledger) -> None:
    await ledger.read(_put, "colour", "green")

    assert await ledger.read(meta.get, "colour") is None


async def test_a_transaction_is_open_inside_and_closed_after(ledger: Ledger) -> None:
    assert await ledger.write(_in_transaction)
    assert await ledger.read(_in_transaction)
    assert not ledger._raw.in_transaction


async def test_a_cancelled_callers_transaction_runs_to_its_end(ledger: Ledger) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(conn: sqlite3.Connection) -> None:
        inside.set()
        go_on.wait(30)
        meta.put(conn, "colour", "green")

    task = asyncio.create_task(ledger.write(slow))
    await asyncio.to_thread(inside.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()

    assert await ledger.read(meta.get, "colour") == "green"
    assert not ledger._raw.in_transaction


async def test_a_cancelled_callers_error_leaves_no_open_transaction(ledger: Ledger) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(conn: sqlite3.Connection) -> None:
        inside.set()
        go_on.wait(30)
        _put_and_break(conn, "colour")

    task = asyncio.create_task(ledger.write(slow))
    await asyncio.to_thread(inside.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()

    await ledger.write(_put, "shape", "round")
    assert await ledger.read(meta.get, "colour") is None


async def test_transactions_of_many_tasks_do_not_mix(ledger: Ledger) -> None:
    def count(conn: sqlite3.Connection) -> None:
        meta.put(conn, "n", str(int(meta.get(conn, "n") or 0) + 1))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(50):
            tasks.create_task(ledger.write(count))

    assert await ledger.read(meta.get, "n") == "50"


async def test_of_writes_asked_for_at_once_one_that_fails_costs_the_others_nothing(ledger: Ledger) -> None:
    answers = await asyncio.gather(
        ledger.write(_put, "colour", "green"),
        ledger.write(_put_and_break, "taste"),
        ledger.write(_put, "shape", "round"),
        return_exceptions=True,
    )

    assert [type(answer) for answer in answers] == [type(None), RuntimeError, type(None)]
    found = [await ledger.read(meta.get, key) for key in ("colour", "taste", "shape")]
    assert found == ["green", None, "round"]


async def test_each_of_the_writes_asked_for_at_once_is_forbidden_once_the_ledger_was_taken_over(ledger: Ledger) -> None:
    def taken_over() -> None:
        raise LeaseLost("another process has it")

    ledger.fence = taken_over
    writes = (ledger.write(_put, key, "green") for key in ("colour", "shape"))
    answers = await asyncio.gather(*writes, return_exceptions=True)

    assert [type(answer) for answer in answers] == [LeaseLost, LeaseLost]
    assert [await ledger.read(meta.get, key) for key in ("colour", "shape")] == [None, None]


async def test_one_who_is_cancelled_costs_those_who_are_committed_with_it_nothing(ledger: Ledger) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(_conn: sqlite3.Connection) -> None:
        inside.set()
        go_on.wait(30)

    reading = asyncio.create_task(ledger.read(slow))
    await asyncio.to_thread(inside.wait, 30)
    first, second = (asyncio.create_task(ledger.write(_put, key, "green")) for key in ("colour", "shape"))
    await asyncio.sleep(0)
    first.cancel()
    go_on.set()
    await asyncio.gather(reading, second)

    assert first.cancelled()
    assert [await ledger.read(meta.get, key) for key in ("colour", "shape")] == ["green", "green"]


async def test_closing_waits_for_what_was_begun(path: Path) -> None:
    ledger = await _open(path)
    begun = asyncio.create_task(ledger.write(_put, "colour", "green"))
    await asyncio.sleep(0)
    await ledger.close()
    await begun

    async with await _open(path) as again:
        assert await again.read(meta.get, "colour") == "green"


async def test_closing_twice_is_no_mistake(path: Path) -> None:
    ledger = await _open(path)
    await ledger.close()
    await ledger.close()


async def test_a_closed_ledger_says_so(path: Path) -> None:
    ledger = await _open(path)
    await ledger.close()

    with pytest.raises(StorageError, match="is closed"):
        await ledger.read(meta.get, "colour")


async def test_no_thread_outlives_the_ledger(path: Path) -> None:
    before = set(threading.enumerate())
    async with await _open(path):
        assert len(set(threading.enumerate()) - before) == 1

    assert _ended(before)


FORGETFUL = """
import asyncio, sys
from pathlib import Path
from memoryd.clock import SystemClock
from memoryd.ledger import meta
from memoryd.ledger.database import Ledger

async def main():
    ledger = await Ledger.open(Path(sys.argv[1]), clock=SystemClock())
    await ledger.write(meta.put, "colour", "green")
    raise RuntimeError("nobody closes it")

asyncio.run(main())
"""


async def test_a_program_that_fails_to_close_it_ends_and_loses_nothing(path: Path) -> None:
    words = [sys.executable, "-c", FORGETFUL, str(path)]
    ended = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 1
    assert "RuntimeError: nobody closes it" in ended.stderr
    async with await _open(path, read_only=True) as reader:
        assert await reader.read(meta.get, "colour") == "green"


async def test_an_opening_that_fails_leaves_no_thread(path: Path) -> None:
    before = set(threading.enumerate())
    path.write_bytes(b"this is no database, but long enough to have a header " * 100)

    with pytest.raises(LedgerCorrupt, match="not a database"):
        await _open(path)

    assert _ended(before)


@pytest.mark.parametrize("broken", [False, True])
async def test_an_opening_that_is_cancelled_leaves_no_thread(path: Path, *, broken: bool) -> None:
    class SlowClock(FakeClock):
        inside, go_on = threading.Event(), threading.Event()

        def now(self) -> float:
            self.inside.set()
            self.go_on.wait(30)
            if broken:
                raise sqlite3.OperationalError("the disk is gone")
            return 0.0

    before = set(threading.enumerate())
    clock = SlowClock()
    task = asyncio.create_task(Ledger.open(path, clock=clock))
    while not clock.inside.is_set():
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.sleep(0)
    clock.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    clock.inside.clear()
    clock.go_on.clear()

    assert _ended(before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("busy_timeout", 5000),
        ("foreign_keys", 1),
        ("trusted_schema", 0),
        ("journal_size_limit", 20 * 1024 * 1024),
        ("wal_autocheckpoint", 8000),
        ("page_size", 2048),
        ("temp_store", 2),
        ("mmap_size", 0),
    ],
)
async def test_the_writer_has_the_pragmas_that_keep_it_safe(ledger: Ledger, name: str, value: object) -> None:
    assert await ledger.read(_pragma, name) == value


async def test_a_full_disk_is_said_and_reads_go_on(ledger: Ledger) -> None:
    def fill(conn: sqlite3.Connection) -> None:
        conn.execute(f"PRAGMA max_page_count = {_pragma(conn, 'page_count')}")
        meta.put(conn, "colour", "x" * 1_000_000)

    await ledger.write(_put, "colour", "green")
    with pytest.raises(DiskFull, match="full"):
        await ledger.write(fill)

    assert await ledger.read(meta.get, "colour") == "green"


async def test_another_writer_is_named_busy(ledger: Ledger, path: Path) -> None:
    def impatient(conn: sqlite3.Connection) -> None:
        conn.execute("PRAGMA busy_timeout = 10")

    await ledger.read(impatient)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(LedgerBusy, match="locked"):
            await ledger.write(_put, "colour", "green")
    finally:
        other.close()

    await ledger.write(_put, "colour", "green")


async def test_a_refused_row_is_a_storage_error(ledger: Ledger) -> None:
    def put_null(conn: sqlite3.Connection) -> None:
        conn.execute("INSERT INTO meta (key, value) VALUES ('colour', NULL)")

    with pytest.raises(StorageError, match="NOT NULL"):
        await ledger.write(put_null)


async def test_a_reader_sees_what_the_writer_committed(ledger: Ledger, path: Path) -> None:
    await ledger.write(_put, "colour", "green")

    async with await _open(path, read_only=True) as reader:
        assert await reader.read(meta.get, "colour") == "green"


async def test_a_reader_cannot_write(ledger: Ledger, path: Path) -> None:
    async with await _open(path, read_only=True) as reader:
        with pytest.raises(StorageError, match="opened for reading"):
            await reader.write(_put, "colour", "green")
        with pytest.raises(DiskFull, match="readonly"):
            await reader.read(_put, "colour", "green")


async def test_a_ledger_of_a_newer_program_is_refused_with_both_versions(path: Path) -> None:
    future = (*shipped(), Migration(99, "PRAGMA user_version = 99;"))
    async with await Ledger.open(path, clock=FakeClock(), steps=future):
        pass

    for read_only in (False, True):
        with pytest.raises(
            LedgerTooNew, match=rf"version 99, this memoryd knows versions up to {shipped()[-1].version}.*newer memoryd"
        ):
            await _open(path, read_only=read_only)


async def test_a_ledger_that_was_taken_over_is_written_no_more_but_can_be_read(ledger: Ledger) -> None:
    """I2: the fence is asked once SQLite's write lock is held, so that the new owner has not written yet."""
    asked: list[bool] = []

    def fence() -> None:
        asked.append(ledger._raw.in_transaction)
        raise LeaseLost("somebody else has it")

    await ledger.write(_put, "colour", "green")
    ledger.fence = fence

    with pytest.raises(LeaseLost):
        await ledger.write(_put, "colour", "red")
    with pytest.raises(LeaseLost):
        await ledger.apart(_put, "colour", "blue")

    assert asked == [True, False]
    assert await ledger.read(meta.get, "colour") == "green"
