"""Another program holds the ledger's write lock, or reads it for long: the daemon waits, and nothing is lost."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.daemon.supervisor import Supervisor
from memoryd.ledger import database
from memoryd.llm.question import Question
from memoryd.pipeline.context import Context
from tests.support.hasty import HastyClock
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import good_model
from tests.support.log_lines import LogLines
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
        supervisor = Supervisor(context)
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


def with_client(context: Context, client: Answering) -> Context:
    model = replace(context.extract, provider="scripted", model="m", client=client)
    return replace(context, extract=model, consolidate=model)
