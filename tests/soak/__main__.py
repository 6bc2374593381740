"""Let a daemon live through much in a short time, and judge whether it stays as it was: memory, descriptors, disk.

    python -m tests.soak --minutes 30          # writes tests/bench/results/soak.{md,json}
    python -m tests.soak --minutes 3 --no-report

Settings are those that are shipped, 60 times faster; 2,000 sessions arrive in 30 minutes, agents delete files, the
provider fails in several ways, the process is stopped for longer than a lease, settings are read anew, notes written.
The verdicts are about flatness, not speed. Ends with 0 when all of them hold. Linux only (/proc).
"""

import argparse
import json
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.soak.gauges import Sample, look
from tests.soak.verdicts import MEGABYTE, Verdict, flatness, thinned
from tests.soak.world import SECRET, SENTINEL, SETTINGS, World
from tests.support.model_server import ModelServer
from tests.support.process import STAGE1_KIND, Place, Process

RESULTS = Path(__file__).parents[1] / "bench" / "results"
SESSIONS_A_MINUTE = 2_000 / 30
SAMPLE_SECONDS = 2.0
SETTLE_SECONDS = 90.0
"""After the last session: what waits for a retry may still come."""
NEVER = ("service.crashed", "job.crashed", "daemon.exhausted", "ledger.replaced", "usage.exceeded", "stage.stalled")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--no-report", action="store_true", help="print the verdicts alone")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memoryd-soak-") as folder:
        report = _soak(Path(folder), args.minutes)
    if not args.no_report:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "soak.json").write_text(json.dumps(report, indent=2) + "\n")
        (RESULTS / "soak.md").write_text(_markdown(report))
    print(_markdown(report))
    return 0 if report["holds"] else 1


def _soak(folder: Path, minutes: float) -> dict[str, Any]:
    place = Place(folder, measured=False)
    (place.codex / "sessions").mkdir(parents=True)
    sessions = round(minutes * SESSIONS_A_MINUTE)
    with ModelServer() as server:
        place.configure(base_url=server.base_url, kind="openai", key=None, **SETTINGS)
        _hurry_provider(place)
        with place.start(*place.words("run", "--log-format", "json")) as daemon:
            daemon.wait_for_event("daemon.started")
            world = World(place, server, daemon, minutes * 60, sessions)
            samples = _samples(world)
            left = _settle(place, daemon)
            code = daemon.terminate() if daemon.is_running else daemon.wait()
            lines = daemon.output.splitlines()
    verdicts = [*flatness(samples), *_sound(place, daemon, lines, code, left)]
    return _report(minutes, world, samples, verdicts, daemon)


def _hurry_provider(place: Place) -> None:
    """Two seconds are two minutes here."""
    file = place.home / "config.toml"
    file.write_text(file.read_text().replace('timeout = "60s"', 'timeout = "2s"'))


def _samples(world: World) -> list[Sample]:
    samples: list[Sample] = []
    began = time.monotonic()

    def sample() -> None:
        if samples and time.monotonic() - began - samples[-1].at < SAMPLE_SECONDS:
            return
        samples.append(look(world.daemon.pid, world.place.home, began=began, sessions=world.happened.recorded))

    world.live(sample)
    return samples


def _settle(place: Place, daemon: Process) -> int:
    """Wait until nothing is left to do, and return how many jobs are."""
    ends_at = time.monotonic() + SETTLE_SECONDS
    while daemon.is_running and time.monotonic() < ends_at and _left(place):
        time.sleep(1.0)
    return _left(place)


def _left(place: Place) -> int:
    return int(place.query("SELECT count(*) FROM jobs WHERE kind = ? AND status <> 'done'", STAGE1_KIND)[0][0])


def _sound(place: Place, daemon: Process, lines: Sequence[str], code: int, left: int) -> list[Verdict]:
    """Judge that the daemon lived to the end, did its work, and said nothing that it must not."""
    events = Counter(event["event"] for event in daemon.events())
    for event in daemon.events():
        if event["event"] in NEVER:
            print(json.dumps(event), file=sys.stderr)  # a verdict names no place
    done = int(place.query("SELECT count(*) FROM jobs WHERE kind = ? AND status = 'done'", STAGE1_KIND)[0][0])
    stray = [line for line in lines if not line.startswith('{"schema"')]
    spoken = sum(SENTINEL in line or SECRET in line for line in lines)
    check = place.query("PRAGMA integrity_check")[0][0]
    return [
        Verdict("the daemon ended with", code, 0, ""),
        Verdict("faults and bounds passed", sum(events[name] for name in NEVER), 0, ""),
        Verdict("lines that are no event", len(stray), 0, ""),
        Verdict("lines with a word or a secret of a session", spoken, 0, ""),
        Verdict("complaints of the integrity check", 0 if check == "ok" else 1, 0, ""),
        Verdict("sessions neither done nor gone at the end, in %", round(100 * left / max(1, done + left), 1), 5, "%"),
        Verdict("published no memory", 0 if events["consolidation.published"] else 1, 0, ""),
    ]


def _report(
    minutes: float, world: World, samples: Sequence[Sample], verdicts: Sequence[Verdict], daemon: Process
) -> dict[str, Any]:
    events = Counter(event["event"] for event in daemon.events())
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "minutes": minutes,
        "happened": asdict(world.happened),
        "cpu_seconds": round(samples[-1].cpu_seconds, 1),
        "events": dict(sorted(events.items())),
        "verdicts": [{**asdict(each), "holds": each.holds} for each in verdicts],
        "holds": all(each.holds for each in verdicts),
        "samples": [asdict(each) for each in thinned(samples)[:: max(1, len(thinned(samples)) // 60)]],
    }


def _markdown(report: dict[str, Any]) -> str:
    happened = ", ".join(f"{value} {name}" for name, value in report["happened"].items())
    rows = [
        f"| {each['name']} | {each['value']:g} {each['unit']} | {each['most']:g} {each['unit']} | "
        f"{'yes' if each['holds'] else 'NO'} |"
        for each in report["verdicts"]
    ]
    course = [
        f"| {each['at'] / 60:.1f} | {each['sessions']} | {each['rss'] / MEGABYTE:.1f} | {each['descriptors']} | "
        f"{each['threads']} | {each['wal'] / MEGABYTE:.2f} | {each['ledger'] / MEGABYTE:.2f} | "
        f"{each['history'] / MEGABYTE:.2f} | {each['loose_objects']} |"
        for each in report["samples"][:: max(1, len(report["samples"]) // 20)]
    ]
    return "\n".join(
        [
            "# Soak",
            "",
            f"{report['at']}, {report['machine']}; {report['minutes']:g} minutes with settings 60 times faster.",
            f"The world: {happened}. The daemon took {report['cpu_seconds']} s of CPU.",
            "",
            f"Verdict: {'everything holds' if report['holds'] else 'NOT everything holds'}.",
            "",
            "| After the warm-up | measured | at most | holds |",
            "|---|---|---|---|",
            *rows,
            "",
            "| minute | sessions | MB | descriptors | threads | log MB | ledger MB | history MB | loose objects |",
            "|---|---|---|---|---|---|---|---|---|",
            *course,
            "",
            "Written by `python -m tests.soak`.",
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
