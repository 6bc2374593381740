"""One full pass: discover, extract what is due, consolidate if dirty. What `sync` and `demo` are, and `run` repeats."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from memoryd.daemon.endings import Done, Ending
from memoryd.daemon.house import is_ours, worker_name
from memoryd.daemon.progress import Progress, Step, silent
from memoryd.daemon.recalling import keep_recall_ready
from memoryd.daemon.upkeep import look_after
from memoryd.daemon.worker import Worker
from memoryd.ledger import jobs
from memoryd.ledger.states import JobKind, Status
from memoryd.pipeline.consolidate import publish_decided
from memoryd.pipeline.context import Context
from memoryd.pipeline.discover import Discovery, ScanReport, reasons_of_waiting
from memoryd.pipeline.extract import extract
from memoryd.pipeline.forget_surely import consolidate_surely

IMPATIENT = ("debounce", "min_interval")
"""The waits that `sync --now` ignores by its very meaning."""
CURED = (
    "key_refused",
    "model_unknown",
    "misconfigured",
    "git_missing",
    "disk_full",
    "provider_unreachable",
    "person_working",
)
"""Waits for something that a person may just have put right: whoever says --now has a new try, at one request each."""
ABANDONED = "abandoned"
"""Jobs whose holder died without a word: they are taken over when their lease runs out."""


@dataclass(slots=True)
class PassReport:
    """What one pass did, and what it left undone."""

    scan: ScanReport = field(default_factory=ScanReport)
    endings: list[Done] = field(default_factory=list)
    waiting: Counter[str] = field(default_factory=Counter)
    """Eligible sessions that were not extracted, by reason (too_fresh, too_old, consent)."""
    undone: Counter[str] = field(default_factory=Counter)
    """Jobs that would be due but wait, by reason (rate_limited, budget, disk_full, backoff, ...)."""
    consolidates_at: float | None = None
    """When the consolidation that waits for more sessions, or for its interval, runs by itself; None: none waits."""
    dead: int = 0
    """Jobs out of attempts: only a person's `jobs retry` or new input wakes them."""

    def count(self, ending: Ending, kind: JobKind | None = None) -> int:
        """Count the runs that ended so."""
        return sum(done.ending is ending and kind in {None, done.kind} for done in self.endings)

    @property
    def exit_code(self) -> int:
        """0 done, 1 a job of this pass failed, 3 due work was left undone for a stated reason."""
        if self.count(Ending.FAILED) or self.count(Ending.LEASE_LOST):
            return 1
        return 3 if self.undone or self.waiting["consent"] else 0


async def run_pass(
    context: Context,
    *,
    now: bool = False,
    thread: str | None = None,
    backfill: str | None = None,
    progress: Progress = silent,
) -> PassReport:
    """Make one pass. `now` ignores idle time, debounce and min_interval; `thread` extracts that session alone.

    Raises StorageError or ConfigError when nothing can be done at all; what goes wrong with one job is in the report.
    """
    report = PassReport()
    await publish_decided(context)
    discovery = Discovery(context)
    progress(Step("discover", 0, 0))
    report.scan = await discovery.run_once(ignore_idle=now, backfill=backfill, only=thread)
    progress(Step("discover", report.scan.seen, report.scan.seen))
    if now:
        await _expedite(context, CURED)
    await _extract_all(context, report, report.scan.only, progress)
    if now:
        await _expedite(context, IMPATIENT)
    await _consolidate(context, report, progress)
    await look_after(context)
    await keep_recall_ready(context)
    when = await discovery.window(ignore_idle=now, backfill=backfill)
    report.waiting = await context.ledger.read(reasons_of_waiting, when)
    held_back = await context.ledger.read(jobs.waiting, now=context.clock.now())
    report.undone = Counter(str(row.wait_reason) for row in held_back if row.wait_reason not in IMPATIENT)
    report.undone[ABANDONED] = sum(not is_ours(row.worker_id) for row in await context.ledger.read(jobs.running))
    report.undone = +report.undone
    report.consolidates_at = next((row.ready_at for row in held_back if row.wait_reason in IMPATIENT), None)
    report.dead = len(await context.ledger.read(jobs.list_jobs, status=Status.ERROR))
    return report


async def _expedite(context: Context, reasons: Sequence[str]) -> None:
    for kind in JobKind:
        await context.ledger.write(jobs.expedite, kind=kind, reasons=reasons, now=context.clock.now())


def as_json(report: PassReport) -> dict[str, object]:
    """Render a pass for `sync --json` and the socket."""
    scan = report.scan
    endings: dict[str, dict[str, int]] = {}
    for done in report.endings:
        of_kind = endings.setdefault(done.kind.value, {})
        of_kind[done.ending.value] = of_kind.get(done.ending.value, 0) + 1
    return {
        "agents": scan.agents,
        "seen": scan.seen,
        "opened": scan.opened,
        "enqueued": scan.enqueued,
        "excluded": dict(scan.excluded),
        "missing_roots": [str(root) for root in scan.missing_roots],
        "unreadable": scan.unreadable,
        "jobs": endings,
        "failures": [
            {"kind": done.kind.value, "key": done.job_key, "reason": done.reason, "message": done.message}
            for done in report.endings
            if done.ending.value in {"failed", "deferred", "lease_lost"}
        ],
        "waiting": dict(report.waiting),
        "undone": dict(report.undone),
        "consolidates_at": report.consolidates_at,
        "dead": report.dead,
        "exit_code": report.exit_code,
    }


async def _extract_all(context: Context, report: PassReport, thread: str | None, progress: Progress) -> None:
    concurrency = context.settings.extract.concurrency
    total = await context.ledger.read(jobs.ready_count, kind=JobKind.STAGE1, now=context.clock.now())
    finished = 0

    async def drain() -> None:
        nonlocal finished
        worker = Worker(
            context,
            kind=JobKind.STAGE1,
            run=extract,
            max_running=concurrency,
            worker_id=worker_name("pass"),
            only=thread,
            goes_on=lambda: True,
        )
        try:
            while (done := await worker.run_once()) is not None:
                report.endings.append(done)
                finished += 1
                progress(Step("extract", finished, max(total, finished), done.ending.value))
        finally:
            await worker.let_go()

    progress(Step("extract", 0, total))
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(concurrency):
                group.create_task(drain(), name=f"extract-{number}")
    except BaseExceptionGroup as several:
        # A full disk ends every worker alike: the first of them speaks for all.
        raise several.exceptions[0] from None


async def _consolidate(context: Context, report: PassReport, progress: Progress) -> None:
    worker = Worker(
        context,
        kind=JobKind.CONSOLIDATE,
        run=consolidate_surely,
        publish=publish_decided,
        worker_id=worker_name("pass"),
    )
    progress(Step("consolidate", 0, 1))
    done = await worker.run_once()
    if done is not None:
        report.endings.append(done)
    progress(Step("consolidate", 1, 1, done.ending.value if done else "not due"))
