"""Spend is bounded and accounted for, and what stands still says why and goes on by itself (I5, I8, I9)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.config import Settings
from memoryd.daemon.house import open_house
from memoryd.daemon.passes import PassReport, run_pass
from memoryd.errors import RateLimited
from memoryd.ledger import jobs, spend
from memoryd.ledger.jobs import JobRow
from memoryd.ledger.spend import Spend
from memoryd.ledger.states import JobKind, Status
from memoryd.pipeline.agent_limits import remember_limits
from memoryd.pipeline.context import Context
from memoryd.sources.items import LimitWindow, RateLimits
from tests.support.clock import FakeClock
from tests.support.house import PATH_ONLY, settings_in
from tests.support.log_lines import LogLines
from tests.support.model_replies import Reply
from tests.support.model_replies import Status as Refusal
from tests.support.model_server import ModelServer
from tests.support.sessions import a_rollout

KEY = "sk-right-0123456789abcdef"
WRONG = "sk-wrong-0123456789abcdef"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(api_key=KEY) as server:
        yield server


def record(folder: Path, clock: FakeClock, count: int) -> None:
    for number in range(count):
        a_rollout(folder / "codex", now=clock.now(), idle_hours=7 + number, turns=[f"Session {number}: use tabs."])


def write_key(folder: Path, key: str) -> Path:
    path = folder / "key"
    new = folder / "key.new"
    new.write_text(key + "\n")
    new.chmod(0o600)
    return new.replace(path)


def asking(folder: Path, base_url: str, **changes: object) -> Settings:
    return settings_in(
        folder,
        **{
            "providers.main.kind": "openai",
            "providers.main.base_url": base_url,
            "providers.main.api_key_file": str(write_key(folder, WRONG)),
            "extract.model": "m",
            "consolidate.model": "m",
            "limits.backfill": "recent",
            **changes,
        },
    )


async def one_pass(settings: Settings, clock: FakeClock) -> PassReport:
    async with open_house(settings, clock=clock, environ=PATH_ONLY, role="test") as context:
        return await run_pass(context)


async def stage1_jobs(context: Context) -> list[JobRow]:
    return await context.ledger.read(jobs.list_jobs, kind=JobKind.STAGE1)


async def test_i5_a_refused_key_costs_two_requests_no_attempt_and_one_warning_and_a_new_key_file_resumes(
    tmp_path: Path, clock: FakeClock, server: ModelServer
) -> None:
    record(tmp_path, clock, 20)
    settings, log = asking(tmp_path, server.base_url), LogLines()
    async with open_house(settings, clock=clock, environ=PATH_ONLY, role="test") as context:
        await run_pass(context)

        assert 1 <= len(server.requests) <= 2
        waiting = await stage1_jobs(context)
        assert {(job.status, job.wait_reason, job.retry_remaining) for job in waiting} == {
            (Status.PENDING, "key_refused", 3)
        }
        assert len(waiting) == 20
        assert [line["event"] for line in log.events() if line["level"] in {"warning", "error"}] == ["job.deferred"]

        await context.look_at_providers()
        await run_pass(context)
        assert len(server.requests) <= 2, "an unchanged key file arms nothing"

        write_key(tmp_path, KEY)
        assert await context.look_at_providers()
        await run_pass(context)

        assert {job.status for job in await stage1_jobs(context)} == {Status.DONE}


async def test_a_restart_asks_a_dead_endpoint_no_sooner(tmp_path: Path, clock: FakeClock, server: ModelServer) -> None:
    record(tmp_path, clock, 3)
    settings = asking(tmp_path, server.base_url)
    await one_pass(settings, clock)
    before = len(server.requests)
    for number in range(5):
        record(tmp_path, clock, number)
        async with open_house(settings, clock=clock, environ=PATH_ONLY, role="test") as context:
            await context.look_at_providers()
            await run_pass(context)
    assert len(server.requests) == before


async def test_a_restart_forgets_no_pause_of_hours(tmp_path: Path, clock: FakeClock, server: ModelServer) -> None:
    record(tmp_path, clock, 2)
    settings = asking(tmp_path, server.base_url)
    write_key(tmp_path, KEY)
    server.then(Refusal(429, headers={"Retry-After": "7200"}))
    server.then(Refusal(429, headers={"Retry-After": "7200"}))
    await one_pass(settings, clock)
    before = len(server.requests)

    await clock.advance(3600)
    a_rollout(tmp_path / "codex", now=clock.now(), idle_hours=7, turns=["Another session: use spaces."])
    report = await one_pass(settings, clock)
    assert len(server.requests) == before
    assert report.undone["rate_limited"] == 3

    await clock.advance(3601)
    report = await one_pass(settings, clock)
    assert report.undone == {}


async def test_i5_without_network_nothing_dies_and_work_resumes_within_two_minutes(
    tmp_path: Path, clock: FakeClock
) -> None:
    record(tmp_path, clock, 6)
    with ModelServer(api_key=KEY) as down:
        port = down.port
    settings = asking(tmp_path, f"http://127.0.0.1:{port}/v1")
    write_key(tmp_path, KEY)
    async with open_house(settings, clock=clock, environ=PATH_ONLY, role="test") as context:
        await context.look_at_providers()
        for _ in range(4):
            await run_pass(context)
            assert {(job.status, job.retry_remaining) for job in await stage1_jobs(context)} == {(Status.PENDING, 3)}
            assert {job.wait_reason for job in await stage1_jobs(context)} == {"provider_unreachable"}
            await clock.advance(61)
        spent = await context.ledger.read(spend.today, now=clock.now())
        assert spent.requests <= 6, "at most one probe a minute once the breaker is open"
        assert spent.tokens == 0

        with ModelServer(api_key=KEY, port=port):
            for _ in range(2):
                await run_pass(context)
                await clock.advance(60)
        assert {job.status for job in await stage1_jobs(context)} == {Status.DONE}


async def test_i9_a_backfill_stops_at_the_day_s_cap_newest_first_and_goes_on_the_next_day(
    tmp_path: Path, clock: FakeClock, server: ModelServer
) -> None:
    record(tmp_path, clock, 5)
    settings = asking(tmp_path, server.base_url, **{"limits.requests_per_day": 3, "extract.concurrency": 1})
    write_key(tmp_path, KEY)
    report = await one_pass(settings, clock)
    assert len(server.requests) == 3
    said = [each.opening for each in server.requests]
    assert [number for text in said for number in range(5) if f"Session {number}:" in text] == [0, 1, 2]
    assert report.undone["budget"] == 3

    await clock.advance(86_400)
    await one_pass(settings, clock)
    assert len(server.requests) == 6


async def test_i9_usage_beyond_the_estimate_is_recorded_as_reported_and_stops_the_next_request(
    tmp_path: Path, clock: FakeClock, server: ModelServer
) -> None:
    record(tmp_path, clock, 3)
    settings = asking(tmp_path, server.base_url, **{"extract.concurrency": 1})
    write_key(tmp_path, KEY)
    server.then(Reply(text='{"rollout_summary": "", "rollout_slug": null, "raw_memory": ""}', tokens=(90_000_000, 5)))
    async with open_house(settings, clock=clock, environ=PATH_ONLY, role="test") as context:
        report = await run_pass(context)
        assert await context.ledger.read(spend.today, now=clock.now()) == Spend(1, 90_000_005, 0.0)
    assert len(server.requests) == 1
    assert report.undone["budget"] == 2


async def test_a_run_that_passes_its_own_caps_is_ended_with_the_cap_named(
    tmp_path: Path, clock: FakeClock, server: ModelServer
) -> None:
    record(tmp_path, clock, 1)
    settings = asking(tmp_path, server.base_url, **{"extract.max_requests": 1, "ledger.max_attempts": 1})
    write_key(tmp_path, KEY)
    server.reply_with(lambda _asked: Reply(text="no JSON at all"))
    async with open_house(settings, clock=clock, environ=PATH_ONLY, role="test") as context:
        await run_pass(context)
        (job,) = await stage1_jobs(context)
    assert len(server.requests) == 1
    assert job.status is Status.ERROR
    assert "extract.max_requests = 1 would be passed by this run" in str(job.last_error)


@pytest.mark.parametrize(("program", "is_asked"), [("codex", False), ("claude", True)])
async def test_what_an_agent_recorded_of_its_limits_counts_only_for_a_provider_that_runs_it(
    tmp_path: Path, clock: FakeClock, program: str, *, is_asked: bool
) -> None:
    settings = settings_in(
        tmp_path,
        **{
            "providers.main.kind": "command",
            "providers.main.command": [f"/usr/bin/{program}"],
            "extract.model": "m",
            "consolidate.model": "m",
        },
    )
    limits = RateLimits(clock.now() - 9, "codex", (LimitWindow(76, 300, int(clock.now()) + 50),), None)
    async with open_house(settings, clock=clock, environ=PATH_ONLY, role="test") as context:
        await remember_limits(context, "codex", limits)
        assert context.extract.admit is not None
        if is_asked:
            await context.extract.admit()
            return
        with pytest.raises(RateLimited, match="primary limit is 76 % used"):
            await context.extract.admit()
        await clock.advance(50)
        await context.extract.admit()
