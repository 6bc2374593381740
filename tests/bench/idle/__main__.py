"""Measure a daemon that has nothing to do, and write what was found to tests/bench/results/idle.{json,md}.

    python -m tests.bench.idle

A daemon with an agent and a provider, no session and a home of its own. Memory, CPU time and the voluntary context
switches of all its threads are read from /proc before and after a while; how long it takes until it is ready is
measured beside a bare interpreter that imports the same. No test runs this. Linux only.
"""

import argparse
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Self

from tests.support.process import Place

RESULTS = Path(__file__).parents[1] / "results"
STARTS = 7
SETTLE_SECONDS = 10.0
IDLE_SECONDS = 120.0
TICKS = os.sysconf("SC_CLK_TCK")
MEGABYTE = 1024 * 1024
MOST_MB = 64.0
MOST_CPU_PERCENT = 0.1
MOST_WAKEUPS = 3.0
MOST_READY_SECONDS = 1.0
PATIENCE_SECONDS = 60.0
IMPORTS = "from memoryd.control.main import load; load('run')"
PASS = "pass"


@dataclass(frozen=True, slots=True)
class Look:
    """What /proc says of a process: bytes of memory, seconds of CPU, voluntary context switches of all its threads."""

    rss: int
    cpu_seconds: float
    switches: int
    threads: int
    descriptors: int


@dataclass(frozen=True, slots=True)
class Idle:
    """A daemon at rest: what it has, and what it takes by the second."""

    rss_mb: float
    cpu_percent: float
    wakeups: float
    threads: int
    descriptors: int
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.idle", description=__doc__)
    parser.add_argument("--seconds", type=float, default=IDLE_SECONDS, help="how long to look")
    parser.add_argument("--starts", type=int, default=STARTS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = _a_place(Path(folder))
        starts = _starts(place, args.starts)
        idle = _idle(place, args.seconds)
    report = _report(starts, idle)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "idle.json").write_text(json.dumps(report, indent=2) + "\n")
    (RESULTS / "idle.md").write_text(_markdown(report))
    print(_markdown(report))
    return 0 if all(report["holds"].values()) else 1  # type: ignore[attr-defined]  # a table of booleans


def _a_place(folder: Path) -> Place:
    place = Place(folder, measured=False)
    (place.codex / "sessions").mkdir(parents=True)
    place.configure(base_url="http://127.0.0.1:9/v1")
    return place


def _starts(place: Place, count: int) -> dict[str, list[tuple[float, float]]]:
    """Time the start of a daemon and of what it is compared with, in turn: seconds by the clock and of CPU."""
    contenders: Mapping[str, Sequence[str]] = {
        "python -c pass": [sys.executable, "-c", PASS],
        "python with the same imports": [sys.executable, "-c", IMPORTS],
    }
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in [*contenders, "memoryd until READY"]}
    for turn in range(count + 1):
        for name, words in contenders.items():
            began, before = time.perf_counter(), os.times()
            subprocess.run(words, check=True, env=place.environ, cwd=Path(__file__).parents[3])
            after = os.times()
            spent = after.children_user + after.children_system - before.children_user - before.children_system
            if turn:  # the first ones warm the disk
                took[name].append((time.perf_counter() - began, spent))
        with _Daemon(place) as daemon:
            if turn:
                took["memoryd until READY"].append((daemon.ready_seconds, daemon.ready_cpu_seconds))
    return took


class _Daemon:
    """A daemon from its start to its end; a service manager of ours hears when it is ready."""

    def __init__(self, place: Place) -> None:
        address = place.folder / "notify"
        address.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(address))
            manager.settimeout(PATIENCE_SECONDS)
            began = time.perf_counter()
            environ = {**place.environ, "NOTIFY_SOCKET": str(address)}
            self._popen = subprocess.Popen(place.words("run"), env=environ, stderr=subprocess.DEVNULL)
            while b"READY=1" not in manager.recv(4096):
                pass
            self.ready_seconds = time.perf_counter() - began
            self.ready_cpu_seconds = look(self._popen.pid).cpu_seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._popen.send_signal(signal.SIGTERM)
        self._popen.wait(PATIENCE_SECONDS)

    @property
    def pid(self) -> int:
        return self._popen.pid


def _idle(place: Place, seconds: float) -> Idle:
    with _Daemon(place) as daemon:
        time.sleep(SETTLE_SECONDS)
        before, began = look(daemon.pid), time.monotonic()
        time.sleep(seconds)
        after, passed = look(daemon.pid), time.monotonic() - began
    return Idle(
        rss_mb=round(after.rss / MEGABYTE, 1),
        cpu_percent=round(100 * (after.cpu_seconds - before.cpu_seconds) / passed, 3),
        wakeups=round((after.switches - before.switches) / passed, 2),
        threads=after.threads,
        descriptors=after.descriptors,
        seconds=round(passed, 1),
    )


def look(pid: int) -> Look:
    """Look at a process once."""
    process = Path(f"/proc/{pid}")
    stat = (process / "stat").read_text().rpartition(")")[2].split()
    status = [task / "status" for task in (process / "task").iterdir()]
    switches = sum(int(line.split()[1]) for path in status for line in path.read_text().splitlines() if _is_wake(line))
    return Look(
        rss=int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
        cpu_seconds=(int(stat[11]) + int(stat[12])) / TICKS,
        switches=switches,
        threads=len(status),
        descriptors=len(list((process / "fd").iterdir())),
    )


def _is_wake(line: str) -> bool:
    return line.startswith("voluntary_ctxt_switches")


def _report(starts: Mapping[str, Sequence[tuple[float, float]]], idle: Idle) -> dict[str, object]:
    ready = {
        name: {
            "seconds": round(median(each[0] for each in took), 3),
            "cpu_seconds": round(median(each[1] for each in took), 3),
        }
        for name, took in starts.items()
    }
    daemon, imports = ready["memoryd until READY"], ready["python with the same imports"]
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "load": round(os.getloadavg()[0], 1),
        "idle": asdict(idle),
        "ready": ready,
        "ratio_to_imports": round(daemon["cpu_seconds"] / imports["cpu_seconds"], 2),
        "holds": {
            "memory": idle.rss_mb <= MOST_MB,
            "cpu": idle.cpu_percent <= MOST_CPU_PERCENT,
            "wakeups": idle.wakeups <= MOST_WAKEUPS,
            "ready": daemon["cpu_seconds"] <= MOST_READY_SECONDS,
        },
    }


def _markdown(report: Mapping[str, object]) -> str:
    idle, ready, holds = report["idle"], report["ready"], report["holds"]
    assert isinstance(idle, dict)
    assert isinstance(ready, dict)
    assert isinstance(holds, dict)
    ready_at = ready["memoryd until READY"]
    rows = [
        ("memory (RSS)", f"{idle['rss_mb']} MB", f"{MOST_MB:g} MB", holds["memory"]),
        ("CPU", f"{idle['cpu_percent']} %", f"{MOST_CPU_PERCENT} %", holds["cpu"]),
        ("wake-ups a second", f"{idle['wakeups']}", f"{MOST_WAKEUPS:g}", holds["wakeups"]),
        ("ready after (CPU time)", f"{ready_at['cpu_seconds']} s", f"{MOST_READY_SECONDS:g} s", holds["ready"]),
    ]
    return "\n".join(
        [
            "# A daemon at rest",
            "",
            f"{report['at']}, {report['machine']}, load {report['load']}; looked at for {idle['seconds']} s.",
            f"It has {idle['threads']} threads and {idle['descriptors']} descriptors.",
            "",
            "| | measured | at most | holds |",
            "|---|---|---|---|",
            *(f"| {name} | {value} | {most} | {'yes' if held else 'NO'} |" for name, value, most, held in rows),
            "",
            "| start | seconds by the clock | seconds of CPU |",
            "|---|---|---|",
            *(f"| {name} | {each['seconds']} | {each['cpu_seconds']} |" for name, each in ready.items()),
            "",
            f"Until it is ready a daemon takes {report['ratio_to_imports']} times the CPU time of its imports alone.",
            "Other work ran on the machine: seconds by the clock say little.",
            "",
            "Written by `python -m tests.bench.idle`.",
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
