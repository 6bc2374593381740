"""Every way in which something is forgotten, with evidence of one session and of two, whoever writes the memory."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoryd.clock import SystemClock
from memoryd.daemon.endings import Done, Ending
from memoryd.daemon.worker import Worker
from memoryd.errors import AuthRefused, UsageError
from memoryd.ledger import claims, forgetting, jobs, outputs, sessions
from memoryd.ledger.sessions import UserMode
from memoryd.ledger.states import JobKind
from memoryd.llm.question import Answer, Question, ToolTurn
from memoryd.llm.spend import Purpose
from memoryd.pipeline.consolidate import publish_decided
from memoryd.pipeline.context import Context
from memoryd.pipeline.discover import Discovery, choose_mode
from memoryd.pipeline.extract import extract
from memoryd.pipeline.forget import finish_forgetting, forget, reset
from memoryd.pipeline.forget_surely import consolidate_surely
from memoryd.workspace.history import entries
from memoryd.workspace.notes import request_to_forget, write_note
from tests.ledger.factories import recorded_every_day
from tests.pipeline.test_consolidate import FIRST, SECOND, enqueue, memory, remember
from tests.support.clock import FakeClock
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import agent_that_writes
from tests.support.sessions import a_rollout, a_thread_id

OURS = "Never deploy the shop on Fridays"
SHARED = "Always use tabs in the Makefile"
THEIRS = "Run make check before every commit"
DAY = 86_400

Withdraw = Callable[[Context], object]


async def two(context: Context) -> None:
    """Remember two sessions of one project, the first of which alone said OURS, both SHARED."""
    await remember(context, FIRST, f"{OURS}. {SHARED}.", at=-100 * 1)
    await remember(context, SECOND, f"{SHARED}. {THEIRS}.", at=1000)


def stubborn(context: Context) -> tuple[Context, Answering]:
    """Have an agent that keeps what it once wrote, whatever it is told."""
    written: dict[str, str] = {}

    def writes(raw: str) -> dict[str, str]:
        if not written:
            written.update(both_files(raw))
        return written

    client = Answering(agent_that_writes(writes))
    return replace(context, consolidate=replace(context.consolidate, client=client, model="model-1")), client


def both_files(raw: str) -> dict[str, str]:
    """A group whose statements rest on the first session, the second, or both, and one of the first alone."""
    stems = {line.split(": ")[1] for line in raw.split("\n") if "rollout_summary_file: " in line}
    first = next(stem for stem in stems if stem.startswith("2025-02"))
    second = next(stem for stem in stems if stem.startswith("2026-11"))
    handbook = f"""\
# Task Group: shop
scope: the shop
applies_to: cwd=/home/dev/shop; reuse_rule=there

## Task 1: deploy, done

### rollout_summary_files
- rollout_summaries/{first}

### keywords
- fridays

## Task 2: check, done

### rollout_summary_files
- rollout_summaries/{second}

### keywords
- make check

## User preferences
- {OURS} [Task 1] [stated]
- {SHARED} [Task 1][Task 2] [stated]
- {THEIRS} [Task 2] [stated]

# Task Group: deploying
scope: deployments on fridays
applies_to: cwd=any; reuse_rule=everywhere

## Task 1: deploy, done

### rollout_summary_files
- rollout_summaries/{first}

### keywords
- deploy

## User preferences
- {OURS} everywhere [Task 1] [stated]
"""
    summary = f"""\
v1

## User Profile

Somebody with a shop.

## User preferences

- {OURS}
- {SHARED}

## General Tips

- {THEIRS}

## What's in Memory

### /home/dev/shop

#### 2026-11-29

- shop: fridays, make check
  - desc: the shop
  - learnings: {OURS}

### Older Memory Topics

#### any

- deploying: fridays
  - desc: when to deploy
"""
    return {"MEMORY.md": handbook, "memory_summary.md": summary}


def summary(context: Context) -> str:
    return (context.home.memories / "memory_summary.md").read_text()


def says(context: Context, what: str) -> bool:
    return what in memory(context) or what in summary(context)


async def run(context: Context) -> Done:
    context.clock.jump(1)  # type: ignore[attr-defined]  # what was enqueued at once is ready a moment later
    worker = Worker(
        context, kind=JobKind.CONSOLIDATE, run=consolidate_surely, publish=publish_decided, worker_id="test"
    )
    done = await worker.run_once()
    assert done is not None
    return done


def complaints(question: Question) -> list[str]:
    outputs = [result.output for turn in question.turns if isinstance(turn, ToolTurn) for result in turn.results]
    return [line for output in outputs if output.startswith("rejected") for line in output.splitlines()[1:]]


async def emptied(context: Context) -> None:
    await context.ledger.write(outputs.remove, FIRST)


async def displaced(context: Context) -> None:
    await context.ledger.write(outputs.cite, [SECOND], "message", context.clock.now())


async def aged(context: Context) -> None:
    context.clock.jump(29 * DAY + DAY - 3500)  # type: ignore[attr-defined]
    await context.ledger.write(recorded_every_day, until=context.clock.now())


async def polluted(context: Context) -> None:
    await context.ledger.write(sessions.mark_polluted, FIRST, context.clock.now())


async def disabled(context: Context) -> None:
    await context.ledger.write(sessions.set_user_mode, FIRST, UserMode.DISABLED)


async def forgotten(context: Context) -> None:
    await forget(context, [FIRST[:13]])


async def purged(context: Context) -> None:
    await forget(context, [FIRST], purge=True)


WAYS = [emptied, displaced, aged, polluted, disabled, forgotten, purged]


@pytest.mark.parametrize("writer", ["offline", "stubborn"])
@pytest.mark.parametrize("way", WAYS)
async def test_what_only_the_forgotten_session_supports_leaves_and_what_others_support_stays(
    tmp_path: Path, clock: FakeClock, way: Callable[[Context], object], writer: str
) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        used, client = stubborn(context) if writer == "stubborn" else (context, None)
        await two(used)
        assert (await run(used)).ending is Ending.PUBLISHED
        assert says(used, OURS)
        if way is displaced:
            used = with_room_for_one(used)
        await way(used)  # type: ignore[misc]
        await enqueue(used)

        done = await run(used)

        assert not says(used, OURS), memory(used) + summary(used)
        assert FIRST not in memory(used)
        assert THEIRS in memory(used)
        assert (SHARED in memory(used)) is (way is not purged or writer == "offline")
        if writer == "stubborn" and way in (forgotten, purged):
            assert done.ending is Ending.FAILED  # it names what is not there any more; the memory is clean already
            return
        assert done.ending is Ending.PUBLISHED, done
        await enqueue(used)
        asked = len(client.asked) if client else 0
        assert (await run(used)).ending is Ending.UNCHANGED
        assert len(client.asked if client else ()) == asked


def with_room_for_one(context: Context) -> Context:
    consolidating = context.settings.consolidate.model_copy(update={"max_raw_memories": 1})
    return replace(context, settings=context.settings.model_copy(update={"consolidate": consolidating}))


async def test_a_model_is_told_once_before_code_cleans_up_and_the_commit_says_so(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        used, client = stubborn(context)
        await two(used)
        await run(used)
        await disabled(used)
        await enqueue(used)

        await run(used)

        told = complaints(client.asked[-1])
        assert any("every session that supported" in line for line in told)
        newest = entries(context.repository, limit=1)[0]
        assert newest.trailers["Cleaned"].endswith("statements")


@pytest.mark.parametrize("purge", [False, True])
async def test_forgetting_is_done_at_once_without_any_model(tmp_path: Path, clock: FakeClock, *, purge: bool) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        used, client = stubborn(context)
        await two(used)
        await run(used)
        asked = len(client.asked)

        done = await forget(used, [FIRST], purge=purge)

        assert len(client.asked) == asked
        assert done.removed > 0
        assert not says(used, OURS), memory(used) + summary(used)
        assert "deploy" not in memory(used)
        assert "deploy" not in summary(used)
        assert THEIRS in memory(used)
        assert (SHARED in memory(used)) is not purge  # what cites a task that names the session is purged with it
        assert (f"- {SHARED} [Task 1] [stated]" in memory(used)) is not purge
        assert OURS not in {row.text for row in await used.ledger.read(claims.every, limit=99)}
        assert THEIRS in {row.text for row in await used.ledger.read(claims.valid)}
        assert await used.ledger.read(forgetting.under_way) is None
        assert len(entries(context.repository, limit=9)) == (1 if purge else 2)
        assert await used.ledger.read(outputs.get, FIRST) is None


async def test_after_a_clean_up_the_next_consolidation_looks_again_once(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        used, _client = stubborn(context)
        await two(used)
        await run(used)
        await forget(used, [FIRST], purge=True)
        offline = context

        assert (await run(offline)).ending is Ending.PUBLISHED
        assert SHARED in memory(offline)
        await enqueue(offline)
        assert (await run(offline)).ending is Ending.UNCHANGED


async def test_a_provider_that_is_not_there_keeps_nothing_that_was_forgotten(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        used, _client = stubborn(context)
        await two(used)
        await run(used)
        await disabled(used)
        await enqueue(used)
        refused = Answering(lambda _question: AuthRefused("no key", status=401))
        keyless = replace(used, consolidate=replace(used.consolidate, client=refused))

        done = await run(keyless)

        assert done.ending is Ending.DEFERRED
        assert not says(used, OURS)
        assert SHARED in memory(used)
        assert THEIRS in memory(used)
        assert entries(context.repository, limit=1)[0].change == "clean-up"


async def test_a_forgotten_session_is_remembered_again_on_the_persons_word(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await two(context)
        await run(context)
        await forget(context, [FIRST])
        row = await context.ledger.read(sessions.get_exact, FIRST)
        assert row is not None
        assert (row.excluded, row.cwd, row.git_branch, row.stem, row.is_open) == ("forgotten", None, None, None, False)

        row = await choose_mode(context, FIRST, UserMode.ENABLED)

        assert (row.excluded, row.is_open) == (None, True)


async def test_what_is_not_known_cannot_be_forgotten_and_nothing_else_is(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await two(context)
        await run(context)
        with pytest.raises(UsageError):
            await forget(context, [FIRST, "nobody"])
        assert says(context, OURS)
        assert await context.ledger.read(forgetting.under_way) is None


class Killed(BaseException):
    """The process is gone."""


POINTS = [
    "forgetting_begun",
    "forgetting_written",
    "forgetting_decided",
    "before_rename:MEMORY.md",
    "before_refs",
    "recall_refreshed",
    "history_written",
    "old_history_aside",
    "new_history_in_place",
    "history_rewritten",
    "forgetting_scrubbed",
]


WHILE_PUBLISHING = {
    "forgetting_written",
    "forgetting_decided",
    "before_rename:MEMORY.md",
    "before_refs",
    "recall_refreshed",
}
CRASHES = [("purge", point) for point in POINTS]
CRASHES += [("reset", point) for point in ["folder_wiped", *POINTS] if point not in WHILE_PUBLISHING]


@pytest.mark.parametrize(("deed", "point"), CRASHES)
async def test_a_start_finishes_what_a_crash_interrupted(
    tmp_path: Path, clock: FakeClock, point: str, deed: str
) -> None:
    armed: list[str] = []

    def reached(name: str) -> None:
        if name in armed:
            armed.clear()
            raise Killed

    async with a_house(settings_in(tmp_path), clock, reached=reached) as context:
        await two(context)
        await run(context)
        armed.append(point)
        try:
            await (reset(context) if deed == "reset" else forget(context, [FIRST], purge=True))
        except Killed:
            assert await context.ledger.read(forgetting.under_way) is not None
    async with a_house(settings_in(tmp_path), clock) as context:
        assert await context.ledger.read(forgetting.under_way) is None
        assert not says(context, OURS)
        assert OURS.encode() not in objects(context)
        assert len(entries(context.repository, limit=9)) == 1
        assert not [path for path in context.home.memories.iterdir() if path.name.startswith(".git.")]
        assert not await finish_forgetting(context)
        assert OURS.encode() not in context.home.ledger_file.read_bytes()


def objects(context: Context) -> bytes:
    return context.repository.run("cat-file", "--batch", "--batch-all-objects", "--unordered")


@pytest.mark.parametrize("writer", ["offline", "stubborn"])
@pytest.mark.parametrize("words", ["request", "Please forget that never deploy the shop on fridays."])
async def test_a_note_can_ask_that_a_text_be_forgotten_whoever_supports_it(
    tmp_path: Path, clock: FakeClock, writer: str, words: str
) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        used, client = stubborn(context) if writer == "stubborn" else (context, None)
        await two(used)
        await run(used)
        note = request_to_forget(f"{OURS}!") if words == "request" else words
        path = write_note(context.home, note, now=clock.now())
        await enqueue(used)

        assert (await run(used)).ending is Ending.PUBLISHED

        assert not says(used, OURS), memory(used) + summary(used)
        assert SHARED in memory(used)
        assert path.exists()
        every = await context.ledger.read(lambda conn: claims.every(conn, limit=99))
        assert {claim.closed_because for claim in every if OURS in claim.text} == {claims.Closing.REMOVED}
        assert client is None or any("a note asks to forget" in line for line in complaints(client.asked[-1]))


async def test_a_persons_own_line_survives_a_purge_with_its_author(tmp_path: Path, clock: FakeClock) -> None:
    mine = "- Ask Ada before touching zebra"
    async with a_house(settings_in(tmp_path), clock) as context:
        used, _client = stubborn(context)
        await two(used)
        await run(used)
        file = context.home.memories / "MEMORY.md"
        file.write_text(memory(context).replace("## User preferences\n", f"## User preferences\n{mine}\n", 1))

        await forget(used, [FIRST], purge=True)

        assert f"{mine}\n" in memory(used)
        await remember(used, FIRST.replace("0194", "0195"), "Something new", at=50)
        await run(context)
        assert f"{mine}\n" in memory(used)


async def test_a_running_consolidation_that_staged_it_is_cancelled_and_writes_nothing(
    tmp_path: Path, clock: FakeClock
) -> None:
    del clock  # leases and heartbeats are to be real
    async with a_house(settings_in(tmp_path), SystemClock()) as context:
        asked, released = asyncio.Event(), asyncio.Event()

        class Slow:
            async def ask(self, question: Question, purpose: Purpose) -> Answer:
                asked.set()
                await released.wait()
                raise AssertionError("it was cancelled")

        used = replace(context, consolidate=replace(context.consolidate, client=Slow(), model="model-1"))
        await two(used)
        worker = Worker(used, kind=JobKind.CONSOLIDATE, run=consolidate_surely, publish=publish_decided, worker_id="w")
        running = asyncio.create_task(worker.run_once())
        await asked.wait()
        assert list(context.home.staging.iterdir())

        await forget(used, [FIRST], purge=True)

        done = await running
        assert done is not None
        assert done.ending is Ending.DEFERRED
        assert list(context.home.staging.iterdir()) == []
        assert OURS.encode() not in objects(context)
        assert OURS.encode() not in context.home.ledger_file.read_bytes()


async def test_a_running_extraction_of_it_is_cancelled_and_leaves_no_row(tmp_path: Path, clock: FakeClock) -> None:
    del clock  # leases and heartbeats are to be real
    now = time.time()
    thread = a_thread_id(now - 8 * 3600, OURS)
    a_rollout(tmp_path / "codex", now=now, idle_hours=8, turns=[OURS], thread_id=thread, cwd="/home/dev/shop")
    async with a_house(settings_in(tmp_path), SystemClock()) as context:
        asked = asyncio.Event()

        class Slow:
            async def ask(self, question: Question, purpose: Purpose) -> Answer:
                asked.set()
                await asyncio.Event().wait()
                raise AssertionError("it was cancelled")

        used = replace(context, extract=replace(context.extract, client=Slow(), model="model-1"))
        await Discovery(used).run_once(ignore_idle=True, backfill="recent")
        worker = Worker(used, kind=JobKind.STAGE1, run=extract, worker_id="w")
        running = asyncio.create_task(worker.run_once())
        await asked.wait()

        await forget(used, [thread])

        done = await running
        assert done is not None
        assert done.ending is Ending.DEFERRED
        assert await used.ledger.read(jobs.find, JobKind.STAGE1, thread) is None
        assert (await Discovery(used).run_once(ignore_idle=True, backfill="recent")).enqueued == 0


@pytest.mark.parametrize("writer", ["offline", "stubborn"])
async def test_what_only_a_resource_that_expired_or_a_note_that_is_gone_said_leaves(
    tmp_path: Path, clock: FakeClock, writer: str
) -> None:
    """Extension resources expire after `consolidate.extension_retention`; a second one says what both say."""
    async with a_house(settings_in(tmp_path), clock) as context:
        folder = context.home.memories / "extensions" / "wiki" / "resources"
        folder.mkdir(parents=True)
        (folder.parent / "instructions.md").write_text("What the wiki says.\n")
        now = datetime.fromtimestamp(clock.now(), UTC)
        old, new = (f"{now - timedelta(days=days):%Y-%m-%dT%H-%M-%S}" for days in (6, 1))
        (folder / f"{old}-a.md").write_text("The printer stands upstairs beside the kitchen. Coffee is free.\n")
        (folder / f"{new}-b.md").write_text("Coffee is free.\n")
        ours, shared = "the printer stands upstairs beside the kitchen", "coffee is free"
        body = (
            f"# Task Group: wiki\nscope: the wiki\napplies_to: cwd=any; reuse_rule=everywhere\n\n"
            f"## Reusable knowledge\n- {ours} [ad-hoc note]\n- {shared} [ad-hoc note]\n"
        )
        index = "\n## What's in Memory\n\n### Older Memory Topics\n\n#### any\n\n- wiki: printer, coffee\n"
        head = f"v1\n\n## User Profile\n\n## User preferences\n\n## General Tips\n\n- {ours}\n- {shared}\n"
        files = {"MEMORY.md": body, "memory_summary.md": head + index}
        client = Answering(agent_that_writes(lambda _raw: files))
        used = replace(context, consolidate=replace(context.consolidate, client=client, model="model-1"))
        await enqueue(used)
        assert (await run(used)).ending is Ending.PUBLISHED
        assert says(used, ours)
        clock.jump(2 * DAY)
        await enqueue(used)

        assert (await run(context if writer == "offline" else used)).ending is Ending.PUBLISHED

        assert not says(used, ours), memory(used) + summary(used)
        assert writer == "offline" or says(used, shared)  # the offline writer takes notes alone
