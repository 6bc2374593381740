"""SIGTERM in the middle of the work: memoryd ends soon, and leaves nothing running and nothing held (I1, I5)."""

import sys
import time
from pathlib import Path

import pytest

from tests.faults.cycles import Cycles
from tests.support.checks import assert_accepted
from tests.support.model_asked import CONSOLIDATION, STAGE1, Recorded
from tests.support.model_replies import Hang, Scripted
from tests.support.model_server import ModelServer
from tests.support.process import STAGE1_KIND, Place
from tests.support.sessions import a_rollout

LONGEST_END_SECONDS = 10.0
CYCLES = 10
"""The 100 of the real trial are a command: `python -m tests.faults.cycles --cycles 100 --seed 7`."""


def processes_about(folder: Path) -> list[str]:
    """The command lines of every process that works on something in a folder: git runs in groups of its own."""
    lines = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = process.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if str(folder) in line:
            lines.append(line)
    return lines


@pytest.mark.parametrize("stage", [STAGE1, CONSOLIDATION])
def test_sigterm_in_a_stage_ends_everything_and_frees_the_lease_at_once(
    place: Place, server: ModelServer, stage: str
) -> None:
    """I1: a lease of an hour keeps nobody waiting, the attempt is not spent, every request is accounted for."""
    place.configure(base_url=server.base_url, limits__backfill="recent", ledger__lease="1h")
    a_rollout(place.codex, now=time.time(), turns=["Keep the changelog short."])

    def hang(asked: Recorded) -> Scripted | None:
        return Hang() if asked.kind == stage else None

    server.reply_with(hang)
    with place.daemon() as daemon:
        server.wait_for(1, kind=stage)
        if sys.platform == "linux":
            assert len(list(Path(f"/proc/{daemon.pid}/task").iterdir())) > 1
            assert processes_about(place.folder)
        assert daemon.terminate(within=LONGEST_END_SECONDS) == 0
        assert daemon.is_alone_in_its_group()
        assert daemon.events("daemon.stopped")
    assert processes_about(place.folder) == []
    assert not (place.home / "memoryd.sock").exists()
    assert place.requests_made() == len(server.requests)
    assert place.query("SELECT count(*) FROM jobs WHERE ownership_token IS NOT NULL OR lease_until IS NOT NULL") == [
        (0,)
    ]
    assert place.query("SELECT min(retry_remaining) FROM jobs") == [(3,)]

    server.reply_with(lambda _asked: None)
    done = place.run("sync", "--json")
    assert done.code == 0, done
    assert (STAGE1_KIND in done.json["jobs"]) == (stage == STAGE1)
    assert_accepted(place, sessions=1)
    assert place.requests_made() == len(server.requests)
    assert len(server.of_kind(STAGE1)) == (2 if stage == STAGE1 else 1)


def test_a_daemon_that_is_started_and_ended_again_and_again_arrives(tmp_path: Path) -> None:
    """I1, I3, I4: whatever signal ended it, and wherever it was."""
    Cycles(tmp_path, seed=int(time.time())).run(CYCLES)
