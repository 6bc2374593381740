"""What happens to the file: created private, migrated after a backup, refused when it is not ours."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memoryd.errors import LedgerCorrupt, StorageError
from memoryd.ledger import meta, migrations, mounts, opening
from memoryd.ledger.database import Ledger
from memoryd.ledger.migrations import Migration, shipped
from tests.support.clock import FakeClock

LAST = shipped()[-1].version
NEXT = Migration(LAST + 1, f"CREATE TABLE later (x INTEGER) STRICT;\nPRAGMA user_version = {LAST + 1};")
BROKEN = Migration(LAST + 1, "CREATE TABLE later (x INTEGER) STRICT;\nCREATE TABLE later (x INTEGER) STRICT;")


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def _put(conn: sqlite3.Connection, value: str) -> None:
    meta.put(conn, "colour", value)


def _tables(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as conn:
        return [name for (name,) in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]


async def _make(path: Path, value: str = "green") -> None:
    async with await Ledger.open(path, clock=FakeClock()) as ledger:
        await ledger.write(_put, value)


async def test_the_ledger_and_its_companions_are_private(path: Path) -> None:
    async with await Ledger.open(path, clock=FakeClock()) as ledger:
        await ledger.write(_put, "green")

        assert {file.name: _mode(file) for file in path.parent.iterdir()} == {
            "ledger.sqlite3": 0o600,
            "ledger.sqlite3-wal": 0o600,
            "ledger.sqlite3-shm": 0o600,
        }


async def test_an_open_ledger_file_is_made_private_again(path: Path) -> None:
    await _make(path)
    path.chmod(0o644)
    await _make(path)

    assert _mode(path) == 0o600


async def test_an_empty_file_left_by_a_crash_becomes_a_ledger(path: Path) -> None:
    path.touch()
    await _make(path)

    assert "jobs" in _tables(path)


async def test_an_older_ledger_is_backed_up_and_migrated(path: Path) -> None:
    await _make(path)

    async with await Ledger.open(path, clock=FakeClock(), steps=(*shipped(), NEXT)) as ledger:
        assert await ledger.read(meta.get, "colour") == "green"

    backup = path.with_name(f"ledger.sqlite3.v{LAST}-20231114T221320Z.backup")
    assert "later" in _tables(path)
    assert "later" not in _tables(backup)
    assert _mode(backup) == 0o600
    with closing(sqlite3.connect(backup)) as conn:
        assert meta.get(conn, "colour") == "green"


async def test_a_ledger_that_is_up_to_date_is_not_backed_up(path: Path) -> None:
    await _make(path)
    await _make(path)

    assert [file.name for file in path.parent.iterdir()] == ["ledger.sqlite3"]


async def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    await _make(path)

    with pytest.raises(StorageError, match="already exists"):
        await Ledger.open(path, clock=FakeClock(), steps=(*shipped(), BROKEN))

    assert "later" not in _tables(path)
    await _make(path)


def test_a_backup_replaces_what_an_interrupted_one_left(tmp_path: Path, conn: sqlite3.Connection) -> None:
    target = tmp_path / "copy"
    target.with_name("copy.unfinished").write_text("half")
    _put(conn, "green")

    migrations.back_up(conn, target)

    with closing(sqlite3.connect(target)) as copy:
        assert meta.get(copy, "colour") == "green"
    assert [file.name for file in tmp_path.iterdir()] == ["copy"]


async def test_a_database_of_somebody_else_is_refused_and_not_touched(path: Path) -> None:
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()

    with pytest.raises(StorageError, match="not a ledger of memoryd"):
        await Ledger.open(path, clock=FakeClock())

    assert path.read_bytes() == before


async def test_a_missing_folder_is_named_with_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"No such file or directory.*memoryd init"):
        await Ledger.open(tmp_path / "no" / "ledger.sqlite3", clock=FakeClock())


async def test_a_folder_in_the_ledgers_place_is_refused(path: Path) -> None:
    path.mkdir()

    with pytest.raises(StorageError, match="unable to open"):
        await Ledger.open(path, clock=FakeClock())


@pytest.mark.parametrize("empty", [False, True])
async def test_a_reader_without_a_ledger_says_that_there_is_none_yet(path: Path, *, empty: bool) -> None:
    if empty:
        path.touch()

    with pytest.raises(StorageError, match=r"no ledger at .* yet.*memoryd sync"):
        await Ledger.open(path, clock=FakeClock(), read_only=True)

    assert path.exists() == empty


async def test_a_reader_of_an_older_ledger_names_the_remedy(path: Path) -> None:
    await _make(path)

    with pytest.raises(StorageError, match=rf"has version {LAST}, this memoryd reads version {LAST + 1}.*memoryd sync"):
        await Ledger.open(path, clock=FakeClock(), read_only=True, steps=(*shipped(), NEXT))


async def test_a_reader_of_a_broken_file_says_so(path: Path) -> None:
    path.write_bytes(b"no database " * 1000)

    with pytest.raises(LedgerCorrupt, match=r"not a database.*backup"):
        await Ledger.open(path, clock=FakeClock(), read_only=True)


async def test_a_reader_copes_where_no_file_can_be_made_beside_the_ledger(path: Path) -> None:
    await _make(path)
    path.with_name(path.name + "-wal").mkdir()  # SQLite answers as on a read-only mount: unable to open

    async with await Ledger.open(path, clock=FakeClock(), read_only=True) as reader:
        assert await reader.read(meta.get, "colour") == "green"


async def test_what_is_still_in_the_log_is_part_of_a_backup(path: Path) -> None:
    async with await Ledger.open(path, clock=FakeClock()) as ledger:
        await ledger.write(_put, "green")
        copy = await ledger.read(_copy, path.with_name("copy"))
        plain = path.with_name("plain")
        shutil.copy(path, plain)

    with closing(sqlite3.connect(copy)) as conn:
        assert meta.get(conn, "colour") == "green"
    assert "jobs" not in _tables(plain)


def _copy(conn: sqlite3.Connection, target: Path) -> Path:
    return migrations.back_up(conn, target)


async def test_a_network_file_system_gets_no_log_and_a_warning(path: Path) -> None:
    mountinfo = "22 1 0:21 / / rw - nfs4 server:/export rw\n"

    async with await Ledger.open(path, clock=FakeClock(), mountinfo=mountinfo) as ledger:
        await ledger.write(_put, "green")

        assert ledger.warning == (
            "the ledger lies on a network file system (nfs4): it is slower there, and only the daemon can read it"
        )
        assert not path.with_name("ledger.sqlite3-wal").exists()


def test_a_mode_other_than_the_log_is_refused(conn: sqlite3.Connection, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="journal mode memory instead of wal"):
        opening._set_journal(conn, tmp_path / "ledger.sqlite3", "")


MOUNTS = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 27 0:40 / /home/me rw shared:2 - nfs4 server:/home rw
31 30 0:41 / /home/me/local rw - ext4 /dev/vdb rw
32 27 0:42 / /mnt/my\040disk rw - cifs //server/x rw
33 27 0:43 / /twice rw - ext4 /dev/vdc rw
34 27 0:44 / /twice rw - 9p share rw
garbage
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/me/.memoryd/ledger.sqlite3", "nfs4"),
        ("/home/me/local/ledger.sqlite3", None),
        ("/home/melissa/ledger.sqlite3", None),
        ("/mnt/my disk/ledger.sqlite3", "cifs"),
        ("/twice/ledger.sqlite3", "9p"),
        ("/ledger.sqlite3", None),
    ],
)
def test_the_longest_mount_point_decides(path: str, expected: str | None) -> None:
    assert mounts.network_file_system(Path(path), MOUNTS) == expected


def test_without_a_table_of_mounts_every_disk_is_local(tmp_path: Path) -> None:
    assert mounts.read_mounts(tmp_path / "none") == ""
    assert mounts.network_file_system(tmp_path, "") is None
