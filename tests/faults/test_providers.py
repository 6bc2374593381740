"""Providers that are down or refuse the key, and a machine without git: the work waits, and says why."""

import socket
import time

import pytest

from tests.support.checks import assert_accepted
from tests.support.model_replies import Status
from tests.support.model_server import ModelServer
from tests.support.process import GLOBAL_KIND, Finished, Place
from tests.support.sessions import a_rollout

SAID = "Never call the {number}th thing a widget again."


def many_sessions(place: Place, count: int) -> None:
    for number in range(count):
        a_rollout(place.codex, now=time.time(), idle_hours=7 + number, turns=[SAID.format(number=number)])


def assert_waiting(place: Place, done: Finished, reason: str) -> None:
    """Exit 3, the reason in JSON, no attempt spent."""
    assert done.code == 3, done
    assert set(done.json["undone"]) == {reason}
    assert {failure["reason"] for failure in done.json["failures"]} <= {reason}
    waiting = place.query("SELECT DISTINCT status, retry_remaining FROM jobs WHERE status <> 'done'")
    assert waiting == [("pending", 3)]


def test_a_provider_that_is_down_costs_no_attempt(place: Place, server: ModelServer) -> None:
    """I5: the reason and the time are known; when it is up again, everything is done."""
    many_sessions(place, 2)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        place.configure(base_url=f"http://127.0.0.1:{nobody.getsockname()[1]}/v1", limits__backfill="recent")
        done = place.run("sync", "--json")
        plain = place.run("sync")

    assert_waiting(place, done, "provider_unreachable")
    assert done.json["undone"] == {"provider_unreachable": 2}
    assert plain.code == 3
    assert "no network, or it is down" in plain.stdout
    status = place.run("status", "--json")
    # the first waits are short: on a busy machine they may be over, and the jobs due again
    assert all(job["until"] and job["reason"] == "provider_unreachable" for job in status.json["waiting"])

    text = (place.home / "config.toml").read_text().splitlines()
    place.write_config("\n".join(f'base_url = "{server.base_url}"' if "base_url" in line else line for line in text))
    for (key,) in place.query("SELECT job_key FROM jobs WHERE status = 'pending'"):
        assert place.run("jobs", "retry", str(key)).code == 0
    assert place.run("sync").code == 0
    assert_accepted(place, sessions=2)


def test_a_refused_key_costs_two_requests_and_is_never_shown(place: Place) -> None:
    """I6: twenty sessions, at most one request per worker, and the key in no output, log or file."""
    many_sessions(place, 20)
    key = "wrong-key-of-mine-4711"
    with ModelServer(api_key="another one") as server:
        place.configure(base_url=server.base_url, key=key, limits__backfill="recent")

        done = place.run("sync", "--json")

        assert_waiting(place, done, "key_refused")
        assert done.json["undone"] == {"key_refused": 20}
        assert len(server.requests) <= 2
        plain = place.run("sync")
        assert plain.code == 3
        assert "SCRIPTED_API_KEY" in plain.stdout + place.run("status").stdout
        assert len(server.requests) <= 2
        status, jobs = place.run("status"), place.run("jobs")
    said = "".join(part for each in (done, plain, status, jobs) for part in (each.stdout, each.stderr))
    assert key not in said
    for path in place.home.rglob("*"):
        assert not path.is_file() or key.encode() not in path.read_bytes(), path


def test_a_model_that_nobody_knows_waits_for_a_person(place: Place, server: ModelServer) -> None:
    many_sessions(place, 4)
    server.reply_with(Status(404, "The model `scripted-1` does not exist", "model_not_found"))
    place.configure(base_url=server.base_url, limits__backfill="recent")

    done = place.run("sync", "--json")

    assert_waiting(place, done, "model_unknown")
    assert len(server.requests) <= 2


@pytest.mark.parametrize("status", [429, 503])
def test_a_provider_in_trouble_costs_no_attempt(place: Place, server: ModelServer, status: int) -> None:
    many_sessions(place, 2)
    server.reply_with(Status(status, "not now", headers={"Retry-After": "120"}))
    place.configure(base_url=server.base_url, limits__backfill="recent")

    done = place.run("sync", "--json")

    assert_waiting(place, done, "rate_limited" if status == 429 else "provider_overloaded")
    assert place.requests_made() == len(server.requests)


def test_without_git_what_was_learned_is_kept_and_the_folder_waits(place: Place, server: ModelServer) -> None:
    many_sessions(place, 2)
    place.configure(base_url=server.base_url, limits__backfill="recent")
    place.extra["PATH"] = str(place.folder / "no programs here")

    done = place.run("sync", "--json")

    assert_waiting(place, done, "git_missing")
    assert place.query("SELECT count(*) FROM stage1_outputs") == [(2,)]
    plain = place.run("sync")
    assert plain.code == 3
    assert "git" in plain.stdout
    status = place.run("status")
    assert status.code == 1
    assert "install git" in status.stdout

    del place.extra["PATH"]
    asked = len(server.of_kind("stage1"))
    assert place.run("jobs", "retry", GLOBAL_KIND).code == 0
    assert place.run("sync").code == 0
    assert len(server.of_kind("stage1")) == asked
    assert_accepted(place, sessions=2)
