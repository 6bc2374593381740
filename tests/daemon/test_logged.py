"""What a whole run says in its log: one canonical line for each run of a job, and no word of content."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd import logs
from memoryd.clock import SystemClock
from memoryd.errors import MalformedReply, RateLimited, RequestRefused
from memoryd.ledger import attempts, jobs
from memoryd.ledger.states import GLOBAL_KEY, JobKind
from memoryd.llm.question import Answer, Question
from tests.support.clock import FakeClock
from tests.support.daemon import a_daemon
from tests.support.house import Answering
from tests.support.in_process_model import good_model
from tests.support.sessions import a_rollout

SAID = "marmaladequince"
SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0" * 2
NOTE = "pomegranatefig"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(start=SystemClock().now())


def answers() -> Iterator[Answer | str | Exception | None]:
    """Go wrong in several ways, each with words of the session; then answer well."""
    yield f"no JSON, but {SAID} and {SECRET}"
    yield f"nor is this: {SAID}"
    yield MalformedReply("the reply is no JSON")
    yield RequestRefused("the server refused the request", status=400)
    yield RateLimited("too many requests", retry_after=1.0)
    yield json.dumps({"raw_memory": SAID, "rollout_summary": 7, "rollout_slug": SECRET})
    while True:
        yield None


async def test_a_run_of_a_job_has_one_line_that_tells_its_end_and_no_line_tells_of_content(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I6: neither what was said nor a secret nor a note stands in any line from debug on."""
    for number in range(6):
        a_rollout(
            tmp_path / "codex",
            now=clock.now() - number,
            turns=[f"Always spread {SAID} number {number}, the key is {SECRET}"],
        )
    script = answers()

    def answer(question: Question) -> Answer | str | Exception:
        return next(script) or good_model(question)

    async with a_daemon(tmp_path, clock, Answering(answer), ledger__retry_base="0s", ledger__retry_cap="0s") as daemon:
        await daemon.logged("consolidation.published")
        notes = daemon.context.home.memories / "extensions" / "ad_hoc" / "notes"
        notes.mkdir(parents=True, exist_ok=True)
        (notes / "2026-11-29T09-38-15-wish.md").write_text(f"Remember {NOTE}.\n")
        await daemon.ask(do="note")
        while await daemon.context.ledger.read(jobs.next_ready_at, kind=JobKind.STAGE1) is not None:
            await daemon.pass_time(2)
        await daemon.stop()
        runs = [
            run
            for kind, key in {(line["kind"], line["job_key"]) for line in daemon.log.events("job.claimed")}
            for run in await daemon.context.ledger.read(attempts.of_job, JobKind(kind), key, limit=100)
        ]
    lines = daemon.log.events()
    told = [line for line in lines if line["event"] in logs.CANONICAL]
    assert {line["event"] for line in told} >= {"job.completed", "job.failed"}
    assert sorted(line["attempt"] for line in told) == sorted(run.id for run in runs)
    assert all(line["duration_ms"] >= 0 and line["outcome"] for line in told if line["event"] != "job.released")
    for line in told:
        assert line.get("session") == (None if line["job_key"] == GLOBAL_KEY else line["job_key"])
    assert {line["schema"] for line in lines} == {logs.SCHEMA}
    for word in (SAID, SECRET, NOTE):
        assert word not in daemon.log.text
