import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memoryd import config
from memoryd.control import overview
from memoryd.control.overview import Picture
from memoryd.control.status_told import lines
from memoryd.ledger import jobs, publications, sessions
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.states import JobKind
from tests.control.conftest import THREAD, Shell
from tests.ledger.factories import OTHER, a_lease, claim, enqueue
from tests.support.clock import FakeClock

KEYS = {"version", "running", "pid", "since", "doing", "waiting", "stages", "today", "excluded", "disk", "health"}


def look(shell: Shell, clock: FakeClock, environ: Mapping[str, str] | None = None) -> Picture:
    settings = config.load(shell.home.path, environ=config.environ())
    return asyncio.run(overview.look(settings, environ or config.environ(), clock))


def status(shell: Shell, clock: FakeClock, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    return look(shell, clock, environ).report


def findings(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {item["id"]: item for item in report["health"]}


def test_before_anything_happened_there_is_nothing_but_a_shape(shell: Shell, clock: FakeClock) -> None:
    (shell.codex / "sessions").mkdir(parents=True)
    report = status(shell, clock)
    assert set(report) == KEYS
    assert (report["running"], report["pid"], report["doing"], report["waiting"]) == (False, None, [], [])
    assert set(report["stages"]) == {"memory_stage1", "memory_consolidate_global"}
    stage = {"pending": 0, "running": 0, "done": 0, "error": 0, "last_success_at": None}
    assert report["stages"]["memory_stage1"] == stage
    assert (report["today"]["requests"], report["today"]["caps"]["requests_per_day"]) == (0, 500)
    assert report["health"] == []
    assert not shell.home.ledger_file.exists()


def test_what_runs_waits_and_died_is_told(shell: Shell, clock: FakeClock) -> None:
    """I5."""
    (shell.codex / "sessions").mkdir(parents=True)
    shell.write(enqueue, THREAD)
    lease = shell.write(claim)
    shell.write(jobs.defer, lease, now=clock.now(), until=clock.now() + 600, reason="rate_limited", error="429")
    shell.write(enqueue, OTHER)
    other = shell.write(claim)
    report = status(shell, clock)
    assert report["doing"] == [{"kind": "memory_stage1", "key": OTHER, "since": int(clock.now())}]
    assert report["waiting"] == [
        {"kind": "memory_stage1", "key": THREAD, "until": int(clock.now() + 600), "reason": "rate_limited"}
    ]
    assert findings(report)["waiting_rate_limited"]["message"] == "1 job waits because of rate_limited: 429"

    for _ in range(3):
        assert other is not None
        shell.write(jobs.fail, other, now=clock.now(), retry_at=clock.now(), error="odd", error_class="MalformedReply")
        clock.jump(10)
        other = shell.write(claim, now=clock.now())
    dead = findings(status(shell, clock))["job_dead"]
    assert dead["severity"] == "error"
    assert "odd" in dead["message"]
    assert f"memoryd jobs retry {OTHER}" in dead["remedy"]


def test_a_decided_publication_that_is_not_in_place_is_told(shell: Shell, clock: FakeClock) -> None:
    (shell.codex / "sessions").mkdir(parents=True)
    lease = shell.write(a_lease, JobKind.CONSOLIDATE)
    shell.write(publications.decide, NewPublication("c" * 40, None), attempt_id=lease.attempt_id, now=clock.now())
    assert "publication_pending" in findings(status(shell, clock))


def test_what_is_left_out_is_counted_by_reason_files_that_are_no_session_too(shell: Shell, clock: FakeClock) -> None:
    (shell.codex / "sessions").mkdir(parents=True)
    shell.write(enqueue, THREAD)
    shell.write(sessions.set_excluded, THREAD, "noninteractive")
    shell.write(sessions.remember_file, path="/x", size=1, mtime_ns=1, now=clock.now(), problem="rubbish")
    assert status(shell, clock)["excluded"] == {"noninteractive": 1, "unreadable": 1}


@pytest.mark.parametrize("missing", ["config", "root", "agents", "git"])
def test_what_is_not_set_up_is_told_with_its_remedy(shell: Shell, clock: FakeClock, missing: str) -> None:
    environ = dict(config.environ())
    if missing == "config":
        shell.home.config_file.unlink()
    elif missing == "agents":
        shell.home.config_file.write_text("")
    elif missing == "git":
        environ["PATH"] = str(shell.folder)
    if missing != "root":
        (shell.codex / "sessions").mkdir(parents=True)
    wanted = {"config": "not_configured", "root": "root_missing", "agents": "no_agents", "git": "git_missing"}
    found = findings(status(shell, clock, environ))
    assert found[wanted[missing]]["remedy"]


def test_disk_use_counts_what_lies_there(shell: Shell, clock: FakeClock, tmp_path: Path) -> None:
    shell.write(enqueue, THREAD)
    shell.home.memories.mkdir(exist_ok=True)
    (shell.home.memories / "MEMORY.md").write_text("x" * 1000)
    disk = status(shell, clock)["disk"]
    assert disk["ledger"] > 4096
    assert disk["memories"] >= 1000
    assert disk["staging"] == 0
    (shell.home.git_dir).mkdir()
    (shell.home.git_dir / "packed").write_text("x" * 500)
    (shell.home.path / "daemon.log").write_text("x" * 70)
    (shell.home.path / "quarantine" / "1").mkdir(parents=True)
    (shell.home.path / "quarantine" / "1" / "stray").write_text("x" * 30)
    named = status(shell, clock)["disk"]
    assert (named["git"], named["logs"], named["quarantine"]) == (500, 70, 30)
    assert named["memories"] == disk["memories"], "what git keeps is told apart"
    everything = sum(path.lstat().st_size for path in shell.home.path.rglob("*") if path.is_file())
    assert sum(size for part, size in named.items() if part != "free") == everything
    assert disk["free"] > 0


def test_status_reads_as_sentences(shell: Shell, clock: FakeClock) -> None:
    for number in range(12):
        thread = f"{THREAD[:-2]}{number:02}"
        shell.write(enqueue, thread)
        lease = shell.write(claim)
        shell.write(jobs.defer, lease, now=clock.now(), until=clock.now() + 600, reason="budget", error="cap")
    shell.write(enqueue, OTHER)
    shell.write(claim)
    picture = look(shell, clock)
    told = "\n".join(lines(picture))
    assert told.startswith(f"memoryd {picture.report['version']}: not running")
    assert "and 4 more: `memoryd jobs` lists them" in told
    assert f"extracts session {OTHER}  since" in told
    assert "the session holds something that was not extracted yet" in told
    assert "requests  0 of 500" in told
    assert "12 jobs wait because of budget" in told


def test_a_running_daemon_is_named(shell: Shell) -> None:
    shell.record()
    with shell.held("daemon"):
        report = shell("status", "--json").json
        assert report["running"] is True
        assert report["pid"]
        assert f"running (pid {report['pid']}" in shell("status").out
    with shell.held("sync"):
        assert shell("status", "--json").json["running"] is False
