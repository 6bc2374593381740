"""Discovery: compares what lies in the sessions folders with what the ledger knows, and enqueues what is due.

The scan is the truth, the watcher's word a hint where to look sooner. A file is opened only when its size or time
changed; a job is enqueued only when the pair (time of the last record, bytes of the records) differs from the pair that
was extracted. Together they make an idle scan over any number of sessions read no session file at all, and a touched
file cost nothing.
"""

import os.path
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from sqlite3 import Connection
from typing import TypedDict

from memoryd import logs
from memoryd.config import Settings
from memoryd.errors import SessionVanished, SourceError, UsageError
from memoryd.ledger import discovery, meta, sessions
from memoryd.ledger.active_days import unused_before
from memoryd.ledger.database import Ledger
from memoryd.ledger.policy import ConsolidateTiming
from memoryd.ledger.sessions import SessionRow, Sighting, UserMode
from memoryd.pipeline.context import Agent, Context, T, in_thread
from memoryd.pipeline.edits import notice_edits
from memoryd.pipeline.eligibility import UNREADABLE, Traits, Window, exclusion, waiting, window
from memoryd.pipeline.plausibility import clock_standing
from memoryd.pipeline.sighting import look_at
from memoryd.sources.files import Survey, surveying
from memoryd.sources.items import SessionFile

log = logs.get()

BATCH = 200
"""Sessions per ledger transaction: a first scan of thousands stays responsive and is kept if it is cut short."""
UNTELLABLE = "its name holds bytes that are no text, or characters that cannot be shown: rename the file"
MANY = 10
"""Sessions: fewer that are gone are no event."""
CONSENT_KEY = "backfill"
NO_LIMIT = 1_000_000_000


@dataclass(slots=True)
class ScanReport:
    """What one scan found; counts of sessions unless the name says otherwise."""

    agents: list[str] = field(default_factory=list)
    only: str | None = None
    """The one thread that was asked for, by its full id."""
    full: bool = True
    """Every folder was listed, not only those in which something changed lately; `seen` counts what was listed."""
    seen: int = 0
    opened: int = 0
    enqueued: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    missing_roots: list[Path] = field(default_factory=list)
    unreadable: int = 0
    edited: bool = False
    """A person changed the memory folder since memoryd left it."""


class Discovery:
    """Keeps what the last scan saw, so that the next one opens only what changed.

    Folders in which something changed lately are looked at by every scan, all of them at the first, and then whenever
    discover.full_scan_interval has passed since the last full scan.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._survey: Survey | None = None
        self._full_scan_at: float | None = None
        self._hinted: set[str] = set()
        self._warned: set[Path] = set()
        self._present: dict[str, int] = {}
        self._dwindled: set[str] = set()
        self._judged: dict[Traits, str | None] = {}

    def hint(self, paths: Collection[str]) -> None:
        """Let the next scan look where these paths lie, however quiet it was there."""
        self._hinted.update(paths)

    async def run_once(
        self, *, ignore_idle: bool = False, backfill: str | None = None, only: str | None = None
    ) -> ScanReport:
        """Scan every configured agent's folders and enqueue what is due.

        `ignore_idle` is `sync --now`; `only` enqueues that thread alone.
        """
        context, report = self._context, ScanReport(agents=sorted(self._context.agents))
        if self._survey is None:
            # The settings of this start may differ from those of the last.
            await context.ledger.write(discovery.reconsider_all, self._judge, **enqueueing(context))
            self._survey = Survey(await context.ledger.read(sessions.known_files))
        for path in await context.ledger.read(sessions.vanished_paths):
            self._survey.forget(path)
            self._hinted.add(path)
        report.full = self._begin(self._survey)
        missing: list[Path] = []
        for name, agent in context.agents.items():
            missing += await self._missing_roots(agent)
            before = report.seen
            await self._scan(agent, self._survey, report)
            if report.full:
                self._say_if_dwindled(name, report.seen - before)
        report.missing_roots, self._warned = missing, set(missing)
        report.only = await self._full_id(only) if only else None
        await self._enqueue(await self.window(ignore_idle=ignore_idle, backfill=backfill), report)
        report.excluded = await excluded_counts(context.ledger)
        report.edited = await notice_edits(context)
        return report

    def _begin(self, survey: Survey) -> bool:
        """Begin a scan, and tell whether it is a full one."""
        clock = self._context.clock
        last, now = self._full_scan_at, clock.monotonic()
        is_full = last is None or now - last >= self._context.settings.discover.full_scan_interval
        if is_full:
            self._full_scan_at = now
        survey.begin(quick=not is_full, now=clock.now(), hinted=self._hinted)
        self._hinted = set()
        return is_full

    def _say_if_dwindled(self, agent: str, present: int) -> None:
        """Say once that most sessions of an agent are gone, as when a disk is not mounted; no memory goes with them."""
        before = self._present.get(agent, 0)
        if before - present >= MANY and present < before / 2:
            if agent not in self._dwindled:
                log.warning("sessions.dwindled", agent=agent, before=before, present=present)
            self._dwindled.add(agent)
        else:
            self._present[agent] = present
            self._dwindled.discard(agent)

    async def window(self, *, ignore_idle: bool = False, backfill: str | None = None) -> Window:
        """Return the instants that decide what is due now."""
        context, now = self._context, self._context.clock.now()
        return window(
            now=now,
            discover=context.settings.discover,
            useful_from=await context.ledger.read(
                unused_before, now=now, max_unused=context.settings.consolidate.max_unused
            ),
            first_start_at=await self._first_start(now),
            backfill=await self._consent(backfill),
            ignore_idle=ignore_idle,
        )

    async def _first_start(self, now: float) -> int:
        """Return the instant of the first start, which only a clock that is believed sets: all before it is history."""
        ledger = self._context.ledger
        if (await clock_standing(ledger, self._context.clock)).doubt is None:
            return await ledger.write(meta.first_start, now=now)
        known = await ledger.read(meta.get, meta.FIRST_START)
        return int(now) if known is None else int(known)

    async def _missing_roots(self, agent: Agent) -> list[Path]:
        """List an agent's homes without sessions; each is said once, until it is there again."""
        missing = await in_thread(agent.reader.missing_roots, agent.homes)
        for root in set(missing) - self._warned:
            log.warning("root.missing", agent=agent.reader.name, path=str(root))
        return missing

    async def _consent(self, given: str | None) -> str:
        """Return what may be done with history; what a person once agreed to holds from then on."""
        context = self._context
        if given:
            await context.ledger.write(meta.put, CONSENT_KEY, given)
            return given
        return effective_backfill(
            context.settings,
            offline=context.extract.is_offline,
            agreed=await context.ledger.read(meta.get, CONSENT_KEY),
        )

    async def _count_untellable(self, agent: str, survey: Survey, report: ScanReport) -> None:
        """Count the files whose names cannot be kept, under their names as they can be written."""
        new = [
            _Unreadable(name, 0, 0, UNTELLABLE) for name in sorted(survey.untellable) if not survey.knows(name, 0, 0)
        ]
        survey.untellable.clear()
        if not new:
            return
        await self._remember(new)
        for each in new:
            report.unreadable += 1
            survey.remember(each.path, 0, 0)
            log.warning("session.unreadable", agent=agent, path=each.path, error=UNTELLABLE)

    async def _scan(self, agent: Agent, survey: Survey, report: ScanReport) -> None:
        context = self._context
        changed = await in_thread(_changed_files, agent, survey, report)
        await self._count_untellable(agent.reader.name, survey, report)
        for batch in _batches(changed, BATCH):
            looks = await in_thread(self._look_at_all, agent, batch, report)
            unreadable = [look for look in looks if isinstance(look, _Unreadable)]
            await context.ledger.write(
                discovery.record,
                [look for look in looks if isinstance(look, Sighting)],
                self._judge,
                **enqueueing(context),
            )
            if unreadable:
                await self._remember(unreadable)
            # What vanished meanwhile is not known: should it come back as it was, it is looked at.
            for look in looks:
                survey.remember(look.path, look.size, look.mtime_ns)

    async def _remember(self, unreadable: Sequence["_Unreadable"]) -> None:
        """Keep files that are no session; one whose path is a secret is kept under another, and opened once a start."""
        clean = self._context.redactor.clean
        rows = [replace(each, path=clean(each.path), problem=clean(each.problem)) for each in unreadable]
        await self._context.ledger.write(_remember_unreadable, rows, now=self._context.clock.now())

    def _judge(self, row: SessionRow) -> str | None:
        """Judge a session; those that are alike in all that the rules look at are judged once."""
        traits = traits_of(row)
        if traits not in self._judged:
            self._judged[traits] = exclusion_of_row(self._context, row)
        return self._judged[traits]

    def _look_at_all(
        self, agent: Agent, files: Sequence[SessionFile], report: ScanReport
    ) -> list["Sighting | _Unreadable"]:
        looks: list[Sighting | _Unreadable] = []
        for file in files:
            report.opened += 1
            try:
                looks.append(look_at(agent, file, self._context.redactor))
            except SessionVanished:
                continue
            except SourceError as error:
                report.unreadable += 1
                log.warning("session.unreadable", agent=file.agent, path=file.name, error=str(error))
                looks.append(_Unreadable(file.name, file.size, file.mtime_ns, str(error)))
        return looks

    async def _full_id(self, thread: str) -> str:
        """Return the full id of the session that a person means. Raises UsageError when there is none."""
        row = await self._context.ledger.read(sessions.get, thread)
        if row is None:
            raise UsageError(
                f"there is no session {thread!r} in the folders of {', '.join(self._context.agents) or 'any agent'}",
                remedy="give a thread id, or the beginning of one; it is part of the session file's name",
            )
        return row.thread_id

    async def _enqueue(self, when: Window, report: ScanReport) -> None:
        context = self._context
        due = await context.ledger.read(
            sessions.due, idle_before=when.idle_before, newest_from=when.oldest, limit=NO_LIMIT
        )
        ready = [
            row
            for row in due
            if waiting(row.updated_at, when) is None
            and row.agent in context.agents
            and report.only in {None, row.thread_id}
        ]
        for batch in _batches(ready, BATCH):
            report.enqueued += await context.ledger.write(
                discovery.enqueue_due,
                batch,
                now=context.clock.now(),
                max_attempts=context.settings.ledger.max_attempts,
            )
        if report.enqueued:
            log.info("job.enqueued", kind="memory_stage1", count=report.enqueued)


_written = attrgetter("mtime_ns")


def _changed_files(agent: Agent, survey: Survey, report: ScanReport) -> list[SessionFile]:
    """List the files whose size or time is not the known one, newest first, so that news is not kept waiting."""
    passed_over = survey.passed_over
    with surveying(survey):
        changed, listed = survey.changed(agent.reader.find(agent.homes))
    report.seen += listed + survey.passed_over - passed_over
    changed.sort(key=_written, reverse=True)
    return changed


async def excluded_counts(ledger: Ledger) -> Counter[str]:
    """Count the sessions that are left out for good, by reason; files that are no session stand among them."""
    counts = Counter(await ledger.read(sessions.excluded_counts))
    counts[UNREADABLE] += len(await ledger.read(sessions.problem_files, limit=NO_LIMIT))
    return +counts


def reasons_of_waiting(conn: Connection, when: Window) -> Counter[str]:
    """Count the eligible sessions that are not extracted now, by reason (too_fresh, too_old, consent)."""
    rows = sessions.due(conn, idle_before=float("inf"), newest_from=None, limit=NO_LIMIT)
    return Counter(reason.value for row in rows if (reason := waiting(row.updated_at, when)) is not None)


def exclusion_of_row(context: Context, row: SessionRow) -> str | None:
    """Judge a known session: the rule that leaves it out, or None."""
    settings = context.settings
    return exclusion(
        traits_of(row),
        sources=settings.sources,
        memoryd_home=context.home.path,
        user_homes=settings.user_homes,
        as_it_lies=os.path.realpath,
    )


def traits_of(row: SessionRow) -> Traits:
    """Return what the rules look at of a known session."""
    return Traits(
        kind=row.kind,
        cwd=row.cwd,
        memory_mode=mode_of_row(row),
        ephemeral=row.ephemeral,
        originator=row.originator,
        is_wanted=row.user_mode is UserMode.ENABLED,
    )


async def choose_mode(context: Context, thread: str, mode: UserMode) -> SessionRow:
    """Record the person's choice about a session, given by its id or the beginning of one; return how it stands now.

    Raises UsageError when no session, or more than one, is meant.
    """
    row = await context.ledger.read(sessions.get, thread)
    if row is None:
        raise UsageError(f"there is no session {thread!r} in the ledger", remedy="`memoryd sessions` lists them")
    judge = partial(exclusion_of_row, context)
    return await context.ledger.write(discovery.choose_mode, row.thread_id, mode, judge, **enqueueing(context))


class Enqueueing(TypedDict):
    """How a consolidation is enqueued, as the ledger's functions take it."""

    now: float
    timing: ConsolidateTiming
    max_attempts: int


def enqueueing(context: Context) -> Enqueueing:
    """Return how a consolidation is enqueued now, by the settings."""
    settings = context.settings
    timing = ConsolidateTiming(settings.consolidate.debounce, settings.consolidate.min_interval)
    return Enqueueing(now=context.clock.now(), timing=timing, max_attempts=settings.ledger.max_attempts)


def mode_of_row(row: SessionRow) -> str:
    """Return the memory mode that holds: the person's choice, else our own finding, else what the agent says."""
    if row.user_mode in {"enabled", "disabled"}:
        return str(row.user_mode)
    return "polluted" if row.polluted_at is not None else row.memory_mode


def effective_backfill(settings: Settings, *, offline: bool, agreed: str | None) -> str:
    """Return the consent that holds: the settings', else what was agreed to; offline nothing leaves: none is needed."""
    setting = str(settings.limits.backfill)
    if setting != "ask":
        return setting
    return agreed or ("recent" if offline else "ask")


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """A file that is no session; kept so that it is counted, explained, and not opened again until it changes."""

    path: str
    size: int
    mtime_ns: int
    problem: str


def _remember_unreadable(conn: Connection, files: Sequence[_Unreadable], *, now: float) -> None:
    for unreadable in files:
        sessions.remember_file(
            conn,
            path=unreadable.path,
            size=unreadable.size,
            mtime_ns=unreadable.mtime_ns,
            now=now,
            problem=unreadable.problem,
        )


def _batches(rows: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))
