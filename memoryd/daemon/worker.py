"""The life of a job: claimed, run under a heartbeat, acknowledged, published, logged. One short function each.

A worker serves one kind of job. What a job means is the stage's business (`run`); here is only who may do it, for how
long, and what becomes of the ledger row when it ends.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from sqlite3 import Connection
from typing import Concatenate, ParamSpec, assert_never

from memoryd import logs
from memoryd.daemon.endings import Done, Ending, ending_of, log_run
from memoryd.daemon.heartbeat import renew
from memoryd.errors import DiskFull, JobCapReached, LeaseLost, LedgerBusy, LedgerCorrupt, MemorydError
from memoryd.ledger import jobs
from memoryd.ledger.attempts import WorkedBy
from memoryd.ledger.jobs import ConsolidateTiming, Lease
from memoryd.ledger.policy import retry_delay
from memoryd.ledger.states import JobKind
from memoryd.llm.shield import to_its_end
from memoryd.pipeline.context import Context
from memoryd.pipeline.outcomes import (
    Consolidated,
    Deferred,
    Extracted,
    Failed,
    NothingToRemember,
    Outcome,
    Skipped,
    outcome_of_error,
)

log = logs.get()

RESULT_PAUSE_SECONDS = 10.0

Stage = Callable[[Context, Lease], Awaitable[Outcome]]
P = ParamSpec("P")


class Worker:
    """Claims jobs of one kind and sees each of them to its end."""

    def __init__(  # noqa: PLR0913 - facts that no value would tie together
        self,
        context: Context,
        *,
        kind: JobKind,
        run: Stage,
        publish: Callable[[Context], Awaitable[None]] | None = None,
        max_running: int = 1,
        worker_id: str,
        only: str | None = None,
        patience_seconds: float = 0.0,
        goes_on: Callable[[], bool] = lambda: False,
    ) -> None:
        """`goes_on` tells, when a run ends, whether the next job may be leased with it, for the next `run_once`."""
        self._goes_on = goes_on
        self._next: Lease | None = None
        self._patience_seconds = patience_seconds
        self._context = context
        self._kind = kind
        self._run = run
        self._publish = publish
        self._max_running = max_running
        self._worker_id = worker_id
        self._only = only

    async def run_once(self) -> Done | None:
        """Claim one job and see it to its end; None when nothing is claimable now."""
        lease, self._next = self._next or await self._claim(), None
        if lease is None:
            return None
        with _bound(lease):
            log.debug("job.claimed", watermark=lease.input_watermark)
            started = self._context.clock.monotonic()
            self._context.held.add(lease)
            self._context.reached(f"claimed:{lease.kind}")
            try:
                done = await self._see_through(lease)
            except asyncio.CancelledError:
                await self._release(lease)
                raise
            finally:
                self._context.held.discard(lease)
            try:
                await log_run(self._context, done, duration_ms=int(1000 * (self._context.clock.monotonic() - started)))
            except BaseException:
                await self.let_go()
                raise
            return done

    async def let_go(self) -> None:
        """Give back the job that was leased for the next `run_once`, if there is one: for who does not go on."""
        if self._next is None:
            return
        lease, self._next = self._next, None
        self._context.held.discard(lease)
        with _bound(lease):
            await self._release(lease)

    async def _claim(self, end: Callable[[Connection], object] | None = None) -> Lease | None:
        """Claim, in one transaction with the `end` of another run if there is one.

        A claim that went through although its caller was cancelled meanwhile is given back.
        """
        write, ask = self._context.ledger.write, self._ask_for_lease()

        def end_and_claim(conn: Connection, end: Callable[[Connection], object]) -> Lease | None:
            end(conn)
            return ask(conn)

        asking = write(ask.func, **ask.keywords) if end is None else write(end_and_claim, end)
        claiming = asyncio.ensure_future(asking)
        try:
            return await to_its_end(claiming)
        except asyncio.CancelledError:
            if not claiming.cancelled() and claiming.exception() is None and (lease := claiming.result()):
                await self._release(lease)
            raise

    def _ask_for_lease(self) -> partial[Lease | None]:
        settings = self._context.settings.ledger
        model = self._context.extract if self._kind is JobKind.STAGE1 else self._context.consolidate
        return partial(
            jobs.claim,
            kind=self._kind,
            worker_id=self._worker_id,
            now=self._context.clock.now(),
            lease_seconds=settings.lease,
            max_running=self._max_running,
            max_attempts=settings.max_attempts,
            retry_cap=settings.retry_cap,
            held={lease.token for lease in self._context.held},
            only=self._only,
            worked_by=WorkedBy(model.provider, model.model, model.fingerprint),
        )

    async def _see_through(self, lease: Lease) -> Done:
        clock, started = self._context.clock, self._context.clock.monotonic()
        try:
            outcome = await self._run_under_heartbeat(lease)
            # The attempt's length is that of the monotonic clock: the wall clock may have been set meanwhile.
            timed = replace(lease, claimed_at=clock.now() - (clock.monotonic() - started))
            done = await self._acknowledge_patiently(timed, outcome)
        except LeaseLost as error:
            return Done(lease.kind, lease.job_key, Ending.LEASE_LOST, message=str(error))
        self._context.reached(f"acknowledged:{lease.kind}")
        if isinstance(outcome, Consolidated) and outcome.publication is not None and self._publish is not None:
            await self._publish(self._context)
        return done

    async def _run_under_heartbeat(self, lease: Lease) -> Outcome:
        """Run the stage while a second task renews the lease; if renewing ends, the stage is cancelled."""
        work = asyncio.create_task(self._run_stage(lease), name=f"{lease.kind}:{lease.job_key}")
        pulse = asyncio.create_task(renew(self._context, lease), name=f"heartbeat:{lease.job_key}")
        try:
            await asyncio.wait({work, pulse}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            return pulse.result()
        finally:
            await _cancel(pulse)
            await _cancel(work)

    async def _run_stage(self, lease: Lease) -> Outcome:
        """Run the stage; what goes wrong becomes an outcome. This is the job boundary: no error leaves it."""
        settings = self._context.settings.ledger
        try:
            return await self._run_within_caps(lease)
        except (LeaseLost, LedgerCorrupt):
            raise
        except MemorydError as error:
            return outcome_of_error(
                error,
                now=self._context.clock.now(),
                retry_base=settings.retry_base,
                retry_cap=settings.retry_cap,
            )
        except Exception as error:
            log.exception("job.crashed", error_class=type(error).__name__)
            return Failed(type(error).__name__, "a fault in memoryd; the log has its place (event job.crashed)")

    async def _run_within_caps(self, lease: Lease) -> Outcome:
        """Run the stage; an extraction only while requests are allowed at all, and no longer than its wall time.

        A consolidation bounds itself, and some need no model: what was forgotten leaves the folder without one.
        """
        if lease.kind is not JobKind.STAGE1:
            return await self._run(self._context, lease)
        if self._context.extract.admit is not None:
            await self._context.extract.admit()
        longest = self._context.settings.extract.max_duration
        try:
            async with asyncio.timeout(longest):
                return await self._run(self._context, lease)
        except TimeoutError:
            raise JobCapReached(
                f"the run was stopped: it took longer than extract.max_duration = {longest:g} seconds",
                remedy="raise extract.max_duration if the model is slow",
            ) from None

    async def _acknowledge_patiently(self, lease: Lease, outcome: Outcome) -> Done:
        """Acknowledge; while the disk or another program refuses the write, keep the result and try again.

        The lease may run out meanwhile: nobody of this process takes what is held here, and no other may write.
        """
        clock = self._context.clock
        gives_up_at = clock.monotonic() + self._patience_seconds
        while True:
            try:
                return await self._acknowledge(lease, outcome)
            except (DiskFull, LedgerBusy) as error:
                if clock.monotonic() + RESULT_PAUSE_SECONDS > gives_up_at:
                    raise
                log.warning("storage.paused", error=str(error), retry_in=RESULT_PAUSE_SECONDS)
            await clock.sleep(RESULT_PAUSE_SECONDS)

    async def _acknowledge(self, lease: Lease, outcome: Outcome) -> Done:
        """Write the outcome in one transaction guarded by the lease's token; raises LeaseLost when it is not ours."""
        settings, now = self._context.settings, self._context.clock.now()
        ledger = self._context.ledger
        timing = ConsolidateTiming(settings.consolidate.debounce, settings.consolidate.min_interval)
        ended = Done(lease.kind, lease.job_key, Ending.REMEMBERED)
        match outcome:
            case Extracted():
                await self._end(
                    jobs.complete,
                    lease=lease,
                    now=now,
                    output=outcome.output,
                    covered=outcome.covered,
                    consolidate=timing,
                    max_attempts=settings.ledger.max_attempts,
                )
                return ended
            case NothingToRemember():
                await self._end(
                    jobs.complete,
                    lease=lease,
                    now=now,
                    output=None,
                    covered=outcome.covered,
                    consolidate=timing,
                    max_attempts=settings.ledger.max_attempts,
                )
                return Done(lease.kind, lease.job_key, Ending.NOTHING, reason="empty_reply")
            case Skipped():
                await self._end(jobs.skip, lease=lease, now=now, covered=outcome.covered)
                return Done(lease.kind, lease.job_key, Ending.NOTHING, reason=outcome.why)
            case Consolidated():
                await ledger.write(
                    jobs.complete_consolidation,
                    lease,
                    now=now,
                    consumed=outcome.consumed,
                    publication=outcome.publication,
                    claims=outcome.claims,
                    stood=outcome.stood,
                    min_interval=settings.consolidate.min_interval,
                )
                return Done(lease.kind, lease.job_key, ending_of(outcome))
            case Deferred():
                return await self._defer(lease, outcome, now)
            case Failed():
                return await self._fail(lease, outcome, now)
            case _:
                assert_never(outcome)

    async def _end(self, end: Callable[Concatenate[Connection, P], object], *args: P.args, **kwargs: P.kwargs) -> None:
        """End a run; who goes straight on has the next job leased in the same transaction."""
        if not self._goes_on():
            await self._context.ledger.write(end, *args, **kwargs)
            return
        self._next = await self._claim(lambda conn: end(conn, *args, **kwargs))
        if self._next is not None:
            self._context.held.add(self._next)

    async def _defer(self, lease: Lease, outcome: Deferred, now: float) -> Done:
        until = max(outcome.until, now)
        await self._context.ledger.write(
            jobs.defer, lease, now=now, until=until, reason=outcome.reason, error=outcome.message
        )
        return Done(lease.kind, lease.job_key, Ending.DEFERRED, outcome.reason, outcome.message, until)

    async def _fail(self, lease: Lease, outcome: Failed, now: float) -> Done:
        settings = self._context.settings.ledger
        spent = max(1, settings.max_attempts - lease.retry_remaining + 1)
        delay = retry_delay(spent, settings.retry_base, settings.retry_cap, self._context.rng)
        row = await self._context.ledger.write(
            jobs.fail,
            lease,
            now=now,
            retry_at=now + delay,
            error=self._context.redactor.clean(outcome.message),
            error_class=outcome.error_class,
        )
        return Done(lease.kind, lease.job_key, Ending.FAILED, outcome.error_class, outcome.message, row.ready_at)

    async def _release(self, lease: Lease) -> None:
        """Give the job back on shutdown: claimable at once, the attempt unspent. Shielded: it must be recorded."""
        try:
            await asyncio.shield(self._context.ledger.write(jobs.release, lease, now=self._context.clock.now()))
        except LeaseLost as error:
            log.warning("job.lease_lost", error=str(error))
        else:
            log.info("job.released")


def _bound(lease: Lease) -> AbstractContextManager[None]:
    """Give every log line of a run what it is found by: the job, its session, the run's number in the ledger."""
    session = {"session": lease.job_key} if lease.kind is JobKind.STAGE1 else {}
    return logs.bind(
        kind=lease.kind.value,
        job_key=lease.job_key,
        attempt=lease.attempt_id,
        epoch=lease.epoch,
        worker=lease.worker_id,
        **session,
    )


async def _cancel(task: asyncio.Task[Outcome]) -> None:
    """Cancel a task and wait for its end, whatever it is."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
