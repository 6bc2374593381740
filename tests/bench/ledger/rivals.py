"""Who is compared: the ledger as the daemon uses it, bare sqlite3, and the queue library litequeue.

Each does the same: take the oldest job, and finish it with a 3 KB output, acknowledged before it goes on. Making jobs
is not timed. All use WAL and the `synchronous` that is asked for. The names say how many transactions a job costs: two
(claimed, then ended), or one where whoever ends a job claims the next with it, as the daemon's workers do, or half of
one where two such workers are at it, as in the daemon unless told otherwise, and are committed together; the others
have no second worker. litequeue's own interface needs two, and three when the output goes to a file of its own.
"""

import asyncio
import importlib
import importlib.util
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from memoryd.clock import SystemClock
from memoryd.ledger import jobs, queries, sessions
from memoryd.ledger.attempts import WorkedBy
from memoryd.ledger.database import Ledger
from memoryd.ledger.jobs import ConsolidateTiming, Covered
from memoryd.ledger.outputs import NewOutput
from memoryd.ledger.sessions import Sighting
from memoryd.ledger.states import JobKind
from memoryd.ledger.turns import WRITE, transact

NOW = 1_700_000_000.0
TIMING = ConsolidateTiming(debounce=120.0, min_interval=1800.0)
MODEL = WorkedBy("provider", "model", "0.1/provider/model/0123456789abcdef")
OUTPUT = "memory " * 439
"""3 KB."""

_SQL = queries.load("connection")
SAME_PRAGMAS = (
    "small_pages",
    "journal_wal",
    "busy_timeout",
    "foreign_keys",
    "trusted_schema",
    "temp_store",
    "fullfsync",
    "journal_size_limit",
    "wal_autocheckpoint",
)
"""Whatever the ledger sets, bare sqlite3 has too."""


class Rival(Protocol):
    """One contender, on a file of its own."""

    def fill(self, count: int) -> None:
        """Make that many jobs."""

    def work(self, count: int) -> None:
        """Claim and complete that many jobs."""

    def close(self) -> None: ...


class OurLedger:
    """Through `Ledger.write`, with sessions, attempts and the enqueueing of the follow-up: all that the daemon does."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self.runner = asyncio.Runner()
        self.ledger = self.runner.run(Ledger.open(path, clock=SystemClock()))
        self.runner.run(self._set(synchronous))
        self.made = 0

    async def _set(self, synchronous: str) -> None:
        # Outside a transaction, which a pragma of this kind needs: the adapter's own way in is for whole transactions.
        await self.ledger._connection.execute(f"PRAGMA synchronous = {synchronous}")

    def fill(self, count: int) -> None:
        first, self.made = self.made, self.made + count
        self.runner.run(self.ledger.write(enqueue_sessions, first, count))

    def work(self, count: int) -> None:
        self.runner.run(self._work(count))

    async def _work(self, count: int) -> None:
        for _ in range(count):
            lease = await self.ledger.write(claim)
            assert lease is not None
            await self.ledger.write(complete, lease)

    def claim_and_release(self, count: int, clock: Callable[[], float]) -> list[float]:
        """Return the seconds that each of so many claims took."""
        return self.runner.run(self._claim_and_release(count, clock))

    async def _claim_and_release(self, count: int, clock: Callable[[], float]) -> list[float]:
        taken = []
        for _ in range(count):
            begun = clock()
            lease = await self.ledger.write(claim)
            taken.append(clock() - begun)
            assert lease is not None
            await self.ledger.write(_release, lease)
        return taken

    def finish(self, count: int) -> None:
        """Make that many jobs that were finished long ago, quickly: the rows are those of jobs that ran."""
        self.runner.run(self.ledger.write(_insert_finished, count))

    def close(self) -> None:
        self.runner.run(self.ledger.close())
        self.runner.close()


class StraightOn(OurLedger):
    """The end of a job and the claim of the next in one transaction."""

    async def _work(self, count: int) -> None:
        await self._go_on(count)

    async def _go_on(self, count: int) -> None:
        lease = await self.ledger.write(claim)
        for _ in range(count - 1):
            assert lease is not None
            lease = await self.ledger.write(_complete_and_claim, lease)
        assert lease is not None
        await self.ledger.write(complete, lease)


class TwoWorkers(StraightOn):
    """As many workers as the daemon has unless told otherwise; each goes straight on."""

    async def _work(self, count: int) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(self._go_on(count // 2))


def _complete_and_claim(conn: sqlite3.Connection, lease: jobs.Lease) -> jobs.Lease | None:
    complete(conn, lease)
    return claim(conn)


def claim(conn: sqlite3.Connection) -> jobs.Lease | None:
    return jobs.claim(
        conn,
        kind=JobKind.STAGE1,
        worker_id="bench",
        now=NOW,
        lease_seconds=180.0,
        max_running=2,
        max_attempts=3,
        retry_cap=21_600.0,
        worked_by=MODEL,
    )


def complete(conn: sqlite3.Connection, lease: jobs.Lease) -> None:
    jobs.complete(
        conn,
        lease,
        now=NOW,
        output=NewOutput(lease.job_key, lease.input_watermark, OUTPUT, "", None),
        covered=Covered(1000, 50),
        consolidate=TIMING,
        max_attempts=3,
    )


def _release(conn: sqlite3.Connection, lease: jobs.Lease) -> None:
    jobs.release(conn, lease, now=NOW)


def enqueue_sessions(conn: sqlite3.Connection, first: int, count: int) -> None:
    """See sessions for the first time and enqueue them, as discovery does."""
    for number in range(first, first + count):
        thread = f"0194f5a6-89ab-7cde-8123-{number:012x}"
        sighting = Sighting(
            thread_id=thread,
            agent="codex",
            path=f"/sessions/rollout-{thread}.jsonl",
            cwd="/home/somebody/shop",
            git_branch="main",
            parent_id=None,
            kind="interactive",
            originator="codex_cli_rs",
            started_at=900,
            size=50,
            mtime_ns=1000,
            updated_at=1000,
            record_bytes=50,
        )
        sessions.upsert(conn, sighting, NOW)
        jobs.enqueue_stage1(conn, thread_id=thread, updated_at=1000, record_bytes=50, now=NOW, max_attempts=3)


_FINISHED_JOBS = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
INSERT INTO jobs (kind, job_key, status, started_at, finished_at, retry_remaining, input_watermark,
                  last_success_watermark, last_success_at, epoch, attempt_id)
SELECT 'memory_stage1', printf('done-%08d', i), 'done', 900, 901, 3, 10, 10, 901, 1, i FROM n
"""

_FINISHED_ATTEMPTS = """
INSERT INTO attempts (kind, job_key, epoch, worker_id, input_watermark, started_at, ended_at, outcome)
SELECT kind, job_key, 1, 'bench', 10, 900, 901, 'done' FROM jobs WHERE status = 'done'
"""


def _insert_finished(conn: sqlite3.Connection, count: int) -> None:
    conn.execute(_FINISHED_JOBS, {"count": count})
    conn.execute(_FINISHED_ATTEMPTS)


class BareSqlite:
    """The least that does it: one table of jobs, one of outputs, one statement for the claim, two for the end."""

    tables = """
    CREATE TABLE jobs (
      job_key TEXT PRIMARY KEY, status TEXT NOT NULL, token TEXT, lease_until INTEGER, ready_at INTEGER
    ) STRICT;
    CREATE INDEX jobs_ready ON jobs (ready_at, job_key) WHERE ready_at IS NOT NULL;
    CREATE TABLE outputs (job_key TEXT PRIMARY KEY, text TEXT NOT NULL, at INTEGER NOT NULL) STRICT;
    """

    def __init__(self, path: Path, synchronous: str) -> None:
        self.conn = sqlite3.connect(path, isolation_level=None)
        for name in SAME_PRAGMAS:
            self.conn.execute(_SQL[name])
        self.conn.execute(f"PRAGMA synchronous = {synchronous}")
        self.conn.executescript(self.tables)
        self.made = 0

    def fill(self, count: int) -> None:
        self.conn.execute("BEGIN IMMEDIATE")
        for number in range(self.made, self.made + count):
            self.conn.execute("INSERT INTO jobs VALUES (?, 'pending', NULL, NULL, 0)", (f"job-{number:012x}",))
        self.conn.execute("COMMIT")
        self.made += count

    def work(self, count: int) -> None:
        for _ in range(count):
            self._finish(*self._claim())

    def _claim(self) -> tuple[str, str]:
        self.conn.execute("BEGIN IMMEDIATE")
        claimed = self._take()
        self.conn.execute("COMMIT")
        return claimed

    def _take(self) -> tuple[str, str]:
        rows = self.conn.execute(
            """
            UPDATE jobs SET status = 'running', token = hex(randomblob(16)), lease_until = 180, ready_at = 180
            WHERE job_key = (SELECT job_key FROM jobs WHERE ready_at <= 0 ORDER BY ready_at, job_key LIMIT 1)
            RETURNING job_key, token
            """
        ).fetchall()
        ((job_key, token),) = rows
        return job_key, token

    def _finish(self, job_key: str, token: str) -> None:
        self.conn.execute("BEGIN IMMEDIATE")
        self._end(job_key, token)
        self.conn.execute("COMMIT")

    def _end(self, job_key: str, token: str) -> None:
        done = self.conn.execute(
            """
            UPDATE jobs SET status = 'done', token = NULL, lease_until = NULL, ready_at = NULL
            WHERE job_key = ? AND token = ?
            """,
            (job_key, token),
        )
        assert done.rowcount == 1
        self.conn.execute(
            "INSERT INTO outputs VALUES (?, ?, 0) ON CONFLICT (job_key) DO UPDATE SET text = excluded.text",
            (job_key, OUTPUT),
        )

    def close(self) -> None:
        self.conn.close()


class BareStraightOn(BareSqlite):
    """The end of a job and the claim of the next in one transaction."""

    def work(self, count: int) -> None:
        claimed = self._claim()
        for _ in range(count - 1):
            self.conn.execute("BEGIN IMMEDIATE")
            self._end(*claimed)
            claimed = self._take()
            self.conn.execute("COMMIT")
        self._finish(*claimed)


class BareStatements(BareSqlite):
    """All that the ledger does, by its own functions, on bare sqlite3: what is left out is the way to its thread."""

    tables = queries.read("schema.sql")

    def fill(self, count: int) -> None:
        transact(self.conn, WRITE, lambda conn: enqueue_sessions(conn, self.made, count))
        self.made += count

    def work(self, count: int) -> None:
        lease = transact(self.conn, WRITE, claim)
        for _ in range(count - 1):
            assert lease is not None
            lease = transact(self.conn, WRITE, partial(_complete_and_claim, lease=lease))
        assert lease is not None
        transact(self.conn, WRITE, partial(complete, lease=lease))


class LiteQueue:
    """litequeue has no outputs: the output is put into a second queue of the same library, then the job is done."""

    def __init__(self, path: Path, synchronous: str) -> None:
        module: Any = importlib.import_module("litequeue")
        self.queue = module.LiteQueue(path)
        self.outputs = module.LiteQueue(path.with_name(path.name + ".outputs"))
        for queue in (self.queue, self.outputs):
            queue.conn.execute(f"PRAGMA synchronous = {synchronous}")

    def fill(self, count: int) -> None:
        self.queue.conn.execute("BEGIN IMMEDIATE")
        for number in range(count):
            self.queue.put(f"job-{number:012x}")
        self.queue.conn.execute("COMMIT")

    def work(self, count: int) -> None:
        for _ in range(count):
            message = self.queue.pop()
            self.outputs.put(OUTPUT)
            self.queue.done(message.message_id)

    def close(self) -> None:
        for queue in (self.queue, self.outputs):
            queue.conn.close()


class LiteQueueInOneFile(LiteQueue):
    """Both queues in one file, so that output and done are one transaction, as with the others.

    litequeue gives the indexes of all queues the same two names, and makes none where a name is taken: the second queue
    gets its own here, as it has in a file of its own. Without them what was put could be found by a scan only.
    """

    def __init__(self, path: Path, synchronous: str) -> None:
        module: Any = importlib.import_module("litequeue")
        self.queue = module.LiteQueue(path)
        self.outputs = module.LiteQueue(self.queue.conn, queue_name="Outputs")
        for column in ("message_id", "status"):
            self.queue.conn.execute(f"CREATE INDEX outputs_{column} ON Outputs ({column})")
        self.queue.conn.execute(f"PRAGMA synchronous = {synchronous}")

    def work(self, count: int) -> None:
        for _ in range(count):
            message = self.queue.pop()
            with self.queue.transaction():
                self.outputs.put(OUTPUT)
                self.queue.done(message.message_id)

    def close(self) -> None:
        self.queue.conn.close()


def rivals() -> dict[str, type[Rival]]:
    """Return the contenders by name; litequeue only where it is installed (dependency group `bench`)."""
    found: dict[str, type[Rival]] = {
        "memoryd, 1/2": TwoWorkers,
        "memoryd, 1": StraightOn,
        "memoryd, 2": OurLedger,
        "sqlite3, 1": BareStraightOn,
        "sqlite3, 2": BareSqlite,
        "statements, 1": BareStatements,
    }
    if importlib.util.find_spec("litequeue") is not None:
        found |= {"litequeue, 2": LiteQueueInOneFile, "litequeue, 3": LiteQueue}
    return found
