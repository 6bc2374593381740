"""Each row of the reply table, through the real client and worker, against what the ledger holds afterwards."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memoryd.daemon.endings import Done, Ending
from memoryd.daemon.worker import Worker
from memoryd.errors import ModelError, ModelUnavailable
from memoryd.ledger import facts, jobs, outputs, states
from memoryd.ledger.overview import JobRow
from memoryd.ledger.states import JobKind
from memoryd.llm.breaker import FAILURES_TO_OPEN
from memoryd.pipeline.context import Context
from memoryd.pipeline.discover import Discovery
from memoryd.pipeline.extract import MAX_REQUESTS, extract
from memoryd.pipeline.outcomes import Failed, outcome_of_error
from memoryd.pipeline.reply_table import REPLY_TABLE, Breaker, Memory, Row, table_in_markdown
from tests.ledger.factories import an_output
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in
from tests.support.model_replies import GARBAGE, Drop, HalfStream, Raw, Reply, Scripted, Status, redirect
from tests.support.model_server import ModelServer
from tests.support.sessions import a_rollout

THREAD = "0194f5a6-89ab-7cde-8123-456789abcdef"
ANSWER = json.dumps({"rollout_summary": "# Tabs.", "rollout_slug": "tabs", "raw_memory": "---\ntask: tabs\n---"})
EMPTY = json.dumps({"rollout_summary": "", "rollout_slug": None, "raw_memory": ""})
FULL = (200_000, 16_384)
"""Tokens of an answer that used its whole limit."""
TURNS = [f"Message {number}: " + "words " * 100 for number in range(60)]
MAX_ATTEMPTS = 3

SAMPLES: dict[str, tuple[Scripted, ...]] = {
    "answer": (
        Reply(ANSWER), Reply(f"Sure!\n```json\n{ANSWER}\n```"), Reply(f"<think>hm</think>{ANSWER}"),
        Reply(json.dumps(ANSWER)),
    ),
    "nothing to remember": (Reply(EMPTY), Reply(f"```\n{EMPTY}\n```")),
    "usage-limit text": (Reply("You've hit your usage limit. Try again in 3 hours."), Raw(200, b"Usage limit reached")),
    "rate limit": (Status(429, "slow down"), Status(402, "no credit"), Raw(200, b'{"error": {"code": 429}}')),
    "refusal": (Reply(refusal="I cannot"), Reply(EMPTY, stop="content_filter")),
    "malformed": (
        Reply("nothing worth keeping"), Reply(""), GARBAGE, Raw(200, b"<html>"),
        Reply(ANSWER + ANSWER.replace("# T", "# U")),
        Reply(json.dumps({"rollout_summary": "", "raw_memory": None})), Reply(f"Perhaps {EMPTY}"),
        Reply(json.dumps({"rollout_summary": "string", "rollout_slug": "string", "raw_memory": "string"})),
    ),
    "truncated": (Reply(ANSWER[:40], stop="length", tokens=FULL), Reply(EMPTY, stop="length", tokens=FULL)),
    "overflow": (
        Status(400, "too long", "context_length_exceeded"), Status(413, "no"),
        Reply(EMPTY, stop="length", tokens=(9, 5)),
    ),
    "overloaded": (Status(500, "oops"), Status(503, "busy"), Status(529, "busy"), Status(408, "late")),
    "key refused": (Status(401, "no"), Status(403, "no"), Status(400, "Incorrect API key provided")),
    "unknown model": (Status(404, "no"), Status(400, "The model `m` does not exist")),
    "no connection": (Drop(), Drop(before_headers=True), HalfStream()),
    "refused request": (Status(400, "bad temperature"), Status(405, "no"), redirect("/elsewhere")),
}  # fmt: skip
CASES = [
    pytest.param(row, answer, id=f"{row.reply} {number}")
    for row in REPLY_TABLE
    for number, answer in enumerate(SAMPLES[row.reply], 1)
]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@asynccontextmanager
async def remembered(
    folder: Path, clock: FakeClock, server: ModelServer, kind: str = "openai-chat", **provider: Any
) -> AsyncIterator[Context]:
    """A house with one due session of which a memory is kept already."""
    a_rollout(folder / "codex", now=clock.now(), thread_id=THREAD, turns=TURNS)
    settings = settings_in(
        folder,
        limits__backfill="recent",
        ledger__max_attempts=MAX_ATTEMPTS,
        extract__provider="scripted",
        extract__model="m",
        consolidate__provider="scripted",
        consolidate__model="m",
        providers={"scripted": {"kind": kind, "base_url": server.base_url, **provider}},
    )
    async with a_house(settings, clock) as context:
        await Discovery(context).run_once()
        await context.ledger.write(outputs.store, an_output(THREAD), now=clock.now())
        yield context


async def run(context: Context) -> Done | None:
    return await Worker(context, kind=JobKind.STAGE1, run=extract, worker_id="test").run_once()


async def job_in(context: Context) -> JobRow:
    job = await context.ledger.read(jobs.find, JobKind.STAGE1, THREAD)
    assert job is not None
    return job


async def memory_in(context: Context) -> Memory:
    kept = await context.ledger.read(outputs.get, THREAD)
    if kept is None:
        return Memory.DELETED
    return Memory.UNTOUCHED if kept.raw_memory == an_output(THREAD).raw_memory else Memory.WRITTEN


@pytest.mark.parametrize(("row", "answer"), CASES)
async def test_a_reply_does_to_the_job_and_to_the_memory_what_its_row_says(
    tmp_path: Path, clock: FakeClock, server: ModelServer, row: Row, answer: Scripted
) -> None:
    """I5, I8: only an answer of the schema writes, only an empty one deletes, and no row loops."""
    server.reply_with(answer)
    async with remembered(tmp_path, clock, server) as context:
        done = await run(context)

        assert done is not None
        assert await memory_in(context) is row.memory
        asked = len(server.requests)
        assert 1 <= asked <= row.most_requests
        job = await job_in(context)
        if row.spends_attempt is None:
            assert job.status is states.Status.DONE
        else:
            assert job.status is not states.Status.DONE
            assert job.retry_remaining == MAX_ATTEMPTS - row.spends_attempt
            assert job.ready_at is not None
            assert job.ready_at > clock.now()
            assert done.ending is (Ending.FAILED if row.spends_attempt else Ending.DEFERRED)
        if row.reason:
            assert job.wait_reason == row.reason

        assert await run(context) is None
        assert len(server.requests) == asked


@pytest.mark.parametrize("row", [row for row in REPLY_TABLE if row.spends_attempt], ids=lambda row: str(row.reply))
async def test_what_spends_attempts_ends_when_they_are_spent_and_leaves_the_memory(
    tmp_path: Path, clock: FakeClock, server: ModelServer, row: Row
) -> None:
    server.reply_with(SAMPLES[row.reply][0])
    async with remembered(tmp_path, clock, server) as context:
        for _ in range(MAX_ATTEMPTS + 3):
            await run(context)
            await clock.advance(7 * 86_400)

        job = await job_in(context)
        assert (job.status, job.retry_remaining) == (states.Status.ERROR, 0)
        assert await memory_in(context) is Memory.UNTOUCHED
    assert len(server.requests) <= MAX_ATTEMPTS * row.most_requests


@pytest.mark.parametrize("row", [row for row in REPLY_TABLE if row.reason], ids=lambda row: str(row.reply))
async def test_what_costs_no_attempt_is_done_as_soon_as_the_server_is_well(
    tmp_path: Path, clock: FakeClock, server: ModelServer, row: Row
) -> None:
    """I5: nothing dies of it, however long it lasts."""
    server.reply_with(SAMPLES[row.reply][0])
    async with remembered(tmp_path, clock, server) as context:
        for _ in range(MAX_ATTEMPTS + 3):
            await run(context)
            await clock.advance(86_400)
        assert (await job_in(context)).retry_remaining == MAX_ATTEMPTS

        server.reply_with(Reply(ANSWER))
        await run(context)
        assert await memory_in(context) is Memory.WRITTEN


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("reply", ["answer", "nothing to remember", "usage-limit text", "refusal", "malformed"])
async def test_a_stream_is_judged_as_a_whole_body_is(
    tmp_path: Path, clock: FakeClock, server: ModelServer, kind: str, reply: str
) -> None:
    (row,) = (row for row in REPLY_TABLE if row.reply == reply)
    server.reply_with(SAMPLES[reply][0])
    async with remembered(tmp_path, clock, server, kind, stream=True) as context:
        await run(context)
        assert await memory_in(context) is row.memory
        assert (await job_in(context)).status is (
            states.Status.DONE if row.spends_attempt is None else states.Status.PENDING
        )
    assert {asked.wants_stream for asked in server.requests} == {True}


async def test_an_overflow_is_asked_again_with_half_and_the_next_request_is_right(
    tmp_path: Path, clock: FakeClock, server: ModelServer
) -> None:
    """The bytes that this model counts as a token are learned from the request that went through."""
    sizes: list[int] = []

    def small_window(asked: Any) -> Scripted:
        sizes.append(len(asked.opening))
        if len(asked.opening) > 20_000:
            return Status(400, "maximum context length is 20000 tokens", "context_length_exceeded")
        return Reply(ANSWER, tokens=(len(asked.instructions + asked.opening), 100))

    server.reply_with(small_window)
    async with remembered(tmp_path, clock, server, context_window=25_000) as context:
        done = await run(context)
        assert done is not None
        assert done.ending is Ending.REMEMBERED
        assert 1 < len(sizes) <= MAX_REQUESTS
        assert await context.ledger.read(facts.bytes_per_token, "scripted", "m") == pytest.approx(1.0, abs=0.05)

        a_rollout(tmp_path / "codex", now=clock.now(), thread_id=THREAD.replace("0194", "0195"), turns=TURNS)
        await Discovery(context).run_once()
        before = len(sizes)
        await run(context)
    assert len(sizes) == before + 1


async def test_every_request_of_stage_1_carries_the_limit_of_its_answer(
    tmp_path: Path, clock: FakeClock, server: ModelServer
) -> None:
    """I9."""
    async with remembered(tmp_path, clock, server, "anthropic", context_window=32_000) as context:
        await run(context)
    assert [asked.body["max_tokens"] for asked in server.requests] == [6_400]


def test_the_table_says_what_the_code_does_with_each_error() -> None:
    for row in REPLY_TABLE:
        if row.error is None:
            continue
        outcome = outcome_of_error(row.error("x"), now=0.0, retry_base=60.0, retry_cap=600.0)
        assert isinstance(outcome, Failed) is row.spends_attempt, row.reply
        assert getattr(outcome, "reason", "") == row.reason
        opens = {Breaker.AT_ONCE: 1, Breaker.AT_SECOND: 2}.get(row.breaker)
        assert (FAILURES_TO_OPEN.get(row.error) if issubclass(row.error, ModelUnavailable) else None) == opens


def test_every_error_that_a_model_can_make_has_a_row() -> None:
    named = {row.error for row in REPLY_TABLE}

    def leaves(kind: type[ModelError]) -> set[type[ModelError]]:
        below = kind.__subclasses__()
        return {leaf for each in below for leaf in leaves(each)} if below and kind not in named else {kind}

    refused_by_name = {"StructureUnsupported"}  # the last rung of the ladder names no parameter that could be refused
    assert {kind.__name__ for kind in leaves(ModelError) - named} <= refused_by_name


def test_the_readme_shows_the_table_as_it_is() -> None:
    assert table_in_markdown() in (Path(__file__).parents[2] / "README.md").read_text()
