"""A job's heartbeat: its lease is renewed while the stage works, and the work ends before the lease does."""

from memoryd.daemon.wakeup import Wakeup, within
from memoryd.errors import LeaseLost, LedgerCorrupt, MemorydError
from memoryd.ledger import jobs
from memoryd.ledger.jobs import Beat, Lease
from memoryd.pipeline.context import Context
from memoryd.pipeline.outcomes import Deferred, Outcome

# A heartbeat every third of the lease: two may be lost before it runs out.
BEATS_PER_LEASE = 3
# A holder that could not renew stops this share of the lease before its end.
STOP_MARGIN = 0.1


async def renew(context: Context, lease: Lease) -> Outcome:
    """Renew the lease until it is lost, its cancellation is asked for, or it could not be renewed in time.

    In time means: before a tenth of the lease is left on the monotonic clock, counted from when the last renewal
    that went through was sent. A process that was frozen past that stops, whoever may have the job by now.
    """
    asked = Wakeup()
    context.nudges.add(asked.set)
    try:
        return await _renew_until_told(context, lease, asked)
    finally:
        context.nudges.discard(asked.set)


async def _renew_until_told(context: Context, lease: Lease, asked: Wakeup) -> Outcome:
    clock, margin = context.clock, STOP_MARGIN * lease.lease_seconds
    good_until = clock.monotonic() + lease.lease_seconds
    current = lease
    while True:
        await asked.wait(clock, lease.lease_seconds / BEATS_PER_LEASE)
        context.still_ours()
        sent = clock.monotonic()
        beat = await _beat(context, current, seconds_left=good_until - margin - sent)
        if beat is None:
            continue
        if beat.cancel_requested:
            return Deferred(clock.now(), "cancelled", "cancelled on request")
        current, good_until = beat.lease, sent + lease.lease_seconds


async def _beat(context: Context, lease: Lease, *, seconds_left: float) -> Beat | None:
    """Renew once; None: the ledger could not just now, and there is time for another try. Raises LeaseLost."""
    clock = context.clock
    if seconds_left > 0:
        renewing = context.ledger.write(jobs.heartbeat, lease, now=clock.now(), lease_seconds=lease.lease_seconds)
        try:
            return await within(clock, seconds_left, renewing)
        except (LeaseLost, LedgerCorrupt):
            raise
        except MemorydError:
            return None
        except TimeoutError:
            pass
    raise LeaseLost(
        f"the lease of {lease.job_key} could not be renewed in time",
        remedy="the job is tried again by whoever claims it",
    )
