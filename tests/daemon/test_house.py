import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from memoryd.daemon.house import check_settings, configured_agents, open_house, worker_name
from memoryd.daemon.worker import Worker
from memoryd.errors import ConfigError, LeaseLost, LedgerBusy, LedgerLocked
from memoryd.ledger import jobs
from memoryd.ledger.jobs import Lease
from memoryd.ledger.states import JobKind, Status
from memoryd.pipeline.context import Context
from memoryd.pipeline.outcomes import Failed, Outcome
from memoryd.sources.readers import READERS
from memoryd.values import AGENTS
from tests.ledger.factories import THREAD, enqueue
from tests.support.clock import FakeClock
from tests.support.house import PATH_ONLY, a_house, settings_in
from tests.support.log_lines import LogLines

MODEL: dict[str, object] = {
    "providers": {"here": {"kind": "openai-chat", "base_url": "http://127.0.0.1:9/v1", "context_window": 8000}},
    "extract.model": "small",
    "consolidate.model": "large",
    "extract.effort": "",
}


async def test_an_opened_house_has_its_folders_for_nobody_else(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        home = context.home
        for folder in (home.path, home.memories, home.staging, home.recall, home.bin):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(home.ledger_file.stat().st_mode) == 0o600
        assert stat.S_IMODE(home.lock_file.stat().st_mode) == 0o600
        context.still_ours()
        context.reached("anything")
        assert context.extract.is_offline
        assert context.consolidate.is_offline
    with pytest.raises(LeaseLost, match="given back"):
        context.still_ours()


async def test_a_house_is_opened_by_one_process_at_a_time(tmp_path: Path, clock: FakeClock) -> None:
    settings = settings_in(tmp_path)
    async with a_house(settings, clock):
        opening = open_house(settings, clock=_Hasty(), environ=PATH_ONLY, role="sync")
        with pytest.raises(LedgerBusy) as caught:
            await opening.__aenter__()
        assert caught.value.pid == os.getpid()
    async with a_house(settings, clock):
        pass


async def test_a_ledger_that_another_program_keeps_locked_is_said_once_then_given_up(
    tmp_path: Path, clock: FakeClock
) -> None:
    log, settings = LogLines(), settings_in(tmp_path)
    async with a_house(settings, clock) as context:
        file = context.home.ledger_file
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for patience, said in ((0.0, 0), (2.0, 1)):
            opening = open_house(settings, clock=_Hasty(), environ=PATH_ONLY, role="sync", patience_seconds=patience)
            with pytest.raises(LedgerLocked, match="end it"):
                await opening.__aenter__()
            assert len(log.events("start.awaited")) == said
    async with a_house(settings, clock):
        pass


class _Hasty(FakeClock):
    async def sleep(self, seconds: float) -> None:
        self.freeze(seconds)


async def test_what_a_killed_run_left_in_staging_is_swept(tmp_path: Path, clock: FakeClock) -> None:
    left = tmp_path / "home" / "staging" / "old-token" / "work"
    left.mkdir(parents=True)
    (left / "MEMORY.md").write_text("half")
    async with a_house(settings_in(tmp_path), clock) as context:
        assert list(context.home.staging.iterdir()) == []


async def test_stages_that_share_a_provider_share_its_client(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path, **MODEL), clock) as context:
        assert context.extract.client is context.consolidate.client is not None
        assert (context.extract.model, context.consolidate.model) == ("small", "large")
        assert (context.extract.effort, context.consolidate.effort) == (None, "medium")
        assert context.extract.context_window == 8000


def test_agents_are_those_named_or_those_with_roots_of_their_own(tmp_path: Path) -> None:
    named = configured_agents(settings_in(tmp_path), PATH_ONLY)
    assert [(name, agent.homes) for name, agent in named.items()] == [("codex", (tmp_path / "codex",))]
    rooted = configured_agents(settings_in(tmp_path, sources__agents=[]), PATH_ONLY)
    assert list(rooted) == ["codex"]
    both = settings_in(tmp_path, sources__agents=["copilot", "generic"], sources__roots={"generic": [str(tmp_path)]})
    assert [list(agent.homes) for agent in configured_agents(both, {"COPILOT_HOME": "/c", **PATH_ONLY}).values()] == [
        [Path("/c")],
        [tmp_path],
    ]
    assert configured_agents(settings_in(tmp_path, sources__agents=[], sources__roots={}), PATH_ONLY) == {}


def test_no_two_runs_have_the_same_name() -> None:
    assert worker_name("run") != worker_name("run")
    assert worker_name("run").startswith(f"run-{os.getpid()}-")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"sources__agents": ["generic"]}, "generic has no folder of its own, and sources.roots names none"),
        (
            {
                "providers": {"x": {"kind": "command", "command": ["no-such-agent"]}},
                "extract__model": "m",
                "consolidate__model": "m",
            },
            "there is no program no-such-agent on PATH",
        ),
        (
            {"providers": {"x": {"kind": "anthropic"}}, "extract__model": "m", "consolidate__model": "m"},
            "ANTHROPIC_API_KEY",
        ),
        ({"providers": {"x": {"kind": "openai"}}, "extract__model": "m", "consolidate__model": "m"}, "OPENAI_API_KEY"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_anything_is_made(
    tmp_path: Path, changes: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        check_settings(settings_in(tmp_path, **changes), PATH_ONLY)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_that_can_be_named_can_be_read(tmp_path: Path, agent: str) -> None:
    roots = {"generic": [str(tmp_path)]}
    settings = settings_in(tmp_path, sources__agents=[agent], sources__roots=roots)
    check_settings(settings, PATH_ONLY)
    assert configured_agents(settings, PATH_ONLY)[agent].reader is READERS[agent]


def test_settings_that_can_work_are_not_refused(tmp_path: Path) -> None:
    check_settings(settings_in(tmp_path), PATH_ONLY)
    check_settings(settings_in(tmp_path, **MODEL), PATH_ONLY)


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_ledger_that_was_removed_or_replaced_under_it_ends_the_work(
    tmp_path: Path, clock: FakeClock, replaced: bool
) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        context.still_ours()
        context.home.ledger_file.unlink()
        if replaced:
            context.home.ledger_file.touch()
        with pytest.raises(LeaseLost, match="removed or replaced"):
            context.still_ours()


@pytest.mark.parametrize(("model", "status"), [("another", Status.PENDING), ("small", Status.ERROR)])
async def test_what_died_under_another_model_is_tried_anew_at_the_next_start(
    tmp_path: Path, clock: FakeClock, model: str, status: Status
) -> None:
    async with a_house(settings_in(tmp_path, **MODEL), clock) as context:
        await context.ledger.write(enqueue, THREAD, max_attempts=1)

        async def fails(_context: Context, _lease: Lease) -> Outcome:
            return Failed("MalformedReply", "no reply")

        done = await Worker(context, kind=JobKind.STAGE1, run=fails, worker_id="test").run_once()
        assert done is not None
    async with a_house(settings_in(tmp_path, **MODEL | {"extract.model": model}), clock) as context:
        row = await context.ledger.read(jobs.find, JobKind.STAGE1, THREAD)
        assert row is not None
        assert row.status is status
