"""What is done once in a while so that the ledger lasts: the clock judged, rows pruned, a backup made, the log cut."""

from typing import Final

from memoryd import logs
from memoryd.errors import LeaseLost, LedgerCorrupt, MemorydError
from memoryd.ledger import backups, pruning
from memoryd.ledger.backups import Made, Skipped
from memoryd.pipeline.context import Context
from memoryd.pipeline.forget import go_on_forgetting
from memoryd.pipeline.keep_history import keep_history
from memoryd.pipeline.plausibility import Standing, kept_standing, look_at_clock
from memoryd.pipeline.retain import retain

log = logs.get()

BATCH: Final = 500
"""Rows a transaction: nobody else waits long for the ledger."""
MOST_BATCHES: Final = 100
"""Transactions a pass; what is left goes with the next one."""


async def look_after(context: Context) -> None:
    """Do all of it that is due. Raises StorageError or one of its kinds.

    What forgets by age (retention, old accounts, the oldest backup) waits while the clock is in doubt.
    """
    standing = await judge_clock(context)
    await go_on_forgetting(context)
    await retain(context)
    if standing.doubt is None:
        await _prune_accounts(context)
    made = standing.doubt is None and await _back_up(context)
    await _shorten_log(context, at_once=made)
    await _keep_history(context)


async def _keep_history(context: Context) -> None:
    """Bound the history of the memory; what is in the way (no git, a broken repository) is said, and tried later."""
    try:
        await keep_history(context)
    except (LeaseLost, LedgerCorrupt):
        raise
    except MemorydError as error:
        log.warning("history.postponed", error=str(error))


async def judge_clock(context: Context) -> Standing:
    """Judge the clock, keep the standing, and say so when it came into doubt or out of it."""
    before = await kept_standing(context.ledger)
    standing = await look_at_clock(context.ledger, context.clock)
    doubted = before is not None and before.doubt is not None
    if standing.doubt is not None and not doubted:
        believed = standing.believed.wall if standing.believed else None
        log.warning("clock.doubted", reason=standing.doubt.value, at_wall=standing.last.wall, believed_at=believed)
    elif standing.doubt is None and doubted:
        log.info("clock.believed", at_wall=standing.last.wall)
    return standing


async def _prune_accounts(context: Context) -> None:
    """Once a day sum up the requests of long ago, and let old runs go that nothing shows; the oldest first."""
    ledger, now = context.ledger, context.clock.now()
    if not await ledger.read(pruning.is_due, now):
        return
    before, left = pruning.kept_from(now), MOST_BATCHES
    requests = runs = 0
    while left and (went := await ledger.write(pruning.sum_up_requests, before=before, limit=BATCH)):
        requests, left = requests + went, left - 1
    for job in await ledger.read(pruning.crowded_jobs):
        while left and (went := await ledger.write(pruning.prune_runs, job, before=before, limit=BATCH)):
            runs, left = runs + went, left - 1
    if left:
        await ledger.write(pruning.finish, now)
    if requests or runs:
        log.info("accounts.pruned", requests=requests, count=runs)


async def _back_up(context: Context) -> bool:
    """Make the backup of the day if it is due; tell whether one was made."""
    path = context.ledger.path
    outcome = await context.ledger.apart(backups.back_up, path, now=context.clock.now())
    match outcome:
        case Made():
            log.info("ledger.copied", path=str(outcome.path), removed=outcome.removed)
            return True
        case Skipped(reason="not_due"):
            return False
        case Skipped():
            log.warning("backup.skipped", reason=outcome.reason, detail=outcome.detail)
            return False


async def _shorten_log(context: Context, *, at_once: bool) -> None:
    size = backups.log_bytes(context.ledger.path)
    if size > backups.LOG_LIMIT or (at_once and size):
        shortened = await context.ledger.apart(backups.shorten_log)
        if not shortened:
            log.debug("checkpoint.prevented", bytes=size)
