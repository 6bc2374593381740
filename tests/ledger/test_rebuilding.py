"""A damaged ledger: when it is looked for, that it is set aside whole, and what takes its place."""

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memoryd.errors import LedgerCorrupt, StorageError
from memoryd.ledger import backups, meta, rebuilding
from memoryd.ledger.database import Ledger
from memoryd.ledger.rebuilding import Rebuilt
from tests.ledger.factories import enqueue
from tests.ledger.test_backups import back_up, churn, spoil
from tests.support.clock import FakeClock

NOON = 1_700_049_600.0
STAMP = "damaged-20231115T120000Z"


def many(conn: sqlite3.Connection) -> None:
    for number in range(300):
        enqueue(conn, f"thread-{number}")


async def a_ledger(path: Path, *, copies: int = 0) -> None:
    async with await Ledger.open(path, clock=FakeClock()) as ledger:
        await ledger.write(many)
        await ledger.write(meta.put, "colour", "green")
        for day in range(copies):
            await back_up(ledger, NOON - day * 86_400)


async def left_open(path: Path) -> None:
    """Leave the ledger as kill -9 does: with what was committed last in its log."""
    await a_ledger(path)
    elsewhere = path.with_name("elsewhere")
    elsewhere.mkdir()
    async with await Ledger.open(path, clock=FakeClock()) as ledger:
        await ledger.write(churn, 1)
        for each in path.parent.glob("ledger.sqlite3*"):
            shutil.copy(each, elsewhere)
    for each in elsewhere.iterdir():
        each.replace(path.with_name(each.name))
    elsewhere.rmdir()


async def colour(path: Path) -> str | None:
    async with await Ledger.open(path, clock=FakeClock()) as ledger:
        return await ledger.read(meta.get, "colour")


async def test_a_ledger_that_was_closed_is_not_looked_through(path: Path) -> None:
    await a_ledger(path)
    spoil(path)

    assert not rebuilding.was_left_open(path)
    assert rebuilding.find_damage(path) is None


async def test_a_sound_ledger_that_was_left_open_is_looked_through_and_not_changed(path: Path) -> None:
    await left_open(path)
    before = {each.name: each.read_bytes() for each in path.parent.iterdir() if not each.name.endswith("-shm")}

    assert rebuilding.was_left_open(path)
    assert rebuilding.find_damage(path) is None

    after = {each.name: each.read_bytes() for each in path.parent.iterdir() if not each.name.endswith("-shm")}
    assert after == before
    assert await colour(path) == "green"


async def test_damage_in_a_ledger_that_was_left_open_is_found(path: Path) -> None:
    await left_open(path)
    spoil(path)

    assert rebuilding.find_damage(path)


def test_there_is_no_damage_where_there_is_no_ledger(path: Path) -> None:
    assert rebuilding.find_damage(path) is None


async def test_an_emptied_ledger_is_damaged_when_there_are_backups_and_new_when_there_are_none(path: Path) -> None:
    path.touch()
    assert rebuilding.find_damage(path) is None
    await a_ledger(path, copies=1)
    path.write_bytes(b"")
    assert rebuilding.find_damage(path) == f"{path} is empty"


async def test_a_ledger_that_cannot_be_looked_at_is_said(path: Path) -> None:
    await left_open(path)
    shutil.rmtree(path, ignore_errors=True)
    wal = path.with_name("ledger.sqlite3-wal")
    wal.unlink()
    wal.mkdir()
    (wal / "x").touch()

    with pytest.raises(StorageError, match="cannot check the ledger"):
        rebuilding.find_damage(path)


async def test_it_is_set_aside_whole_and_the_newest_sound_backup_takes_its_place(path: Path) -> None:
    await a_ledger(path, copies=2)
    (backups.folder_of(path) / "ledger-2023-11-15.sqlite3").write_bytes(b"broken")
    spoil(path)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).write_bytes(os.urandom(100))
    whole = {each.name: each.read_bytes() for each in path.parent.glob("ledger.sqlite3*")}

    rebuilt = rebuilding.rebuild(path, problem="page 7 is broken", now=NOON)

    folder, source = path.parent / STAMP, backups.folder_of(path) / "ledger-2023-11-14.sqlite3"
    assert rebuilt == Rebuilt(folder, "page 7 is broken", source)
    assert {each.name: each.read_bytes() for each in folder.glob("ledger.sqlite3*")} == whole
    assert len(whole) == 3
    assert folder.stat().st_mode & 0o777 == 0o700
    assert rebuilding.account_of(folder) == {"problem": "page 7 is broken", "source": source.name}
    assert path.stat().st_mode & 0o777 == 0o600
    assert await colour(path) == "green"
    assert source.exists()


async def test_without_a_backup_nothing_takes_its_place(path: Path) -> None:
    path.write_bytes(os.urandom(9000))

    first = rebuilding.rebuild(path, problem="no database", now=NOON)
    path.write_bytes(os.urandom(9000))
    second = rebuilding.rebuild(path, problem="no database", now=NOON)

    assert (first.source, path.exists()) == (None, False)
    assert [folder.name for folder in rebuilding.damaged_folders(path.parent)] == [f"{STAMP}-2", STAMP]
    assert second.folder != first.folder
    assert await colour(path) is None


STEPS = ("replacement prepared", "ledger moved", "all moved")


@pytest.mark.parametrize("step", STEPS)
async def test_a_rebuilding_that_was_interrupted_is_brought_to_its_end(path: Path, step: str) -> None:
    await a_ledger(path, copies=1)
    backup = backups.folder_of(path) / "ledger-2023-11-15.sqlite3"
    shutil.copy(backup, path.with_name("ledger.sqlite3.replacement"))
    path.with_name("ledger.sqlite3-wal").write_bytes(b"left")
    if step != "replacement prepared":
        path.unlink()
    if step == "all moved":
        path.with_name("ledger.sqlite3-wal").unlink()

    folder = rebuilding.mend_interrupted(path, now=NOON)

    assert (folder is not None) == (step == "ledger moved")
    if folder is not None:
        assert (folder / "ledger.sqlite3-wal").read_bytes() == b"left"
    if step != "replacement prepared":
        assert not path.with_name("ledger.sqlite3-wal").exists()
    assert not path.with_name("ledger.sqlite3.replacement").exists()
    path.with_name("ledger.sqlite3-wal").unlink(missing_ok=True)
    assert await colour(path) == "green"


def test_where_nothing_was_begun_there_is_nothing_to_bring_to_an_end(path: Path) -> None:
    assert rebuilding.mend_interrupted(path, now=NOON) is None


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"problem": 1})])
def test_a_lost_account_does_not_hide_the_folder(tmp_path: Path, text: str) -> None:
    folder = tmp_path / STAMP
    folder.mkdir()
    (folder / rebuilding.ACCOUNT_FILE).write_text(text)

    assert rebuilding.damaged_folders(tmp_path) == [folder]
    assert rebuilding.account_of(folder)["source"] is None


async def test_damage_that_a_transaction_meets_is_kept_in_mind(path: Path) -> None:
    await a_ledger(path)
    spoil(path)
    async with await Ledger.open(path, clock=FakeClock()) as ledger:
        assert ledger.damage is None
        with pytest.raises(LedgerCorrupt, match="sets it aside"):
            await ledger.read(lambda conn: conn.execute("SELECT * FROM sessions ORDER BY cwd").fetchall())
        assert ledger.damage is not None


async def test_text_that_is_none_is_damage(path: Path) -> None:
    await a_ledger(path)
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("UPDATE meta SET value = CAST(x'ff00ff' AS TEXT)")
        conn.commit()
    async with await Ledger.open(path, clock=FakeClock()) as ledger:
        with pytest.raises(LedgerCorrupt, match="decode"):
            await ledger.read(meta.get, "colour")
