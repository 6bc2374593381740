"""kill -9 at every point of consequence; then somebody starts memoryd again (I1, I3, I9)."""

import signal
import sys
import time

import pytest

from tests.support.checks import assert_accepted, threads_asked_about
from tests.support.model_asked import CONSOLIDATION, STAGE1, Recorded
from tests.support.model_replies import Hang, Scripted
from tests.support.model_server import ModelServer
from tests.support.process import Finished, Place
from tests.support.readers import Reader, reading
from tests.support.sessions import a_rollout

FIRST = "From now on run the formatter before every commit."
SECOND = "Never rebase the release branch of the shop."
ARTEFACTS = ("MEMORY.md", "memory_summary.md")


@pytest.fixture
def remembering(place: Place, server: ModelServer) -> Place:
    """A place with one session remembered and one more that is due; a lease runs out soon after its holder died."""
    place.configure(
        base_url=server.base_url,
        ledger__lease="2s",
        limits__backfill="recent",
        discover__min_idle="1s",
        discover__scan_interval="1s",
    )
    a_rollout(place.codex, now=time.time(), idle_hours=8, turns=[FIRST])
    done = place.run("sync")
    assert done.code == 0, done
    a_rollout(place.codex, now=time.time(), idle_hours=7, turns=[SECOND])
    return place


def pass_until(place: Place, point: str, number: int = 1) -> Finished:
    """Make a pass that is killed at a point, when it comes there for the `number`th time."""
    words = [sys.executable, "-W", "error", "-m", "tests.support.killed_pass", str(place.home), point, str(number)]
    return place.execute(words)


def runs_of_the_agent(server: ModelServer) -> int:
    """How often a consolidation began."""
    return sum(each.exchanges == [] for each in server.of_kind(CONSOLIDATION))


def converge(place: Place) -> None:
    """Start the daemon, and stop it when nothing is left to do."""
    with place.daemon() as daemon:
        if place.query("SELECT count(*) FROM jobs WHERE status <> 'done'") != [(0,)]:
            daemon.wait_for_event("job.completed", where=lambda event: event["job_key"] == "global")


def assert_converged(place: Place, server: ModelServer, reader: Reader) -> None:
    """Both sessions stand in an accepted memory, each request is accounted for once, readers saw whole versions."""
    assert_accepted(place, sessions=2)
    assert place.requests_made() == len(server.requests)
    versions = place.git("log", "--format=%H").splitlines()
    assert len(versions) == 2
    for name in ARTEFACTS:
        accepted = {place.git("show", f"{version}:{name}") for version in versions}
        assert {content.decode().strip() for content in reader.seen[place.memories / name]} <= accepted
    assert "Never rebase the release branch" in (place.memories / "MEMORY.md").read_text()


@pytest.mark.parametrize("stage", [STAGE1, CONSOLIDATION])
def test_a_daemon_killed_while_a_model_thinks_repeats_one_request_or_one_run(
    remembering: Place, server: ModelServer, stage: str
) -> None:
    """I1: kill -9 in the middle of either stage, and a restart converges."""
    server.forget()
    spent = remembering.requests_made()

    def hang(asked: Recorded) -> Scripted | None:
        return Hang() if asked.kind == stage else None

    server.reply_with(hang)
    with reading(remembering.memories) as reader:
        with remembering.daemon() as daemon:
            server.wait_for(1, kind=stage)
            assert daemon.kill() == -signal.SIGKILL
        server.reply_with(lambda _asked: None)
        converge(remembering)

    assert_accepted(remembering, sessions=2)
    assert remembering.requests_made() - spent == len(server.requests)
    threads = threads_asked_about(server.requests)
    assert len(threads) == (2 if stage == STAGE1 else 1)
    assert len(set(threads)) == 1
    assert runs_of_the_agent(server) == (1 if stage == STAGE1 else 2)
    for name in ARTEFACTS:
        assert len(reader.seen[remembering.memories / name]) == 2


@pytest.mark.parametrize("point", ["session_loaded", "reply_received", "agent_finished", "objects_written"])
def test_a_kill_before_the_decision_costs_a_request_or_a_run_and_nothing_else(
    remembering: Place, server: ModelServer, point: str
) -> None:
    """I1: nothing is decided yet, so the work is done again, once."""
    with reading(remembering.memories) as reader:
        before = remembering.artefacts()
        assert pass_until(remembering, point).code == -signal.SIGKILL
        assert remembering.artefacts() == before
        converge(remembering)

    assert_converged(remembering, server, reader)
    asked = threads_asked_about(server.requests)
    assert len(asked) == (3 if point == "reply_received" else 2)
    assert runs_of_the_agent(server) == (3 if point in {"agent_finished", "objects_written"} else 2)


@pytest.mark.parametrize(
    "point", ["before_rename:MEMORY.md", "before_rename:memory_summary.md", "before_refs", "after_refs"]
)
def test_a_kill_after_the_decision_costs_nothing(remembering: Place, server: ModelServer, point: str) -> None:
    """I1, I3: what is decided is put in place by the next pass, without a model."""
    with reading(remembering.memories) as reader:
        assert pass_until(remembering, point).code == -signal.SIGKILL
        server_saw = len(server.requests)
        done = remembering.run("sync")
        assert done.code == 0, done

    assert len(server.requests) == server_saw
    assert_converged(remembering, server, reader)


def test_what_a_killed_memoryd_held_is_taken_back_at_the_next_start_however_long_its_lease(
    place: Place, server: ModelServer
) -> None:
    """I1, I5: its process is known to be gone, so nobody waits an hour for its lease."""
    place.configure(base_url=server.base_url, limits__backfill="recent", ledger__lease="1h")
    a_rollout(place.codex, now=time.time(), turns=[FIRST])
    assert pass_until(place, "session_loaded").code == -signal.SIGKILL

    done = place.run("sync", "--now", "--json")

    assert done.code == 0, done
    assert done.json["jobs"]["memory_stage1"] == {"remembered": 1}
    assert place.query("SELECT outcome FROM attempts WHERE kind = 'memory_stage1' ORDER BY id") == [
        ("crashed",),
        ("done",),
    ]


def test_a_pass_killed_at_every_rename_in_turn_still_arrives(remembering: Place, server: ModelServer) -> None:
    """I1, I3: each restart gets one file further than the last, without a model."""
    with reading(remembering.memories) as reader:
        assert pass_until(remembering, "before_rename:").code == -signal.SIGKILL
        server_saw = len(server.requests)
        kills = 1
        while (ended := pass_until(remembering, "before_rename:", 2)).code == -signal.SIGKILL:
            kills += 1
        assert ended.code == 0

    assert kills == len(remembering.git("diff", "--name-only", "HEAD~1", "HEAD").splitlines()) == 4
    assert len(server.requests) == server_saw
    assert_converged(remembering, server, reader)


def test_the_first_memory_appears_whole(place: Place, server: ModelServer) -> None:
    """I3: a reader that waits for the first memory never sees half of it, although the pass is killed twice."""
    place.configure(base_url=server.base_url, limits__backfill="recent")
    a_rollout(place.codex, now=time.time(), idle_hours=8, turns=[FIRST])
    with reading(place.memories) as reader:
        assert pass_until(place, "before_rename:MEMORY.md").code == -signal.SIGKILL
        assert pass_until(place, "before_rename:memory_summary.md").code == -signal.SIGKILL
        assert place.run("sync").code == 0

    assert_accepted(place, sessions=1)
    for name in ARTEFACTS:
        assert reader.seen[place.memories / name] == {(place.memories / name).read_bytes()}
    assert place.requests_made() == len(server.requests)
