"""A disk of 1 MiB that fills at the worst moments: in the commit of a result, in materialisation, in publication."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from memoryd.daemon.passes import run_pass
from memoryd.daemon.progress import Step, silent
from memoryd.errors import DiskFull
from tests.faults.test_full_disk import fill
from tests.support.checks import assert_accepted
from tests.support.clock import FakeClock
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import good_model
from tests.support.model_server import ModelServer
from tests.support.process import Place
from tests.support.readers import ARTEFACTS, reading
from tests.support.sessions import a_rollout

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux can mount a small disk"
)

FIRST = "From now on run the formatter before every commit."
SECOND = "Never rebase the release branch of the shop."
POINTS = ["reply_received", "consolidate", "objects_written", "before_rename:MEMORY.md", "before_refs"]


@pytest.fixture
def small(place: Place) -> Iterator[Place]:
    """A place whose MEMORYD_HOME is a disk of 1 MiB."""
    place.home.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place.home)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"this machine mounts nothing: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place.home)], check=True)


async def a_pass(
    place: Place, client: Answering, clock: FakeClock, at_point: Callable[[str], None] = lambda _point: None
) -> None:
    def at_step(step: Step) -> None:
        silent(step)
        if step.done == 0:
            at_point(step.stage)

    async with a_house(settings_in(place.folder), clock, client=client, reached=at_point) as context:
        await run_pass(context, now=True, backfill="recent", progress=at_step)


@pytest.mark.parametrize("point", POINTS)
async def test_a_disk_that_fills_there_loses_nothing_and_repeats_at_most_one_run(small: Place, point: str) -> None:
    """I1, I3: readers see whole files all the while; when there is room again the same work is done."""
    clock = FakeClock(start=time.time())
    client = Answering(good_model)
    a_rollout(small.codex, now=clock.now(), idle_hours=8, turns=[FIRST])
    await a_pass(small, client, clock)
    a_rollout(small.codex, now=clock.now(), idle_hours=7, turns=[SECOND])
    client.asked.clear()
    filled = False

    def at_point(name: str) -> None:
        nonlocal filled
        if name.startswith(point) and not filled:
            filled = True
            fill(small)

    with reading(small.memories) as reader:
        try:
            await a_pass(small, client, clock, at_point)
        except DiskFull:
            pass
        assert filled
        (small.home / "filler").unlink()
        clock.jump(3_600)
        await a_pass(small, client, clock)

    assert_accepted(small, sessions=2)
    assert [len(reader.seen[small.memories / name]) for name in ARTEFACTS] == [2, 2]
    assert sum(question.schema is not None for question in client.asked) <= 2


def storage_paused(place: Place) -> str | None:
    """What status says of the disk, by its own finding."""
    done = place.run("status", "--json")
    assert done.code == 1, done
    health = done.json["health"]
    return next((item["message"] for item in health if item["id"] == "storage_paused"), None)


def a_growing_place(place: Place, server: ModelServer) -> None:
    place.configure(
        base_url=server.base_url, limits__backfill="recent", discover__min_idle="1s", discover__scan_interval="1s"
    )
    place.codex.mkdir()


def test_a_daemon_starts_on_a_full_disk_waits_and_can_be_stopped(small: Place, server: ModelServer) -> None:
    a_growing_place(small, server)
    assert small.run("sync").code == 0
    fill(small)
    refused = small.run("sync", "--now")
    assert (refused.code, "space" in refused.stderr) == (3, True), refused

    with small.start(*small.words("run")) as daemon:
        daemon.wait_for_event("storage.paused")
        assert storage_paused(small) is not None
        assert daemon.is_running
        assert daemon.terminate() == 0, daemon.output
    assert server.requests == []


def test_a_disk_that_becomes_read_only_pauses_a_daemon_and_status_says_so(small: Place, server: ModelServer) -> None:
    a_growing_place(small, server)
    with small.daemon() as daemon:
        subprocess.run(["mount", "-o", "remount,ro", str(small.home)], check=False)
        if not os.statvfs(small.home).f_flag & os.ST_RDONLY:
            pytest.skip("this machine does not make a disk read-only that is in use")
        a_rollout(small.codex, now=time.time(), idle_hours=7, turns=[SECOND])
        daemon.wait_for_event("storage.paused")
        assert server.requests == []
        assert storage_paused(small) is not None
        subprocess.run(["mount", "-o", "remount,rw", str(small.home)], check=True)


def test_status_names_the_pause_of_a_running_daemon(small: Place, server: ModelServer) -> None:
    a_growing_place(small, server)
    with small.daemon() as daemon:
        filler = fill(small)
        a_rollout(small.codex, now=time.time(), idle_hours=7, turns=[SECOND])
        daemon.wait_for_event("storage.paused")
        said = storage_paused(small)
        assert said is not None
        assert "paused" in said
        filler.unlink()
    assert server.requests == []
