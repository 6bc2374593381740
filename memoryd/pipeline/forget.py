"""Forgetting on a person's word: sessions (with `purge` from history and copies too), or everything there is.

mark (one transaction, from which on it is certain) -> whoever works on it stops -> the folder is cleaned by code and
published like any result -> with a purge or a reset: a new history, no copies, a ledger without a free page. Each step
can be repeated: a start, the hourly upkeep and the next consolidation go on with what a crash has left.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from memoryd import logs
from memoryd.errors import LeaseLost, LedgerCorrupt, MemorydError, StorageError, UsageError
from memoryd.ledger import forgetting, outputs, scrubbing, sessions
from memoryd.ledger.forgetting import Deed, Forgetting, Step
from memoryd.ledger.jobs import Lease
from memoryd.ledger.states import JobKind
from memoryd.pipeline.consolidate import publish_decided
from memoryd.pipeline.context import Context, in_thread, threads_ended
from memoryd.pipeline.discover import enqueueing
from memoryd.pipeline.edits import remember_folder
from memoryd.pipeline.forget_folder import clean_folder
from memoryd.text import on_one_line
from memoryd.workspace import purging, staging
from memoryd.workspace.purging_remains import Remains

log = logs.get()

PAUSE_SECONDS: Final = 0.02
SCRUB_TRIES: Final = 50
"""A reader that is in the way (`memoryd status`) is gone within the second, as a rule."""
MAX_REMAINS: Final = 200
MAX_SHOWN: Final = 300
"""Characters of a line that is named, and of its path."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten: the sessions by their full ids, and how many statements left the memory at once.

    `remains` are the lines that still speak of them.
    """

    threads: tuple[str, ...]
    removed: int
    remains: tuple[Remains, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return it as `forget --json` prints it; a report travels over the socket as one line."""
        shown = [
            {**asdict(each), "path": each.path[:MAX_SHOWN], "text": on_one_line(each.text)[:MAX_SHOWN]}
            for each in self.remains[:MAX_REMAINS]
        ]
        unnamed = len(self.remains) - len(shown)
        return {"threads": list(self.threads), "removed": self.removed, "remains": shown, "remains_unnamed": unnamed}


async def forget(context: Context, names: Sequence[str], *, purge: bool = False) -> Forgotten:
    """Forget sessions, each given by its id or the beginning of one.

    Raises UsageError before anything is done when one is not known; any other error leaves a forgetting under way that
    is finished later.
    """
    threads = [await _full_id(context, name) for name in dict.fromkeys(names)]
    async with context.forgetting:
        await context.ledger.write(forgetting.begin, threads, purge=purge, **enqueueing(context))
        context.reached("forgetting_begun")
        log.info("forgetting.started", count=len(threads), purge=purge)
        await _stop_work(context)
        removed, remains = await _finish(context)
    return Forgotten(tuple(threads), removed, remains)


async def reset(context: Context, *, relearn: bool = False) -> None:
    """Forget everything; sessions and their modes stay.

    Only what is recorded from now on is learned, or, with `relearn`, everything anew.
    """
    async with context.forgetting:
        await context.ledger.write(forgetting.begin_reset, now=context.clock.now(), relearn=relearn)
        context.reached("forgetting_begun")
        log.info("forgetting.started", count=0, purge=True)
        await _stop_work(context)
        await _finish(context)


async def finish_forgetting(context: Context) -> bool:
    """Go on with a forgetting that was interrupted; tell whether there was one."""
    async with context.forgetting:
        if await context.ledger.read(forgetting.under_way) is None:
            return False
        await _finish(context)
    return True


async def go_on_forgetting(context: Context) -> None:
    """Finish what was interrupted if that is possible now; what is in the way is said, and a later try goes on."""
    try:
        await finish_forgetting(context)
    except (LeaseLost, LedgerCorrupt):
        raise
    except MemorydError as error:
        log.warning("forgetting.postponed", error=str(error))


async def _full_id(context: Context, name: str) -> str:
    row = await context.ledger.read(sessions.get, name)
    if row is not None:
        return row.thread_id
    if await context.ledger.read(outputs.get, name) is not None:  # an imported output may lack its session
        return name
    raise UsageError(f"there is no session {name!r} in the ledger", remedy="`memoryd sessions` lists them")


async def _stop_work(context: Context) -> None:
    """Wait until whoever worked on what is forgotten has stopped: such runs lost their leases, or were asked to."""
    deed = await context.ledger.read(forgetting.under_way)
    assert deed is not None  # begun by the caller, who holds the lock
    doomed = {lease for lease in context.held if _concerns(lease, deed)}
    while doomed & context.held:
        for nudge in list(context.nudges):
            nudge()
        await context.clock.sleep(PAUSE_SECONDS)
    await threads_ended()


def _concerns(lease: Lease, deed: Forgetting) -> bool:
    return deed.deed is Deed.RESET or lease.kind is JobKind.CONSOLIDATE or lease.job_key in deed.threads


async def _finish(context: Context) -> tuple[int, tuple[Remains, ...]]:
    """Bring what is under way to its end; return how many statements left the memory, and what still speaks of it."""
    remains: tuple[Remains, ...] = ()
    now = await context.ledger.read(forgetting.under_way)
    assert now is not None  # looked at by the callers, who hold the lock
    if now.deed is not Deed.RESET:
        await publish_decided(context)
        now = await context.ledger.read(forgetting.under_way) or now
    if now.deed is not Deed.RESET and now.step is Step.MARKED:
        await context.ledger.write(forgetting.end_jobs, now)
        now, remains = await clean_folder(context, now)
        context.reached("forgetting_decided")
        await publish_decided(context)
    if now.rewrites and now.step is not Step.REWRITTEN:
        now = await _rewrite(context, now)
    if now.rewrites:
        await _scrub(context)
        context.reached("forgetting_scrubbed")
    await context.ledger.write(forgetting.finish)
    log.info("forgetting.completed", deed=now.deed.value, count=len(now.threads), removed=now.removed)
    return now.removed, remains


async def _rewrite(context: Context, now: Forgetting) -> Forgetting:
    """Begin the history anew, and with it what agents are given."""
    async with context.placing:
        context.still_ours()
        make = purging.wipe if now.deed is Deed.RESET else purging.rewrite_history
        await in_thread(staging.sweep, context.home)
        commit = await in_thread(
            make, context.home, context.repository, now=context.clock.now(), reached=context.reached
        )
        context.reached("history_rewritten")
        await in_thread(purging.empty_recall, context.home)
        await in_thread(context.refresh_recall, commit)
        await context.ledger.write(forgetting.drop_publications)
        after = forgetting.with_step(now, Step.REWRITTEN)
        await context.ledger.write(forgetting.proceed, after)
        await remember_folder(context)
    return after


async def _scrub(context: Context) -> None:
    """Rewrite the ledger's file and cut its log; a reader that is in the way is waited for, for a while."""
    for _ in range(SCRUB_TRIES - 1):
        try:
            removed = await context.ledger.apart(scrubbing.scrub, context.ledger.path)
        except StorageError as error:
            if isinstance(error, LedgerCorrupt) or not error.message.endswith(scrubbing.IN_THE_WAY):
                raise
            await context.clock.sleep(PAUSE_SECONDS)
            continue
        if removed:
            log.info("copies.removed", names=removed)
        return
    await context.ledger.apart(scrubbing.scrub, context.ledger.path)
