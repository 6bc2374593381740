"""How the run of a job ended, and the one canonical line that the log has of it."""

from dataclasses import dataclass
from enum import StrEnum

from memoryd import logs
from memoryd.ledger import attempts
from memoryd.ledger.proposals import NewProposal
from memoryd.ledger.states import JobKind
from memoryd.pipeline.context import Context
from memoryd.pipeline.outcomes import Consolidated

log = logs.get()

# What goes on is worth a warning an hour, however many jobs it holds up.
WARNING_SECONDS = 3_600.0


class Ending(StrEnum):
    """How a job ended, as the canonical log line and the progress report name it."""

    REMEMBERED = "remembered"
    NOTHING = "nothing_to_remember"
    PUBLISHED = "published"
    PROPOSED = "proposed"
    UNCHANGED = "unchanged"
    DEFERRED = "deferred"
    FAILED = "failed"
    LEASE_LOST = "lease_lost"


@dataclass(frozen=True, slots=True)
class Done:
    """One finished run of one job. `retry_at` is epoch seconds, None when it will not run again by itself."""

    kind: JobKind
    job_key: str
    ending: Ending
    reason: str = ""
    message: str = ""
    retry_at: float | None = None


def ending_of(outcome: Consolidated) -> Ending:
    """Say how a consolidation that went through ended: unchanged, proposed or published."""
    if outcome.publication is None:
        return Ending.UNCHANGED
    return Ending.PROPOSED if isinstance(outcome.publication, NewProposal) else Ending.PUBLISHED


async def log_run(context: Context, done: Done, *, duration_ms: int) -> None:
    """Write the one canonical line of a run: how it ended, how long it took, what it cost."""
    fields: dict[str, object] = {"outcome": done.ending.value, "duration_ms": duration_ms}
    for run in await context.ledger.read(attempts.of_job, done.kind, done.job_key, limit=1):
        fields |= {
            "requests": run.requests,
            "tokens_in": run.tokens_in,
            "tokens_out": run.tokens_out,
            "tokens_cached": run.tokens_cached,
            "cost": run.cost,
        }
    match done.ending:
        case Ending.DEFERRED if _was_told(context, done.reason):
            log.info("job.postponed", **fields, reason=done.reason, retry_at=done.retry_at)
        case Ending.DEFERRED:
            log.warning("job.deferred", **fields, reason=done.reason, retry_at=done.retry_at, error=done.message)
        case Ending.FAILED:
            log.error("job.failed", **fields, error_class=done.reason, retry_at=done.retry_at, error=done.message)
        case Ending.LEASE_LOST:
            log.warning("job.lease_lost", **fields, error=done.message)
        case _:
            context.told.clear()
            log.info("job.completed", **fields, reason=done.reason)


def _was_told(context: Context, reason: str) -> bool:
    """Tell whether a warning has named this reason lately, and note that one does now."""
    now = context.clock.monotonic()
    told_at = context.told.get(reason)
    if told_at is not None and now - told_at < WARNING_SECONDS:
        return True
    context.told[reason] = now
    return False
