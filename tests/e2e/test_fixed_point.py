"""The daemon's services in this process, with ticks far shorter than any setting allows, and a model over real HTTP."""

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from memoryd.clock import SystemClock
from memoryd.config import Settings
from memoryd.daemon.supervisor import Supervisor
from tests.support.daemon import OF_THE_TESTS
from tests.support.growing import a_session_of_now, path_of
from tests.support.house import a_house, settings_in
from tests.support.model_server import ModelServer
from tests.support.process import PATIENCE_SECONDS, STAGE1_KIND, Place

TICK_SECONDS = 0.02


def ticking_fast(settings: Settings) -> Settings:
    """The same settings with a scan interval below the least that a person may set."""
    return settings.model_copy(
        update={"discover": settings.discover.model_copy(update={"scan_interval": TICK_SECONDS})}
    )


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():
            await asyncio.sleep(TICK_SECONDS)


def said(caplog: pytest.LogCaptureFixture, name: str) -> list[dict[str, object]]:
    """The events of a name that were logged so far."""
    events = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    return [event for event in events if event["event"] == name]


async def test_fifty_ticks_and_a_touched_file_cost_no_request(
    tmp_path: Path, server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    """I4: after success the daemon may tick for ever."""
    place = Place(tmp_path)
    place.codex.mkdir()
    scripted = {"kind": "openai", "base_url": server.base_url}
    settings = settings_in(
        tmp_path,
        discover__min_idle="0s",
        providers={"scripted": scripted},
        extract__model="scripted-1",
        consolidate__model="scripted-1",
    )
    caplog.set_level(logging.DEBUG, logger="memoryd")
    async with a_house(ticking_fast(settings), SystemClock()) as context:
        supervisor = Supervisor(lambda: nullcontext(context), context.clock, bounds=OF_THE_TESTS)
        running = asyncio.create_task(supervisor.run())
        await until(lambda: len(said(caplog, "scan.completed")) >= 1)
        thread_id = a_session_of_now(place.codex, "Always name the migration after the ticket.")
        await until(lambda: len(said(caplog, "consolidation.published")) >= 1)
        assert len(server.of_kind("stage1")) == 1
        server.forget()

        os.utime(path_of(place.codex, thread_id))
        done = len(said(caplog, "scan.completed"))
        await until(lambda: len(said(caplog, "scan.completed")) >= done + 50)

        supervisor.stop()
        await running
    assert server.requests == []
    assert len([event for event in said(caplog, "job.claimed") if event["kind"] == STAGE1_KIND]) == 1
    assert sum(int(str(event["opened"])) for event in said(caplog, "scan.completed")) == 2
