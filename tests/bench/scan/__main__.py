"""Measure scans beside a bare walk, and write what was found to tests/bench/results/scan.{json,md}.

    python -m tests.bench.scan

The walk is os.scandir over the same folders with one stat a file, in the same process, turn by turn with what is
measured. Times are this process's own processor time, since other work on the machine counts in the time on the wall;
a ratio is the median of the rounds' ratios. A first scan is listing the folders and comparing every file with what is
known; no session is opened for it. What follows, a look at both ends of every file and its row in the ledger, is
measured apart. The session files are small ones, of Codex in folders by day, of Claude in fifty projects. No test runs
this.
"""

import argparse
import asyncio
import json
import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from memoryd import logs
from memoryd.clock import SystemClock
from memoryd.daemon.house import open_house
from memoryd.pipeline.discover import Discovery
from memoryd.sources.claude import ClaudeReader
from memoryd.sources.codex import CodexReader
from memoryd.sources.files import Survey, surveying
from memoryd.sources.reader import SessionReader
from tests.support.clock import FakeClock
from tests.support.house import PATH_ONLY, settings_in
from tests.support.sessions import a_thread_id, iso

RESULTS = Path(__file__).parents[1] / "results"
IDLE, FIRST = 100_000, 10_000
PER_DAY = 200
DAY = 86_400.0
FULL = 1_800.0


@dataclass(frozen=True, slots=True)
class Target:
    """A ratio to the bare walk that must not be passed."""

    name: str
    ratio: float
    at_most: float

    @property
    def met(self) -> bool:
        return self.ratio <= self.at_most


class Opened:
    """Counts the session files that this process opens."""

    def __init__(self) -> None:
        self.count = 0
        sys.addaudithook(self._see)

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and "rollout-" in str(arguments[0]):
            self.count += 1


def main() -> int:
    parser = argparse.ArgumentParser(description="scans beside a bare walk")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", type=Path, default=None, help="on which disk")
    options = parser.parse_args()
    logs.configure("json", "error")
    opened = Opened()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        first = asyncio.run(_first(Path(name) / "first", options.rounds))
        idle = asyncio.run(_idle(Path(name) / "idle", options.rounds, opened))
    targets = [
        Target(f"a first scan of {FIRST:,} unknown files of Codex", first["codex_ratio"], 1.5),
        Target(f"a first scan of {FIRST:,} unknown files of Claude", first["claude_ratio"], 1.5),
        Target(f"an idle full scan of {IDLE:,} known sessions", idle["full_ratio"], 1.5),
        Target(f"an idle quick scan of {IDLE:,} known sessions", idle["quick_ms"] / idle["walk_ms"], 1.5),
    ]
    report = {
        "machine": _machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "rounds": options.rounds,
        "first_scan": first,
        "idle_scan": idle,
        "targets": [asdict(target) | {"met": target.met} for target in targets],
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "scan.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    text = _markdown(report, targets)
    (RESULTS / "scan.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


async def _first(folder: Path, rounds: int) -> dict[str, float]:
    """Milliseconds of a walk, of a first scan, of a look at both ends of every file, and of all with the ledger."""
    fill(folder / "codex", FIRST)
    _as_claude(folder / "codex", folder / "claude")
    found: dict[str, float] = {"files": FIRST}
    for name, reader in (("codex", CodexReader()), ("claude", ClaudeReader())):
        home = folder / name
        _first_scan(reader, home)  # warms caches up
        pairs = [
            (_timed(lambda: walk_and_stat(home)), _timed(lambda: _first_scan(reader, home)))  # noqa: B023
            for _ in range(rounds)
        ]
        found[f"{name}_walk_ms"] = round(median(walk for walk, _ in pairs), 1)
        found[f"{name}_first_ms"] = round(median(scan for _, scan in pairs), 1)
        found[f"{name}_ratio"] = round(median(scan / walk for walk, scan in pairs), 2)
    looks, scans = [], []
    for number in range(2):
        looks.append(_timed(lambda: _look_at_all(CodexReader(), folder / "codex")))
        async with _house(folder / f"house-{number}", folder / "codex", SystemClock()) as context:
            scans.append(await _timed_scan(Discovery(context).run_once))
    return found | {"look_ms": round(min(looks), 1), "scan_with_every_file_opened_ms": round(min(scans), 1)}


def _first_scan(reader: SessionReader, home: Path) -> None:
    survey = Survey({})
    survey.begin(quick=False, now=0.0)
    with surveying(survey):
        changed, listed = survey.changed(reader.find([home]))
    assert len(changed) == listed == FIRST


def _look_at_all(reader: SessionReader, home: Path) -> None:
    for file in reader.find([home]):
        reader.head(file)
        reader.tail(file)


def _as_claude(codex: Path, home: Path) -> None:
    """Let the same files lie as Claude's do, in fifty projects."""
    projects = [home / "projects" / f"-home-dev-{number}" for number in range(50)]
    for project in projects:
        project.mkdir(parents=True)
    for number, path in enumerate(codex.rglob("*.jsonl")):
        (projects[number % 50] / f"{path.stem[-36:]}.jsonl").hardlink_to(path)


async def _idle(folder: Path, rounds: int, opened: Opened) -> dict[str, float]:
    """Milliseconds of a walk and of whole idle scans, quick and full, and how many files they opened."""
    fill(folder / "codex", IDLE)
    walks, quicks, fulls = [], [], []
    clock = FakeClock(datetime.now(UTC).timestamp() + 10 * DAY)  # nothing is recent
    async with _house(folder / "house", folder / "codex", clock) as context:
        discovery = Discovery(context)
        seen = await discovery.run_once()
        assert seen.opened == IDLE
        before = opened.count
        for number in range(rounds + 1):
            walk = _timed(lambda: walk_and_stat(folder / "codex"))
            quick = await _timed_scan(discovery.run_once)
            await clock.advance(FULL)
            full = await _timed_scan(discovery.run_once)
            if number > 0:
                walks.append(walk)
                quicks.append(quick)
                fulls.append(full)
    return {
        "files": IDLE,
        "walk_ms": round(median(walks), 1),
        "quick_ms": round(median(quicks), 2),
        "full_ms": round(median(fulls), 1),
        "full_ratio": round(median(full / walk for walk, full in zip(walks, fulls, strict=True)), 2),
        "session_files_opened": opened.count - before,
    }


def _house(folder: Path, codex: Path, clock: SystemClock | FakeClock) -> Any:
    folder.mkdir(parents=True)
    settings = settings_in(folder, sources__roots={"codex": [str(codex)]})
    return open_house(settings, clock=clock, environ=PATH_ONLY, role="bench")


async def _timed_scan(scan: Callable[[], Awaitable[object]]) -> float:
    begun = process_time()
    await scan()
    return (process_time() - begun) * 1000


def _timed(work: Callable[[], object]) -> float:
    begun = process_time()
    work()
    return (process_time() - begun) * 1000


def walk_and_stat(folder: Path) -> int:
    """List every folder and stat every file: the least that anybody must do who trusts no hint."""
    count, folders = 0, [os.fspath(folder)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    count += 1
    return count


def fill(home: Path, count: int) -> None:
    """Write so many small sessions, PER_DAY to a folder, the last of them a month ago."""
    end = datetime.now(UTC).timestamp() - 30 * DAY
    for number in range(count):
        at = end - number // PER_DAY * DAY - number % PER_DAY
        thread = a_thread_id(at, str(number))
        start = datetime.fromtimestamp(at, UTC)
        folder = home / "sessions" / start.strftime("%Y/%m/%d")
        if number % PER_DAY == 0:
            folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"rollout-{start:%Y-%m-%dT%H-%M-%S}-{thread}.jsonl"
        meta = {"id": thread, "timestamp": iso(at), "cwd": "/home/dev/shop", "source": "cli", "originator": "codex"}
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Use tabs."}]}
        records = ({"type": "session_meta", "payload": meta}, {"type": "response_item", "payload": said})
        path.write_text("".join(json.dumps({"timestamp": iso(at), **record}) + "\n" for record in records))
        os.utime(path, (at, at))


def _machine() -> dict[str, object]:
    return {
        "kind": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def _markdown(report: dict[str, Any], targets: list[Target]) -> str:
    first, idle = report["first_scan"], report["idle_scan"]
    machine = ", ".join(f"{name} {value}" for name, value in report["machine"].items())
    lines = [
        "# Scans, measured",
        "",
        f"{report['date']}; {machine}; {report['rounds']} rounds",
        "",
        "| processor time | files | ms |",
        "|---|---:|---:|",
        f"| bare scandir and stat, Codex | {FIRST:,} | {first['codex_walk_ms']} |",
        f"| first scan: listing and comparing, no file opened | {FIRST:,} | {first['codex_first_ms']} |",
        f"| bare scandir and stat, Claude | {FIRST:,} | {first['claude_walk_ms']} |",
        f"| first scan: listing and comparing, no file opened | {FIRST:,} | {first['claude_first_ms']} |",
        f"| a look at both ends of every file | {FIRST:,} | {first['look_ms']} |",
        f"| the same, with identity, judgement and ledger | {FIRST:,} | {first['scan_with_every_file_opened_ms']} |",
        f"| bare scandir and stat | {IDLE:,} | {idle['walk_ms']} |",
        f"| idle quick scan, once a discover.scan_interval | {IDLE:,} | {idle['quick_ms']} |",
        f"| idle full scan, once a discover.full_scan_interval | {IDLE:,} | {idle['full_ms']} |",
        "",
        f"Session files opened by {2 * (report['rounds'] + 1)} idle scans: {idle['session_files_opened']}.",
        "",
        "| target, to the bare walk | measured | at most | |",
        "|---|---:|---:|---|",
    ]
    lines += [
        f"| {target.name} | {target.ratio:.2f} | {target.at_most} | {'met' if target.met else 'missed'} |"
        for target in targets
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
