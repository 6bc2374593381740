"""The wall clock of the whole process is wrong (libfaketime): nothing stuck, nothing run twice, nothing pruned."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.checks import assert_accepted
from tests.support.model_replies import Hang
from tests.support.model_server import ModelServer
from tests.support.process import Place, Process
from tests.support.sessions import a_rollout

pytestmark = [
    pytest.mark.skipif(shutil.which("faketime") is None, reason="there is no faketime program"),
    pytest.mark.skipif("FAKETIME" in os.environ, reason="the clock of this whole run is set already"),
]

FIRST = "From now on run the formatter before every commit."
SECOND = "Never rebase the release branch of the shop."
DAY = 86_400
SHIFTS = {"three hours back": "-3 hours", "two days ahead": "+2 days", "1970": "1970-01-02 00:00:00"}
FAR_AHEAD = "+400 days"
FLAT_KIB = 24 * 1024
"""Growth of a process that only waits; the leaks to be seen here (years of ticks made good) take 300 MB."""


def at(shift: str) -> tuple[str, ...]:
    """Run a command on another wall clock, with the machine's own monotonic one and time since boot.

    The library alone is taken: the program `faketime` would stand between us and the process, and keep our signals.
    """
    shown = ["faketime", shift, "printenv", "LD_PRELOAD", "FAKETIME"]
    library, offset = subprocess.run(shown, capture_output=True, text=True, check=True).stdout.split("\n")[:2]
    return ("env", "FAKETIME_DONT_FAKE_MONOTONIC=1", f"LD_PRELOAD={library}", f"FAKETIME={offset}")


def remembered(place: Place, server: ModelServer) -> dict[str, bytes]:
    """One session remembered by the right clock, and an output that is nearly old enough to be pruned; the next
    consolidation takes it in.
    """
    place.configure(
        base_url=server.base_url, limits__backfill="recent", discover__scan_interval="1s", discover__min_idle="1s"
    )
    a_rollout(place.codex, now=time.time(), idle_hours=8, turns=[FIRST])
    assert place.run("sync").code == 0
    assert_accepted(place, sessions=1)
    with closing(sqlite3.connect(place.home / "ledger.sqlite3")) as conn:
        conn.execute(
            "INSERT INTO stage1_outputs (thread_id, source_updated_at, raw_memory, rollout_summary, generated_at)"
            " VALUES ('unselected', ?, 'raw', 'summary', ?)",
            (int(time.time()) - 27 * DAY, int(time.time())),
        )
        conn.commit()
    server.forget()
    return place.artefacts()


def outputs(place: Place) -> int:
    return int(place.query("SELECT count(*) FROM stage1_outputs")[0][0])


def backups(place: Place) -> list[str]:
    return sorted(path.name for path in (place.home / "backups").iterdir())


def resident_kib(process: Process) -> int:
    """The memory of a process; `env` replaces itself by what it starts, so that the pid is memoryd's."""
    if sys.platform != "linux":
        return 0
    status = Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


@pytest.mark.parametrize("case", SHIFTS)
def test_a_daemon_on_a_wrong_clock_is_not_stuck_and_runs_nothing_twice(
    place: Place, server: ModelServer, case: str
) -> None:
    """I4, and I1 once the clock is right again."""
    memory = remembered(place, server)
    wrong = [*at(SHIFTS[case]), *place.words("run", "--log-level", "debug")]

    with place.start(*wrong) as daemon:
        daemon.wait_for_event("daemon.started")
        daemon.wait_for_event("scan.completed", 2)
        before = resident_kib(daemon)
        daemon.wait_for_event("scan.completed", 5)
        assert server.requests == []
        assert resident_kib(daemon) <= before + FLAT_KIB
        assert len(daemon.events("clock.doubted")) == (0 if case == "two days ahead" else 1)
        assert daemon.terminate() == 0, daemon.output
    assert place.artefacts() == memory
    assert outputs(place) == 2

    a_rollout(place.codex, now=time.time(), idle_hours=1, turns=[SECOND])
    with place.daemon() as daemon:
        daemon.wait_for_event("consolidation.published")
        assert_accepted(place, sessions=3)
    assert place.query("SELECT count(*) FROM attempts WHERE kind = 'memory_stage1'") == [(2,)]
    assert sum(request.kind == "stage1" for request in server.requests) == 1


def test_a_clock_that_jumped_far_ahead_prunes_and_rotates_nothing(place: Place, server: ModelServer) -> None:
    remembered(place, server)
    there = backups(place)

    done = place.run("sync", "--json", wrapper=at(FAR_AHEAD))

    assert done.code == 0, done
    assert [event["reason"] for event in done.events if event["event"] == "clock.doubted"] == ["jumped"]
    assert (outputs(place), backups(place)) == (2, there)
    told = place.run("status", "--json", wrapper=at(FAR_AHEAD))
    (finding,) = [item for item in told.json["health"] if item["id"] == "clock_implausible"]
    assert "24 hours" in finding["remedy"]
    assert place.run("status", "--json").code == 0, "the clock is right again"


def test_a_first_start_in_1970_makes_no_session_new(place: Place, server: ModelServer) -> None:
    """What was recorded before memoryd came stays history, and waits for consent when the clock is right."""
    place.configure(base_url=server.base_url)
    a_rollout(place.codex, now=time.time(), idle_hours=8, turns=[FIRST])

    assert place.run("sync", wrapper=at(SHIFTS["1970"])).code == 0
    done = place.run("sync", "--json")

    assert done.json["waiting"] == {"consent": 1}
    assert server.requests == []


def test_a_lease_and_a_wait_of_a_clock_that_was_ahead_hold_nothing_up(place: Place, server: ModelServer) -> None:
    """I1: a daemon killed in the middle of a job, two days ahead, leaves both in the future."""
    remembered(place, server)
    a_rollout(place.codex, now=time.time(), idle_hours=1, turns=[SECOND])
    server.then(Hang())
    with place.start(*at(SHIFTS["two days ahead"]), *place.words("run")) as daemon:
        server.wait_for(1)
        daemon.kill()

    with place.daemon() as daemon:
        daemon.wait_for_event("consolidation.published")
    assert {status for (status,) in place.query("SELECT status FROM jobs")} == {"done"}
    assert sum(request.kind == "stage1" for request in server.requests) == 2
    assert_accepted(place, sessions=3)
