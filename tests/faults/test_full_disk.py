"""A real disk without room: a small tmpfs, which only root may mount."""

import asyncio
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from memoryd.daemon.supervisor import Supervisor
from tests.support.checks import assert_accepted
from tests.support.daemon import OF_THE_TESTS
from tests.support.hasty import HastyClock
from tests.support.house import a_house, settings_in
from tests.support.model_server import ModelServer
from tests.support.process import GLOBAL_KIND, PATIENCE_SECONDS, Place
from tests.support.readers import ARTEFACTS, assert_only_accepted, reading
from tests.support.sessions import a_rollout

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux can mount a small disk"
)

FIRST = "From now on run the formatter before every commit."
SECOND = "Never rebase the release branch of the shop."


@pytest.fixture
def small(place: Place) -> Iterator[Place]:
    """A place whose MEMORYD_HOME is a disk of 2 MiB."""
    place.home.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place.home)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"this machine mounts nothing: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place.home)], check=True)


def fill(place: Place, *, leaving: int = 0) -> Path:
    """Fill the disk but for some bytes; return the file to remove."""
    filler = place.home / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
        file.truncate(max(0, file.tell() - leaving))
    return filler


@pytest.mark.parametrize("leaving", [0, 65_536])
def test_sync_on_a_full_disk_loses_nothing_and_goes_on_when_there_is_room(
    small: Place, server: ModelServer, leaving: int
) -> None:
    """I1, I3: one clear line or a stated reason; then the same work is done."""
    small.configure(base_url=server.base_url, limits__backfill="recent", ledger__lease="2s")
    a_rollout(small.codex, now=time.time(), idle_hours=8, turns=[FIRST])
    assert small.run("sync").code == 0
    a_rollout(small.codex, now=time.time(), idle_hours=7, turns=[SECOND])

    with reading(small.memories) as reader:
        filler = fill(small, leaving=leaving)
        done = small.run("sync")
        assert done.code in {1, 3}, done
        assert "space" in done.stdout + done.stderr, done
        filler.unlink()

        if small.query("SELECT wait_reason FROM jobs WHERE kind = ?", GLOBAL_KIND) == [("disk_full",)]:
            small.run("jobs", "retry", "global")
        with small.daemon() as daemon:
            daemon.wait_for_event("consolidation.published")
    assert_accepted(small, sessions=2)
    assert_only_accepted(small, reader)
    assert [len(reader.seen[small.memories / name]) for name in ARTEFACTS] == [2, 2]


def test_a_daemon_on_a_full_disk_pauses_and_can_be_stopped(small: Place, server: ModelServer) -> None:
    """It neither dies nor spends: no request is sent that could not be recorded."""
    small.configure(
        base_url=server.base_url, limits__backfill="recent", discover__min_idle="1s", discover__scan_interval="1s"
    )
    small.codex.mkdir()
    with small.daemon() as daemon:
        filler = fill(small)
        a_rollout(small.codex, now=time.time(), idle_hours=7, turns=[SECOND])
        told = daemon.wait_for_event("storage.paused")
        assert "space" in told["error"]
        assert server.requests == []
        assert daemon.is_running
        assert daemon.terminate() == 0
    filler.unlink()

    assert small.run("sync", "--now").code == 0
    assert_accepted(small, sessions=1)


async def test_a_running_daemon_goes_on_when_the_room_is_back(
    small: Place, server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The pauses are real ones, on a clock that runs a hundred times faster."""
    settings = settings_in(
        small.folder,
        discover__min_idle="0s",
        limits__backfill="recent",
        providers={"scripted": {"kind": "openai", "base_url": server.base_url}},
        extract__model="scripted-1",
        consolidate__model="scripted-1",
    )
    small.codex.mkdir()
    caplog.set_level(logging.DEBUG, logger="memoryd")

    async def until_said(name: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not any(isinstance(each.msg, dict) and each.msg["event"] == name for each in caplog.records):
                await asyncio.sleep(0.02)

    async with a_house(settings, HastyClock()) as context:
        supervisor = Supervisor(lambda: nullcontext(context), context.clock, bounds=OF_THE_TESTS)
        running = asyncio.create_task(supervisor.run())
        await until_said("scan.completed")
        filler = fill(small)
        a_rollout(small.codex, now=time.time(), idle_hours=7, turns=[SECOND])
        await until_said("storage.paused")
        assert server.requests == []
        filler.unlink()
        await until_said("consolidation.published")
        supervisor.stop()
        await running
    assert_accepted(small, sessions=1)
