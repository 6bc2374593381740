"""Checks of `doctor`: what the machine gives: git, watches on folders, a service, room on the disk, a clock."""

import asyncio
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from memoryd.control.checked import Checked
from memoryd.control.console import moment, size_of
from memoryd.control.patient import Patient
from memoryd.control.service.examining import findings
from memoryd.control.sizes import sizes
from memoryd.daemon.house import configured_agents
from memoryd.errors import MemorydError
from memoryd.ledger.backups import ROOM
from memoryd.workspace.git import Repository

LIMITS: Final = Path("sys/fs/inotify")
ENOUGH: Final = 0.8
"""Share of the watches that the sessions folders may take: other programs want some too."""
MOST_FOLDERS: Final = 200_000
LEAST_FREE_BYTES: Final = 256 * 1024 * 1024
DAY_SECONDS: Final = 86_400.0
AHEAD_SECONDS: Final = DAY_SECONDS


async def check_git(patient: Patient) -> list[Checked]:
    """Name git's version, and say whether it is of use."""
    home = patient.home
    repo = Repository(home.git_dir, home.memories, environ=patient.environ)
    try:
        await asyncio.to_thread(repo.require_usable_git)
        said = await asyncio.to_thread(repo.output, "version")
    except MemorydError as error:
        return [Checked("git", "error", error.message, error.remedy)]
    return [Checked("git", "ok", (said or b"git").decode(errors="replace").strip())]


async def check_watcher(patient: Patient) -> list[Checked]:
    """Say whether the system can watch the sessions folders, so that changes are noticed at once."""
    roots = [root for agent in configured_agents(patient.settings, patient.environ).values() for root in agent.homes]
    folders = await asyncio.to_thread(_count_folders, roots)
    if not sys.platform.startswith("linux"):
        return [Checked("watcher", "ok", f"{folders:,} sessions folders are watched by the system's own events")]
    limits = patient.proc / LIMITS
    return [judge_watches(folders, _number(limits / "max_user_watches"), _number(limits / "max_user_instances"))]


def judge_watches(folders: int, watches: int | None, instances: int | None) -> Checked:
    """Compare the folders below the agents' homes with what one user may watch (inotify(7)); None: not known."""
    late = "changes are then noticed by the scan alone (discover.scan_interval)"
    if watches is None or instances is None:
        return Checked("watcher", "info", f"the system does not tell how many folders may be watched; {late}")
    seen = f"{folders:,} folders of {watches:,} that you may watch (fs.inotify.max_user_watches)"
    if folders > ENOUGH * watches:
        remedy = f"sudo sysctl fs.inotify.max_user_watches={max(524_288, 4 * folders)}; without it {late}"
        return Checked("watcher", "warning", f"the sessions lie in {seen}", remedy)
    if instances < 2:
        remedy = f"sudo sysctl fs.inotify.max_user_instances=512; without it {late}"
        return Checked("watcher", "warning", f"only {instances} programs of yours may watch folders", remedy)
    return Checked("watcher", "ok", f"the sessions lie in {seen}")


async def check_service(patient: Patient) -> list[Checked]:
    """Say whether memoryd starts with your session, and whether what is installed is as it should be."""
    return await asyncio.to_thread(findings, patient.home.path, patient.environ)


async def check_disk(patient: Patient) -> list[Checked]:
    """Say how much room there is, and whether a backup of the ledger fits."""
    found = await asyncio.to_thread(sizes, patient.home)
    free, ledger = found["free"], found["ledger"] or 0
    taken = sum(size or 0 for part, size in found.items() if part != "free")
    if free is None:
        return [Checked("disk", "info", f"memoryd takes {size_of(taken)}; what is free is not known")]
    seen = f"memoryd takes {size_of(taken)}, {size_of(free)} are free"
    if free < max(LEAST_FREE_BYTES, ROOM * ledger):
        return [Checked("disk", "warning", seen, "free some space: without room no backup is made, and work pauses")]
    return [Checked("disk", "ok", seen)]


async def check_clock(patient: Patient) -> list[Checked]:
    """Say what the clock says, and whether memoryd's own files come from its future."""
    now, home = patient.clock.now(), patient.home
    newest = max((_changed_at(path) for path in (home.ledger_file, home.config_file, home.lock_file)), default=0.0)
    if newest > now + AHEAD_SECONDS:
        evidence = f"the clock says {moment(now)}, and files of memoryd were written {moment(newest)}"
        return [Checked("clock", "warning", evidence, "set the clock right")]
    midnight = now - now % DAY_SECONDS + DAY_SECONDS
    return [Checked("clock", "ok", f"the clock says {moment(now)}; caps of a day begin anew at {moment(midnight)}")]


def _count_folders(roots: Iterable[Path]) -> int:
    count = 0
    for root in roots:
        for _folder, _folders, _names in os.walk(root):
            count += 1
            if count >= MOST_FOLDERS:
                return count
    return count


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
