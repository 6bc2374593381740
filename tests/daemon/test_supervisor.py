import asyncio
import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.clock import SystemClock
from memoryd.daemon.crew import (
    DISK_PAUSE_SECONDS,
    DRAIN_SECONDS,
    LONGEST_PAUSE_SECONDS,
    RECOVERED_SECONDS,
    WATCHDOG_SECONDS,
    next_pause,
)
from memoryd.daemon.pulse import LONGEST_BEAT_SECONDS
from memoryd.daemon.ticker import JUMP_SECONDS
from memoryd.daemon.vitals import Bounds
from memoryd.errors import AuthRefused, DiskFull, Exhausted, GitError, LeaseLost, LedgerCorrupt, StorageError
from memoryd.ledger import jobs, outputs, publications
from memoryd.ledger.states import GLOBAL_KEY, JobKind, Status
from memoryd.pipeline.context import Agent, Context
from memoryd.sources.codex import CodexReader
from memoryd.sources.items import SessionFile
from tests.ledger.factories import an_output, recorded_every_day
from tests.support.clock import FakeClock
from tests.support.daemon import PATIENCE_SECONDS, THREAD, Hanging, a_daemon
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import good_model
from tests.support.sessions import a_rollout


@pytest.fixture
def clock() -> FakeClock:
    """A clock that begins now: the ticks are those of the real scheduler, which makes up for every second since."""
    return FakeClock(start=SystemClock().now())


async def test_a_daemon_finds_extracts_consolidates_and_stops(tmp_path: Path, clock: FakeClock) -> None:
    a_rollout(tmp_path / "codex", now=clock.now(), thread_id=THREAD, turns=["Always use tabs in the Makefile"])
    client = Answering(good_model)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE_SECONDS)
        async with a_daemon(tmp_path, clock, client, notify=str(tmp_path / "notify")) as daemon:
            await daemon.logged("consolidation.published")
            assert "Always use tabs" in (daemon.context.home.memories / "MEMORY.md").read_text()
            assert daemon.context.home.socket.exists()
            asked = len(client.asked)
            await daemon.logged("scan.completed", 3)
            await daemon.pass_time(LONGEST_BEAT_SECONDS)
            await daemon.stop()
            assert [event["reason"] for event in daemon.log.events("daemon.stopped")] == ["it was asked to stop"]
            assert not daemon.context.home.socket.exists()
        said = b""
        while b"STOPPING=1" not in said:
            said += manager.recv(4096)
    assert b"READY=1" in said
    assert b"WATCHDOG=1" in said
    assert len(client.asked) == asked


async def test_a_new_session_is_found_by_the_next_scan(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "codex" / "sessions").mkdir(parents=True)
    async with a_daemon(tmp_path, clock) as daemon:
        await daemon.logged("scan.completed")
        a_rollout(tmp_path / "codex", now=clock.now(), thread_id=THREAD, turns=["Always use tabs in the Makefile"])
        await daemon.logged("consolidation.published")


async def test_a_job_that_ends_within_the_grace_period_is_kept(tmp_path: Path, clock: FakeClock) -> None:
    a_rollout(tmp_path / "codex", now=clock.now(), thread_id=THREAD, turns=["Always use tabs in the Makefile"])
    client = Hanging()
    async with a_daemon(tmp_path, clock, client) as daemon:
        await client.asked.wait()
        daemon.supervisor.stop()
        await asyncio.sleep(0.05)
        assert not daemon.task.done()
        client.may_answer.set()
        await daemon.task
        assert (await daemon.job()).status is Status.DONE
        assert (await daemon.job(JobKind.CONSOLIDATE, GLOBAL_KEY)).status is Status.PENDING


async def test_a_job_that_outlasts_the_grace_period_is_given_back(tmp_path: Path, clock: FakeClock) -> None:
    a_rollout(tmp_path / "codex", now=clock.now(), thread_id=THREAD)
    client = Hanging()
    async with a_daemon(tmp_path, clock, client) as daemon:
        await client.asked.wait()
        daemon.supervisor.stop()
        await asyncio.sleep(0.05)
        await daemon.pass_time(DRAIN_SECONDS)
        await daemon.task
        job = await daemon.job()
        assert (job.status, job.retry_remaining, job.wait_reason) == (Status.PENDING, 3, None)
        assert daemon.log.events("job.released")


async def test_a_second_signal_does_not_wait_for_the_grace_period(tmp_path: Path, clock: FakeClock) -> None:
    a_rollout(tmp_path / "codex", now=clock.now(), thread_id=THREAD)
    client = Hanging()
    async with a_daemon(tmp_path, clock, client) as daemon:
        await client.asked.wait()
        daemon.supervisor.stop()
        await asyncio.sleep(0.05)
        daemon.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await daemon.task
        assert (await daemon.job()).status is Status.PENDING
        assert not daemon.log.events("daemon.stopped")


class Troubled(CodexReader):
    """A reader that meets trouble in its first scans."""

    def __init__(self, *troubles: Exception) -> None:
        super().__init__()
        self._troubles = list(troubles)

    def find(self, homes: Sequence[Path]) -> Iterator[SessionFile]:
        if self._troubles:
            raise self._troubles.pop(0)
        return super().find(homes)


async def test_a_service_that_fails_starts_again_after_a_growing_pause_beside_the_others(
    tmp_path: Path, clock: FakeClock
) -> None:
    a_rollout(tmp_path / "codex", now=clock.now(), thread_id=THREAD, turns=["Always use tabs in the Makefile"])
    reader = Troubled(StorageError("odd"), ZeroDivisionError("odder"), StorageError("odd again"))

    def troubled(context: Context) -> Context:
        return replace(context, agents={"codex": Agent(reader, context.agents["codex"].homes)})

    async with a_daemon(tmp_path, clock, change=troubled) as daemon:
        await daemon.logged("service.failed", service="discover", retry_in=1.0)
        await daemon.pass_time(1)
        (crash,) = await daemon.logged("service.crashed", service="discover", retry_in=2.0)
        assert crash["error_class"] == "ZeroDivisionError"
        await daemon.pass_time(2)
        await daemon.logged("service.failed", service="discover", retry_in=4.0)
        said = str((await daemon.ask(do="health"))[0]["troubles"])
        assert "'discover_failing'" in said
        assert "is started again: odd again" in said
        await daemon.pass_time(4)
        await daemon.logged("consolidation.published")
        await daemon.pass_time(RECOVERED_SECONDS)
        assert (await daemon.ask(do="health"))[0]["troubles"] == []


def test_the_pause_of_a_service_grows_and_begins_anew_once_it_had_recovered() -> None:
    pauses = [0.0]
    for _ in range(10):
        pauses.append(next_pause(pauses[-1], ran=1.0))
    assert pauses[1:4] == [1.0, 2.0, 4.0]
    assert pauses[-1] == next_pause(pauses[-1], ran=LONGEST_PAUSE_SECONDS - 1) == LONGEST_PAUSE_SECONDS
    assert next_pause(pauses[-1], ran=LONGEST_PAUSE_SECONDS) == 1.0


class Filled:
    """A ledger on a disk that is full while `full`, and counts what was tried."""

    def __init__(self, context: Context) -> None:
        self._ledger = context.ledger
        self.full = True
        self.tries = 0

    async def write(self, fn: object, *args: object, **kwargs: object) -> object:
        if fn is jobs.claim and self.full:
            self.tries += 1
            raise DiskFull("no room")
        return await self._ledger.write(fn, *args, **kwargs)  # type: ignore[arg-type]  # passes on what it is given

    async def read(self, *args: object, **kwargs: object) -> object:
        return await self._ledger.read(*args, **kwargs)  # type: ignore[arg-type]  # passes on what it is given

    def __getattr__(self, name: str) -> object:
        return getattr(self._ledger, name)


async def test_a_full_disk_pauses_the_workers_and_nothing_is_spent_meanwhile(tmp_path: Path, clock: FakeClock) -> None:
    a_rollout(tmp_path / "codex", now=clock.now(), thread_id=THREAD, turns=["Always use tabs in the Makefile"])
    client = Answering(good_model)
    filled: list[Filled] = []

    def on_a_full_disk(context: Context) -> Context:
        filled.append(Filled(context))
        return replace(context, ledger=filled[0])  # type: ignore[arg-type]  # a ledger of the test's own

    async with a_daemon(tmp_path, clock, client, change=on_a_full_disk, extract__concurrency=1) as daemon:
        await daemon.logged("storage.paused", retry_in=DISK_PAUSE_SECONDS)
        await daemon.logged("scan.completed", 2)
        tries = filled[0].tries
        assert await daemon.ask(do="health") == ({"paused": "no room", "since": clock.now(), "troubles": []}, [])
        await daemon.pass_time(DISK_PAUSE_SECONDS / 2)
        await daemon.logged("scan.completed", 3)
        assert 1 <= filled[0].tries == tries <= 2
        assert client.asked == []

        filled[0].full = False
        await daemon.logged_in_time("storage.resumed")
        await daemon.logged_in_time("consolidation.published")
        assert (await daemon.ask(do="health"))[0]["paused"] is None


async def test_a_daemon_that_passed_a_bound_ends_its_jobs_and_asks_to_be_started_anew(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Exit 75: a service manager starts it again. It takes no more work, and keeps the watchdog quiet meanwhile."""
    a_rollout(tmp_path / "codex", now=clock.now(), thread_id=THREAD, turns=["Always use tabs in the Makefile"])
    client = Hanging()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE_SECONDS)
        low = Bounds(soft_bytes=0, hard_bytes=0)
        async with a_daemon(tmp_path, clock, client, bounds=low, notify=str(tmp_path / "notify")) as daemon:
            await daemon.logged("daemon.exhausted", what="memory")
            if daemon.context.held:  # it may have had no time to take one
                await client.asked.wait()
                await daemon.pass_time(LONGEST_BEAT_SECONDS * 10)
                assert not daemon.task.done()
                client.may_answer.set()
            with pytest.raises(Exhausted, match="MB of memory, more than 0") as caught:
                await daemon.task
            (stopped,) = daemon.log.events("daemon.stopped")
        said = b""
        while b"STOPPING=1" not in said:
            said += manager.recv(4096)
    assert caught.value.exit_code == 75
    assert "MB of memory" in stopped["reason"]
    assert b"STATUS=ending its jobs, to be started anew" in said


async def test_a_replaced_lock_stops_the_daemon_with_its_reason(tmp_path: Path, clock: FakeClock) -> None:
    """Another memoryd may have started; this one stops."""
    (tmp_path / "codex" / "sessions").mkdir(parents=True)
    async with a_daemon(tmp_path, clock) as daemon:
        await daemon.logged("scan.completed")
        daemon.context.home.lock_file.unlink()
        await daemon.pass_time(61)
        await daemon.until(daemon.task.done)
        with pytest.raises(LeaseLost, match="removed or replaced"):
            await daemon.task
        assert daemon.log.events("daemon.stopped")


async def test_damage_that_somebody_met_in_silence_stops_the_daemon(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "codex" / "sessions").mkdir(parents=True)
    async with a_daemon(tmp_path, clock) as daemon:
        await daemon.logged("scan.completed")
        daemon.context.ledger.damage = "page 7 is broken"
        await daemon.pass_time(WATCHDOG_SECONDS)
        await daemon.until(daemon.task.done)
        with pytest.raises(LedgerCorrupt, match="page 7 is broken"):
            await daemon.task
    assert daemon.log.events("ledger.replaced")


@pytest.mark.parametrize("seconds", [7200.0, -7200.0])
async def test_a_clock_that_jumped_is_noticed_and_everybody_looks_again(
    tmp_path: Path, clock: FakeClock, seconds: float
) -> None:
    (tmp_path / "codex" / "sessions").mkdir(parents=True)
    async with a_daemon(tmp_path, clock, discover__scan_interval="1h") as daemon:
        await daemon.logged("scan.completed")
        clock.jump(seconds)
        seen = len(daemon.log.events("scan.completed"))
        await daemon.pass_time(WATCHDOG_SECONDS)
        (jump,) = await daemon.logged("clock.jumped")
        assert abs(jump["seconds"] - seconds) < JUMP_SECONDS
        await daemon.logged("scan.completed", seen + 1)


async def test_maintenance_prunes_what_nothing_uses(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "codex" / "sessions").mkdir(parents=True)
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(recorded_every_day, until=clock.now())
        await context.ledger.write(outputs.store, an_output(source_updated_at=1000), now=clock.now())
    async with a_daemon(tmp_path, clock) as daemon:
        await daemon.logged("output.pruned")


async def test_what_a_crash_left_decided_is_put_in_place_at_the_start_and_tried_again_after_an_error(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I1: and nobody has to wait for the next consolidation."""
    a_rollout(tmp_path / "codex", now=clock.now(), thread_id=THREAD, turns=["Always use tabs in the Makefile"])
    client = Answering(good_model)
    troubles: list[Exception] = [GitError("git refused"), GitError("and again")]

    def refuse(point: str) -> None:
        if point == "before_refs" and troubles:
            raise troubles.pop()

    def refusing(context: Context) -> Context:
        return replace(context, reached=refuse)

    async with a_daemon(tmp_path, clock, client, change=refusing) as daemon:
        await daemon.logged("service.failed", service="consolidate", retry_in=1.0)
        assert await daemon.context.ledger.read(publications.pending) is not None
        asked = len(client.asked)
        await daemon.pass_time(1)
        await daemon.logged("service.failed", service="consolidate", retry_in=2.0)
        await daemon.pass_time(2)
        await daemon.logged("consolidation.published")
        assert await daemon.context.ledger.read(publications.pending) is None
        assert len(client.asked) == asked


async def test_a_sync_over_the_socket_is_a_pass_of_the_daemons(tmp_path: Path, clock: FakeClock) -> None:
    a_rollout(
        tmp_path / "codex", now=clock.now(), idle_hours=1, thread_id=THREAD, turns=["Always use tabs in the Makefile"]
    )
    async with a_daemon(tmp_path, clock, Answering(good_model)) as daemon:
        await daemon.logged("scan.completed")

        result, steps = await daemon.ask(do="sync", now=True, thread=THREAD, backfill="recent")

        assert result["jobs"] == {
            "memory_stage1": {"remembered": 1},
            "memory_consolidate_global": {"published": 1},
        }
        assert result["exit_code"] == 0
        assert [step["stage"] for step in steps][:2] == ["discover", "discover"]
        again, _ = await daemon.ask(do="sync")
        assert (again["jobs"], again["exit_code"]) == ({}, 0)


async def test_a_sync_waits_for_what_the_daemon_has_in_hand(tmp_path: Path, clock: FakeClock) -> None:
    """Or it would find every lease taken, and say that nothing was due."""
    for number in range(3):
        a_rollout(
            tmp_path / "codex", now=clock.now() - number, turns=[f"Always use tabs in Makefile number {number} please"]
        )
    client = Hanging()
    async with a_daemon(tmp_path, clock, client, extract__concurrency=1) as daemon:
        await client.asked.wait()
        asking = asyncio.create_task(daemon.ask(do="sync", now=True))
        await asyncio.sleep(0.1)
        assert not asking.done()
        client.may_answer.set()

        result, _ = await asking

        assert result["jobs"] == {
            "memory_stage1": {"remembered": 2},
            "memory_consolidate_global": {"published": 1},
        }


async def test_a_stop_ends_a_pass_that_was_asked_for_and_gives_its_jobs_back(tmp_path: Path, clock: FakeClock) -> None:
    a_rollout(tmp_path / "codex", now=clock.now(), idle_hours=1, thread_id=THREAD)
    client = Hanging()
    async with a_daemon(tmp_path, clock, client) as daemon:
        await daemon.logged("scan.completed")
        asking = asyncio.create_task(daemon.ask(do="sync", now=True))
        await client.asked.wait()
        await daemon.stop()
        with pytest.raises(StorageError, match="ended before it answered"):
            await asking
        job = await daemon.job()
        assert (job.status, job.retry_remaining) == (Status.PENDING, 3)


async def test_a_dead_job_is_tried_again_over_the_socket(tmp_path: Path, clock: FakeClock) -> None:
    a_rollout(tmp_path / "codex", now=clock.now(), thread_id=THREAD, turns=["Always use tabs in the Makefile"])
    answers: list[str] = ["odd"] * 6
    client = Answering(lambda question: answers.pop() if answers else good_model(question))
    async with a_daemon(tmp_path, clock, client, ledger__max_attempts=1) as daemon:
        await daemon.logged("job.failed")
        answers.clear()
        assert (await daemon.job()).status is Status.ERROR

        revived, _ = await daemon.ask(do="retry", kind="memory_stage1", key=THREAD)

        assert revived == {"revived": True}
        await daemon.logged("consolidation.published")
        assert (await daemon.ask(do="retry", kind="memory_stage1", key="nobody"))[0] == {"revived": False}


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        ({"do": "dance"}, "does not know the request 'dance'"),
        ({}, "does not know the request None"),
        ({"do": "retry"}, "does not understand"),
        ({"do": "retry", "kind": "nonsense", "key": "x"}, "does not understand"),
    ],
)
async def test_an_unknown_request_is_refused_in_a_sentence(
    tmp_path: Path, clock: FakeClock, request_: dict[str, object], complaint: str
) -> None:
    async with a_daemon(tmp_path, clock) as daemon:
        with pytest.raises(StorageError, match=complaint):
            await daemon.ask(**request_)


async def test_a_daemon_without_work_asks_nobody_however_long_it_waits(tmp_path: Path, clock: FakeClock) -> None:
    """I4."""
    (tmp_path / "codex" / "sessions").mkdir(parents=True)
    client = Answering(good_model)
    async with a_daemon(tmp_path, clock, client) as daemon:
        for _ in range(50):
            await daemon.pass_time(61)
        await daemon.stop()
    assert client.asked == []


async def test_a_provider_is_tested_through_the_daemon_that_counts_its_requests(
    tmp_path: Path, clock: FakeClock
) -> None:
    (tmp_path / "codex" / "sessions").mkdir(parents=True)
    answers: list[str | Exception] = [AuthRefused("no", status=401, remedy="set the key"), '{"ok": true}']
    client = Answering(lambda _question: answers.pop())
    async with a_daemon(tmp_path, clock, client) as daemon:
        good, _ = await daemon.ask(do="probe", stage="extract")
        bad, _ = await daemon.ask(do="probe", stage="consolidate")
    assert (good["tokens_in"], good["problem"]) == (1000, "")
    assert (bad["kind"], bad["problem"], bad["remedy"]) == ("AuthRefused", "no (status 401)", "set the key")
    assert [question.max_output_tokens for question in client.asked] == [1_024, 1_024]
