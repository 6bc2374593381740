"""SIGHUP reloads; jobs keep the settings of their claim, a wrong file keeps the old ones."""

import asyncio
import socket
from pathlib import Path

import pytest

from memoryd.clock import SystemClock
from memoryd.daemon.crew import DRAIN_SECONDS
from memoryd.daemon.ground import open_ground
from memoryd.daemon.house import furnish
from memoryd.errors import ConfigError, LeaseLost
from memoryd.ledger import jobs, outputs
from memoryd.ledger.states import Status
from tests.support.clock import FakeClock
from tests.support.daemon import PATIENCE_SECONDS, THREAD, Hanging, Written, a_reloading_daemon
from tests.support.house import PATH_ONLY, Answering, settings_in
from tests.support.in_process_model import good_model
from tests.support.sessions import a_rollout

PASSWORD = "the word is swordfish"


@pytest.fixture
def clock() -> FakeClock:
    """A clock that begins now: the ticks are those of the real scheduler."""
    return FakeClock(start=SystemClock().now())


async def test_new_settings_hold_from_a_reload_on_and_the_service_manager_hears_of_it(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Folders, model and limits; what depends on them is opened anew and what was open before is closed."""
    (tmp_path / "codex").mkdir()
    client = Answering(good_model)
    written = Written(tmp_path, client)
    a_rollout(tmp_path / "elsewhere", now=clock.now(), thread_id=THREAD, turns=["Always use tabs in the Makefile"])
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE_SECONDS)
        async with a_reloading_daemon(written, tmp_path, clock, str(tmp_path / "notify")) as daemon:
            await daemon.logged("scan.completed")
            written.write(
                **{"sources.roots": {"codex": [str(tmp_path / "elsewhere")]}, "extract__model": "model-2"},
                providers={"p": {"kind": "openai", "api_key_env": "NO_KEY"}},
                consolidate__model="model-2",
            )
            daemon.supervisor.reload()
            (told,) = await daemon.logged("settings.reloaded")
            await daemon.logged("consolidation.published")
            await daemon.until(lambda: written.closed == ["model-1"])
            await daemon.stop()
        said = b""
        while b"STOPPING=1" not in said:
            said += manager.recv(4096) + b"\n"
    assert {"sources.roots.codex", "extract.model", "consolidate.model", "providers.p.kind"} <= set(told["changed"])
    assert {question.model for question in client.asked} == {"model-2"}
    reloading, usec = said.index(b"RELOADING=1"), int(said.partition(b"MONOTONIC_USEC=")[2].split()[0])
    assert 0 <= usec <= clock.monotonic() * 1_000_000
    assert said.index(b"READY=1") < reloading < said.rindex(b"READY=1") < said.index(b"STOPPING=1")
    assert written.closed == ["model-1", "model-2"]


async def test_a_job_ends_with_the_settings_with_which_it_was_claimed(tmp_path: Path, clock: FakeClock) -> None:
    """What needs them stays open as long; the new crew takes the next one meanwhile."""
    a_rollout(tmp_path / "codex", now=clock.now(), thread_id=THREAD, turns=["Always use tabs in the Makefile"])
    client = Hanging()
    written = Written(tmp_path, client)
    async with a_reloading_daemon(written, tmp_path, clock) as daemon:
        await client.asked.wait()
        client.asked.clear()
        written.write(extract__model="model-2")
        daemon.supervisor.reload()
        (told,) = await daemon.logged("settings.reloaded")
        a_rollout(tmp_path / "codex", now=clock.now() - 1, turns=["Always write tests before the code"])
        await client.asked.wait()
        assert written.closed == []

        client.may_answer.set()
        await daemon.logged("job.completed", 2, kind="memory_stage1")
        await daemon.until(lambda: written.closed == ["model-1"])
        assert (await daemon.job()).status is Status.DONE
    assert told["held"] == 1
    assert [question.model for question in client.questions][:2] == ["model-1", "model-2"]


async def test_a_stop_gives_back_what_a_crew_that_leaves_still_holds(tmp_path: Path, clock: FakeClock) -> None:
    a_rollout(tmp_path / "codex", now=clock.now(), thread_id=THREAD)
    client = Hanging()
    async with a_reloading_daemon(Written(tmp_path, client), tmp_path, clock) as daemon:
        await client.asked.wait()
        daemon.supervisor.reload()
        await daemon.logged("settings.reloaded")
        daemon.supervisor.stop()
        await daemon.pass_time(DRAIN_SECONDS)
        while not daemon.task.done():
            await daemon.pass_time(1)
        await daemon.task
        assert (await daemon.job()).status is Status.PENDING
        assert daemon.log.events("job.released")


async def test_a_pass_that_was_asked_for_before_a_reload_is_answered_to_its_end(
    tmp_path: Path, clock: FakeClock
) -> None:
    """And the crews beside it take no jobs from it."""
    a_rollout(tmp_path / "codex", now=clock.now(), idle_hours=1, thread_id=THREAD, turns=["Always use tabs, please"])
    client = Hanging()
    written = Written(tmp_path, client)
    async with a_reloading_daemon(written, tmp_path, clock) as daemon:
        await daemon.logged("scan.completed")
        asking = asyncio.create_task(daemon.ask(do="sync", now=True))
        await client.asked.wait()
        daemon.supervisor.reload()
        await daemon.logged("settings.reloaded")
        assert written.closed == []
        client.may_answer.set()
        result, _ = await asking
        await daemon.until(lambda: written.closed == ["model-1"])
    assert result["jobs"] == {"memory_stage1": {"remembered": 1}, "memory_consolidate_global": {"published": 1}}


async def test_a_stop_does_not_wait_for_a_reload(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "codex").mkdir()
    written = Written(tmp_path, Answering(good_model))
    async with a_reloading_daemon(written, tmp_path, clock) as daemon:
        written.can_be_read.clear()
        daemon.supervisor.reload()
        await asyncio.sleep(0.05)
        daemon.supervisor.stop()
        await daemon.task
        assert daemon.log.events("daemon.stopped")
        assert not daemon.log.events("settings.reloaded")
    assert written.closed == ["model-1"]


@pytest.mark.parametrize(
    "trouble", [ConfigError("extract.model is gone", remedy="name one"), ZeroDivisionError("a fault")]
)
async def test_settings_that_cannot_be_used_change_nothing_but_health(
    tmp_path: Path, clock: FakeClock, trouble: Exception
) -> None:
    (tmp_path / "codex").mkdir()
    written = Written(tmp_path, Answering(good_model))
    good = written.next
    async with a_reloading_daemon(written, tmp_path, clock) as daemon:
        written.next = trouble
        daemon.supervisor.reload()
        await daemon.logged("settings.refused" if isinstance(trouble, ConfigError) else "service.crashed")
        a_rollout(tmp_path / "codex", now=clock.now(), thread_id=THREAD, turns=["Always use tabs in the Makefile"])
        await daemon.logged("consolidation.published")
        health, _ = await daemon.ask(do="health")

        written.next = good
        daemon.supervisor.reload()
        await daemon.logged("settings.reloaded")
        mended, _ = await daemon.ask(do="health")
    (told,) = list(health["troubles"])  # type: ignore[call-overload]  # JSON
    assert (told["id"], told["severity"]) == ("settings_refused", "error")
    assert "goes on with its old settings" in told["message"]
    assert told["remedy"].endswith("then reload again")
    assert mended["troubles"] == []


async def test_a_ledger_that_is_lost_during_a_reload_ends_the_daemon(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "codex").mkdir()
    written = Written(tmp_path, Answering(good_model))
    async with a_reloading_daemon(written, tmp_path, clock) as daemon:
        written.next = LeaseLost("somebody else has it")
        daemon.supervisor.reload()
        with pytest.raises(LeaseLost, match="somebody else"):
            await daemon.task
        assert daemon.log.events("daemon.stopped")


async def test_new_rules_of_privacy_hold_for_what_is_stored_and_for_what_older_jobs_store_later(
    tmp_path: Path, clock: FakeClock
) -> None:
    threads = (THREAD, THREAD.replace("cdef", "cdee"))
    for number, thread in enumerate(threads):
        said = f"Always say {PASSWORD}, number {number}"
        a_rollout(tmp_path / "codex", now=clock.now() - number, thread_id=thread, turns=[said])
    client = Hanging(first_answers=1)
    written = Written(tmp_path, client, extract__concurrency=1)
    async with a_reloading_daemon(written, tmp_path, clock) as daemon:
        await daemon.logged("job.completed", kind="memory_stage1")
        await client.asked.wait()

        written.write(extract__concurrency=1, **{"privacy.patterns": ["swordfish"]})
        daemon.supervisor.reload()
        await daemon.logged("settings.reloaded")
        await daemon.logged("rules.changed")
        client.may_answer.set()
        await daemon.logged("rules.changed", 2)

        rows = [await daemon.context.ledger.read(outputs.get, thread) for thread in threads]
    texts = [row.raw_memory for row in rows if row is not None]
    assert ["[REDACTED_SECRET" in text and "swordfish" not in text for text in texts] == [True, True]


async def test_a_reload_cannot_move_the_home(tmp_path: Path, clock: FakeClock) -> None:
    async with open_ground(tmp_path / "home", clock=clock, environ=PATH_ONLY, role="test") as ground:
        other = settings_in(tmp_path / "elsewhere")
        with pytest.raises(ConfigError, match="cannot change"):
            await furnish(ground, other).__aenter__()
        assert await ground.ledger.read(jobs.running) == []
