"""Measure the MCP server, and write what was found to tests/bench/results/mcp.{json,md}.

    python -m tests.bench.mcp

The official client starts the server over standard input and output as an agent does, several times for the start, and
once for a thousand calls, between which the server's resident memory and open descriptors are read. No test runs this.
"""

import argparse
import asyncio
import contextlib
import importlib.metadata
import io
import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from mcp import Client, StdioServerParameters

from memoryd.clock import SystemClock
from memoryd.control.main import main as command_line
from tests.support.mcp_client import environ, words
from tests.support.sessions import Turn, a_rollout

RESULTS = Path(__file__).parents[1] / "results"
CALLS, STARTS, SESSIONS = 1_000, 10, 60
WARM_CALLS = 200
MOST_GROWTH_KIB = 3_000
"""Steps of 2 MB seem to come from the interpreter: Python 3.11's pathlib interns the parts of each path, and the table
of what is interned, one block of 1.9 MB, is made anew. From 800 to 4,000 calls tracemalloc shows that one block and
some kilobytes besides. Of 10,000 calls the first 7,000 added 5.4 MB, mostly in such steps, the last 3,000 nothing."""
CWD = "/home/dev/shop"
TOOLS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "search, ranked": ("search", {"query": "which flag do the checks of the service take?"}),
    "search, literal": ("search", {"queries": ["--check-7"], "mode": "any", "context_lines": 1}),
    "read": ("read", {"path": "MEMORY.md", "max_lines": 200}),
    "list": ("list", {"path": "rollout_summaries"}),
    "why": ("why", {"statement": "flag of the checks of service 7"}),
    "a refusal": ("read", {"path": "../config.toml"}),
}
NOTE = ("note", {"text": "Deploy the shop with make release."})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.mcp", description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--starts", type=int, default=STARTS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = _remembering(Path(folder))
        starts = [asyncio.run(_start(home, Path(folder) / "pid")) for _ in range(args.starts)]
        took, marks = asyncio.run(_many(home, Path(folder) / "pid", args.calls))
    report = _report(starts, took, marks, args.calls)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "mcp.json").write_text(json.dumps(report, indent=2) + "\n")
    (RESULTS / "mcp.md").write_text(_markdown(report))
    print(_markdown(report))
    return 0 if report["growth_met"] else 1


def _remembering(folder: Path) -> Path:
    """Make a home whose memory holds the sessions of a quarter, by the offline writer."""
    home, codex = folder / "home", folder / "codex"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f'[sources]\nagents = ["codex"]\nroots = {{ codex = ["{codex}"] }}\n')
    for number in range(SESSIONS):
        said = f"Always run the checks of service {number} with --check-{number}."
        turns = (Turn(said, "Understood."), Turn(f"Never deploy service {number} on Fridays.", "Noted."))
        a_rollout(codex, now=SystemClock().now(), idle_hours=7.0 + number, cwd=CWD, turns=turns)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        command_line(["sync", "--home", str(home), "--now", "--backfill", "all"])
    return home


def _parameters(home: Path, pid: Path) -> StdioServerParameters:
    """Start the server through a shell that leaves its process id, which the client does not tell."""
    script = 'echo $$ > "$0"; exec "$@"'
    return StdioServerParameters(
        command="sh", args=["-c", script, str(pid), *words(home)], env=environ(home), cwd=str(home)
    )


async def _start(home: Path, pid: Path) -> dict[str, float]:
    began = perf_counter()
    async with Client(_parameters(home, pid)) as client:
        greeted = perf_counter() - began
        await client.call_tool(*TOOLS["search, ranked"])
        answered = perf_counter() - began
        memory, files = _facts(pid)
        cpu = _cpu_seconds(pid)
    return {
        "cpu": cpu,
        "greeted": greeted,
        "answered": answered,
        "ended": perf_counter() - began,
        "kib": memory,
        "files": files,
    }


async def _many(home: Path, pid: Path, calls: int) -> tuple[dict[str, list[float]], list[tuple[int, int, int]]]:
    took: dict[str, list[float]] = {name: [] for name in TOOLS}
    marks = []
    names = list(TOOLS)
    async with Client(_parameters(home, pid)) as client:
        await client.call_tool(*NOTE)
        for number in range(calls + WARM_CALLS):
            if number >= WARM_CALLS and (number - WARM_CALLS) % max(1, calls // 10) == 0:
                marks.append((number - WARM_CALLS, *_facts(pid)))
            name = names[number % len(names)]
            began = perf_counter()
            result = await client.call_tool(*TOOLS[name])
            took[name].append((perf_counter() - began) * 1000)
            assert result.is_error == (name == "a refusal"), (name, result)
        marks.append((calls, *_facts(pid)))
    return took, marks


def _facts(pid: Path) -> tuple[int, int]:
    """Return the server's resident memory in KiB and the number of its open descriptors."""
    process = Path("/proc") / pid.read_text().strip()
    status = (process / "status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]), len(list((process / "fd").iterdir()))


def _cpu_seconds(pid: Path) -> float:
    """Return what processor time the server has taken: unlike the time on the wall, others do not lengthen it."""
    fields = (Path("/proc") / pid.read_text().strip() / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _report(
    starts: Sequence[Mapping[str, float]],
    took: Mapping[str, list[float]],
    marks: Sequence[tuple[int, int, int]],
    calls: int,
) -> dict[str, Any]:
    growth, files = marks[-1][1] - marks[0][1], marks[-1][2] - marks[0][2]
    return {
        "at": datetime.fromtimestamp(SystemClock().now(), UTC).strftime("%Y-%m-%d"),
        "where": f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 1),
        "mcp": importlib.metadata.version("mcp"),
        "starts": len(starts),
        "start_ms": {
            key: round(median(each[key] for each in starts) * 1000) for key in ("greeted", "answered", "ended", "cpu")
        },
        "memory_kib": round(median(each["kib"] for each in starts)),
        "calls": calls,
        "call_ms": {
            name: {"median": round(median(each), 2), "p99": round(quantiles(each, n=100)[98], 2)}
            for name, each in took.items()
        },
        "marks": [{"calls": number, "kib": kib, "descriptors": fds} for number, kib, fds in marks],
        "growth_kib": growth,
        "growth_descriptors": files,
        "growth_met": growth <= MOST_GROWTH_KIB and files <= 0,
    }


def _markdown(report: Mapping[str, Any]) -> str:
    start = report["start_ms"]
    rows = [
        "# The MCP server, measured",
        "",
        f"{report['at']}; {report['where']}, load {report['load']}; mcp {report['mcp']}; {SESSIONS} sessions",
        "",
        f"| start (median of {report['starts']}) | |",
        "|---|---:|",
        f"| process begun to greeting answered | {start['greeted']} ms |",
        f"| to the first search answered | {start['answered']} ms |",
        f"| processor time until then | {start['cpu']} ms |",
        f"| to the process gone | {start['ended']} ms |",
        f"| resident memory after the first search | {report['memory_kib'] / 1024:.1f} MiB |",
        "",
        f"| call ({report['calls']} in all) | median (ms) | p99 (ms) |",
        "|---|---:|---:|",
        *(f"| {name} | {each['median']} | {each['p99']} |" for name, each in report["call_ms"].items()),
        "",
        "| after calls | resident (KiB) | descriptors |",
        "|---:|---:|---:|",
        *(f"| {each['calls']} | {each['kib']} | {each['descriptors']} |" for each in report["marks"]),
        "",
        f"Growth: {report['growth_kib']} KiB (wanted: at most {MOST_GROWTH_KIB}) and {report['growth_descriptors']}",
        f"descriptors (wanted: none): {'met' if report['growth_met'] else 'NOT met'}.",
    ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())
