"""Another program holds the ledger's write lock, or reads it for long: the daemon waits, and nothing is lost."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.daemon.supervisor import Supervisor
from memoryd.ledger import database
from memoryd.llm.question import Question
from memoryd.pipeline.context import Context
from tests.support.checks import assert_accepted, settle, threads_asked_about
from tests.support.daemon import OF_THE_TESTS
from tests.support.hasty import HastyClock
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import good_model
from tests.support.log_lines import LogLines
from tests.support.model_asked import STAGE1, Recorded
from tests.support.model_replies import Scripted
from tests.support.model_server import ModelServer
from tests.support.process import STAGE1_KIND, Place
from tests.support.sessions import a_rollout

PATIENCE_SECONDS = 60


@contextmanager
def a_write_lock(path: Path) -> Iterator[None]:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def impatient(conn: sqlite3.Connection) -> None:
    """The seam: every try waits 20 ms for a lock in place of 5 s, a minute of tries is over in a quarter second."""
    conn.execute("PRAGMA busy_timeout = 20")


@pytest.mark.parametrize("tries", [0.5, 3.0], ids=["within a minute of tries", "longer than that"])
async def test_a_result_outlasts_a_lock_that_another_program_holds(tmp_path: Path, tries: float) -> None:
    """I1: the model was asked once, the answer is kept, nobody crashed."""
    log, locked = LogLines(), threading.Event()
    a_rollout(tmp_path / "codex", now=time.time(), turns=["Always use tabs in the Makefile"])
    held: list[object] = []

    async with a_house(settings_in(tmp_path, limits__backfill="recent"), HastyClock()) as opened:
        await opened.ledger.apart(impatient)

        def answer(question: Question) -> object:
            if not locked.is_set():
                locked.set()
                lock = a_write_lock(opened.ledger.path)
                lock.__enter__()
                held.append(lock)
            return good_model(question)

        client = Answering(answer)  # type: ignore[arg-type]  # gives what good_model gives
        context = with_client(opened, client)
        supervisor = Supervisor(lambda: nullcontext(context), context.clock, bounds=OF_THE_TESTS)
        running = asyncio.create_task(supervisor.run())
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not held:
                await asyncio.sleep(0.01)
            await asyncio.sleep(tries * database.BUSY_TRIES * 0.02)
            held[0].__exit__(None, None, None)  # type: ignore[attr-defined]  # the lock
            while not log.events("consolidation.published"):
                await asyncio.sleep(0.01)
        supervisor.stop()
        await running

    assert sum(question.schema is not None for question in client.asked) == 1
    assert not [event for event in log.events() if event["event"] in {"service.crashed", "job.crashed", "job.failed"}]


HOLDER = """
import sqlite3, sys, time
other = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
other.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
other.execute("ROLLBACK")
"""
HELD_SECONDS = 30.0


@pytest.mark.parametrize(("lease", "outlasts"), [("180s", True), ("9s", False)], ids=["in the lease", "longer than it"])
def test_a_daemon_lives_through_a_write_lock_of_half_a_minute(
    place: Place, server: ModelServer, lease: str, *, outlasts: bool
) -> None:
    """I1, I2: what was asked is kept while its lease can be renewed; else its holder stops, and it is asked anew.

    A second process holds the lock in real time, and the daemon has the waits that it always has.
    """
    place.configure(
        base_url=server.base_url,
        limits__backfill="recent",
        ledger__lease=lease,
        discover__min_idle="0s",
        discover__scan_interval="1s",
    )
    locked, free = threading.Event(), threading.Event()

    def while_it_is_locked(asked: Recorded) -> Scripted | None:
        if asked.kind == STAGE1 and not locked.is_set():
            locked.set()
            assert free.wait(HELD_SECONDS * 2)
        return None

    server.reply_with(while_it_is_locked)
    a_rollout(place.codex, now=time.time(), idle_hours=8, turns=["Always use tabs in the Makefile"])
    with place.daemon() as daemon:
        server.wait_for(1)
        words = [sys.executable, "-c", HOLDER, str(place.home / "ledger.sqlite3"), str(HELD_SECONDS)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            began = time.monotonic()
            a_rollout(place.codex, now=time.time(), idle_hours=7, turns=["Never rebase the release branch"])
            time.sleep(HELD_SECONDS / 2)
            free.set()
            assert holder.wait(HELD_SECONDS * 2) == 0
            assert time.monotonic() - began >= HELD_SECONDS - 1
        daemon.wait_for_event("job.completed", 2, where=lambda event: event["kind"] == STAGE1_KIND)
        daemon.wait_for_event("consolidation.published")
        assert daemon.is_running
        assert not daemon.events("service.crashed") + daemon.events("service.failed") + daemon.events("job.failed")

    settle(place)
    assert_accepted(place, sessions=2)
    asked = Counter(threads_asked_about(server.requests))
    assert sorted(asked.values()) == ([1, 1] if outlasts else [1, 2])
    runs = place.query("SELECT outcome FROM attempts WHERE kind = ? ORDER BY id", STAGE1_KIND)
    assert Counter(runs) == ({("done",): 2} if outlasts else {("done",): 2, ("crashed",): 1})
    assert place.query("SELECT DISTINCT retry_remaining FROM jobs WHERE kind = ?", STAGE1_KIND) == [(3,)]


def with_client(context: Context, client: Answering) -> Context:
    model = replace(context.extract, provider="scripted", model="m", client=client)
    return replace(context, extract=model, consolidate=model)
