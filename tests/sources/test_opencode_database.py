"""OpenCode's database beside a living, a killed and a hostile writer: what is read, and that nothing is left behind."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoryd.errors import SessionUnreadable, SessionVanished
from memoryd.sources.items import Item, ItemKind
from memoryd.sources.opencode import OpenCodeReader
from memoryd.sources.opencode_database import (
    BIG_ROW_BYTES,
    NAMES_PER_PAGE,
    PARTS_PER_PAGE,
    STATEMENTS,
    open_store,
)
from memoryd.sources.stores import PrivateCopies
from tests.support.opencode_sessions import an_opencode_session, connect

NOW = 1_700_000_000.0
LATER = 4_000_000_000_000  # milliseconds
WRITER = """
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA wal_autocheckpoint = 0")
for line in sys.stdin:
    statement, parameters, times = json.loads(line)
    for number in range(times):
        connection.execute(statement, [p.replace("%", str(number)) if isinstance(p, str) else p for p in parameters])
    print("done", flush=True)
connection.close()
"""
MESSAGE = "INSERT INTO message VALUES (?, 'ses_one', ?, ?, ?)"
PART = "INSERT INTO part VALUES (?, ?, 'ses_one', ?, ?, ?)"


class Writer:
    """A process of its own that has the store open, as the agent does."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, statement: str, *parameters: Any, times: int = 1) -> None:
        self.start(statement, *parameters, times=times)
        self.wait()

    def start(self, statement: str, *parameters: Any, times: int = 1) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([statement, parameters, times]) + "\n")
        self._process.stdin.flush()

    def wait(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "done\n"

    def say(self, text: str, name: str, *, times: int = 1) -> None:
        """Write a message of the person's in two transactions, without a word to the session's own row."""
        data = json.dumps({"role": "user", "time": {"created": 1_700_000_000_000}})
        self.run(MESSAGE, f"msg_{name}%", 1_700_000_000_000, 1, data, times=times)
        part = json.dumps({"type": "text", "text": text})
        self.run(PART, f"prt_{name}%", f"msg_{name}%", 1, 1, part, times=times)

    def leave(self) -> None:
        self._process.communicate()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "opencode"


@pytest.fixture
def store(home: Path) -> Path:
    an_opencode_session(home, now=NOW, turns=[("hello", "hi")])
    return home / "opencode.db"


@pytest.fixture
def writer(store: Path) -> Iterator[Writer]:
    writer = Writer(store)
    writer.say("more", "a")
    yield writer
    writer.kill()


@pytest.fixture
def reader() -> OpenCodeReader:
    return OpenCodeReader()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that this test alone uses."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def said(reader: OpenCodeReader, home: Path) -> list[str]:
    """Find the one session, look at its head and its end, and read it; all three must agree."""
    (file,) = reader.find([home])
    assert reader.locate(file.path) == file
    assert reader.head(file).thread_id == "opencode:ses_one"
    with reader.read(file) as reading:
        items = list(reading)
    tail = reader.tail(file)
    assert file.size == tail.record_bytes == reading.record_bytes
    assert tail.last_record_at == reading.last_record_at == file.mtime_ns // 10**9
    return humans(items)


def humans(items: list[Item]) -> list[str]:
    return [item.text for item in items if item.kind is ItemKind.HUMAN]


def snapshot(home: Path) -> dict[str, tuple[int, bytes]]:
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in home.iterdir()}


def crashed(home: Path, into: Path, *, with_index: bool) -> Path:
    """Copy a store as a killed writer leaves it; a backup does not take the -shm file along."""
    into.mkdir()
    for path in home.iterdir():
        if with_index or not path.name.endswith("-shm"):
            shutil.copy(path, into / path.name)
    return into


# beside a writer


def test_what_a_living_writer_has_committed_is_read_and_its_files_stay_as_they_are(
    reader: OpenCodeReader, home: Path, writer: Writer
) -> None:
    before = snapshot(home)
    assert set(before) == {"opencode.db", "opencode.db-wal", "opencode.db-shm"}
    assert said(reader, home) == ["hello", "more"]
    assert snapshot(home) == before
    writer.say("and more", "b")
    assert said(reader, home) == ["hello", "more", "and more"]


def test_what_is_not_committed_is_not_read(reader: OpenCodeReader, home: Path, writer: Writer) -> None:
    writer.run("BEGIN IMMEDIATE")
    writer.say("never mind", "b")
    assert said(reader, home) == ["hello", "more"]
    writer.run("ROLLBACK")
    assert said(reader, home) == ["hello", "more"]


def test_reading_while_a_writer_writes_and_checkpoints_gives_whole_beginnings(
    reader: OpenCodeReader, home: Path, writer: Writer
) -> None:
    writer.run("PRAGMA wal_autocheckpoint = 20")
    data = json.dumps({"role": "user", "time": {"created": 1_700_000_000_000}})
    writer.start(MESSAGE, "msg_z%", 1_700_000_000_000, 1, data, times=3000)
    counts = []
    for _ in range(20):
        (file,) = reader.find([home])
        with reader.read(file) as reading:
            assert humans(list(reading)) == ["hello", "more"]
        counts.append(reading.record_bytes)
    writer.wait()
    (file,) = reader.find([home])
    assert counts == sorted(counts)
    assert file.size == 3000 + 7


def test_a_writer_that_leaves_while_a_session_is_read_does_not_disturb(
    reader: OpenCodeReader, home: Path, writer: Writer
) -> None:
    writer.say("x", "b", times=100)
    (file,) = reader.find([home])
    with reader.read(file) as reading:
        first = next(reading)
        writer.leave()
        # nothing of ours was open to keep it from tidying up
        assert [path.name for path in home.iterdir()] == ["opencode.db"]
        rest = list(reading)
    assert humans([first, *rest]) == ["hello", "more"] + ["x"] * 100


def test_a_writer_that_comes_while_a_session_is_read_does_not_disturb(
    reader: OpenCodeReader, home: Path, store: Path
) -> None:
    first_writer = Writer(store)
    first_writer.say("x", "b", times=100)
    first_writer.leave()
    assert not store.with_name("opencode.db-wal").exists()
    (file,) = reader.find([home])
    with reader.read(file) as reading:
        first = next(reading)
        second_writer = Writer(store)
        second_writer.say("y", "c", times=3)
        second_writer.run("PRAGMA wal_checkpoint(TRUNCATE)")
        rest = list(reading)
        second_writer.leave()
    assert humans([first, *rest])[:101] == ["hello"] + ["x"] * 100
    assert reading.record_bytes == 205


@pytest.mark.parametrize("with_index", [True, False])
def test_what_a_killed_writer_had_committed_is_read_and_no_file_appears(
    reader: OpenCodeReader, home: Path, writer: Writer, tmp_path: Path, temporary: Path, with_index: bool
) -> None:
    left = crashed(home, tmp_path / "left", with_index=with_index)
    before = snapshot(left)
    assert said(reader, left) == ["hello", "more"]
    assert snapshot(left) == before


def test_a_store_is_copied_once_for_every_state_and_the_copy_has_no_name(
    reader: OpenCodeReader, home: Path, writer: Writer, tmp_path: Path, temporary: Path
) -> None:
    left = crashed(home, tmp_path / "left", with_index=False)
    assert said(reader, left) == ["hello", "more"]
    assert list(temporary.iterdir()) == []
    facts = (left / "opencode.db").stat()
    whole = (left / "opencode.db").read_bytes()
    overwrite(left / "opencode.db", b"x" * len(whole), facts)
    assert said(reader, left) == ["hello", "more"]  # of the copy
    overwrite(left / "opencode.db", whole, facts)
    writer.say("later", "b")
    shutil.copy(home / "opencode.db-wal", left / "opencode.db-wal")
    assert said(reader, left) == ["hello", "more", "later"]
    assert list(temporary.iterdir()) == []


def overwrite(path: Path, content: bytes, facts: os.stat_result) -> None:
    """Change a file so that nobody sees it from outside."""
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def test_a_session_that_is_read_goes_on_when_the_copy_is_replaced(
    reader: OpenCodeReader, home: Path, writer: Writer, tmp_path: Path
) -> None:
    writer.say("x", "b", times=200)
    left = crashed(home, tmp_path / "left", with_index=False)
    (file,) = reader.find([left])
    with reader.read(file) as reading:
        first = next(reading)
        writer.say("y", "c")
        shutil.copy(home / "opencode.db-wal", left / "opencode.db-wal")
        assert [newer.size for newer in reader.find([left])] == [file.size + 2]
        assert humans([first, *reading])[:202] == ["hello", "more"] + ["x"] * 200


def test_a_store_that_is_too_big_to_copy_is_read_as_of_its_last_checkpoint(
    home: Path, writer: Writer, tmp_path: Path, temporary: Path
) -> None:
    left = crashed(home, tmp_path / "left", with_index=False)
    before = snapshot(left)
    reader = OpenCodeReader(max_copy_bytes=10)
    assert said(reader, left) == ["hello"]
    assert (snapshot(left), list(temporary.iterdir())) == (before, [])
    with closing(connect(left / "opencode.db")):
        pass  # the agent's next start
    assert said(reader, left) == ["hello", "more"]


def test_a_link_to_a_store_elsewhere_is_read_with_what_lies_beside_the_store(
    reader: OpenCodeReader, home: Path, writer: Writer, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "opencode.db").symlink_to(home / "opencode.db")
    assert said(reader, linked) == ["hello", "more"]
    assert [path.name for path in linked.iterdir()] == ["opencode.db"]


def test_a_store_that_is_locked_keeps_its_known_sessions_and_says_so(
    reader: OpenCodeReader, home: Path, store: Path, writer: Writer
) -> None:
    (file,) = reader.find([home])
    writer.run("PRAGMA locking_mode = EXCLUSIVE")
    writer.say("locked", "b")
    assert {found.path for found in reader.find([home])} == {store, file.path}
    with pytest.raises(SessionUnreadable, match="locked"):
        reader.head(file)


def test_a_store_in_the_midst_of_a_rollback_journal_is_tried_again_later(
    reader: OpenCodeReader, home: Path, store: Path
) -> None:
    (file,) = reader.find([home])
    journal = store.with_name("opencode.db-journal")
    journal.write_bytes(b"half")
    assert {found.path for found in reader.find([home])} == {store, file.path}
    with pytest.raises(SessionUnreadable, match="being written"):
        reader.tail(file)
    journal.unlink()
    assert said(reader, home) == ["hello"]


# what is opened, and how often


def test_a_store_that_has_not_changed_is_not_opened_again(reader: OpenCodeReader, home: Path, store: Path) -> None:
    before = list(reader.find([home]))
    facts = store.stat()
    overwrite(store, b"x" * facts.st_size, facts)
    assert list(reader.find([home])) == before
    assert reader.locate(before[0].path) == before[0]
    os.utime(store)
    with pytest.raises(SessionUnreadable):
        reader.locate(before[0].path)


def test_only_what_has_grown_is_counted_again(reader: OpenCodeReader, home: Path, store: Path) -> None:
    for number in range(3):
        an_opencode_session(home, now=NOW, name=f"other{number}", turns=[("a", "b")])
    sizes = {file.path.name: file.size for file in reader.find([home])}
    with closing(connect(store)) as connection:
        connection.execute(PART, ("prt_x", "msg_one_000001", 1, 1, "{}"))
        # rows that are gone without a word to their session are not looked for
        connection.execute("DELETE FROM part WHERE session_id = 'ses_other0'")
    assert {file.path.name: file.size for file in reader.find([home])} == {
        **sizes,
        "opencode.db#ses_one": sizes["opencode.db#ses_one"] + 1,
    }
    with closing(connect(store)) as connection:
        connection.execute("UPDATE session SET time_updated = time_updated + 1 WHERE id = 'ses_other0'")
    assert {file.path.name: file.size for file in reader.find([home])}["opencode.db#ses_other0"] == 2


def test_rows_that_were_numbered_anew_are_all_counted_again(reader: OpenCodeReader, home: Path, store: Path) -> None:
    an_opencode_session(home, now=NOW, name="two", turns=[("a", "b")] * 50)
    list(reader.find([home]))
    with closing(connect(store)) as connection:
        connection.execute("DELETE FROM session WHERE id = 'ses_two'")
        for table in ("message", "part"):
            connection.execute(f"DELETE FROM {table} WHERE session_id = 'ses_two'")
        connection.execute("VACUUM")
        connection.execute(PART, ("prt_x", "msg_one_000001", 1, 1, '{"type": "agent"}'))
    (file,) = reader.find([home])
    assert file.size == reader.tail(file).record_bytes == 6


def test_no_file_stays_open(reader: OpenCodeReader, home: Path, writer: Writer) -> None:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("needs /proc")
    before = len(list(folder.iterdir()))
    assert said(reader, home) == ["hello", "more"]
    (file,) = reader.find([home])
    with reader.read(file) as reading:
        next(reading)
    assert len(list(folder.iterdir())) == before


# stores that are none


def is_empty(store: Path) -> None:
    store.write_bytes(b"")


def is_encrypted(store: Path) -> None:
    store.write_bytes(os.urandom(store.stat().st_size))


def has_a_header_and_garbage(store: Path) -> None:
    store.write_bytes(store.read_bytes()[:100] + os.urandom(20_000))


def is_half_written(store: Path) -> None:
    store.write_bytes(store.read_bytes()[:6000])


def lacks_a_table(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("DROP TABLE part")


def lacks_a_column(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("ALTER TABLE session RENAME COLUMN time_updated TO changed")


@pytest.mark.parametrize(
    "damage",
    [is_empty, is_encrypted, has_a_header_and_garbage, is_half_written, lacks_a_table, lacks_a_column],
)
def test_a_store_that_cannot_be_read_stands_for_itself_and_its_error_is_ours(
    home: Path, store: Path, damage: Callable[[Path], None]
) -> None:
    damage(store)
    reader = OpenCodeReader()
    before = snapshot(home)
    (file,) = reader.find([home])
    assert (file.path, file.size) == (store, store.stat().st_size)
    assert reader.locate(store) == file
    for operation in (reader.head, reader.tail, reader.read):
        with pytest.raises(SessionUnreadable, match=r"cannot (open|read) .*opencode\.db"):
            operation(file)
    assert snapshot(home) == before


def test_one_bad_store_does_not_hide_another(reader: OpenCodeReader, home: Path, store: Path) -> None:
    store.write_bytes(b"nothing")
    path = an_opencode_session(home, now=NOW, store="opencode-dev.db")
    assert [file.path for file in reader.find([home])] == [store, path]


def test_columns_and_tables_that_nobody_knows_are_no_matter(reader: OpenCodeReader, home: Path, store: Path) -> None:
    with closing(connect(store)) as connection:
        connection.execute("ALTER TABLE session ADD COLUMN mood text DEFAULT 'fine'")
        connection.execute("ALTER TABLE part ADD COLUMN mood text DEFAULT 'fine'")
        connection.execute("CREATE TABLE session_message (id text)")
    assert said(reader, home) == ["hello"]


@pytest.mark.parametrize("moment", ["'soon'", "-1", "1e300", "99999999999999999"])
def test_a_session_without_a_time_is_an_error_of_its_own(
    reader: OpenCodeReader, home: Path, store: Path, moment: str
) -> None:
    other = an_opencode_session(home, now=NOW, name="two")
    with closing(connect(store)) as connection:
        connection.execute(f"UPDATE session SET time_updated = {moment} WHERE id = 'ses_one'")
    one, two = sorted(reader.find([home]), key=lambda file: file.path)
    for operation in (reader.head, reader.tail):
        with pytest.raises(SessionUnreadable, match="when it was changed"):
            operation(one)
    assert two.path == other
    assert reader.head(two).thread_id == "opencode:ses_two"


@pytest.mark.parametrize("changed_ms", [2**63 - 1, -(2**63), 253_402_300_799_999])
def test_a_time_that_no_clock_shows_is_a_number_that_can_be_kept(
    reader: OpenCodeReader, home: Path, store: Path, changed_ms: int
) -> None:
    with closing(connect(store)) as connection:
        connection.execute("UPDATE session SET time_updated = ?", (changed_ms,))
        connection.commit()
    (file,) = reader.find([home])
    assert abs(file.mtime_ns) < 2**63


def test_rows_of_the_wrong_type_are_counted_or_passed_over(reader: OpenCodeReader, home: Path, store: Path) -> None:
    with closing(connect(store)) as connection:
        connection.execute(MESSAGE, ("msg_x", "late", 1, b"\xff\xfe"))
        connection.execute(MESSAGE, ("msg_y", 1_699_999_999_999, 1, "[[[["))
        connection.execute(PART, ("prt_x", "msg_one_000001", 1, 1, b"\x00\x01"))
        connection.execute(PART, (b"\xff", "msg_one_000001", 1, 1, 17))
        connection.execute(PART, ("prt_y", "msg_one_000001", 1, 1, "{" * (BIG_ROW_BYTES + 1)))
    (file,) = reader.find([home])
    with reader.read(file) as reading:
        assert humans(list(reading)) == ["hello"]
    assert reading.bad_lines >= 4


# what is gone


def test_a_session_that_was_deleted_has_vanished(reader: OpenCodeReader, home: Path, store: Path) -> None:
    (file,) = reader.find([home])
    reading = reader.read(file)
    with closing(connect(store)) as connection:
        connection.execute("DELETE FROM session")
    with pytest.raises(SessionVanished):
        list(reading)
    reading.close()
    assert list(reader.find([home])) == []
    for operation in (reader.head, reader.tail, reader.read, lambda gone: reader.locate(gone.path)):
        with pytest.raises(SessionVanished):
            operation(file)


def test_a_store_that_was_replaced_is_read_anew(reader: OpenCodeReader, home: Path, store: Path) -> None:
    assert said(reader, home) == ["hello"]
    an_opencode_session(home, now=NOW, store="new", turns=["other words"])
    (home / "new").replace(store)
    assert said(reader, home) == ["other words"]
    store.unlink()
    assert list(reader.find([home])) == []


def test_every_statement_can_be_asked_of_a_store(store: Path) -> None:
    values = {
        "session_id": "ses_one",
        "id": "prt_one_000000_000000",
        "after_time": -1,
        "after_id": "",
        "ids": '["msg_one_000001", "msg_one_000000"]',
        "places": "[2, 1]",
        "after_part": "",
        "page": 2,
        "most_bytes": 40,
        "newest_message": 0,
        "newest_part": 0,
    }
    with closing(sqlite3.connect(store)) as connection:
        answers = {name: connection.execute(statement, values).fetchall() for name, statement in STATEMENTS.items()}
        plans = {
            name: " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values))
            for name, statement in STATEMENTS.items()
        }
    assert answers["count_rows"] == [(5,)]
    assert json.loads(answers["get_part"][0][0])["text"] == "hello"
    first, second = "msg_one_000000", "msg_one_000001"
    assert [row[:2] for row in answers["list_messages"]] == [(1, first), (2, second)]
    assert [(row[0], row[2]) for row in answers["get_messages"]] == [(second, None), (first, None)]
    assert [row[:2] for row in answers["list_parts"]] == [(0, "prt_one_000001_000000"), (0, "prt_one_000001_000001")]
    # nothing that is asked again and again reads the rows of all sessions
    scanned = {name for name, plan in plans.items() if "SCAN message" in plan or "SCAN part" in plan}
    assert scanned == {"count_rows_of_all"}
    assert "USING COVERING INDEX" in plans["count_rows_of_all"]


def test_agents_that_come_and_go_while_sessions_are_read_are_no_errors(home: Path, store: Path) -> None:
    coming_and_going = (
        "import sqlite3, sys\n"
        "for number in range(150):\n"
        "    connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)\n"
        "    connection.execute('PRAGMA journal_mode = WAL')\n"
        "    connection.execute('UPDATE session SET title = ?', [str(number) * 3000])\n"
        "    connection.close()\n"
    )
    agent = subprocess.Popen([sys.executable, "-c", coming_and_going, str(store)])
    reader, reads = OpenCodeReader(), 0
    while agent.poll() is None or reads < 5:
        (file,) = reader.find([home])
        assert reader.head(file).thread_id == "opencode:ses_one"
        with reader.read(file) as reading:
            assert humans(list(reading)) == ["hello"]
        reads += 1
    assert agent.returncode == 0
    # a page that was being read at the moment of the agent's end has kept it from tidying up; its next start does
    with closing(connect(store)):
        pass
    assert [path.name for path in home.iterdir()] == ["opencode.db"]


def test_a_view_without_end_in_place_of_a_table_is_given_up(store: Path) -> None:
    with closing(connect(store)) as connection:
        connection.executescript(
            "ALTER TABLE session RENAME TO other; CREATE VIEW session AS WITH RECURSIVE numbers (number) AS"
            " (SELECT 1 UNION ALL SELECT number + 1 FROM numbers)"
            " SELECT 'ses_' || number AS id, number AS time_updated FROM numbers WHERE number < 0;"
        )
    database = open_store(store, PrivateCopies(), max_steps=1_000_000)
    with closing(database), pytest.raises(SessionUnreadable, match="answers without end"):
        database.rows("list_sessions")


def test_an_answer_without_end_is_given_up(store: Path) -> None:
    with closing(connect(store)) as connection:
        connection.executescript(
            "ALTER TABLE session RENAME TO other; CREATE VIEW session AS WITH RECURSIVE numbers (number) AS"
            " (SELECT 1 UNION ALL SELECT number + 1 FROM numbers) SELECT 1 AS id, 1 AS time_updated FROM numbers;"
        )
    database = open_store(store, PrivateCopies())
    with closing(database), pytest.raises(SessionUnreadable, match="answers without end"):
        database.rows("list_sessions")


def make_plain(connection: sqlite3.Connection, rows: str = "") -> None:
    """Take the keys and types off the tables, and keep some of their rows."""
    for table in ("message", "part"):
        connection.execute(f"CREATE TABLE plain AS SELECT * FROM {table} {rows}")
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"ALTER TABLE plain RENAME TO {table}")


def test_ids_that_are_not_unique_do_not_multiply_what_was_said(reader: OpenCodeReader, home: Path, store: Path) -> None:
    """Of 40 messages and 40 parts with one id each there would be thousands, and no end to the pages."""
    said = json.dumps({"type": "text", "text": "Never twice."})
    with closing(connect(store)) as connection:
        make_plain(connection, "WHERE false")
        for _ in range(40):
            connection.execute("INSERT INTO message VALUES ('m', 'ses_one', 1, 1, '{\"role\": \"user\"}')")
            connection.execute("INSERT INTO part VALUES ('p', 'm', 'ses_one', 1, 1, ?)", (said,))
    (file,) = reader.find([home])
    with reader.read(file) as reading:
        items = [item for item, _ in zip(reading, range(1_000), strict=False)]
    assert 1 <= len(items) <= 40


def test_ids_that_are_no_texts_do_not_repeat_a_page_for_ever(reader: OpenCodeReader, home: Path, store: Path) -> None:
    """SQLite has any blob after every text, so that no page would come after the last one."""
    said = json.dumps({"type": "text", "text": "Never for ever."})
    with closing(connect(store)) as connection:
        make_plain(connection)
        (first,) = connection.execute("SELECT id FROM message LIMIT 1").fetchone()
        parts = [(b"p%07d" % number, first, "ses_one", 1, 1, said) for number in range(PARTS_PER_PAGE + 10)]
        connection.executemany("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", parts)
        messages = [(b"m%07d" % number, "ses_one", LATER, LATER, "{}") for number in range(NAMES_PER_PAGE + 10)]
        connection.executemany("INSERT INTO message VALUES (?, ?, ?, ?, ?)", messages)
        connection.commit()
    (file,) = reader.find([home])
    with reader.read(file) as reading:
        texts = [item.text for item in reading]
    assert any("Never for ever." in text for text in texts)
