"""A ledger that is damaged when it is opened or while it is used; and what the house makes of it."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memoryd.daemon.rescue import sound_ledger
from memoryd.daemon.upkeep import look_after
from memoryd.errors import LeaseLost, LedgerCorrupt, StorageError
from memoryd.ledger import meta, rebuilding
from memoryd.ledger.database import Ledger
from memoryd.workspace.layout import Home, prepare
from tests.ledger.test_backups import spoil
from tests.ledger.test_rebuilding import left_open, many
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in
from tests.support.log_lines import LogLines


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    prepare(home)
    (home.memories / "MEMORY.md").write_text("# mine\n")
    return home


def replaced(log: LogLines) -> dict[str, object]:
    (event,) = log.events("ledger.replaced")
    return event


async def test_garbage_is_set_aside_and_a_new_ledger_begun_loudly(home: Home, clock: FakeClock) -> None:
    log, garbage = LogLines(), os.urandom(20_000)
    home.ledger_file.write_bytes(garbage)

    async with sound_ledger(home, clock) as ledger:
        assert await ledger.read(meta.newest_instant) is None

    (folder,) = rebuilding.damaged_folders(home.path)
    assert (folder / "ledger.sqlite3").read_bytes() == garbage
    event = replaced(log)
    assert (event["level"], event["folder"], event["source"]) == ("error", str(folder), None)
    assert "wait for consent" in str(event["means"])
    assert (home.memories / "MEMORY.md").read_text() == "# mine\n"


async def test_damage_found_by_the_look_at_start_brings_the_backup_back(home: Home, clock: FakeClock) -> None:
    log = LogLines()
    await left_open(home.ledger_file)
    async with a_house(settings_in(home.path.parent), clock) as context:
        await look_after(context)
    assert log.events("ledger.copied")
    await left_open_again(home, clock)
    spoil(home.ledger_file)

    async with sound_ledger(home, clock) as ledger:
        assert await ledger.read(meta.get, "colour") == "green"

    assert str(replaced(log)["source"]).endswith(".sqlite3")
    assert "newer sessions are read again" in str(replaced(log)["means"])


async def left_open_again(home: Home, clock: FakeClock) -> None:
    home.ledger_file.unlink()
    await left_open(home.ledger_file)


async def test_damage_found_while_it_is_used_is_set_aside_at_the_end(home: Home, clock: FakeClock) -> None:
    log = LogLines()
    await spoiled(home, clock)

    with pytest.raises(LedgerCorrupt, match=r"set aside whole in .*damaged-.*start memoryd again"):
        async with sound_ledger(home, clock) as ledger:
            await ledger.read(read_all)

    assert replaced(log)
    async with sound_ledger(home, clock) as ledger:
        await ledger.read(read_all)


@pytest.mark.parametrize("passed_on", [True, False])
async def test_damage_of_a_ledger_that_another_process_has_taken_over_is_its_to_set_aside(
    home: Home, clock: FakeClock, passed_on: bool
) -> None:
    """I2."""

    def fence() -> None:
        raise LeaseLost("somebody else has it")

    async def meet_damage() -> None:
        async with sound_ledger(home, clock) as ledger:
            ledger.fence = fence
            ledger.damage = "damaged"
            if passed_on:
                raise LedgerCorrupt("damaged")

    with pytest.raises(LeaseLost):
        await meet_damage()

    assert rebuilding.damaged_folders(home.path) == []


async def test_damage_that_nobody_passed_on_is_set_aside_as_well(home: Home, clock: FakeClock) -> None:
    log = LogLines()
    await spoiled(home, clock)

    async with sound_ledger(home, clock) as ledger:
        with pytest.raises(LedgerCorrupt):
            await ledger.read(read_all)

    assert replaced(log)


def read_all(conn: sqlite3.Connection) -> object:
    return conn.execute("SELECT * FROM sessions ORDER BY cwd").fetchall()


async def spoiled(home: Home, clock: FakeClock) -> None:
    async with await Ledger.open(home.ledger_file, clock=clock) as ledger:
        await ledger.write(many)
    spoil(home.ledger_file)


async def test_an_interrupted_rebuilding_is_finished_and_said(home: Home, clock: FakeClock) -> None:
    log = LogLines()
    home.ledger_file.with_name("ledger.sqlite3-wal").write_bytes(b"left")

    async with sound_ledger(home, clock):
        pass

    (event,) = log.events("rebuilding.finished")
    assert Path(event["folder"]).joinpath("ledger.sqlite3-wal").read_bytes() == b"left"


async def test_a_database_of_somebody_else_is_not_touched(home: Home, clock: FakeClock) -> None:
    with closing(sqlite3.connect(home.ledger_file)) as conn:
        conn.execute("CREATE TABLE theirs (x)")
    before = home.ledger_file.read_bytes()

    with pytest.raises(StorageError, match="not a ledger of memoryd"):
        async with sound_ledger(home, clock):
            raise AssertionError("it must not open")

    assert home.ledger_file.read_bytes() == before
