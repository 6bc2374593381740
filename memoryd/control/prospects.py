"""What happens next to a session or a job, until when it waits, and what a person can do about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from memoryd.clock import Clock
from memoryd.config import Settings, Stage
from memoryd.control import health, obstacles, wording
from memoryd.control.obstacles import Obstacle
from memoryd.errors import MemorydError
from memoryd.ledger import jobs, meta
from memoryd.ledger.database import Ledger
from memoryd.ledger.jobs import JobRow
from memoryd.ledger.states import GLOBAL_KEY, JobKind, Status
from memoryd.pipeline.eligibility import UNREADABLE, Exclusion, ReadingFound, Waiting
from memoryd.workspace.layout import Home

NEVER_WANTED: Final = frozenset({Exclusion.MEMORY_RUN, Exclusion.OWN_RUN})
"""Rules that no person's wish is above."""
OF_THE_FILE: Final = frozenset({UNREADABLE, *ReadingFound})
STAGE_OF: Final[Mapping[str, Stage]] = {JobKind.STAGE1: "extract", JobKind.CONSOLIDATE: "consolidate"}


@dataclass(frozen=True, slots=True)
class Standing:
    """How the house stands: what is in the way of all work, the consolidation's job, and memoryd's first start."""

    obstacles: tuple[Obstacle, ...] = ()
    consolidation: JobRow | None = None
    first_start_at: int | None = None

    def in_the_way_of(self, stage: Stage) -> Obstacle | None:
        """Return what keeps a stage from working now, the first thing to be mended."""
        return next((each for each in self.obstacles if stage in each.stages), None)


@dataclass(frozen=True, slots=True)
class Prospect:
    """`what` happens next or why nothing does; since and until when (epoch seconds, None: no time ends it); `todo`."""

    what: str
    todo: str
    since: float | None = None
    until: float | None = None


async def stand(settings: Settings, clock: Clock) -> Standing:
    """Look at the house. What cannot be read is left out: `memoryd status` says what is wrong with it."""
    home = Home(settings.home)
    in_the_way = obstacles.of_house(settings)
    in_the_way += await health.blocked_by_disk(home, asks_daemon=not in_the_way)
    if not home.ledger_file.exists():
        return Standing(tuple(in_the_way))
    try:
        async with await Ledger.open(home.ledger_file, clock=clock, read_only=True) as ledger:
            in_the_way += await obstacles.of_models(ledger, settings, clock)
            first_start = await ledger.read(meta.get, meta.FIRST_START)
            consolidation = await ledger.read(jobs.find, JobKind.CONSOLIDATE, GLOBAL_KEY)
    except MemorydError:
        return Standing(tuple(in_the_way))
    return Standing(tuple(in_the_way), consolidation, None if first_start is None else int(first_start))


def of_session(told: Mapping[str, Any], standing: Standing, *, now: float) -> Prospect:
    """Say what happens next to a session; `told` is the JSON of `explain`."""
    reason, thread, job = told["reason"], told["thread_id"], told["job"] or {}
    match reason:
        case None:
            return _ready(standing, "extract", "it is extracted by the next pass")
        case "covered":
            return _of_covered(told, standing, now)
        case "running":
            return Prospect("it is being extracted", "nothing", since=job.get("started_at"))
        case "out_of_attempts":
            todo = f"`memoryd jobs show {thread}` has the history, `memoryd jobs retry {thread}` tries again"
            return Prospect("nothing, until you ask for it: every try failed", todo, since=job.get("finished_at"))
        case _ if reason in set(Waiting):
            return _of_rest(reason, told, standing)
        case _ if reason in set(Exclusion):
            return _left_out(str(reason), thread)
        case _ if reason in OF_THE_FILE:
            return Prospect("it is looked at again when its file has changed", "nothing, unless the file is damaged")
    todo = wording.todo_of_wait(reason, thread)
    return Prospect(wording.meaning_of_wait(reason), todo, until=job.get("ready_at"))


def _of_rest(reason: str, told: Mapping[str, Any], standing: Standing) -> Prospect:
    """Say what happens to a session that may be read and is not due."""
    todo = wording.todo_of_rest(reason)
    match reason:
        case Waiting.TOO_FRESH:
            return Prospect("it is due then, if nothing is added to it", todo, until=told["eligible_at"])
        case Waiting.CONSENT:
            since = standing.first_start_at
            return Prospect("nothing before you agree: it was recorded before memoryd's first start", todo, since=since)
        case _:
            return Prospect("nothing by itself, at any time", todo)


def _left_out(reason: str, thread: str | None) -> Prospect:
    if reason in NEVER_WANTED or thread is None:
        return Prospect("it stays out for good: memories do not learn from themselves", "nothing")
    todo = f"`memoryd sessions set-mode {thread} enabled` takes it in all the same"
    return Prospect("it stays out until the session or a setting changes; no time ends that", todo)


def _of_covered(told: Mapping[str, Any], standing: Standing, now: float) -> Prospect:
    """Say what is left to do with what was extracted: nothing, or a consolidation that is still to come."""
    memory, row = told["memory"], standing.consolidation
    waits_for_folder = memory and not memory["consolidated_at"] and not memory["held_because"]
    if waits_for_folder and row is not None and row.status is not Status.DONE:
        next_one = of_job(row, standing, now=now)
        return Prospect(
            f"what it taught goes into the memory folder: {next_one.what}",
            next_one.todo,
            next_one.since,
            next_one.until,
        )
    since = told["job"] and told["job"]["finished_at"]
    return Prospect("it is read again when something is recorded in it: no new input", "nothing", since=since)


def of_job(row: JobRow, standing: Standing, *, now: float) -> Prospect:
    """Say what happens next to a job."""
    match row.status:
        case Status.RUNNING:
            return Prospect("it runs", "nothing", since=row.started_at)
        case Status.ERROR:
            todo = f"mend what the last error names, then `memoryd jobs retry {row.job_key}`"
            return Prospect("nothing, until you ask for it: every try failed", todo, since=row.finished_at)
        case Status.DONE:
            return Prospect("nothing until there is new input: it is done", "nothing", since=row.finished_at)
        case Status.PENDING:
            return _of_pending(row, standing, now)


def _of_pending(row: JobRow, standing: Standing, now: float) -> Prospect:
    if row.ready_at is not None and row.ready_at > now:
        todo = wording.todo_of_wait(row.wait_reason, row.job_key)
        reason = f"{row.wait_reason}: {wording.meaning_of_wait(row.wait_reason)}" if row.wait_reason else "it waits"
        return Prospect(reason, todo, until=row.ready_at)
    return _ready(standing, STAGE_OF[row.kind], "it is taken by the next pass")


def _ready(standing: Standing, stage: Stage, what: str) -> Prospect:
    """Say what keeps work that is due from being done, or that nothing does."""
    found = standing.in_the_way_of(stage)
    if found is None:
        return Prospect(what, "nothing; `memoryd sync` makes a pass at once")
    return Prospect(f"it is due, but {found.message} ({found.reason})", found.remedy, found.since, found.until)
