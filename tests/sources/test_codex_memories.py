"""Codex's own stores: which of them are read, and that nothing appears beside them."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from memoryd.sources.codex_memories import read_codex_memory
from memoryd.sources.items import MemoryMode
from tests.support.codex_memories import FIRST, RECORDED, SECOND, THREADS, a_codex_memory, everything_below, restore


def test_of_both_generations_the_row_that_says_more_is_taken(tmp_path: Path) -> None:
    memory = read_codex_memory(a_codex_memory(tmp_path / "codex"))
    assert sorted(memory.outputs) == sorted(THREADS)
    assert all(output.raw_memory and output.is_consolidated for output in memory.outputs.values())
    assert {thread.cwd for thread in memory.threads.values()} == {"/home/dev/paginator", "/home/dev/billing"}
    assert (memory.unreadable, memory.unfit) == ({}, [])


def test_the_second_generation_has_no_raw_memory(tmp_path: Path) -> None:
    memory = read_codex_memory(a_codex_memory(tmp_path / "codex", [SECOND]))
    assert [output.raw_memory for output in memory.outputs.values()] == ["", "", ""]
    assert all(output.rollout_summary for output in memory.outputs.values())


def test_the_newest_store_of_its_name_is_read(tmp_path: Path) -> None:
    home = a_codex_memory(tmp_path / "codex", [FIRST])
    (home / "memories_1.sqlite").rename(home / "memories_10.sqlite")
    restore(home / "memories_9.sqlite", (RECORDED / "memories_1.sql").read_text().split("INSERT")[0])
    memory = read_codex_memory(home)
    assert home / "memories_10.sqlite" in memory.stores
    assert len(memory.outputs) == 3


def test_the_outputs_of_an_older_codex_stand_in_its_state(tmp_path: Path) -> None:
    home = tmp_path / "codex"
    home.mkdir()
    for name in ("state_5", "memories_1"):
        restore(home / "state_4.sqlite", (RECORDED / f"{name}.sql").read_text())
    with closing(sqlite3.connect(home / "state_4.sqlite")) as connection:
        connection.execute("ALTER TABLE threads DROP COLUMN memory_mode")
    memory = read_codex_memory(home)
    assert len(memory.outputs) == 3
    assert {thread.memory_mode for thread in memory.threads.values()} == {MemoryMode.ENABLED}


def test_a_store_in_use_is_read_whole_and_nothing_appears_beside_it(tmp_path: Path) -> None:
    """I7."""
    home = a_codex_memory(tmp_path / "codex", [FIRST])
    store = home / "memories_1.sqlite"
    with closing(sqlite3.connect(store, isolation_level=None)) as codex:
        codex.execute("PRAGMA journal_mode = WAL")
        codex.execute("UPDATE stage1_outputs SET rollout_slug = 'in the log'")
        before = everything_below(home)
        memory = read_codex_memory(home)
        assert {output.rollout_slug for output in memory.outputs.values()} == {"in the log"}
        assert everything_below(home) == before
        copied = tmp_path / "crashed"
        copied.mkdir()
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{store}{suffix}", f"{copied / store.name}{suffix}")
    before = everything_below(copied)
    assert {each.rollout_slug for each in read_codex_memory(copied).outputs.values()} == {"in the log"}
    assert everything_below(copied) == before


def test_a_word_for_a_mode_that_nobody_knows_means_not_to_be_remembered(tmp_path: Path) -> None:
    home = a_codex_memory(tmp_path / "codex")
    with closing(sqlite3.connect(home / "state_5.sqlite")) as connection, connection:
        connection.execute("UPDATE threads SET memory_mode = 'sometimes'")
    modes = {thread.memory_mode for thread in read_codex_memory(home).threads.values()}
    assert modes == {MemoryMode.DISABLED}


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert read_codex_memory(tmp_path / "nowhere").outputs == {}
