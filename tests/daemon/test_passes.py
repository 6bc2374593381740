import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.daemon.endings import Done, Ending
from memoryd.daemon.passes import PassReport, as_json, run_pass
from memoryd.daemon.progress import Step
from memoryd.errors import AuthRefused, DiskFull, RateLimited
from memoryd.ledger import jobs, publications
from memoryd.ledger.states import JobKind
from memoryd.llm.question import Answer, Question
from memoryd.pipeline.context import Context
from tests.support.clock import FakeClock
from tests.support.house import Answering, a_house, settings_in
from tests.support.in_process_model import good_model
from tests.support.sessions import a_rollout

WORDS = ("Always use tabs in the Makefile", "Never deploy the shop on Fridays", "Please write commits in English")


def some_sessions(folder: Path, clock: FakeClock, *, idle_hours: float = 7.0) -> None:
    for number, words in enumerate(WORDS):
        a_rollout(folder / "codex", now=clock.now() - number, idle_hours=idle_hours, turns=[words])


async def test_a_pass_discovers_extracts_and_consolidates_and_the_next_finds_nothing(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I4."""
    some_sessions(tmp_path, clock)
    client = Answering(good_model)
    steps: list[Step] = []
    async with a_house(settings_in(tmp_path, limits__backfill="recent"), clock, client=client) as context:
        report = await run_pass(context, now=True, progress=steps.append)

        assert report.exit_code == 0
        assert report.count(Ending.REMEMBERED, JobKind.STAGE1) == 3
        assert report.count(Ending.PUBLISHED) == 1
        stages = [step.stage for step in steps]
        assert stages == sorted(stages, key=["discover", "extract", "consolidate"].index)
        assert Step("extract", 3, 3, "remembered") in steps
        assert steps[-1] == Step("consolidate", 1, 1, "published")
        asked = len(client.asked)

        clock.jump(3600)
        again = await run_pass(context, now=True, progress=steps.append)

        assert (again.endings, again.exit_code, len(client.asked)) == ([], 0, asked)
        assert steps[-1] == Step("consolidate", 1, 1, "not due")


async def test_now_ignores_idle_time_debounce_and_min_interval(tmp_path: Path, clock: FakeClock) -> None:
    some_sessions(tmp_path, clock, idle_hours=1)
    settings = settings_in(
        tmp_path, limits__backfill="recent", consolidate__debounce="2m", consolidate__min_interval="30m"
    )
    async with a_house(settings, clock, client=Answering(good_model)) as context:
        patient = await run_pass(context)
        assert (patient.endings, patient.waiting, patient.exit_code) == ([], Counter(too_fresh=3), 0)

        hasty = await run_pass(context, now=True)
        assert hasty.count(Ending.PUBLISHED) == 1


async def test_what_waits_for_debounce_is_not_undone(tmp_path: Path, clock: FakeClock) -> None:
    some_sessions(tmp_path, clock)
    settings = settings_in(tmp_path, limits__backfill="recent", consolidate__debounce="2m")
    async with a_house(settings, clock, client=Answering(good_model)) as context:
        report = await run_pass(context)
        assert report.count(Ending.REMEMBERED) == 3
        assert report.count(Ending.PUBLISHED) == 0
        assert (report.undone, report.exit_code) == (Counter(), 0)
        await clock.advance(700)
        assert (await run_pass(context)).count(Ending.PUBLISHED) == 1


async def test_history_without_consent_is_left_undone_with_exit_3(tmp_path: Path, clock: FakeClock) -> None:
    some_sessions(tmp_path, clock)
    client = Answering(good_model)
    async with a_house(settings_in(tmp_path), clock, client=client) as context:
        report = await run_pass(context, now=True)
        assert (report.waiting, report.exit_code, client.asked) == (Counter(consent=3), 3, [])

        consented = await run_pass(context, now=True, backfill="recent")
        assert consented.count(Ending.REMEMBERED) == 3
        assert consented.exit_code == 0


@pytest.mark.parametrize(
    ("error", "reason"), [(RateLimited("full"), "rate_limited"), (AuthRefused("no"), "key_refused")]
)
async def test_what_waits_for_the_world_is_exit_3_with_its_reason(
    tmp_path: Path, clock: FakeClock, error: Exception, reason: str
) -> None:
    some_sessions(tmp_path, clock)
    settings = settings_in(tmp_path, limits__backfill="recent")
    async with a_house(settings, clock, client=Answering(lambda _question: error)) as context:
        report = await run_pass(context, now=True)
        assert (report.undone, report.exit_code) == (Counter({reason: 3}), 3)
        assert [failure["reason"] for failure in as_json(report)["failures"]] == [reason] * 3  # type: ignore[attr-defined]  # a list


async def test_a_failed_job_is_exit_1_and_the_pass_goes_on_with_the_others(tmp_path: Path, clock: FakeClock) -> None:
    some_sessions(tmp_path, clock)

    def one_is_odd(question: Question) -> Answer | str:
        return "no reply" if "Fridays" in str(question.turns[0]) and not question.tools else good_model(question)

    settings = settings_in(tmp_path, limits__backfill="recent")
    async with a_house(settings, clock, client=Answering(one_is_odd)) as context:
        report = await run_pass(context, now=True)
    assert report.count(Ending.REMEMBERED) == 2
    assert report.count(Ending.FAILED) == 1
    assert report.count(Ending.PUBLISHED) == 1
    assert report.exit_code == 1


@pytest.mark.parametrize(
    ("endings", "undone", "waiting", "code"),
    [
        ([], {}, {}, 0),
        ([Ending.REMEMBERED, Ending.NOTHING, Ending.PUBLISHED, Ending.UNCHANGED], {}, {"too_fresh": 2}, 0),
        ([Ending.LEASE_LOST], {}, {}, 1),
        ([Ending.FAILED], {"budget": 1}, {}, 1),
        ([Ending.DEFERRED], {"budget": 1}, {}, 3),
        ([], {}, {"consent": 1}, 3),
    ],
)
def test_the_exit_code_of_a_pass_says_what_became_of_it(
    endings: list[Ending], undone: dict[str, int], waiting: dict[str, int], code: int
) -> None:
    done = [Done(JobKind.STAGE1, "key", ending) for ending in endings]
    report = PassReport(endings=done, undone=Counter(undone), waiting=Counter(waiting))
    assert report.exit_code == code
    assert json.loads(json.dumps(as_json(report)))["exit_code"] == code


async def test_one_thread_is_extracted_and_no_other(tmp_path: Path, clock: FakeClock) -> None:
    some_sessions(tmp_path, clock)
    wanted = "0194f5a6-89ab-7cde-8123-456789abcdef"
    a_rollout(tmp_path / "codex", now=clock.now(), thread_id=wanted, turns=["Keep functions short, please"])
    settings = settings_in(tmp_path, limits__backfill="recent")
    async with a_house(settings, clock, client=Answering(good_model)) as context:
        report = await run_pass(context, now=True, thread=wanted)
        assert [done.job_key for done in report.endings if done.kind is JobKind.STAGE1] == [wanted]


async def test_a_pass_first_puts_in_place_what_a_crash_left_decided(tmp_path: Path, clock: FakeClock) -> None:
    """I1."""

    class Killed(BaseException):
        pass

    def die(point: str) -> None:
        if point == "before_refs":
            raise Killed

    some_sessions(tmp_path, clock)
    settings = settings_in(tmp_path, limits__backfill="recent")
    async with a_house(settings, clock, client=Answering(good_model)) as context:
        with pytest.raises(Killed):
            await run_pass(replace(context, reached=die), now=True)
        assert await context.ledger.read(publications.pending) is not None

        report = await run_pass(context)

        assert (report.endings, await context.ledger.read(publications.pending)) == ([], None)


class FullAfterDiscovery:
    """A ledger on a disk that is full once there is a job to claim."""

    def __init__(self, context: Context) -> None:
        self._ledger = context.ledger

    async def write(self, fn: object, *args: object, **kwargs: object) -> object:
        if fn is jobs.claim:
            await asyncio.sleep(0)
            raise DiskFull("no room")
        return await self._ledger.write(fn, *args, **kwargs)  # type: ignore[arg-type]  # passes on what it is given

    async def read(self, *args: object, **kwargs: object) -> object:
        return await self._ledger.read(*args, **kwargs)  # type: ignore[arg-type]  # passes on what it is given


async def test_a_full_disk_ends_a_pass_with_its_own_name(tmp_path: Path, clock: FakeClock) -> None:
    some_sessions(tmp_path, clock)
    async with a_house(settings_in(tmp_path), clock) as context:
        full = replace(context, ledger=FullAfterDiscovery(context))  # type: ignore[arg-type]  # a ledger of the test's
        with pytest.raises(DiskFull, match="no room"):
            await run_pass(full, now=True)


async def test_a_cancelled_pass_gives_back_what_it_held(tmp_path: Path, clock: FakeClock) -> None:
    some_sessions(tmp_path, clock)
    asked = asyncio.Event()

    class Silent:
        async def ask(self, question: Question, purpose: object) -> Answer:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

    async with a_house(settings_in(tmp_path, limits__backfill="recent"), clock) as context:
        silent = replace(context, extract=replace(context.extract, client=Silent()))
        running = asyncio.create_task(run_pass(silent, now=True, backfill="recent"))
        await asked.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        rows = await context.ledger.read(jobs.list_jobs, kind=JobKind.STAGE1)
        assert {(row.status.value, row.retry_remaining) for row in rows} == {("pending", 3)}
        assert context.held == set()
