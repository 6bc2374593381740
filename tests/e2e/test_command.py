"""A whole memoryd whose model is a program: both stages, what it does wrong, and its end together with the daemon's."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.support import agent_program
from tests.support.checks import assert_accepted
from tests.support.process import GLOBAL_KIND, STAGE1_KIND, Place, wait_until
from tests.support.sessions import install_recorded


def configure(place: Place, *manner: str, **changes: str) -> None:
    """Make the scripted agent's program the only provider."""
    install_recorded(place.codex, now=time.time(), idle_hours=7, names=["interactive-0.171.0"])
    place.configure(**changes)
    command = json.dumps([sys.executable, agent_program.__file__, *manner])
    text = (place.home / "config.toml").read_text()
    stages = '[extract]\nmodel = "default"\n'
    text = text.replace("[consolidate]", '[consolidate]\nmodel = "default"')
    place.write_config(f'{text}\n{stages}\n[providers.agent]\nkind = "command"\ncommand = {command}\ntimeout = "30s"\n')


def test_a_program_extracts_and_consolidates_and_a_second_pass_runs_nothing(place: Place) -> None:
    """I4, I9: one run per session, one for the consolidation, each a row of the ledger."""
    configure(place)

    done = place.run("sync", "--now", "--backfill", "all", "--json")

    assert done.code == 0, done
    remembered = done.json["jobs"][STAGE1_KIND]["remembered"]
    assert done.json["jobs"][GLOBAL_KIND] == {"published": 1}
    assert_accepted(place, sessions=remembered)
    made = place.requests_made()
    assert made == place.query("SELECT count(*) FROM attempts")[0][0]
    assert place.run("sync", "--now", "--backfill", "all").code == 0
    assert place.requests_made() == made


def test_of_a_programs_folder_only_the_three_places_are_taken(place: Place) -> None:
    """I3, I7: what it wrote elsewhere reaches neither the memory nor, confined, the house."""
    configure(place, "elsewhere", str(place.home))

    done = place.run("sync", "--now", "--backfill", "all", "--json")

    assert done.code == 0, done
    assert_accepted(place, sessions=done.json["jobs"][STAGE1_KIND]["remembered"])
    assert not any("planted" in path or "stray" in path for path in place.artefacts())
    assert "nothing any more" not in (place.memories / "raw_memories.md").read_text()
    if place.query("SELECT value FROM meta WHERE key = 'confinement'") != [("none",)]:
        assert not (place.home / "planted").exists()


def test_complaints_go_back_to_a_further_run(place: Place) -> None:
    configure(place, "careless")

    done = place.run("sync", "--now", "--backfill", "all", "--json")

    assert done.code == 0, done
    runs = place.query("SELECT count(*) FROM requests WHERE kind = ?", GLOBAL_KIND)
    assert runs == [(2,)]


def test_a_program_that_does_nothing_leaves_the_memory_as_it_was(place: Place) -> None:
    configure(place, "idle")

    done = place.run("sync", "--now", "--backfill", "all", "--json")

    assert done.code == 1, done
    assert place.query("SELECT count(*) FROM requests WHERE kind = ?", GLOBAL_KIND) == [(3,)]
    assert not (place.memories / "MEMORY.md").exists()


def left_of(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                if mark in (entry / "cmdline").read_bytes().decode():
                    found.append(entry.name)
            except OSError:
                continue
    return found


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc to look at")
def test_a_program_ends_with_the_daemon_also_when_that_is_killed(place: Place) -> None:
    configure(place, "hang", f"mark-{os.getpid()}", discover__scan_interval="1s", limits__backfill="all")
    mark = f"mark-{os.getpid()}"
    with place.start(*place.words("run", "--log-level", "debug")) as daemon:
        wait_until(lambda: bool(left_of(mark)), "the program runs")
        daemon.kill()
        wait_until(lambda: not left_of(mark), "the program has ended")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc to look at")
def test_a_daemon_that_is_stopped_leaves_no_program(place: Place) -> None:
    mark = f"stop-{os.getpid()}"
    configure(place, "hang", mark, discover__scan_interval="1s", limits__backfill="all")
    with place.start(*place.words("run", "--log-level", "debug")) as daemon:
        wait_until(lambda: bool(left_of(mark)), "the program runs")
        daemon.send(signal.SIGTERM)
        daemon.send(signal.SIGTERM)  # at once, without the time that running jobs are given
        daemon.wait()
        assert left_of(mark) == []


def test_a_program_that_is_not_there_is_said_at_the_start(place: Place) -> None:
    place.configure()
    text = (place.home / "config.toml").read_text()
    place.write_config(
        f'{text}\n[extract]\nmodel = "m"\n[providers.agent]\nkind = "command"\ncommand = ["no-agent-here"]\n'.replace(
            "[consolidate]", '[consolidate]\nmodel = "m"'
        )
    )
    done = place.run("sync")
    assert done.code == 2
    assert "there is no program no-agent-here on PATH" in done.complaint
