"""The ledger as the rest of the house holds it: one connection, one thread, whole transactions.

A transaction is one synchronous function that takes the connection first. It runs on the connection's own thread from
its first statement to its last, so that no task can be cancelled inside it. Those that wait to write at the same time
are committed together, one after the other, and none of them hears of it (turns.py).
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

import aiosqlite

from memoryd.clock import Clock
from memoryd.errors import LedgerBusy, LedgerCorrupt, MemorydError, StorageError
from memoryd.ledger import migrations, mounts, opening
from memoryd.ledger.migrations import Migration
from memoryd.ledger.translate import as_ours, translated
from memoryd.ledger.turns import READ, Turn, Turns, transact

P = ParamSpec("P")
T = TypeVar("T")

BUSY_TRIES = 12
"""A minute, each try waiting for busy_timeout on the ledger's thread: other tasks' reads go on between them."""


def unfenced() -> None:
    """Forbid nothing: for a ledger that no other process can take over."""


class Ledger:
    """An open ledger; `warning` says what is not as it should be about its place, if anything.

    `damage` is what SQLite said when it found the file damaged, None while it has not: who holds it sets it aside.
    `fence` is called once a transaction has SQLite's write lock, and raises LeaseLost to forbid it: whoever has taken
    the ledger over since can then not have written yet, so that a process that slept through that changes nothing.
    A caller that is cancelled while it waits sees CancelledError although its transaction runs to its end: the outcome
    is unknown to it and can be read again by the token.
    """

    def __init__(
        self, path: Path, raw: sqlite3.Connection, connection: aiosqlite.Connection, *, writable: bool
    ) -> None:
        self.path = path
        self.warning: str | None = None
        self.damage: str | None = None
        self.fence: Callable[[], None] = unfenced
        self._raw = raw
        self._connection = connection
        self._writable = writable
        self._turns = Turns()
        self._hearing: dict[Turn[Any], asyncio.Future[Any]] = {}
        self._is_called = False
        self._open = True

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        read_only: bool = False,
        mountinfo: str | None = None,
        steps: Sequence[Migration] | None = None,
    ) -> Self:
        """Open the ledger at `path`; to write, it is created (mode 0600) or migrated (after a backup) as needed.

        The folder must exist. Raises StorageError (no ledger yet, no permission), DiskFull, LedgerBusy, LedgerTooNew
        or LedgerCorrupt. `mountinfo` and `steps` are the system's and the program's own unless given.
        """
        steps = migrations.shipped() if steps is None else steps
        warning: str | None = None
        failure: MemorydError | None = None

        def connect() -> sqlite3.Connection:
            nonlocal warning, failure
            try:
                with translated(path, "open"):
                    if read_only:
                        return opening.open_reader(path, steps=steps)
                    table = mounts.read_mounts() if mountinfo is None else mountinfo
                    conn, warning = opening.open_writer(path, steps=steps, mountinfo=table, now=clock.now())
                    return conn
            except MemorydError as error:
                # A connector that raises leaves aiosqlite's thread behind, to speak to a loop that may be closed.
                failure = error
                return sqlite3.connect(":memory:")

        connection = aiosqlite.Connection(connect, iter_chunk_size=64)
        # Whoever fails to close a ledger must not keep the program from ending. What was committed is safe.
        connection._thread.daemon = True  # noqa: SLF001 - there is no other way to ask for it
        await _start(connection)
        if failure is not None:
            await connection.close()
            raise failure
        ledger = cls(path, connection._conn, connection, writable=not read_only)  # noqa: SLF001 - see _on_thread
        ledger.warning = warning
        return ledger

    async def write(
        self, fn: Callable[Concatenate[sqlite3.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `fn(conn, ...)` as one transaction that may write: all of it is committed, or nothing on any error.

        It has no effect but on the ledger: it may run twice, the first time in vain, when another one that was to be
        committed with it fails, or when SQLite's write lock could not be had.
        """
        if not self._writable:
            raise StorageError(f"cannot write to the ledger {self.path}: it was opened for reading")

        def fenced(conn: sqlite3.Connection) -> T:
            self.fence()
            return fn(conn, *args, **kwargs)

        for _ in range(BUSY_TRIES - 1):
            try:
                return await self._write(fenced)
            except LedgerBusy:
                continue  # another program holds the write lock; nothing of this transaction stayed
        return await self._write(fenced)

    async def _write(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        self._check_open("write to")
        turn = Turn(fn)
        heard: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._hearing[turn] = heard
        self._turns.join(turn)
        if not self._is_called:
            self._is_called = True
            # One call serves all who wait when it comes to it, and none of them may cancel it for the others: so it is
            # no `await` of aiosqlite's. The minor version is pinned, and tests/ledger/test_database.py shows the rest.
            self._connection._tx.put_nowait((None, self._serve))  # noqa: SLF001 - said above
        return await heard

    def _serve(self) -> None:
        """Let all write who wait now, on the ledger's thread; who joins from here on calls again."""
        self._is_called = False
        left = len(self._turns)
        while left > 0:
            served = self._turns.take(self._raw)
            left -= len(served)
            self._hearing[served[0]].get_loop().call_soon_threadsafe(self._tell, served)

    def _tell(self, served: Sequence[Turn[Any]]) -> None:
        """Let those hear of it who asked for it, unless they were cancelled meanwhile."""
        for turn in served:
            heard = self._hearing.pop(turn)
            if heard.done():
                continue
            if turn.error is None:
                heard.set_result(turn.answer)
            else:
                heard.set_exception(self._as_ours(turn.error, "write to"))

    async def read(
        self, fn: Callable[Concatenate[sqlite3.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `fn(conn, ...)` on one snapshot; whatever it writes is undone."""

        def on_snapshot() -> T:
            return transact(self._raw, READ, lambda conn: fn(conn, *args, **kwargs))

        for _ in range(BUSY_TRIES - 1):
            try:
                return await self._on_thread(on_snapshot, "read")
            except LedgerBusy:
                continue  # another program is recovering the log
        return await self._on_thread(on_snapshot, "read")

    async def apart(
        self, fn: Callable[Concatenate[sqlite3.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `fn(conn, ...)` outside of any transaction: for what SQLite does not do inside one."""

        def fenced() -> T:
            self.fence()
            return fn(self._raw, *args, **kwargs)

        return await self._on_thread(fenced, "look after")

    async def _on_thread(self, work: Callable[[], T], attempt: str) -> T:
        self._check_open(attempt)

        def job() -> T:
            try:
                return work()
            except Exception as error:
                ours = self._as_ours(error, attempt)
                if ours is error:
                    raise
                raise ours from error

        # aiosqlite's own methods run one statement each; only this private one runs a whole function on its thread.
        # The minor version is pinned, and tests/ledger/test_database.py shows what is relied upon.
        execute = cast("Callable[[Callable[[], T]], Awaitable[T]]", self._connection._execute)  # noqa: SLF001 - said above
        return await execute(job)

    def _as_ours(self, error: BaseException, attempt: str) -> BaseException:
        """Return what is raised instead of an error, and remember if that is damage."""
        ours = error
        if isinstance(error, (sqlite3.Error, OSError)):
            ours = as_ours(error, self.path, attempt)
            ours.__cause__ = error
        if isinstance(ours, LedgerCorrupt):
            self.damage = ours.message
        return ours

    def _check_open(self, attempt: str) -> None:
        if not self._open:
            raise StorageError(f"cannot {attempt} the ledger {self.path}: it is closed")

    @property
    def is_open(self) -> bool:
        """Tell whether it can be used."""
        return self._open

    async def close(self) -> None:
        """Finish what was begun, checkpoint and close; closing twice is no mistake."""
        if self._open:
            self._open = False
            with translated(self.path, "close"):
                await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def _start(connection: aiosqlite.Connection) -> None:
    """Open the connection on its thread; a caller that is cancelled meanwhile leaves no thread behind."""

    async def start() -> None:
        await connection

    starting = asyncio.ensure_future(start())
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        await starting
        await connection.close()
        raise
