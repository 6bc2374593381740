"""What `status` has to say about the ground that memoryd stands on: the ledger's file, the disk, the clock."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.clock import Clock, rfc3339
from memoryd.config import Settings
from memoryd.daemon import control_socket
from memoryd.daemon.programs import is_unconfined
from memoryd.daemon.spending import caps_per_day
from memoryd.errors import BudgetSpent, StorageError
from memoryd.ledger import facts, holds, mounts, opening, proposals, publications, rebuilding, spend
from memoryd.ledger.database import Ledger
from memoryd.ledger.publications import PublicationState
from memoryd.ledger.translate import DAMAGED_REMEDY
from memoryd.llm.gate_state import paused_until
from memoryd.pipeline.plausibility import Doubt, Standing, clock_standing
from memoryd.workspace.layout import Home
from memoryd.workspace.restoring import is_lost

ANSWER_SECONDS: Final = 3.0
"""A daemon that does not answer within this has other worries; the rest of `status` is not kept waiting."""
LEAST_FREE_BYTES: Final = 64 * 1024
STORAGE_REMEDY: Final = "free some space or make the disk writable; memoryd goes on by itself"


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
        found.append(Finding("proposal_waiting", "info", message, f"memoryd review show {proposal.id}"))
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


async def of_limits(ledger: Ledger, settings: Settings, now: float) -> list[Finding]:
    """Tell which caps of the day are reached, and which providers want to be left alone."""
    found = []
    try:
        await ledger.read(spend.check_day, now=now, caps=caps_per_day(settings.limits))
    except BudgetSpent as error:
        found.append(Finding("budget_spent", "warning", error.message, error.remedy))
    for name in settings.providers:
        kept = await ledger.read(facts.get, name, "", facts.Fact.GATE)
        until = paused_until(kept or "", now)
        if until is not None:
            found.append(
                Finding(
                    "provider_paused",
                    "warning",
                    f"the provider {name} is left alone until {rfc3339(until)}: its limits say so",
                    "it is asked again by itself; a new key file ends the pause",
                )
            )
    return found


async def of_storage(home: Home, *, asks_daemon: bool, answer_seconds: float = ANSWER_SECONDS) -> list[Finding]:
    """Tell that nothing is claimed since the disk takes nothing: as the daemon says, else as the disk looks."""
    reason = (await _daemon_says(home.socket, answer_seconds) if asks_daemon else None) or _disk_says(home.path)
    return [Finding("storage_paused", "error", reason, STORAGE_REMEDY)] if reason else []


def _said_of(standing: Standing) -> str:
    now = rfc3339(standing.last.wall)
    if standing.doubt is Doubt.JUMPED and standing.believed is not None:
        return f"the clock says {now}, more than 30 days after it was last believed ({rfc3339(standing.believed.wall)})"
    return f"the clock says {now}, which is earlier than what the ledger holds"


async def _daemon_says(socket: Path, seconds: float) -> str | None:
    try:
        async with asyncio.timeout(seconds):
            said = await control_socket.ask(socket, {"do": "health"}, lambda _step: None)
    except (StorageError, TimeoutError, OSError):
        return None
    paused = said.get("paused")
    return None if paused is None else f"work is paused: {paused}"


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
