"""What `status` has to say about the ground that memoryd stands on: the ledger's file, the disk, the clock."""

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.clock import Clock, rfc3339
from memoryd.control.console import plural, when
from memoryd.control.obstacles import Obstacle
from memoryd.control.wording import job_name, meaning_of_wait, todo_of_wait
from memoryd.daemon import control_socket
from memoryd.daemon.programs import is_unconfined
from memoryd.errors import StorageError
from memoryd.ledger import holds, mounts, opening, proposals, publications, rebuilding
from memoryd.ledger.database import Ledger
from memoryd.ledger.jobs import JobRow
from memoryd.ledger.publications import PublicationState
from memoryd.ledger.translate import DAMAGED_REMEDY
from memoryd.pipeline.plausibility import Doubt, Standing, clock_standing
from memoryd.workspace.layout import Home
from memoryd.workspace.restoring import is_lost

ANSWER_SECONDS: Final = 3.0
"""A daemon that does not answer within this has other worries; the rest of `status` is not kept waiting."""
LEAST_FREE_BYTES: Final = 64 * 1024
MOST_DEAD: Final = 20
WAITS_OF_OURS: Final = frozenset({"debounce", "min_interval"})
"""Waits that are the normal rhythm; any other is worth a look."""
STORAGE_REMEDY: Final = (
    "free some space or make the disk writable; memoryd tries again every 30 seconds, and goes on by itself"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a person may want to know or do. `severity` is "info" (all is well), "warning" or "error"."""

    id: str
    severity: str
    message: str
    remedy: str


def of_place(home: Home, mountinfo: str | None = None) -> list[Finding]:
    """Tell where the ledger lies, if that is no good place. `mountinfo` is the system's unless given."""
    warning = opening.place_warning(home.ledger_file, mounts.read_mounts() if mountinfo is None else mountinfo)
    return [Finding("ledger_misplaced", "warning", warning, "put MEMORYD_HOME on a local disk")] if warning else []


def of_rebuilding(home: Home) -> list[Finding]:
    """Tell of ledgers that were damaged and set aside, for as long as they lie there."""
    found = []
    for folder in rebuilding.damaged_folders(home.path):
        account = rebuilding.account_of(folder)
        replaced = (
            f"the backup {account['source']} took its place, and newer sessions are read again"
            if account["source"]
            else "a new one was begun: sessions are read again, and those recorded before wait for consent "
            "unless limits.backfill says otherwise"
        )
        found.append(
            Finding(
                "ledger_rebuilt",
                "error",
                f"the ledger was damaged ({account['problem']}); {replaced}",
                f"the damaged one lies in {folder}: remove that folder when you need it no more",
            )
        )
    return found


def of_damage(home: Home, *, is_held: bool) -> list[Finding]:
    """Tell of damage in a ledger that was left open; while it is held, its holder sees to that."""
    if is_held:
        return []
    problem = rebuilding.find_damage(home.ledger_file)
    return [damaged(home, problem)] if problem else []


def damaged(home: Home, problem: str) -> Finding:
    """Tell that the ledger is damaged and not yet set aside."""
    return Finding("ledger_damaged", "error", f"the ledger {home.ledger_file} is damaged: {problem}", DAMAGED_REMEDY)


async def of_clock(ledger: Ledger, clock: Clock) -> list[Finding]:
    """Tell that the clock is not believed, and what waits for that."""
    standing = await clock_standing(ledger, clock)
    if standing.doubt is None:
        return []
    return [
        Finding(
            "clock_implausible",
            "warning",
            f"{_said_of(standing)}; nothing is pruned, expired or backed up meanwhile",
            "set the clock right, or wait: a clock that agrees with itself for 24 hours of uptime is believed",
        )
    ]


async def of_programs(ledger: Ledger) -> list[Finding]:
    """Tell that an agent's own program runs as the user does, with nothing between it and the user's files."""
    if not await is_unconfined(ledger):
        return []
    return [
        Finding(
            "command_unconfined",
            "warning",
            "nothing on this machine confines the program of the command provider: it may write whatever you may",
            "install bubblewrap, or run memoryd as a service of your systemd; it is looked for at the next start",
        )
    ]


async def of_folder(ledger: Ledger, home: Home) -> list[Finding]:
    """Tell that the memory folder was deleted although something had been published into it."""
    latest = await ledger.read(publications.latest)
    if latest is None or latest.state is not PublicationState.PUBLISHED or not is_lost(home):
        return []
    message = f"the memory folder {home.memories} was deleted, or all that was in it"
    remedy = "it is put back by itself; `memoryd sync` does it now, and `memoryd reset` is how to forget everything"
    return [Finding("folder_missing", "warning", message, remedy)]


async def of_review(ledger: Ledger) -> list[Finding]:
    """Tell that a result waits for the person's word, and what the person took back or refused."""
    found = []
    proposal = await ledger.read(proposals.waiting)
    if proposal is not None:
        message = f"a consolidation made {rfc3339(proposal.made_at)} waits for your word: proposal {proposal.id}"
        found.append(
            Finding(
                "proposal_waiting",
                "info",
                message,
                f"look at it with `memoryd review show {proposal.id}`, then accept it or reject it",
            )
        )
    held = len(await ledger.read(holds.held))
    if held:
        found.append(
            Finding(
                "held_back",
                "info",
                f"sessions that stay out of the memory since an undo or a rejection, until they grow: {held}",
                "`memoryd history` lists the undo, and `memoryd undo` of it brings them back",
            )
        )
    return found


FINDING_OF: Final = {"budget": "budget_spent", "quota": "provider_paused"}
"""Under which id status tells an obstacle; others bear its own name."""


def of_obstacles(obstacles: Sequence[Obstacle], now: float) -> list[Finding]:
    """Tell which caps of the day are reached, and which providers cannot be asked now."""
    return [
        Finding(
            FINDING_OF.get(each.reason, each.reason),
            "warning",
            each.message + (f", until {when(each.until, now)}" if each.until is not None else ""),
            each.remedy,
        )
        for each in obstacles
        if each.reason not in {"not_configured", "not_running", "lock", "disk"}
    ]


def of_jobs(dead: Sequence[JobRow], waiting: Sequence[JobRow], now: float) -> list[Finding]:
    """Tell which jobs are out of attempts, and which wait for something that is not their normal rhythm."""
    found = [
        Finding(
            "job_dead",
            "error",
            f"{job_name(row.kind, row.job_key)} is out of attempts: {row.last_error}, {when(row.finished_at, now)}",
            f"look at `memoryd jobs show {row.job_key}`, then `memoryd jobs retry {row.job_key}`",
        )
        for row in dead[:MOST_DEAD]
    ]
    odd = [row for row in waiting if row.wait_reason not in WAITS_OF_OURS]
    for reason, number in Counter(str(row.wait_reason) for row in odd).items():
        first = next(row for row in odd if str(row.wait_reason) == reason)
        verb = "waits" if number == 1 else "wait"
        message = f"{plural(number, 'job')} {verb} because of {reason}: {first.last_error or meaning_of_wait(reason)}"
        until = f"the first is tried again {when(first.ready_at, now)} by itself"
        found.append(Finding(f"waiting_{reason}", "warning", message, f"{todo_of_wait(reason)}; {until}"))
    return found


async def blocked_by_disk(home: Home, *, asks_daemon: bool, answer_seconds: float = ANSWER_SECONDS) -> list[Obstacle]:
    """Return what stands in the way of all work while the disk takes nothing: as the daemon says, else as it looks."""
    paused = await _pause_of(home.socket, answer_seconds) if asks_daemon else None
    if paused is not None:
        return [paused]
    reason = _disk_says(home.path)
    return [Obstacle("disk", reason, STORAGE_REMEDY)] if reason else []


def of_blocked(blocked: Sequence[Obstacle]) -> list[Finding]:
    """Tell as a finding that nothing is claimed since the disk takes nothing."""
    return [Finding("storage_paused", "error", f"{each.message}{_since(each.since)}", each.remedy) for each in blocked]


def _since(instant: float | None) -> str:
    return f", since {rfc3339(instant)}" if instant is not None else ""


async def of_daemon(home: Home, *, answer_seconds: float = ANSWER_SECONDS) -> list[Finding]:
    """Tell what is wrong with the daemon that runs, as it says itself: settings it refused, bounds it came near."""
    said = await _daemon_says(home.socket, answer_seconds)
    if said.get("silent"):
        message = f"memoryd runs and does not answer within {answer_seconds:g} seconds"
        return [Finding("daemon_silent", "error", message, "restart it; its log says what it did last")]
    troubles = said.get("troubles")
    told = [each for each in troubles if isinstance(each, dict)] if isinstance(troubles, list) else []
    return [Finding(*(str(each.get(key, "")) for key in ("id", "severity", "message", "remedy"))) for each in told]


def _said_of(standing: Standing) -> str:
    now = rfc3339(standing.last.wall)
    if standing.doubt is Doubt.JUMPED and standing.believed is not None:
        return f"the clock says {now}, more than 30 days after it was last believed ({rfc3339(standing.believed.wall)})"
    return f"the clock says {now}, which is earlier than what the ledger holds"


async def _pause_of(socket: Path, seconds: float) -> Obstacle | None:
    said = await _daemon_says(socket, seconds)
    paused, since = said.get("paused"), said.get("since")
    if paused is None:
        return None
    began = float(since) if isinstance(since, int | float) else None
    return Obstacle("disk", f"work is paused: {paused}", STORAGE_REMEDY, since=began)


async def _daemon_says(socket: Path, seconds: float) -> dict[str, object]:
    try:
        async with asyncio.timeout(seconds):
            return await control_socket.ask(socket, {"do": "health"}, lambda _step: None)
    except TimeoutError:
        return {"silent": True}
    except (StorageError, OSError):
        return {}


def _disk_says(folder: Path) -> str | None:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    if disk.f_flag & os.ST_RDONLY:
        return f"{folder} lies on a disk that is mounted read-only"
    if disk.f_bavail * disk.f_frsize < LEAST_FREE_BYTES:
        return f"there is no room on the disk of {folder}"
    return None
