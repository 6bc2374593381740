"""Measure the ledger, and write what was found to tests/bench/results/ledger.{json,md}.

    uv run --group bench python -m tests.bench.ledger        (or: pip install litequeue; python -m tests.bench.ledger)

All contenders run in one process, turn by turn, on the disk of `--folder` (default: the system's temporary one). A
ratio is the median of the rounds' own ratios, with their quartiles: what loads the machine meanwhile loads both.
Processor time, of all threads, stands beside the elapsed one. Without litequeue its lines are left out. No test runs
this.
"""

import argparse
import json
import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean, median, quantiles
from time import perf_counter, process_time

from tests.bench.ledger.rivals import OurLedger, Rival, rivals

RESULTS = Path(__file__).parents[1] / "results"
HISTORY = (0, 1_000, 100_000)
SESSIONS = 10_000
BESIDE_SQLITE = (
    ("memoryd, 1/2", "sqlite3, 1"),
    ("memoryd, 1", "sqlite3, 1"),
    ("memoryd, 2", "sqlite3, 2"),
    ("memoryd, 1", "statements, 1"),
)
BESIDE_LITEQUEUE = (
    ("memoryd, 1/2", "litequeue, 2"),
    ("memoryd, 1/2", "litequeue, 3"),
    ("memoryd, 1", "litequeue, 2"),
    ("memoryd, 2", "litequeue, 2"),
)


WHAT_EACH_DOES = (
    "What each does for a job, after which its result is acknowledged:",
    "",
    "- memoryd, 2: claims (leases looked at, token and epoch, a row for the run), and ends with the output stored, the",
    "  session marked as read, consolidation asked for, and the run's outcome. memoryd, 1: who ends a job claims the",
    "  next in the same transaction. memoryd, 1/2: two workers who do that, committed together: how the daemon works",
    "  unless told otherwise, and what the ledger is judged by.",
    "- sqlite3, 2: one statement marks the job as running, two end it and store the output. sqlite3, 1: with the",
    "  next claim in the same transaction. Both with the ledger's pragmas.",
    "- statements, 1: all that memoryd, 1, does, by the ledger's own functions, but without the way to its thread.",
    "- litequeue, 2: pop, then the output put and the job done in one transaction, in one file: its equivalent of an",
    "  acknowledged result. litequeue, 3: pop, put into a file of its own, done. It has no leases, sessions or runs.",
)
"""The lines between the first two tables."""


@dataclass(frozen=True, slots=True)
class Target:
    """A ratio that must be reached; `at_most`: that must not be passed."""

    name: str
    ratio: float
    wanted: float
    quartiles: tuple[float, float] | None = None
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.ratio <= self.wanted if self.at_most else self.ratio >= self.wanted


@dataclass(frozen=True, slots=True)
class Taken:
    """Microseconds a job of one contender: elapsed in each round, and of processors over all rounds."""

    elapsed: list[float]
    processor: float

    @property
    def summary(self) -> dict[str, float]:
        lower, middle, upper = (round(value, 1) for value in quantiles(self.elapsed, n=4))
        return {"median": middle, "lower": lower, "upper": upper, "processor": round(self.processor, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description="the ledger beside bare sqlite3 and litequeue")
    parser.add_argument("--rounds", type=int, default=15, help="at least 9")
    parser.add_argument("--jobs", type=int, default=100, help="jobs of each contender in each round")
    parser.add_argument("--folder", type=Path, default=None, help="on which disk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        throughput = {mode: _throughput(folder, mode, options.rounds, options.jobs) for mode in ("FULL", "NORMAL")}
        claims = _claim_latency(folder, options.rounds)
        enqueued = _enqueue(folder)
    report = {
        "machine": _machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "rounds": options.rounds,
        "jobs_per_round": options.jobs,
        "claim_and_complete_us": {
            mode: {name: taken.summary for name, taken in all_taken.items()} for mode, all_taken in throughput.items()
        },
        "claim_us_by_finished_rows": claims,
        "enqueue_10000_sessions_s": enqueued,
        "targets": [asdict(target) | {"met": target.met} for target in _targets(throughput, claims)],
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "ledger.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    text = _markdown(report, _targets(throughput, claims))
    (RESULTS / "ledger.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def _machine() -> dict[str, object]:
    load = os.getloadavg()[0]
    return {
        "kind": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": round(load, 1),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def _throughput(folder: Path, synchronous: str, rounds: int, jobs: int) -> dict[str, Taken]:
    """Measure one claim and completion with a 3 KB output, by contender."""
    contenders: dict[str, Rival] = {
        name: make(folder / f"{name.replace('/', '-')}-{synchronous}", synchronous)  # type: ignore[call-arg]  # all three
        for name, make in rivals().items()
    }
    elapsed: dict[str, list[float]] = {name: [] for name in contenders}
    processor: dict[str, list[float]] = {name: [] for name in contenders}
    for name, contender in contenders.items():
        _warm_up(contender, partial(_log_size, folder, f"{name.replace('/', '-')}-{synchronous}"), jobs)
    for _ in range(rounds):
        for name, contender in contenders.items():
            contender.fill(jobs)
            begun = process_time()
            seconds = _timed(lambda contender=contender: contender.work(jobs))  # type: ignore[misc]  # bound at once
            elapsed[name].append(seconds / jobs * 1e6)
            processor[name].append((process_time() - begun) / jobs * 1e6)
    for contender in contenders.values():
        contender.close()
    return {name: Taken(elapsed[name], fmean(processor[name])) for name in contenders}


def _warm_up(contender: Rival, log_size: Callable[[], int], jobs: int) -> None:
    """Work until the log is written over in place, as it is ever after: to sync a file that grows costs more.

    How soon that is depends on how much a contender writes.
    """
    before, now = -1, 0
    while now > before:
        contender.fill(jobs)
        contender.work(jobs)
        before, now = now, log_size()


def _log_size(folder: Path, name: str) -> int:
    """Bytes of the logs of one contender."""
    return sum(path.stat().st_size for path in folder.glob(f"{name}*-wal"))


def _claim_latency(folder: Path, rounds: int) -> dict[str, float]:
    """Microseconds of a claim beside so many finished rows, by their number; the ledgers take turns."""
    ledgers = {finished: OurLedger(folder / f"claims-{finished}", "FULL") for finished in HISTORY}
    for finished, ledger in ledgers.items():
        ledger.finish(finished)
        ledger.fill(20)
    taken: dict[int, list[float]] = {finished: [] for finished in HISTORY}
    for _ in range(rounds):
        for finished, ledger in ledgers.items():
            taken[finished].append(median(ledger.claim_and_release(20, perf_counter)) * 1e6)
    for ledger in ledgers.values():
        ledger.close()
    return {str(finished): round(median(values), 1) for finished, values in taken.items()}


def _enqueue(folder: Path) -> float:
    ledger = OurLedger(folder / "enqueue", "FULL")
    seconds = _timed(lambda: ledger.fill(SESSIONS))
    ledger.close()
    return round(seconds, 3)


def _timed(work: Callable[[], None]) -> float:
    begun = perf_counter()
    work()
    return perf_counter() - begun


def _targets(throughput: dict[str, dict[str, Taken]], claims: dict[str, float]) -> list[Target]:
    full, normal = throughput["FULL"], throughput["NORMAL"]
    targets = [_speed("of bare sqlite3 at FULL", full, theirs, ours, 0.6) for ours, theirs in BESIDE_SQLITE]
    if "litequeue, 2" in normal:
        targets += [_speed("of litequeue at NORMAL", normal, theirs, ours, 0.75) for ours, theirs in BESIDE_LITEQUEUE]
    ratio = claims["100000"] / claims["0"]
    targets.append(Target("a claim beside 100,000 finished rows, to one beside none", ratio, 2.0, at_most=True))
    return targets


def _speed(what: str, taken: dict[str, Taken], theirs: str, ours: str, wanted: float) -> Target:
    """Our speed as a part of theirs, round by round."""
    pairs = zip(taken[theirs].elapsed, taken[ours].elapsed, strict=True)
    lower, middle, upper = quantiles((of_them / of_us for of_them, of_us in pairs), n=4)
    return Target(f"{what}: {ours} to {theirs}", middle, wanted, (lower, upper))


def _markdown(report: dict[str, object], targets: list[Target]) -> str:
    lines = [
        "# The ledger, measured",
        "",
        f"{report['date']}; {_words(report['machine'])}; {report['rounds']} rounds",
        "",
    ]
    lines += [
        "| claim and complete, 3 KB output (us a job; quartiles; processor), transactions a job | FULL | NORMAL |",
        "|---|---:|---:|",
    ]
    throughput = report["claim_and_complete_us"]
    assert isinstance(throughput, dict)
    lines += [
        f"| {name} | {_row(us)} | {_row(throughput['NORMAL'][name])} |" for name, us in throughput["FULL"].items()
    ]
    lines += ["", *WHAT_EACH_DOES]
    claims = report["claim_us_by_finished_rows"]
    assert isinstance(claims, dict)
    lines += ["", "| finished rows | claim (us) |", "|---:|---:|"]
    lines += [f"| {int(rows):,} | {us} |" for rows, us in claims.items()]
    lines += ["", f"Enqueueing {SESSIONS:,} sessions takes {report['enqueue_10000_sessions_s']} s.", ""]
    lines += ["| target | measured | wanted | |", "|---|---:|---:|---|"]
    for target in targets:
        bound = "at most" if target.at_most else "at least"
        spread = "" if target.quartiles is None else f" ({target.quartiles[0]:.2f} to {target.quartiles[1]:.2f})"
        verdict = "met" if target.met else "missed"
        lines.append(f"| {target.name} | {target.ratio:.2f}{spread} | {bound} {target.wanted} | {verdict} |")
    return "\n".join(lines) + "\n"


def _row(us: dict[str, float]) -> str:
    return f"{us['median']:.0f} ({us['lower']:.0f} to {us['upper']:.0f}; {us['processor']:.0f})"


def _words(machine: object) -> str:
    assert isinstance(machine, dict)
    return ", ".join(f"{name} {value}" for name, value in machine.items())


if __name__ == "__main__":
    sys.exit(main())
