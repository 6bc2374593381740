"""kill -9 at every point of consequence; then somebody starts memoryd again (I1, I3, I9)."""

import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.checks import assert_accepted, settle, threads_asked_about
from tests.support.model_asked import CONSOLIDATION, STAGE1, Recorded
from tests.support.model_replies import Hang, Scripted
from tests.support.model_server import ModelServer
from tests.support.process import STAGE1_KIND, Finished, Place, thread_id_of
from tests.support.readers import ARTEFACTS, Reader, assert_only_accepted, reading
from tests.support.sessions import a_rollout

FIRST = "From now on run the formatter before every commit."
SECOND = "Never rebase the release branch of the shop."
THIRD = "Always write the changelog entry first."

BEFORE_THE_DECISION = {
    # the point: requests of stage 1, runs of the agent that a kill there makes memoryd pay for again
    "claimed:memory_stage1": (0, 0),
    "session_loaded": (0, 0),
    "reply_received": (1, 0),
    "usage_credited": (1, 0),
    "acknowledged:memory_stage1": (0, 0),
    "claimed:memory_consolidate_global": (0, 0),
    "evidence_staged": (0, 0),
    "agent_finished": (0, 1),
    "objects_written": (0, 1),
}
AFTER_THE_DECISION = (
    "acknowledged:memory_consolidate_global",
    "before_rename:raw_memories.md",
    "before_rename:rollout_summaries/",
    "before_rename:MEMORY.md",
    "before_rename:memory_summary.md",
    "before_refs",
    "after_refs",
    "recall_refreshed",
)


@dataclass(frozen=True)
class Kept:
    """A place as it was when one session was remembered and one more was due; it is put back for each test."""

    folder: Path
    place: Place
    first: str

    def restored(self) -> Place:
        shutil.rmtree(self.place.folder, ignore_errors=True)
        shutil.copytree(self.folder, self.place.folder)
        return self.place


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def kept(server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """One session remembered, and one due that cites it; a lease runs out soon after its holder died."""
    folder = tmp_path_factory.mktemp("killed")
    place = Place(folder / "place", measured=False)
    place.folder.mkdir()
    place.configure(
        base_url=server.base_url,
        ledger__lease="2s",
        limits__backfill="recent",
        discover__min_idle="1s",
        discover__scan_interval="1s",
    )
    first = thread_id_of(a_rollout(place.codex, now=time.time(), idle_hours=8, turns=[FIRST]))
    done = place.run("sync")
    assert done.code == 0, done
    a_rollout(place.codex, now=time.time(), idle_hours=7, turns=[(SECOND, citing(first))])
    place.folder.rename(folder / "kept")
    return Kept(folder / "kept", place, first)


@pytest.fixture
def remembering(kept: Kept, server: ModelServer) -> Place:
    server.reply_with(lambda _asked: None)
    server.forget()
    return kept.restored()


def citing(thread_id: str) -> str:
    """An answer that used what was remembered of a session."""
    return (
        "Understood.\n<oai-mem-citation>\n<citation_entries>\nMEMORY.md:1-2|note=[style]\n</citation_entries>\n"
        f"<rollout_ids>\n{thread_id}\n</rollout_ids>\n</oai-mem-citation>"
    )


def pass_until(place: Place, point: str, number: int = 1) -> Finished:
    """Make a pass that is killed at a point, when it comes there for the `number`th time."""
    words = [sys.executable, "-W", "error", "-m", "tests.support.killed_pass", str(place.home), point, str(number)]
    return place.execute(words)


def runs_of_the_agent(server: ModelServer) -> int:
    """How often a consolidation began."""
    return sum(each.exchanges == [] for each in server.of_kind(CONSOLIDATION))


def assert_converged(place: Place, reader: Reader, *, cited: str) -> None:
    """Both sessions stand in an accepted memory, readers saw whole versions, and what was cited counts once."""
    assert_accepted(place, sessions=2)
    assert len(place.git("log", "--format=%H").splitlines()) == 2
    assert_only_accepted(place, reader)
    assert SECOND in (place.memories / "MEMORY.md").read_text()
    assert place.query("SELECT thread_id, usage_count FROM stage1_outputs WHERE usage_count > 0") == [(cited, 1)]
    assert place.query("SELECT count(*) FROM usage_events") == [(1,)]


@pytest.mark.parametrize("stage", [STAGE1, CONSOLIDATION])
def test_a_daemon_killed_while_a_model_thinks_repeats_one_request_of_each_job_or_one_run(
    remembering: Place, server: ModelServer, stage: str
) -> None:
    """I1: kill -9 in the middle of either stage, and a restart converges."""
    third = thread_id_of(a_rollout(remembering.codex, now=time.time(), idle_hours=6, turns=[THIRD]))
    spent = remembering.requests_made()

    def hang(asked: Recorded) -> Scripted | None:
        return Hang() if asked.kind == stage else None

    server.reply_with(hang)
    with reading(remembering.memories) as reader:
        with remembering.daemon() as daemon:
            if stage == CONSOLIDATION:
                daemon.wait_for_event("job.completed", 2, where=lambda event: event["kind"] == STAGE1_KIND)
            server.wait_for(2 if stage == STAGE1 else 1, kind=stage)
            assert daemon.kill() == -signal.SIGKILL
        server.reply_with(lambda _asked: None)
        settle(remembering)

    assert_accepted(remembering, sessions=3)
    assert_only_accepted(remembering, reader)
    assert remembering.requests_made() - spent == len(server.requests)
    threads = threads_asked_about(server.requests)
    assert len(set(threads)) == 2
    assert threads.count(third) == len(threads) / 2 == (2 if stage == STAGE1 else 1)
    assert runs_of_the_agent(server) <= (2 if stage == STAGE1 else 3)
    for name in ARTEFACTS:
        assert len(reader.seen[remembering.memories / name]) >= 2


@pytest.mark.parametrize("point", BEFORE_THE_DECISION)
def test_a_kill_before_the_decision_costs_a_request_or_a_run_at_most(
    remembering: Place, kept: Kept, server: ModelServer, point: str
) -> None:
    """I1: nothing is decided yet, so the work is done again, once."""
    spent = remembering.requests_made()
    with reading(remembering.memories) as reader:
        before = remembering.artefacts()
        assert pass_until(remembering, point).code == -signal.SIGKILL
        assert remembering.artefacts() == before
        done = remembering.run("sync")
        assert done.code == 0, done

    assert_converged(remembering, reader, cited=kept.first)
    assert remembering.requests_made() - spent == len(server.requests)
    requests, runs = BEFORE_THE_DECISION[point]
    assert len(threads_asked_about(server.requests)) == 1 + requests
    assert runs_of_the_agent(server) == 1 + runs


def test_kills_after_the_decision_cost_nothing_wherever_they_come(
    remembering: Place, kept: Kept, server: ModelServer
) -> None:
    """I1, I3: what is decided is put in place by the next pass, without a model, though each is killed one step on."""
    with reading(remembering.memories) as reader:
        for point in AFTER_THE_DECISION:
            assert pass_until(remembering, point).code == -signal.SIGKILL, point
        done = remembering.run("sync")
        assert done.code == 0, done

    assert_converged(remembering, reader, cited=kept.first)
    assert len(threads_asked_about(server.requests)) == 1
    assert runs_of_the_agent(server) == 1


def test_a_pass_killed_at_every_rename_in_turn_still_arrives(
    remembering: Place, kept: Kept, server: ModelServer
) -> None:
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
    assert_converged(remembering, reader, cited=kept.first)


def test_a_kill_before_evidence_is_removed_costs_nothing(remembering: Place, kept: Kept, server: ModelServer) -> None:
    """I1: of two sessions one may stay, the one that was cited; the other's summary goes at the next start."""
    assert remembering.run("sync").code == 0
    a_rollout(remembering.codex, now=time.time(), idle_hours=1, turns=[(THIRD, citing(kept.first))])
    config = remembering.home / "config.toml"
    config.write_text(config.read_text().replace("[consolidate]", "[consolidate]\nmax_raw_memories = 1"))
    with reading(remembering.memories, may_vanish=True) as reader:
        assert pass_until(remembering, "before_delete:rollout_summaries/").code == -signal.SIGKILL
        server_saw = len(server.requests)
        assert remembering.run("sync").code == 0

    assert len(server.requests) == server_saw
    assert_accepted(remembering, sessions=1)
    assert_only_accepted(remembering, reader)


def test_what_a_killed_memoryd_held_is_taken_back_at_the_next_start_however_long_its_lease(
    remembering: Place, server: ModelServer
) -> None:
    """I1, I5: its process is known to be gone, so nobody waits an hour for its lease."""
    config = remembering.home / "config.toml"
    config.write_text(config.read_text().replace('lease = "2s"', 'lease = "1h"'))
    assert pass_until(remembering, "session_loaded").code == -signal.SIGKILL

    done = remembering.run("sync", "--now", "--json")

    assert done.code == 0, done
    assert done.json["jobs"]["memory_stage1"] == {"remembered": 1}
    assert remembering.query("SELECT outcome FROM attempts WHERE kind = 'memory_stage1' ORDER BY id") == [
        ("done",),
        ("crashed",),
        ("done",),
    ]


def test_the_first_memory_appears_whole(tmp_path: Path, server: ModelServer) -> None:
    """I3: a reader that waits for the first memory never sees half of it, although the pass is killed twice."""
    place = Place(tmp_path, measured=False)
    server.reply_with(lambda _asked: None)
    server.forget()
    place.configure(base_url=server.base_url, limits__backfill="recent")
    a_rollout(place.codex, now=time.time(), idle_hours=8, turns=[FIRST])
    with reading(place.memories) as reader:
        assert pass_until(place, "before_rename:MEMORY.md").code == -signal.SIGKILL
        assert pass_until(place, "before_rename:memory_summary.md").code == -signal.SIGKILL
        assert place.run("sync").code == 0

    assert_accepted(place, sessions=1)
    assert_only_accepted(place, reader)
    for name in ARTEFACTS:
        assert reader.seen[place.memories / name] == {(place.memories / name).read_bytes()}
    assert place.requests_made() == len(server.requests)
