"""Measure the hook, and write what was found to tests/bench/results/hook.{json,md}.

    python -m tests.bench.hook

Each run starts the runner as an agent does (its shell, its interpreter, stdin with a request, stdout read), then, in
turn, `python -c pass` of the same interpreter, and the very same through a shell. No test runs this.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from memoryd.recall.ready import Circumstances, refresh
from memoryd.recall.runner import install_runner
from memoryd.sections import Recall
from memoryd.workspace.layout import Home, prepare

RESULTS = Path(__file__).parents[1] / "results"
RUNS = 200
PROJECTS = 100
MOST_TIMES_BARE = 2.0
MOST_MS = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.hook", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        took, size = _measure(Path(folder), runs)
    report = _report(took, size, runs)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "hook.json").write_text(json.dumps(report, indent=2) + "\n")
    (RESULTS / "hook.md").write_text(_markdown(report))
    print(_markdown(report))
    return 0 if report["ratio_met"] and report["median_met"] else 1


def _measure(folder: Path, runs: int) -> tuple[dict[str, list[float]], int]:
    home = _a_home(folder / "home")
    work = folder / "work"
    (work / ".git").mkdir(parents=True)
    (work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    request = json.dumps({"session_id": "s", "cwd": str(work), "hook_event_name": "SessionStart", "source": "startup"})
    command = '"$1" claude SessionStart 2>/dev/null; exit 0'
    contenders: Mapping[str, Sequence[str]] = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "the runner": [str(home.bin / "hook"), "claude", "SessionStart"],
        "the runner, as connect writes it": ["sh", "-c", command, "-", str(home.bin / "hook")],
    }
    took: dict[str, list[float]] = {name: [] for name in contenders}
    size = 0
    for turn in range(runs + 3):
        for name, words in contenders.items():
            started = perf_counter()
            done = subprocess.run(words, input=request.encode(), capture_output=True, check=True)
            if turn >= 3:  # the first ones warm the disk
                took[name].append((perf_counter() - started) * 1000)
            size = max(size, len(done.stdout))
    return took, size


def _a_home(path: Path) -> Home:
    home = Home(path)
    prepare(home)
    scopes = "".join(
        f"### /src/project-{n}\n\n#### 2026-11-29\n\n- topic {n}: words\n  - desc: {'so it is said ' * 20}\n\n"
        for n in range(PROJECTS)
    )
    (home.memories / "memory_summary.md").write_text(
        "v1\n\n## User Profile\n\nA person.\n\n## User preferences\n\n- Use tabs.\n\n## General Tips\n\n"
        f"## What's in Memory\n\n{scopes}### Older Memory Topics\n"
    )
    refresh(home, "a" * 40, Circumstances(Recall()))
    install_runner(home)
    return home


def _report(took: Mapping[str, Sequence[float]], size: int, runs: int) -> dict[str, object]:
    bare = median(took["python -c pass"])
    slowest = max(median(times) for name, times in took.items() if name != "python -c pass")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "runs": runs,
        "bytes_printed": size,
        "ms": {
            name: {"median": round(median(times), 2), "p99": round(quantiles(times, n=100)[98], 2)}
            for name, times in took.items()
        },
        "ratio": round(slowest / bare, 2),
        "ratio_met": slowest / bare <= MOST_TIMES_BARE,
        "median_met": slowest < MOST_MS,
    }


def _markdown(report: Mapping[str, object]) -> str:
    rows = report["ms"]
    assert isinstance(rows, dict)
    lines = ["# The hook, measured", "", f"{report['date']}; Python {report['python']}, {report['machine']}; "]
    lines[-1] += (
        f"{report['runs']} runs, turn by turn; {report['bytes_printed']} bytes printed; {PROJECTS} projects known"
    )
    lines += ["", "| | median (ms) | p99 (ms) |", "|---|---:|---:|"]
    lines += [f"| {name} | {row['median']} | {row['p99']} |" for name, row in rows.items()]
    met: dict[object, str] = {True: "met", False: "missed"}
    lines += [
        "",
        "| target | measured | wanted | |",
        "|---|---:|---:|---|",
        f"| the slower, to bare Python | {report['ratio']} | at most {MOST_TIMES_BARE} | {met[report['ratio_met']]} |",
        f"| the slower median | see above | under {MOST_MS:g} ms | {met[report['median_met']]} |",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
