"""The state of the house as data: what `status` prints. Reads the ledger beside a running daemon; writes nothing."""

import importlib.metadata
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from memoryd.clock import Clock
from memoryd.config import OFFLINE, ProviderKind, Settings
from memoryd.control import health
from memoryd.control.health import Finding
from memoryd.control.wording import reason_of_run
from memoryd.daemon import lock
from memoryd.daemon.house import DAEMON, configured_agents
from memoryd.errors import LedgerBusy, LedgerCorrupt
from memoryd.ledger import jobs, meta, publications, spend
from memoryd.ledger.active_days import unused_before
from memoryd.ledger.database import Ledger
from memoryd.ledger.jobs import JobRow
from memoryd.ledger.states import JobKind, Status
from memoryd.pipeline.discover import CONSENT_KEY, effective_backfill, excluded_counts, reasons_of_waiting
from memoryd.pipeline.eligibility import window
from memoryd.workspace.layout import Home

WAITS_OF_OURS = frozenset({"debounce", "min_interval"})
"""Waits that are the normal rhythm; any other is worth a look."""


async def status(settings: Settings, environ: Mapping[str, str], clock: Clock) -> dict[str, object]:
    """Return the JSON of DESIGN.md section 13. Raises LedgerTooNew or StorageError when it cannot be read."""
    home = Home(settings.home)
    who = lock.holder(home.lock_file)
    report: dict[str, object] = {
        "version": importlib.metadata.version("memoryd"),
        "running": who is not None and who.role == DAEMON,
        "pid": who.pid if who else None,
        "since": who.since if who else None,
        "doing": [],
        "waiting": [],
        "stages": {kind.value: _stage({}, None) for kind in JobKind},
        "today": _today(settings, spend.Spend(0, 0, 0.0)),
        "excluded": {},
        "disk": _disk(home),
        "health": [],
    }
    findings = [*_configuration(settings, environ, home)]
    findings += health.of_rebuilding(home)
    findings += await health.of_storage(home, asks_daemon=bool(report["running"]))
    if home.ledger_file.exists():
        findings += health.of_place(home)
        try:
            damage = health.of_damage(home, is_held=who is not None)
            findings += damage or await _from_file(home, settings, clock, report)
        except LedgerCorrupt as error:
            findings.append(health.damaged(home, error.message))
        except LedgerBusy as error:
            findings.append(Finding("ledger_held", "warning", error.message, "stop the daemon to look into the ledger"))
    report["health"] = [asdict(finding) for finding in findings]
    return report


async def why_running(settings: Settings, clock: Clock) -> dict[str, str]:
    """Say of each job that runs what asked for it: `kind key` to a reason in words."""
    home = Home(settings.home)
    if not home.ledger_file.exists():
        return {}
    try:
        async with await Ledger.open(home.ledger_file, clock=clock, read_only=True) as ledger:
            running = await ledger.read(jobs.running)
    except (LedgerCorrupt, LedgerBusy):
        return {}
    return {f"{row.kind} {row.job_key}": reason_of_run(row.kind, row.enqueue_reason) for row in running}


async def _from_file(home: Home, settings: Settings, clock: Clock, report: dict[str, object]) -> list[Finding]:
    async with await Ledger.open(home.ledger_file, clock=clock, read_only=True) as ledger:
        of_programs = await health.of_programs(ledger) if _runs_programs(settings) else []
        of_clock = await health.of_clock(ledger, clock)
        return [*await _from_ledger(ledger, settings, clock.now(), report), *of_clock, *of_programs]


def _runs_programs(settings: Settings) -> bool:
    return any(each.kind is ProviderKind.COMMAND for each in settings.providers.values())


async def _from_ledger(ledger: Ledger, settings: Settings, now: float, report: dict[str, object]) -> list[Finding]:
    counts = await ledger.read(jobs.counts)
    running = await ledger.read(jobs.running)
    waiting = await ledger.read(jobs.waiting, now=now)
    report["doing"] = [{"kind": row.kind, "key": row.job_key, "since": row.started_at} for row in running]
    report["waiting"] = [
        {"kind": row.kind, "key": row.job_key, "until": row.ready_at, "reason": row.wait_reason} for row in waiting
    ]
    report["stages"] = {
        kind.value: _stage(counts[kind], await ledger.read(jobs.last_success_at, kind)) for kind in JobKind
    }
    report["today"] = _today(settings, await ledger.read(spend.today, now=now))
    report["excluded"] = dict(await _excluded(ledger, settings, now))
    dead = await ledger.read(jobs.list_jobs, status=Status.ERROR)
    findings = [*_dead(dead), *_waits(waiting), *await health.of_limits(ledger, settings, now)]
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


async def _excluded(ledger: Ledger, settings: Settings, now: float) -> Counter[str]:
    """Sessions that are left out, by standing reason, and eligible ones that are not due, by theirs."""
    first_start = await ledger.read(meta.get, "first_start_at")
    offline = settings.provider_for("extract").provider.kind == OFFLINE
    agreed = await ledger.read(meta.get, CONSENT_KEY)
    when = window(
        now=now,
        discover=settings.discover,
        useful_from=await ledger.read(unused_before, now=now, max_unused=settings.consolidate.max_unused),
        first_start_at=int(first_start or now),
        backfill=effective_backfill(settings, offline=offline, agreed=agreed),
    )
    return await excluded_counts(ledger) + await ledger.read(reasons_of_waiting, when)


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


def _configuration(settings: Settings, environ: Mapping[str, str], home: Home) -> list[Finding]:
    findings = []
    if not home.config_file.exists():
        findings.append(Finding("not_configured", "warning", f"there is no {home.config_file}", "run `memoryd init`"))
    agents = configured_agents(settings, environ)
    if not agents:
        findings.append(
            Finding("no_agents", "warning", "no agent is configured, so nothing is read", "run `memoryd init`")
        )
    findings += [
        Finding(
            "root_missing",
            "warning",
            f"{name}: there is no sessions folder in {root}",
            f"start {name} once, or set sources.roots.{name}",
        )
        for name, agent in agents.items()
        for root in agent.reader.missing_roots(agent.homes)
    ]
    if shutil.which("git", path=environ.get("PATH")) is None:
        findings.append(
            Finding("git_missing", "error", "there is no git program, so nothing can be consolidated", "install git")
        )
    return findings


def _dead(dead: list[JobRow]) -> list[Finding]:
    return [
        Finding(
            "job_dead",
            "error",
            f"{row.kind} {row.job_key} is out of attempts: {row.last_error}",
            f"look at `memoryd jobs show {row.job_key}`, then `memoryd jobs retry {row.job_key}`",
        )
        for row in dead[:20]
    ]


def _waits(waiting: list[JobRow]) -> list[Finding]:
    reasons = Counter(str(row.wait_reason) for row in waiting if row.wait_reason not in WAITS_OF_OURS)
    errors = {str(row.wait_reason): row.last_error for row in waiting}
    return [
        Finding(
            f"waiting_{reason}",
            "warning",
            f"{number} job{'s wait' if number != 1 else ' waits'} because of {reason}: {errors[reason] or 'no error'}",
            "it is tried again by itself; `memoryd jobs` says when",
        )
        for reason, number in reasons.items()
    ]


def _disk(home: Home) -> dict[str, object]:
    """Bytes by part, as lying on disk now."""
    parts = {"ledger": home.ledger_file, "memories": home.memories, "staging": home.staging, "recall": home.recall}
    sizes: dict[str, object] = {name: _size(path) for name, path in parts.items()}
    try:
        sizes["free"] = shutil.disk_usage(home.path if home.path.exists() else home.path.parent).free
    except OSError:
        sizes["free"] = None
    return sizes


def _size(path: Path) -> int:
    if path.is_file():
        return sum(side.stat().st_size for side in path.parent.glob(f"{path.name}*"))
    total = 0
    for folder, _folders, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118 -- a walk over many small files
            except OSError:
                continue
    return total
