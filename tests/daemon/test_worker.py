import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.daemon.endings import Done, Ending
from memoryd.daemon.worker import RESULT_PAUSE_SECONDS, Stage, Worker
from memoryd.errors import DiskFull, LeaseLost, MalformedReply, MemorydError, RateLimited
from memoryd.ledger import attempts, jobs, outputs, publications
from memoryd.ledger.attempts import AttemptRow
from memoryd.ledger.jobs import JobRow, Lease
from memoryd.ledger.publications import NewPublication
from memoryd.ledger.sessions import Covered
from memoryd.ledger.states import GLOBAL_KEY, JobKind, Outcome, Status
from memoryd.pipeline import outcomes
from memoryd.pipeline.context import Context
from memoryd.pipeline.outcomes import Consolidated, Deferred, Extracted, Failed, NothingToRemember, Skipped
from tests.ledger.factories import OTHER, THREAD, an_output, enqueue, enqueue_global
from tests.support.clock import FakeClock
from tests.support.house import a_house, settings_in
from tests.support.log_lines import LogLines

COVERED = Covered(1000, 50)
LEASE = 180.0
BEAT = LEASE / 3
EXTRACTED = Extracted(an_output(), COVERED)


def ends_with(outcome: outcomes.Outcome | Exception) -> Stage:
    async def stage(_context: Context, _lease: Lease) -> outcomes.Outcome:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return stage


class Hanging:
    """A stage that works until it is cancelled, or told to end."""

    def __init__(self, outcome: outcomes.Outcome = EXTRACTED) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.cancelled = False
        self._outcome = outcome

    async def __call__(self, _context: Context, _lease: Lease) -> outcomes.Outcome:
        self.began.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return self._outcome


def a_worker(
    context: Context,
    run: Stage,
    *,
    kind: JobKind = JobKind.STAGE1,
    max_running: int = 1,
    publish: Callable[[Context], Awaitable[None]] | None = None,
) -> Worker:
    return Worker(context, kind=kind, run=run, publish=publish, max_running=max_running, worker_id="test-1")


async def the_job(context: Context, kind: JobKind = JobKind.STAGE1, key: str = THREAD) -> JobRow:
    detail = await context.ledger.read(jobs.show, kind, key)
    assert detail is not None
    return detail.job


async def the_run(context: Context, kind: JobKind = JobKind.STAGE1, key: str = THREAD) -> AttemptRow:
    (run,) = await context.ledger.read(attempts.of_job, kind, key)
    return run


async def run_with(context: Context, outcome: outcomes.Outcome | Exception) -> Done:
    await context.ledger.write(enqueue, THREAD)
    done = await a_worker(context, ends_with(outcome)).run_once()
    assert done is not None
    assert context.held == set()
    return done


async def test_without_a_job_there_is_nothing_to_do(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        assert await a_worker(context, ends_with(EXTRACTED)).run_once() is None


async def test_what_was_extracted_is_kept_and_asks_for_a_consolidation(tmp_path: Path, clock: FakeClock) -> None:
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        done = await run_with(context, EXTRACTED)

        assert done == Done(JobKind.STAGE1, THREAD, Ending.REMEMBERED)
        assert (await the_job(context)).status is Status.DONE
        run = await the_run(context)
        assert (run.outcome, run.provider) == (Outcome.DONE, "offline")
        assert await context.ledger.read(outputs.get, THREAD) is not None
        assert (await the_job(context, JobKind.CONSOLIDATE, GLOBAL_KEY)).status is Status.PENDING
    (line,) = log.events("job.completed")
    assert (line["kind"], line["job_key"], line["outcome"], line["requests"]) == (
        "memory_stage1",
        THREAD,
        "remembered",
        0,
    )


async def test_nothing_to_remember_is_done_and_takes_an_earlier_memory_away(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(outputs.store, an_output(), now=clock.now())

        done = await run_with(context, NothingToRemember(COVERED))

        assert (done.ending, done.reason) == (Ending.NOTHING, "empty_reply")
        assert (await the_run(context)).outcome is Outcome.NOTHING
        assert await context.ledger.read(outputs.get, THREAD) is None
        assert (await the_job(context, JobKind.CONSOLIDATE, GLOBAL_KEY)).status is Status.PENDING


@pytest.mark.parametrize("covered", [COVERED, None])
async def test_a_job_that_asked_nobody_takes_no_memory_away(
    tmp_path: Path, clock: FakeClock, covered: Covered | None
) -> None:
    """I8: only a schema-valid empty reply does."""
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(outputs.store, an_output(), now=clock.now())

        done = await run_with(context, Skipped(covered, "no_human_message"))

        assert (done.ending, done.reason) == (Ending.NOTHING, "no_human_message")
        assert await context.ledger.read(outputs.get, THREAD) is not None
        assert await context.ledger.read(jobs.find, JobKind.CONSOLIDATE, GLOBAL_KEY) is None


async def test_a_deferred_job_waits_with_its_reason_and_keeps_its_attempts(tmp_path: Path, clock: FakeClock) -> None:
    """I5: it says why it is not done, and when it will run."""
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        done = await run_with(context, Deferred(clock.now() + 900, "budget", "the cap"))

        assert (done.ending, done.reason, done.retry_at) == (Ending.DEFERRED, "budget", clock.now() + 900)
        job = await the_job(context)
        assert (job.status, job.wait_reason, job.ready_at) == (Status.PENDING, "budget", clock.now() + 900)
        assert (job.retry_remaining, job.last_error) == (3, "the cap")
        assert (await the_run(context)).outcome is Outcome.DEFERRED
    assert log.events("job.deferred")[0]["reason"] == "budget"


async def test_a_failed_job_loses_an_attempt_and_waits_longer_each_time_until_it_is_dead(
    tmp_path: Path, clock: FakeClock
) -> None:
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        worker = a_worker(context, ends_with(Failed("MalformedReply", "no JSON")))
        await context.ledger.write(enqueue, THREAD)
        waits = []
        for left in (2, 1):
            done = await worker.run_once()
            assert done is not None
            assert done.retry_at is not None
            waits.append(done.retry_at - clock.now())
            job = await the_job(context)
            assert (job.status, job.retry_remaining, job.wait_reason) == (Status.PENDING, left, "backoff")
            assert await worker.run_once() is None
            await clock.advance(waits[-1] + 1)

        last = await worker.run_once()

        assert 30 <= waits[0] <= 60 <= waits[1] <= 120
        assert last == Done(JobKind.STAGE1, THREAD, Ending.FAILED, "MalformedReply", "no JSON", None)
        assert ((await the_job(context)).status, (await the_job(context)).last_error) == (Status.ERROR, "no JSON")
    assert [line["error_class"] for line in log.events("job.failed")] == ["MalformedReply"] * 3


@pytest.mark.parametrize(
    ("error", "ending", "reason"),
    [
        (RateLimited("full"), Ending.DEFERRED, "rate_limited"),
        (DiskFull("full"), Ending.DEFERRED, "disk_full"),
        (MalformedReply("odd"), Ending.FAILED, "MalformedReply"),
    ],
)
async def test_an_error_of_a_stage_becomes_an_outcome(
    tmp_path: Path, clock: FakeClock, error: MemorydError, ending: Ending, reason: str
) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        done = await run_with(context, error)
        assert (done.ending, done.reason) == (ending, reason)


async def test_an_unforeseen_exception_fails_the_job_without_its_text(tmp_path: Path, clock: FakeClock) -> None:
    """The job boundary: the text may hold a session's words (I6), the log has the place."""
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        done = await run_with(context, ZeroDivisionError("the session's own words"))

        assert (done.ending, done.reason) == (Ending.FAILED, "ZeroDivisionError")
        job = await the_job(context)
        assert (job.status, job.retry_remaining) == (Status.PENDING, 2)
        assert "words" not in str(job.last_error)
    assert log.events("job.crashed")[0]["error_class"] == "ZeroDivisionError"


async def test_a_secret_in_an_error_is_not_kept(tmp_path: Path, clock: FakeClock) -> None:
    """I6."""
    secret = "sk-proj-" + "a1B2" * 12
    async with a_house(settings_in(tmp_path), clock) as context:
        await run_with(context, Failed("MalformedReply", f"it said {secret}"))
        assert secret not in str((await the_job(context)).last_error)


async def test_the_heartbeat_renews_the_lease_while_the_stage_works(tmp_path: Path, clock: FakeClock) -> None:
    stage = Hanging()
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        running = asyncio.create_task(a_worker(context, stage).run_once())
        ends = []
        for _ in range(10):
            await between_beats(clock)
            ends.append((await the_job(context)).lease_until)
            await clock.advance(BEAT)
        await between_beats(clock)
        stage.may_end.set()

        done = await running

        assert done is not None
        assert done.ending is Ending.REMEMBERED
        assert ends == [1_700_000_000 + LEASE + beat * BEAT for beat in range(10)]
        assert (await the_job(context)).crash_count == 0


async def test_a_run_that_outlasts_its_wall_time_is_stopped_and_the_cap_is_named(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with a_house(settings_in(tmp_path, extract__max_duration="1s"), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        stage = Hanging()
        await a_worker(context, stage).run_once()
        assert stage.cancelled
        job, run = await the_job(context), await the_run(context)
        assert run.outcome is Outcome.FAILED
        assert "extract.max_duration = 1 seconds" in str(job.last_error)
        assert await context.ledger.read(outputs.get, THREAD) is None


async def test_a_lost_lease_cancels_the_work_and_writes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    """I2."""
    stage = Hanging()
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        running = asyncio.create_task(a_worker(context, stage).run_once())
        await clock.sleeping(1)
        elsewhere = replace(context, held=set())
        clock.jump(2 * LEASE)
        theirs = asyncio.create_task(a_worker(elsewhere, other := Hanging()).run_once())
        await other.began.wait()
        before = await the_job(context)

        await clock.sleeping(2)
        await clock.advance(BEAT)
        done = await running

        assert done is not None
        assert done.ending is Ending.LEASE_LOST
        assert stage.cancelled
        assert (await the_job(context)).ownership_token == before.ownership_token
        assert await context.ledger.read(outputs.get, THREAD) is None
        other.may_end.set()
        assert (ended := await theirs) is not None
        assert ended.ending is Ending.REMEMBERED
    assert log.events("job.lease_lost")


async def test_a_late_holder_that_finishes_all_the_same_changes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    """I2: the outcome itself carries the token."""
    stage = Hanging()
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        running = asyncio.create_task(a_worker(context, stage).run_once())
        await stage.began.wait()
        clock.jump(2 * LEASE)
        elsewhere = replace(context, held=set())
        taken = await a_worker(elsewhere, ends_with(Deferred(clock.now() + 60, "budget", "cap"))).run_once()
        assert taken is not None

        stage.may_end.set()
        done = await running

        assert done is not None
        assert done.ending is Ending.LEASE_LOST
        assert (await the_job(context)).wait_reason == "budget"
        assert await context.ledger.read(outputs.get, THREAD) is None


async def test_a_job_whose_task_lives_here_is_never_taken_over_whatever_the_clock_says(
    tmp_path: Path, clock: FakeClock
) -> None:
    """A laptop that slept: every lease looks expired, and its holder goes on."""
    stage = Hanging()
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        running = asyncio.create_task(a_worker(context, stage, max_running=2).run_once())
        await stage.began.wait()
        clock.jump(8 * 3600)

        assert await a_worker(context, ends_with(EXTRACTED), max_running=2).run_once() is None

        stage.may_end.set()
        done = await running
        assert done is not None
        assert done.ending is Ending.REMEMBERED
        assert (await the_job(context)).crash_count == 0


async def test_no_more_jobs_run_at_once_than_allowed(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        await context.ledger.write(enqueue, OTHER)
        stage = Hanging()
        running = asyncio.create_task(a_worker(context, stage).run_once())
        await stage.began.wait()

        assert await a_worker(context, ends_with(EXTRACTED)).run_once() is None
        stage.may_end.set()
        await running
        assert await a_worker(context, ends_with(EXTRACTED)).run_once() is not None


async def test_a_lock_file_that_was_replaced_stops_the_work_at_the_next_heartbeat(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The holder compares its lock file with the one at the path."""
    stage = Hanging()
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        running = asyncio.create_task(a_worker(context, stage).run_once())
        await clock.sleeping(1)
        context.home.lock_file.unlink()
        await clock.advance(BEAT)

        done = await running

        assert done is not None
        assert done.ending is Ending.LEASE_LOST
        assert stage.cancelled
        assert await context.ledger.read(outputs.get, THREAD) is None


class Failing:
    """A ledger that refuses to write while `broken`."""

    def __init__(self, context: Context) -> None:
        self._ledger = context.ledger
        self.broken = False

    async def write(self, *args: object, **kwargs: object) -> object:
        if self.broken:
            raise DiskFull("no room")
        return await self._ledger.write(*args, **kwargs)  # type: ignore[arg-type]  # passes on whatever it is given

    async def read(self, *args: object, **kwargs: object) -> object:
        return await self._ledger.read(*args, **kwargs)  # type: ignore[arg-type]  # passes on whatever it is given


class Stuck(Failing):
    """A ledger whose heartbeats never come back."""

    async def write(self, *args: object, **kwargs: object) -> object:
        if args[0] is jobs.heartbeat:
            await asyncio.Event().wait()
        return await super().write(*args, **kwargs)


async def between_beats(clock: FakeClock) -> None:
    """Wait until a heartbeat is over: nobody sleeps but the pulse, for a whole beat."""
    async with asyncio.timeout(30):
        while (clock.asleep(), clock.until_next()) != (1, BEAT):
            await asyncio.sleep(0.002)


async def test_a_holder_that_cannot_renew_in_time_stops_by_itself(tmp_path: Path, clock: FakeClock) -> None:
    stage = Hanging()
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        ledger = Failing(context)
        broken = replace(context, ledger=ledger)  # type: ignore[arg-type]  # a ledger of the test's own
        running = asyncio.create_task(a_worker(broken, stage).run_once())
        await clock.sleeping(1)
        ledger.broken = True
        await clock.advance(BEAT)
        await clock.sleeping(1)
        assert not stage.cancelled

        await clock.advance(BEAT)
        await clock.sleeping(1)
        await clock.advance(BEAT)
        done = await running

        assert done is not None
        assert done.ending is Ending.LEASE_LOST
        assert "could not be renewed in time" in done.message
        assert stage.cancelled


async def test_one_heartbeat_that_failed_is_made_good_by_the_next(tmp_path: Path, clock: FakeClock) -> None:
    stage = Hanging()
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        ledger = Failing(context)
        broken = replace(context, ledger=ledger)  # type: ignore[arg-type]  # a ledger of the test's own
        running = asyncio.create_task(a_worker(broken, stage).run_once())
        for broken_now in (True, False, True, False):
            await between_beats(clock)
            ledger.broken = broken_now
            await clock.advance(BEAT)
        await between_beats(clock)
        stage.may_end.set()

        done = await running

        assert done is not None
        assert done.ending is Ending.REMEMBERED


async def test_a_process_that_was_frozen_past_its_lease_stops_though_nobody_took_the_job(
    tmp_path: Path, clock: FakeClock
) -> None:
    """I2: SIGSTOP and SIGCONT; what it did meanwhile is not known to be its own any more."""
    stage = Hanging()
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        running = asyncio.create_task(a_worker(context, stage).run_once())
        await between_beats(clock)
        clock.freeze(LEASE)

        await clock.advance(BEAT)
        done = await running

        assert done is not None
        assert done.ending is Ending.LEASE_LOST


async def test_a_heartbeat_that_hangs_ends_the_work_before_the_lease_does(tmp_path: Path, clock: FakeClock) -> None:
    stage = Hanging()
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        stuck = replace(context, ledger=Stuck(context))  # type: ignore[arg-type]  # a ledger of the test's own
        running = asyncio.create_task(a_worker(stuck, stage).run_once())
        await between_beats(clock)
        await clock.advance(BEAT)
        await clock.sleeping(1)
        await clock.advance(LEASE - BEAT - 0.1 * LEASE)

        done = await running

        assert done is not None
        assert done.ending is Ending.LEASE_LOST


async def test_the_length_of_an_attempt_is_that_of_the_monotonic_clock(tmp_path: Path, clock: FakeClock) -> None:
    stage = Hanging()
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        running = asyncio.create_task(a_worker(context, stage).run_once())
        await between_beats(clock)
        await clock.advance(10.0)
        clock.jump(-3_600.0)
        stage.may_end.set()
        await running
        (attempt,) = await context.ledger.read(attempts.of_job, "memory_stage1", THREAD)
        assert attempt.duration_ms == 10_000


async def test_a_request_to_cancel_ends_the_stage_at_the_next_heartbeat(tmp_path: Path, clock: FakeClock) -> None:
    stage = Hanging()
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        running = asyncio.create_task(a_worker(context, stage).run_once())
        await clock.sleeping(1)
        assert await context.ledger.write(jobs.request_cancel, kind=JobKind.STAGE1, job_key=THREAD)
        await clock.advance(BEAT)

        done = await running

        assert done is not None
        assert (done.ending, done.reason) == (Ending.DEFERRED, "cancelled")
        assert stage.cancelled
        job = await the_job(context)
        assert (job.status, job.retry_remaining) == (Status.PENDING, 3)


async def test_a_cancelled_worker_gives_the_job_back_with_its_attempt(tmp_path: Path, clock: FakeClock) -> None:
    stage = Hanging()
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        running = asyncio.create_task(a_worker(context, stage).run_once())
        await stage.began.wait()

        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

        assert stage.cancelled
        job = await the_job(context)
        assert (job.status, job.retry_remaining, job.wait_reason) == (Status.PENDING, 3, None)
        assert (await the_run(context)).outcome is Outcome.RELEASED
        assert context.held == set()
        assert await a_worker(context, ends_with(EXTRACTED)).run_once() is not None
    assert log.events("job.released")


async def test_a_worker_cancelled_while_it_claims_leaves_no_lease_behind(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        running = asyncio.create_task(a_worker(context, ends_with(EXTRACTED)).run_once())
        await asyncio.sleep(0)
        await asyncio.sleep(0)

        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

        job = await the_job(context)
        assert (job.status, job.retry_remaining) == (Status.PENDING, 3)


async def test_a_worker_cancelled_while_there_is_nothing_to_claim_just_ends(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        running = asyncio.create_task(a_worker(context, ends_with(EXTRACTED)).run_once())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


def goes_on(context: Context, run: Stage, *, patience_seconds: float = 0.0) -> Worker:
    return Worker(
        context,
        kind=JobKind.STAGE1,
        run=run,
        worker_id="test-1",
        patience_seconds=patience_seconds,
        goes_on=lambda: True,
    )


async def of_its_own_session(_context: Context, lease: Lease) -> outcomes.Outcome:
    return Extracted(an_output(lease.job_key), COVERED)


async def two_jobs(context: Context) -> None:
    await context.ledger.write(enqueue, THREAD)
    await context.ledger.write(enqueue, OTHER, now=context.clock.now() + 1)


async def test_who_goes_straight_on_has_the_next_job_with_the_end_of_the_last(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await two_jobs(context)
        await clock.advance(2)
        worker = goes_on(context, of_its_own_session)

        first = await worker.run_once()
        between = [(await the_job(context, key=key)).status for key in (THREAD, OTHER)]
        held = {lease.job_key for lease in context.held}
        second = await worker.run_once()

        assert (between, held) == ([Status.DONE, Status.RUNNING], {OTHER})
        assert [done.job_key for done in (first, second) if done is not None] == [THREAD, OTHER]
        assert await worker.run_once() is None
        assert context.held == set()
        assert (await the_run(context, key=OTHER)).outcome is Outcome.DONE


async def test_who_does_not_go_on_after_all_gives_the_next_job_back_with_its_attempt(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        await two_jobs(context)
        await clock.advance(2)
        worker = goes_on(context, of_its_own_session)
        await worker.run_once()

        await worker.let_go()
        await worker.let_go()

        job = await the_job(context, key=OTHER)
        assert (job.status, job.wait_reason, job.retry_remaining) == (Status.PENDING, None, 3)
        assert (await the_run(context, key=OTHER)).outcome is Outcome.RELEASED
        assert context.held == set()


async def test_a_worker_cancelled_while_it_ends_a_run_leaves_no_lease_behind(tmp_path: Path, clock: FakeClock) -> None:
    """The end stands, and what was leased with it is free again."""
    async with a_house(settings_in(tmp_path), clock) as opened:
        held_up = HeldUp(opened)
        context = replace(opened, ledger=held_up)  # type: ignore[arg-type]  # a ledger of the test's own
        await two_jobs(opened)
        await clock.advance(2)
        running = asyncio.create_task(goes_on(context, of_its_own_session).run_once())
        await held_up.ending.wait()
        running.cancel()
        held_up.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await running

        assert (await the_job(opened, key=THREAD)).status is Status.DONE
        assert (await the_job(opened, key=OTHER)).status is Status.PENDING
        assert context.held == set()


async def test_an_end_that_the_disk_refuses_leases_nothing(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as opened:
        context = replace(opened, ledger=FullOnce(opened))  # type: ignore[arg-type]  # a ledger of the test's own
        await two_jobs(opened)
        await clock.advance(2)
        worker = goes_on(context, of_its_own_session, patience_seconds=60)

        running = asyncio.create_task(worker.run_once())
        await clock.sleeping(1, within=RESULT_PAUSE_SECONDS)
        assert (await the_job(opened, key=OTHER)).status is Status.PENDING
        await clock.advance(RESULT_PAUSE_SECONDS)

        done = await running
        assert done is not None
        assert done.ending is Ending.REMEMBERED
        assert (await the_job(opened, key=OTHER)).status is Status.RUNNING
        await worker.let_go()


class OwnLedger:
    """A ledger in which a test meddles with the ends of runs."""

    def __init__(self, context: Context) -> None:
        self._ledger = context.ledger

    async def write(self, fn: Callable[..., object], *args: object, **kwargs: object) -> object:
        if fn.__name__ != "end_and_claim":
            return await self._ledger.write(fn, *args, **kwargs)
        return await self.end(fn, *args)

    async def end(self, fn: Callable[..., object], *args: object) -> object:
        return await self._ledger.write(fn, *args)

    def __getattr__(self, name: str) -> object:
        return getattr(self._ledger, name)


class HeldUp(OwnLedger):
    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.ending, self.may_end = asyncio.Event(), asyncio.Event()

    async def end(self, fn: Callable[..., object], *args: object) -> object:
        self.ending.set()
        await self.may_end.wait()
        return await super().end(fn, *args)


class FullOnce(OwnLedger):
    full = True

    async def end(self, fn: Callable[..., object], *args: object) -> object:
        if self.full:
            self.full = False
            raise DiskFull("no room")
        return await super().end(fn, *args)


async def test_a_job_that_is_gone_when_its_worker_is_cancelled_is_left_alone(tmp_path: Path, clock: FakeClock) -> None:
    stage = Hanging()
    log = LogLines()
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue, THREAD)
        running = asyncio.create_task(a_worker(context, stage).run_once())
        await stage.began.wait()
        clock.jump(2 * LEASE)
        elsewhere = replace(context, held=set())
        assert await a_worker(elsewhere, ends_with(EXTRACTED)).run_once() is not None

        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

        assert (await the_job(context)).status is Status.DONE
    assert log.events("job.lease_lost")
    assert not log.events("job.released")


async def test_an_accepted_consolidation_is_decided_first_and_published_after(tmp_path: Path, clock: FakeClock) -> None:
    seen: list[str] = []

    async def publish(context: Context) -> None:
        pending = await context.ledger.read(publications.pending)
        assert pending is not None
        seen.append(pending.commit)

    outcome = Consolidated((), NewPublication(commit="c" * 40, base=None), ())
    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue_global, now=clock.now() - 3600)
        worker = a_worker(context, ends_with(outcome), kind=JobKind.CONSOLIDATE, publish=publish)

        done = await worker.run_once()

        assert done == Done(JobKind.CONSOLIDATE, GLOBAL_KEY, Ending.PUBLISHED)
        assert seen == ["c" * 40]
        assert (await the_run(context, JobKind.CONSOLIDATE, GLOBAL_KEY)).outcome is Outcome.DONE


async def test_a_consolidation_that_changes_nothing_publishes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    async def publish(_context: Context) -> None:
        raise AssertionError("there is nothing to publish")

    async with a_house(settings_in(tmp_path), clock) as context:
        await context.ledger.write(enqueue_global, now=clock.now() - 3600)
        worker = a_worker(context, ends_with(Consolidated((), None, ())), kind=JobKind.CONSOLIDATE, publish=publish)

        done = await worker.run_once()

        assert done is not None
        assert done.ending is Ending.UNCHANGED
        assert (await the_run(context, JobKind.CONSOLIDATE, GLOBAL_KEY)).outcome is Outcome.NOTHING


async def test_a_stage_that_meets_a_lost_lease_writes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    async with a_house(settings_in(tmp_path), clock) as context:
        done = await run_with(context, LeaseLost("the lock file was replaced"))
        assert done.ending is Ending.LEASE_LOST
        assert (await the_job(context)).status is Status.RUNNING
