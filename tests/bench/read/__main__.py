"""Measure the readers, and write what was found to tests/bench/results/read.{json,md}.

    uv run --group bench python -m tests.bench.read        (or: pip install orjson; python -m tests.bench.read)

Each agent's session of `--megabytes` is read to its end by memoryd (reading alone; with gathering of evidence; with
redaction, too), and decoded line by line by json and orjson: all in one process, turn by turn. Speeds are medians of
megabytes a second of this process's own processor time, since other work on the machine counts in the time on the
wall; a ratio is the median of the rounds' ratios, each of two neighbours in time. What is read of a store is compared
with decoding the documents of its rows. `evidence` is the share of the bytes that comes out as text. Peak memory is
that of a process of its own which reads, gathers and redacts. Without orjson its column is left out. No test runs this.

A Python that was compiled without profile-guided optimisation (pyenv's, unless told to) is slower in all that is not C,
and shows ratios that are lower by a seventh: what distributions, uv and python.org hand out is optimised.
"""

import argparse
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from memoryd.pipeline.evidence import gather
from memoryd.redact import Redacted, Redactor
from memoryd.sources.items import SessionFile
from memoryd.sources.readers import READERS
from tests.bench.read.sessions import write_session

RESULTS = Path(__file__).parents[1] / "results"
MEGABYTE = 1_000_000
BUDGET_TOKENS = 150_000
WANTED = 2.0
LARGEST_GROWTH = 1.25  # of peak memory from the small session to one of ten times its size

Work = Callable[[], object]


class NoRedactor(Redactor):
    """Takes nothing out: what is left is the cost of reading and gathering."""

    def redact(self, text: str) -> Redacted:
        return Redacted(text)

    def clean(self, text: str) -> str:
        return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--large", type=int, default=600, help="megabytes of the session that shows memory use")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--agents", nargs="*", choices=sorted(READERS), default=sorted(READERS))
    parser.add_argument("--folder", type=Path, default=None, help="on which disk")
    parser.add_argument("--measure", nargs=2, metavar=("AGENT", "HOME"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return _print_peak(*options.measure)
    rows: dict[str, dict[str, float]] = {}
    for agent in options.agents:
        rows[agent] = _speeds(agent, options) | _peaks(agent, options)
        print(agent, rows[agent], flush=True)
    report = {
        "machine": _machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "rounds": options.rounds,
        "megabytes": options.megabytes,
        "large_megabytes": options.large,
        "agents": rows,
    }
    if set(options.agents) == set(READERS):
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "read.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        (RESULTS / "read.md").write_text(_markdown(report, rows), encoding="utf-8")
    print(_markdown(report, rows))
    return 0


def _speeds(agent: str, options: argparse.Namespace) -> dict[str, float]:
    """Return megabytes a second of each way to read one session, the contenders taking turns."""
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        path = write_session(agent, Path(name), options.megabytes * MEGABYTE)
        (file,) = READERS[agent].find([Path(name)])
        contenders: dict[str, Work] = {"json": lambda: _decode(path, json.loads)}
        if orjson := _orjson():
            contenders["orjson"] = lambda: _decode(path, orjson.loads)
        contenders["read"] = lambda: _read(agent, file)
        contenders["gather"] = lambda: _gather(agent, file, NoRedactor())
        contenders["redact"] = lambda: _gather(agent, file, Redactor())
        sizes = [len(line) for line in _documents(path)]
        megabytes = sum(sizes) / MEGABYTE
        facts = {"row_bytes": round(sum(sizes) / len(sizes)), "evidence": round(_evidence(agent, file) / sum(sizes), 3)}
        taken: dict[str, list[float]] = {contender: [] for contender in contenders}
        on_the_wall: dict[str, list[float]] = {contender: [] for contender in contenders}
        for _ in range(options.rounds):
            for contender, work in contenders.items():
                begun, began = perf_counter(), process_time()
                work()
                taken[contender].append(process_time() - began)
                on_the_wall[contender].append(perf_counter() - begun)
    ratios = [one / other for one, other in zip(taken["json"], taken["read"], strict=True)]
    walls = [one / other for one, other in zip(on_the_wall["json"], on_the_wall["read"], strict=True)]
    spread = {
        "ratio": median(ratios),
        "ratio_least": min(ratios),
        "ratio_most": max(ratios),
        "wall_ratio": median(walls),
    }
    speeds = {contender: round(megabytes / median(times), 1) for contender, times in taken.items()}
    return facts | speeds | {name: round(value, 2) for name, value in spread.items()}


def _evidence(agent: str, file: SessionFile) -> int:
    with READERS[agent].read(file) as reading:
        return sum(len(item.text.encode()) for item in reading)


def _peaks(agent: str, options: argparse.Namespace) -> dict[str, float]:
    """Return peak memory in megabytes: of the imports alone, of a session, and of one of many times its size."""
    peaks: dict[str, float] = {}
    for name, megabytes in (("idle_mb", 0), ("peak_mb", options.megabytes), ("large_peak_mb", options.large)):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            if megabytes:
                write_session(agent, Path(folder), megabytes * MEGABYTE)
            command = [sys.executable, "-m", "tests.bench.read", "--measure", agent, folder]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            peaks[name] = round(float(done.stdout), 1)
    return peaks


def _print_peak(agent: str, home: str) -> int:
    for file in READERS[agent].find([Path(home)]):
        READERS[agent].head(file)
        READERS[agent].tail(file)
        _gather(agent, file, Redactor())
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    print(next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024 / MEGABYTE)
    return 0


def _decode(path: Path, loads: Callable[[bytes], Any]) -> int:
    return sum(1 for line in _documents(path) if loads(line) is not None)


def _documents(path: Path) -> Iterator[bytes]:
    """Yield the lines of a session's file, or the documents of a store's rows."""
    if path.suffix != ".db":
        with path.open("rb") as file:
            yield from file
        return
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        for table in ("message", "part"):
            for (data,) in store.execute(f"SELECT data FROM {table}"):
                yield data.encode()


def _read(agent: str, file: SessionFile) -> int:
    with READERS[agent].read(file) as reading:
        items = sum(1 for _ in reading)
        assert (reading.bad_lines, sum(reading.unknown.values())) == (0, 0), reading.unknown
    return items


def _gather(agent: str, file: SessionFile, redactor: Redactor) -> int:
    with READERS[agent].read(file) as reading:
        evidence = gather(
            reading, redactor=redactor, private_tags=["private"], home=Path("/home/dev/.memoryd"),
            budget_tokens=BUDGET_TOKENS,
        )  # fmt: skip
    assert evidence.human_messages
    return evidence.items_kept


def _orjson() -> Any:
    try:
        return import_module("orjson")
    except ImportError:
        return None


def _machine() -> dict[str, object]:
    return {
        "kind": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "free_gb": shutil.disk_usage(tempfile.gettempdir()).free // 10**9,
    }


def _markdown(report: dict[str, Any], rows: dict[str, dict[str, float]]) -> str:
    small, large = report["megabytes"], report["large_megabytes"]
    machine = ", ".join(f"{key} {value}" for key, value in report["machine"].items())
    lines = [
        "# Reading sessions, measured",
        "",
        f"{report['date']}; {machine}; {report['rounds']} rounds; a session of {small} MB; processor time",
        "",
        "| MB/s | bytes a row | evidence | json | orjson | reads | gathers | redacts | reading/json (spread; wall) | |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for agent, row in rows.items():
        verdict = "met" if row["ratio"] >= WANTED else f"missed (at least {WANTED:g})"
        speeds = " | ".join(str(row.get(name, "")) for name in ("json", "orjson", "read", "gather", "redact"))
        spread = f"{row['ratio']} ({row['ratio_least']} to {row['ratio_most']}; {row['wall_ratio']})"
        shape = f"{row['row_bytes']} | {100 * row['evidence']:.0f} %"
        lines.append(f"| {agent} | {shape} | {speeds} | {spread} | {verdict} |")
    lines += ["", f"| peak memory, MB | imports | {small} MB | {large} MB | |", "|---|---:|---:|---:|---|"]
    for agent, row in rows.items():
        verdict = "met" if row["large_peak_mb"] <= LARGEST_GROWTH * row["peak_mb"] else "missed"
        lines.append(f"| {agent} | {row['idle_mb']} | {row['peak_mb']} | {row['large_peak_mb']} | {verdict} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
