"""Retention: what nobody selected or used for long enough leaves the ledger."""

from memoryd import logs
from memoryd.ledger import outputs
from memoryd.pipeline.context import Context
from memoryd.pipeline.plausibility import clock_standing

log = logs.get()

PRUNE_LIMIT = 200
"""Rows a pass, stalest first: a transaction stays short, and the rest goes with the next passes."""


async def retain(context: Context) -> int:
    """Prune outputs that are unselected and unused beyond `consolidate.max_unused`; return how many rows went.

    None go while the clock is in doubt.
    """
    if (await clock_standing(context.ledger, context.clock)).doubt is not None:
        return 0
    pruned = await context.ledger.write(
        outputs.prune,
        now=context.clock.now(),
        max_unused=context.settings.consolidate.max_unused,
        limit=PRUNE_LIMIT,
    )
    if pruned:
        log.info("output.pruned", count=pruned)
    return pruned
