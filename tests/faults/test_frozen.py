"""A memoryd sleeps past its lease (SIGSTOP), another one has taken its place; then it wakes up (I2).

The lock file has been moved away meanwhile, as a person would who thinks that a hanging memoryd must be got rid of:
the kernel's lock alone would have kept the second one from starting.
"""

import sys
import threading
import time
from typing import Any

import pytest

from tests.support.checks import assert_accepted
from tests.support.growing import a_session_of_now
from tests.support.model_asked import CONSOLIDATION, STAGE1, Recorded
from tests.support.model_replies import Scripted
from tests.support.model_server import ModelServer
from tests.support.process import PATIENCE_SECONDS, Place, Process
from tests.support.sessions import a_rollout

SAID = "Never deploy the shop on a Friday."


@pytest.fixture
def hasty(place: Place, server: ModelServer) -> Place:
    """A place with short leases."""
    place.codex.mkdir()
    place.configure(
        base_url=server.base_url,
        ledger__lease="2s",
        limits__backfill="recent",
        discover__min_idle="1s",
        discover__scan_interval="1s",
    )
    return place


def everything(place: Place) -> dict[str, Any]:
    """All that a memoryd could change: files, git objects and refs, rows."""
    tables = [name for (name,) in place.query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    return {
        "files": {
            str(path.relative_to(place.home)): path.read_bytes()
            for folder in ("memories", "recall", "staging", "backups")
            for path in sorted((place.home / folder).rglob("*"))
            if path.is_file() and ".git" not in path.parts
        },
        "objects": place.git("cat-file", "--batch-all-objects", "--batch-check"),
        "refs": place.git("show-ref", "--head"),
        "rows": {name: sorted(map(repr, place.query(f"SELECT * FROM {name}"))) for name in tables},
    }


def take_the_lock_away(place: Place) -> None:
    (place.home / "memoryd.lock").unlink()


def assert_it_says_why(process: Process) -> None:
    """It ends by itself with 1, because it lost the lock."""
    assert process.wait() == 1, process.output
    assert "was removed or replaced while memoryd held it" in process.output
    assert not process.events("consolidation.published")


@pytest.mark.parametrize("stage", [STAGE1, CONSOLIDATION])
def test_a_daemon_frozen_in_a_stage_changes_nothing_when_it_wakes_beside_its_successor(
    hasty: Place, server: ModelServer, stage: str
) -> None:
    """I2: not even with the model's answer in its hands; and the successor is still there for commands."""
    answered, held = threading.Event(), list[Recorded]()

    def slowly_at_first(asked: Recorded) -> Scripted | None:
        if asked.kind == stage and not held:
            held.append(asked)
            assert answered.wait(PATIENCE_SECONDS)
        return None

    server.reply_with(slowly_at_first)
    with hasty.daemon() as first:
        a_session_of_now(hasty.codex, SAID)
        server.wait_for(1, kind=stage)
        first.freeze()
        take_the_lock_away(hasty)
        with hasty.daemon() as second:
            second.wait_for_event("job.completed", where=lambda event: event["job_key"] == "global")
            assert_accepted(hasty, sessions=1)
            before = everything(hasty)
            answered.set()
            first.thaw()
            assert_it_says_why(first)
            assert everything(hasty) == before
            assert hasty.run("sync").code == 0
    assert_accepted(hasty, sessions=1)


@pytest.mark.parametrize(
    "point",
    [
        "reply_received",
        "evidence_staged",
        "agent_finished",
        "acknowledged:memory_consolidate_global",
        "before_rename:MEMORY.md",
        "before_refs",
        "after_refs",
    ],
)
def test_a_pass_frozen_at_a_point_changes_nothing_when_it_wakes(hasty: Place, server: ModelServer, point: str) -> None:
    """I2: whatever it was about to write, another one has done it, or done it again."""
    a_rollout(hasty.codex, now=time.time(), idle_hours=7, turns=[SAID])
    words = [sys.executable, "-W", "error", "-m", "tests.support.killed_pass", str(hasty.home), point, "1", "SIGSTOP"]
    with hasty.start(*words) as first:
        first.wait_until_frozen()
        take_the_lock_away(hasty)
        with hasty.daemon() as second:
            if hasty.query("SELECT count(*) FROM publications WHERE state = 'published'") != [(1,)]:
                second.wait_for_event("consolidation.published")
        assert_accepted(hasty, sessions=1)
        before = everything(hasty)

        first.thaw()
        assert_it_says_why(first)

    assert everything(hasty) == before
    assert_accepted(hasty, sessions=1)
