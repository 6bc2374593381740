"""The consolidation job as workers run it: what was being forgotten first, and forgetting that waits for no model.

A run that comes to nothing (no provider, no budget, a result turned down for good) must not keep what rests on sessions
that left the memory: then code alone takes that out, and the job goes on as it would have.
"""

from memoryd.errors import BudgetSpent, JobCapReached, ModelError, ResultRejected
from memoryd.ledger import outputs
from memoryd.ledger.jobs import Lease
from memoryd.pipeline.consolidate import consolidate, publish_decided
from memoryd.pipeline.context import Context, in_thread
from memoryd.pipeline.forget import finish_forgetting
from memoryd.pipeline.forget_folder import clean_gone
from memoryd.pipeline.outcomes import Outcome
from memoryd.pipeline.plausibility import clock_standing
from memoryd.workspace.folder import Folder
from memoryd.workspace.headers import headers_of


async def consolidate_surely(context: Context, lease: Lease) -> Outcome:
    """Run the consolidation job. Raises what `consolidate` raises."""
    await finish_forgetting(context)
    try:
        return await consolidate(context, lease)
    except (ResultRejected, ModelError, BudgetSpent, JobCapReached):
        await forget_by_code(context)
        raise


async def forget_by_code(context: Context) -> int:
    """Take out what only sessions support that are no longer selected; return how many statements went."""
    settings = context.settings.consolidate
    clock = await clock_standing(context.ledger, context.clock)
    selected = await context.ledger.read(
        outputs.select_for_consolidation,
        now=clock.judged_at,
        max_raw_memories=settings.max_raw_memories,
        max_unused=settings.max_unused,
    )
    async with context.forgetting:
        folder = await in_thread(Folder.read, context.home.memories)
        here = {header.thread_id for header in headers_of(folder).values()} - {""}
        gone = here - {row.thread_id for row in selected}
        if not gone:
            return 0
        removed = await clean_gone(context, gone)
        await publish_decided(context)
    return removed
