"""Another program's SQLite database, read beside that program and without leaving anything next to it.

How it is opened, and why. SQLite's own read-only mode creates a -shm file, and one that exists is written to. So:

- a -wal and a -shm file: somebody may be writing. `mode=ro&readonly_shm=1` takes SQLite's locks and maps the -shm file
  read-only; if no writer lives any more, SQLite reads the -wal into an index of its own in memory. It is open for one
  page at a time: an agent that leaves while anybody has its store open cannot tidy up its -wal until its next start.
- a -wal that holds something and no -shm file: nobody writes (a crash, a restored backup). Both files are copied to a
  private folder, once for every state of the two; the copy is opened and its names are removed at once, so that it
  cannot outlive this process. A database of more than MAX_COPY_BYTES is read as of its last checkpoint instead: the
  agent's next start completes it, and that is seen.
- else: `immutable=1`, which takes no locks and looks for no other file. Should a writer come meanwhile, the state of
  the files tells, and the page is read again.

Rows come in pages, each a statement of its own: no cursor, and so no transaction, is held while items are used.
"""

import itertools
import os
import re
import shutil
import sqlite3
import stat
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Final

from memoryd import clock
from memoryd.errors import SessionUnreadable, SessionVanished

MAX_COPY_BYTES = 256 * 1024 * 1024
BUSY_SECONDS = 1.0  # only a writer that holds the database exclusively makes a reader wait
QUICK_TRIES, READ_TRIES, READ_PAUSE_SECONDS = 3, 20, 0.01
"""An agent that comes or goes makes and removes files of the store: a moment later they are all there."""
MAX_STEPS = 200_000_000  # of SQLite's machine for one statement; to count a row takes six
MAX_ROWS = 300_000  # of one answer: the longest is one row for each session
_STEPS_PER_LOOK = 100_000
_ANY: Final = "that agent"

_NAME: Final = re.compile(r"^-- name: ([a-z_]+)\n", re.MULTILINE)
Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class StoreState:
    """What the file system says of a store: size, mtime_ns and inode of the database, its -wal and its -journal.

    Equal states mean equal contents. The -shm file is left out: it comes and goes without a change of content.
    """

    database: tuple[int, int, int]
    wal: tuple[int, int, int] | None
    journal: tuple[int, int, int] | None

    @property
    def wal_bytes(self) -> int:
        """Return the size of the -wal file."""
        return self.wal[0] if self.wal else 0


def look_at_store(path: Path) -> StoreState:
    """Look at a store's files without opening any. Raises SessionVanished, SessionUnreadable for no regular file."""
    with _translated(path, "look at", _ANY):
        facts, real = os.lstat(path), os.fspath(path)
        if stat.S_ISLNK(facts.st_mode):
            real = os.path.realpath(path)
            facts = os.stat(real)  # noqa: PTH116 - asked twice for every page
        return _state_of(real, path, facts)


class Database:
    """One store of a program (`maker`), opened when it is first asked and again when its files have changed under it.

    It is closed by its user.
    """

    def __init__(
        self,
        path: Path,
        copies: "PrivateCopies",
        *,
        statements: Mapping[str, str],
        maker: str,
        max_steps: int = MAX_STEPS,
    ) -> None:
        self.path = path
        self._statements = statements
        self._maker = maker
        self._copies = copies
        self._max_steps = max_steps
        self._connection: sqlite3.Connection | None = None
        self._state: StoreState | None = None
        self._takes_locks = False
        self._is_copy = False

    def rows(self, name: str, parameters: Mapping[str, object] | None = None) -> list[Row]:
        """Run one of the statements and return its rows; texts are bytes.

        Raises SessionVanished when the store is gone, SessionUnreadable when it is no database of `maker`.
        """
        failure: sqlite3.Error | None = None
        for attempt in range(READ_TRIES):
            if attempt >= QUICK_TRIES:
                clock.pause(READ_PAUSE_SECONDS)
            try:
                found = self._ask(self._statements[name], parameters or {})
            except sqlite3.Error as error:
                failure, code = error, getattr(error, "sqlite_errorcode", None)
                self.close()
                if code == sqlite3.SQLITE_BUSY:
                    break  # it has been waited for
                if code != sqlite3.SQLITE_CANTOPEN and attempt + 1 >= QUICK_TRIES:
                    break
                continue
            if self._takes_locks:
                self.close()
                return found
            if look_at_store(self.path) == self._state:
                return found
            failure = None
            self.close()  # it was changed while it was read, and no lock kept the pages together
        with _translated(self.path, "read", self._maker):
            raise failure or sqlite3.OperationalError("it changes faster than it can be read")

    def close(self) -> None:
        """Close the connection; closing twice is allowed."""
        if self._connection is not None and not self._is_copy:
            self._connection.close()
        self._connection = None

    def _ask(self, statement: str, parameters: Mapping[str, object]) -> list[Row]:
        """Run a statement to its end; one that has none, as over a view of a table without end, is given up."""
        connection = self._connected()
        looks = itertools.count(1)
        with self._copies.lock if self._is_copy else nullcontext():
            connection.set_progress_handler(lambda: next(looks) * _STEPS_PER_LOOK > self._max_steps, _STEPS_PER_LOOK)
            try:
                found = connection.execute(statement, dict(parameters)).fetchmany(MAX_ROWS + 1)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                    raise
                raise self._endless() from error
        if len(found) > MAX_ROWS:
            raise self._endless()
        return found

    def _endless(self) -> SessionUnreadable:
        return SessionUnreadable(
            f"cannot read {self.path}: it answers without end", remedy=f"is it a database of {self._maker}, and whole?"
        )

    def _connected(self) -> sqlite3.Connection:
        state = look_at_store(self.path)
        if self._connection is not None and state == self._state:
            return self._connection
        self.close()
        if state.journal is not None and state.journal[0]:
            # a half-written transaction of a store without -wal; to undo it is its writer's business
            raise SessionUnreadable(f"cannot read {self.path}: it is being written", remedy="it is tried again later")
        with _translated(self.path, "open", self._maker):
            self._connection = self._open(self.path.resolve(), state)
        self._state = state
        return self._connection

    def _open(self, real: Path, state: StoreState) -> sqlite3.Connection:
        self._takes_locks = state.wal is not None and _facts(real, "-shm") is not None
        self._is_copy = False
        if self._takes_locks:
            return _connect(real, "mode=ro&readonly_shm=1")
        if state.wal_bytes and state.database[0] + state.wal_bytes <= self._copies.max_bytes:
            with suppress(FileNotFoundError):  # somebody has just opened and left it: its state tells, as below
                connection = self._copies.copy_of(real, state)
                self._is_copy = True
                return connection
        return _connect(real, "mode=ro&immutable=1")


class PrivateCopies:
    """Copies of stores whose -wal nobody can read in place: one per store, made anew when the store has changed.

    All users share the connection to a copy, under `lock`; it is closed with this object, or replaced by a newer one. A
    store of more than `max_bytes` is not copied.
    """

    def __init__(self, max_bytes: int = MAX_COPY_BYTES) -> None:
        self.max_bytes = max_bytes
        self.lock = threading.Lock()
        self._copies: dict[Path, tuple[StoreState, sqlite3.Connection]] = {}
        weakref.finalize(self, _close_all, self._copies)

    def copy_of(self, real: Path, state: StoreState) -> sqlite3.Connection:
        """Return a connection to a copy of the store in this state. Raises OSError, sqlite3.Error."""
        with self.lock:
            known = self._copies.get(real)
            if known is not None and known[0] == state:
                return known[1]
            if known is not None:
                known[1].close()
                del self._copies[real]
            connection = _copied(real)
            self._copies[real] = (state, connection)
            return connection


def load_statements(name: str) -> Mapping[str, str]:
    """Return the statements of memoryd/sources/<name>.sql by their names."""
    parts = _NAME.split(files("memoryd.sources").joinpath(f"{name}.sql").read_text(encoding="utf-8"))[1:]
    return MappingProxyType(dict(zip(parts[::2], parts[1::2], strict=True)))


def text_of(value: object) -> str | None:
    """Return a value of the store as text; what is no UTF-8 in it becomes U+FFFD."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None


def number_of(value: object) -> int:
    """Return an integer of the store, 0 for anything else."""
    return value if isinstance(value, int) else 0


def _connect(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?{how}", uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.text_factory = bytes
    # what a hostile schema could do with a trusted one: call functions from a view in place of a table
    connection.execute("PRAGMA trusted_schema = OFF").close()
    return connection


def _copied(real: Path) -> sqlite3.Connection:
    """Copy a store and its -wal, open the copy and remove its names; what is open stays until it is closed."""
    with tempfile.TemporaryDirectory(prefix="memoryd-store-") as folder:
        copy = Path(folder, "copy.db")
        shutil.copyfile(real, copy)
        shutil.copyfile(f"{real}-wal", f"{copy}-wal")
        connection = _connect(copy, "mode=ro")
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()  # opens the -wal, too
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _close_all(copies: dict[Path, tuple[StoreState, sqlite3.Connection]]) -> None:
    for _, connection in copies.values():
        connection.close()


def _state_of(real: str, path: Path, facts: os.stat_result) -> StoreState:
    if not stat.S_ISREG(facts.st_mode):
        raise SessionUnreadable(f"cannot read {path}: it is not a regular file")
    database = (facts.st_size, facts.st_mtime_ns, facts.st_ino)
    return StoreState(database, _facts(real, "-wal"), _facts(real, "-journal"))


def _facts(real: str | Path, suffix: str) -> tuple[int, int, int] | None:
    try:
        facts = os.stat(f"{real}{suffix}")  # noqa: PTH116 - the name is no path of its own
    except OSError:
        return None
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


@contextmanager
def _translated(path: Path, verb: str, maker: str) -> Iterator[None]:
    """Turn what SQLite or the system raises into this room's errors."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SessionVanished(f"cannot {verb} {path}: it is no longer there") from error
    except (OSError, sqlite3.Error, OverflowError, ValueError) as error:
        raise SessionUnreadable(
            f"cannot {verb} {path}: {error}", remedy=f"is it a database of {maker}, and may memoryd read it?"
        ) from error
