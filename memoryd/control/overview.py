"""The state of the house as data: what `status` prints. Reads the ledger beside a running daemon; writes nothing."""

import importlib.metadata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from sqlite3 import Connection
from typing import Any

from memoryd.clock import Clock
from memoryd.config import OFFLINE, ProviderKind, Settings
from memoryd.control import health, obstacles, setup_health
from memoryd.control.health import Finding
from memoryd.control.obstacles import Obstacle
from memoryd.control.sizes import sizes
from memoryd.control.wording import reason_of_run
from memoryd.daemon import lock
from memoryd.daemon.house import DAEMON
from memoryd.errors import ConfigError, LedgerBusy, LedgerCorrupt
from memoryd.ledger import jobs, meta, publications, sessions, spend
from memoryd.ledger.active_days import unused_before
from memoryd.ledger.database import Ledger
from memoryd.ledger.jobs import JobRow
from memoryd.ledger.states import JobKind, Status
from memoryd.pipeline.discover import CONSENT_KEY, NO_LIMIT, effective_backfill, excluded_counts
from memoryd.pipeline.eligibility import Waiting, Window, waiting, window
from memoryd.workspace.layout import Home


@dataclass(frozen=True, slots=True)
class Resting:
    """Eligible sessions that are not due, of one reason: how many, and when (epoch seconds) time alone ends that first.

    `first_at` is None where only a person ends it.
    """

    count: int
    first_at: float | None


@dataclass(slots=True)
class Picture:
    """What is known of the house at `now`: `report` is what `status --json` prints, the rest is told to people.

    `why` says of each job that runs what asked for it, by `kind key`; `ready` counts jobs that could be taken at once.
    """

    now: float
    report: dict[str, Any]
    obstacles: list[Obstacle] = field(default_factory=list)
    why: dict[str, str] = field(default_factory=dict)
    resting: dict[str, Resting] = field(default_factory=dict)
    first_start_at: int | None = None
    ready: int = 0
    dead: Sequence[JobRow] = ()
    scan_seconds: float = 0.0
    has_prices: bool = True


async def status(settings: Settings, environ: Mapping[str, str], clock: Clock) -> dict[str, Any]:
    """Return what `status --json` prints. Raises LedgerTooNew or StorageError when it cannot be read."""
    return (await look(settings, environ, clock)).report


async def look(settings: Settings, environ: Mapping[str, str], clock: Clock) -> Picture:
    """Look at everything once. Raises LedgerTooNew or StorageError when the ledger cannot be read."""
    home = Home(settings.home)
    who = lock.holder(home.lock_file)
    picture = Picture(
        clock.now(),
        {},
        obstacles.of_house(settings),
        scan_seconds=settings.discover.scan_interval,
        has_prices=settings.has_prices,
    )
    picture.report = report = {
        "version": importlib.metadata.version("memoryd"),
        "running": who is not None and who.role == DAEMON,
        "pid": who.pid if who else None,
        "since": who.since if who else None,
        "doing": [],
        "waiting": [],
        "stages": {kind.value: _stage({}, None) for kind in JobKind},
        "today": _today(settings, spend.Spend(0, 0, 0.0)),
        "excluded": {},
        "disk": sizes(home),
        "health": [],
    }
    findings = setup_health.of_setup(settings, environ, home, daemon_runs=bool(report["running"]))
    findings += health.of_rebuilding(home)
    blocked = await health.blocked_by_disk(home, asks_daemon=bool(report["running"]))
    picture.obstacles += blocked
    findings += health.of_blocked(blocked)
    if report["running"]:
        findings += await health.of_daemon(home)
    if home.ledger_file.exists() and not home.misfits():
        findings += health.of_place(home)
        try:
            damage = health.of_damage(home, is_held=who is not None)
            findings += damage or await _from_file(home, settings, clock, picture)
        except LedgerCorrupt as error:
            findings.append(health.damaged(home, error.message))
        except LedgerBusy as error:
            findings.append(
                Finding("ledger_held", "warning", error.message, "stop what holds it to look into the ledger")
            )
    report["health"] = [asdict(finding) for finding in findings]
    return picture


async def _from_file(home: Home, settings: Settings, clock: Clock, picture: Picture) -> list[Finding]:
    async with await Ledger.open(home.ledger_file, clock=clock, read_only=True) as ledger:
        of_programs = await health.of_programs(ledger) if _runs_programs(settings) else []
        of_clock = await health.of_clock(ledger, clock)
        picture.obstacles += await obstacles.of_models(ledger, settings, clock)
        return [*await _from_ledger(ledger, settings, picture), *of_clock, *of_programs]


def _runs_programs(settings: Settings) -> bool:
    return any(each.kind is ProviderKind.COMMAND for each in settings.providers.values())


async def _from_ledger(ledger: Ledger, settings: Settings, picture: Picture) -> list[Finding]:
    now, report = picture.now, picture.report
    counts = await ledger.read(jobs.counts)
    running = await ledger.read(jobs.running)
    waits = await ledger.read(jobs.waiting, now=now)
    report["doing"] = [{"kind": row.kind, "key": row.job_key, "since": row.started_at} for row in running]
    report["waiting"] = [
        {"kind": row.kind, "key": row.job_key, "until": row.ready_at, "reason": row.wait_reason} for row in waits
    ]
    report["stages"] = {
        kind.value: _stage(counts[kind], await ledger.read(jobs.last_success_at, kind)) for kind in JobKind
    }
    report["today"] = _today(settings, await ledger.read(spend.today, now=now))
    when = await _window(ledger, settings, now)
    picture.first_start_at = when.first_start_at
    picture.resting = await ledger.read(resting, when, settings.discover.min_idle)
    resting_counts = Counter({reason: each.count for reason, each in picture.resting.items()})
    report["excluded"] = dict(await excluded_counts(ledger) + resting_counts)
    picture.why = {f"{row.kind} {row.job_key}": reason_of_run(row.kind, row.enqueue_reason) for row in running}
    picture.ready = sum([await ledger.read(jobs.ready_count, kind, now) for kind in JobKind])
    picture.dead = await ledger.read(jobs.list_jobs, status=Status.ERROR)
    findings = [*health.of_jobs(picture.dead, waits, now), *health.of_obstacles(picture.obstacles, now)]
    findings += [*await health.of_review(ledger), *await health.of_folder(ledger, Home(settings.home))]
    if await ledger.read(publications.pending) is not None:
        findings.append(
            Finding(
                "publication_pending",
                "warning",
                "an accepted consolidation is not in place yet",
                "it is put in place by the next `memoryd run` or `memoryd sync`",
            )
        )
    return findings


async def _window(ledger: Ledger, settings: Settings, now: float) -> Window:
    first_start = await ledger.read(meta.get, meta.FIRST_START)
    agreed = await ledger.read(meta.get, CONSENT_KEY)
    return window(
        now=now,
        discover=settings.discover,
        useful_from=await ledger.read(unused_before, now=now, max_unused=settings.consolidate.max_unused),
        first_start_at=int(first_start or now),
        backfill=effective_backfill(settings, offline=_is_offline(settings), agreed=agreed),
    )


def _is_offline(settings: Settings) -> bool:
    try:
        return settings.provider_for("extract").provider.kind == OFFLINE
    except ConfigError:  # told as a finding; nothing can be sent, and history would wait for consent
        return False


def resting(conn: Connection, when: Window, min_idle: float) -> dict[str, Resting]:
    """Sum up the eligible sessions that are not extracted now by reason (too_fresh, too_old, consent)."""
    found: dict[str, Resting] = {}
    for row in sessions.due(conn, idle_before=float("inf"), newest_from=None, limit=NO_LIMIT):
        reason = waiting(row.updated_at, when)
        if reason is not None:
            ends = row.updated_at + min_idle if reason is Waiting.TOO_FRESH else None
            before = found.get(reason.value, Resting(0, ends))
            first = min((at for at in (before.first_at, ends) if at is not None), default=None)
            found[reason.value] = Resting(before.count + 1, first)
    return found


def _stage(counts: Mapping[Status, int], last_success_at: int | None) -> dict[str, object]:
    return {**{status.value: counts.get(status, 0) for status in Status}, "last_success_at": last_success_at}


def _today(settings: Settings, spent: spend.Spend) -> dict[str, object]:
    limits = settings.limits
    return {
        "requests": spent.requests,
        "tokens": spent.tokens,
        "cost": spent.cost,
        "caps": {
            "requests_per_day": limits.requests_per_day,
            "tokens_per_day": limits.tokens_per_day,
            "cost_per_day": limits.cost_per_day,
        },
    }
