"""`memoryd run` beside sessions that grow, with a scripted model over real HTTP."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.support.checks import assert_accepted, threads_asked_about
from tests.support.growing import a_session_of_now, go_on, path_of
from tests.support.model_asked import STAGE1
from tests.support.model_replies import Hang
from tests.support.model_server import ModelServer
from tests.support.process import GLOBAL_KIND, PATIENCE_SECONDS, STAGE1_KIND, Place, Process


@pytest.fixture
def impatient(place: Place, server: ModelServer) -> Place:
    """A place whose daemon looks every second for sessions that rested one second."""
    place.codex.mkdir()
    place.configure(base_url=server.base_url, discover__min_idle="1s", discover__scan_interval="1s")
    return place


def opened_a_file(event: dict[str, object]) -> bool:
    return bool(event["opened"])


def wait_for_scans(daemon: Process, count: int) -> None:
    """Wait for so many more scans."""
    daemon.wait_for_event("scan.completed", len(daemon.events("scan.completed")) + count)


@contextmanager
def systemd_listens(place: Place) -> Iterator[Callable[[], str]]:
    """Listen where a service manager would; the callable waits for the daemon's next message."""
    address = place.folder / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.settimeout(PATIENCE_SECONDS)
        listener.bind(str(address))
        place.extra["NOTIFY_SOCKET"] = str(address)
        yield lambda: listener.recv(4096).decode()


def test_a_new_idle_session_is_picked_up_extracted_and_consolidated(impatient: Place, server: ModelServer) -> None:
    with impatient.daemon() as daemon:
        thread_id = a_session_of_now(impatient.codex, "From now on always run the linter before committing.")
        daemon.wait_for_event("consolidation.published")

        assert threads_asked_about(server.requests) == [thread_id]
        assert "always run the linter" in (impatient.memories / "MEMORY.md").read_text()
    assert_accepted(impatient, sessions=1)
    assert impatient.requests_made() == len(server.requests)


def test_touches_ticks_and_restarts_cost_nothing_once_all_is_done(impatient: Place, server: ModelServer) -> None:
    """I4: the fixed point, over three restarts."""
    with impatient.daemon() as daemon:
        thread_id = a_session_of_now(impatient.codex, "Never deploy the shop on a Friday.")
        daemon.wait_for_event("consolidation.published")
        commit = assert_accepted(impatient, sessions=1)
        server.forget()

        os.utime(path_of(impatient.codex, thread_id))
        seen = len(daemon.events("scan.completed"))
        daemon.wait_for_event("scan.completed", 1, where=opened_a_file)
        wait_for_scans(daemon, 2)
        assert len(daemon.events("scan.completed")) > seen
    for _ in range(3):
        with impatient.daemon() as daemon:
            wait_for_scans(daemon, 1)

    assert server.requests == []
    assert assert_accepted(impatient, sessions=1) == commit


def test_a_session_that_goes_on_is_extracted_again(impatient: Place, server: ModelServer) -> None:
    with impatient.daemon() as daemon:
        thread_id = a_session_of_now(impatient.codex, "Please write commit messages in English.")
        daemon.wait_for_event("consolidation.published")

        go_on(path_of(impatient.codex, thread_id), "And never mention ticket numbers in them.")
        daemon.wait_for_event("consolidation.published", 2)

    assert threads_asked_about(server.requests) == [thread_id, thread_id]
    assert "never mention ticket numbers" in server.of_kind(STAGE1)[-1].opening
    assert "never mention ticket numbers" in (impatient.memories / "MEMORY.md").read_text()
    assert_accepted(impatient, sessions=1)


def test_a_second_sigterm_ends_the_daemon_at_once(impatient: Place, server: ModelServer) -> None:
    """The grace period is not waited for, and the job is given back all the same."""
    server.reply_with(Hang())
    with systemd_listens(impatient) as told, impatient.daemon() as daemon:
        a_session_of_now(impatient.codex, "Keep the changelog short.")
        server.wait_for(1)
        daemon.send(signal.SIGTERM)
        while "STOPPING=1" not in told():
            pass
        daemon.send(signal.SIGTERM)
        assert daemon.wait() == 0
        assert not daemon.events("daemon.stopped")

    assert impatient.query("SELECT status, retry_remaining FROM jobs") == [("pending", 3)]


def test_a_second_daemon_names_the_first_and_ends_well(impatient: Place) -> None:
    with impatient.daemon() as daemon:
        second = impatient.run("run")

    assert second.code == 0
    assert f"pid {daemon.pid}" in second.stdout


def test_sync_beside_the_daemon_is_answered_by_it(place: Place, server: ModelServer) -> None:
    """Six hours of patience in the daemon's settings; `sync --now` has it look at once."""
    place.codex.mkdir()
    place.configure(base_url=server.base_url)
    with place.daemon() as daemon:
        thread_id = a_session_of_now(place.codex, "Prefer small pull requests, please.")

        done = place.run("sync", "--now", "--json")

        assert done.code == 0, done
        assert done.json["jobs"] == {STAGE1_KIND: {"remembered": 1}, GLOBAL_KIND: {"published": 1}}
        assert threads_asked_about(server.requests) == [thread_id]
        status = place.status()
        assert (status["running"], status["pid"]) == (True, daemon.pid)
    assert_accepted(place, sessions=1)


def test_sigterm_ends_a_sync_as_an_interrupt_does_and_gives_its_job_back(place: Place, server: ModelServer) -> None:
    """I1: what is in hand is released, not left to be taken back later."""
    place.codex.mkdir()
    place.configure(base_url=server.base_url, limits__backfill="recent", discover__min_idle="0s")
    a_session_of_now(place.codex, "Prefer small pull requests, please.")
    server.reply_with(Hang())
    with place.start(*place.words("sync", "--now")) as sync:
        server.wait_for(1)
        assert sync.terminate() == 130

    assert place.query("SELECT status, retry_remaining, ownership_token FROM jobs") == [("pending", 3, None)]
    assert place.query("SELECT outcome FROM attempts") == [("released",)]


def test_a_daemon_that_waits_for_a_command_takes_over_when_it_ends_and_stops_when_asked(
    place: Place, server: ModelServer
) -> None:
    place.codex.mkdir()
    place.configure(base_url=server.base_url, limits__backfill="recent", discover__min_idle="0s")
    a_session_of_now(place.codex, "Prefer small pull requests, please.")
    server.reply_with(Hang())
    with systemd_listens(place) as told, place.start(*place.words("sync", "--now")) as sync:
        server.wait_for(1)
        with place.start(*place.words("run")) as waiting:
            assert f"waiting for pid {sync.pid}" in told()
            assert waiting.terminate() == 0
        assert sync.is_running
        assert sync.terminate() == 130
