"""Measure a consolidation without its model, step by step, into tests/bench/results/consolidate.{json,md}.

    python -m tests.bench.consolidate

Full size is what a folder is allowed to be: 256 selected sessions, a diff of 4 MiB, a handbook of 300 KB; the half of
each is measured beside it, in turns, so that what grows faster than its input shows. No test runs this.
"""

import argparse
import json
import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from memoryd.ledger import claims, queries
from memoryd.redact import Redactor
from memoryd.text import byte_length
from memoryd.workspace import acceptance, mending, publish, staging
from memoryd.workspace.claims import claims_of_folder
from memoryd.workspace.diff import workspace_diff
from memoryd.workspace.files import write_private
from memoryd.workspace.folder import Folder
from memoryd.workspace.handbook import parse_handbook
from memoryd.workspace.layout import DIFF_FILE, Home
from memoryd.workspace.materialise import materialise
from memoryd.workspace.protection import keep_lines, read_protection
from memoryd.workspace.summary import summary_budget
from tests.bench.consolidate.folders import handbook, selected, summary
from tests.workspace.factories import a_home, a_repository

RESULTS = Path(__file__).parents[1] / "results"
SESSIONS = 256
LINES = 60
"""Of each session's raw memory and summary: 256 changed ones make more than 4 MiB of diff."""
BULLETS = 10


def main() -> int:
    parser = argparse.ArgumentParser(description="a consolidation without its model, step by step")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    taken: dict[str, dict[str, list[float]]] = {}
    sizes: dict[str, dict[str, int]] = {}
    for _ in range(options.rounds):
        for name, sessions in (("half", SESSIONS // 2), ("full", SESSIONS)):
            with tempfile.TemporaryDirectory() as folder:
                steps, sizes[name] = measure(Path(folder), sessions)
            for step, seconds in steps.items():
                taken.setdefault(step, {"half": [], "full": []})[name].append(seconds * 1000)
    report = {
        "machine": _machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "rounds": options.rounds,
        "sizes": sizes,
        "steps_ms": {step: {size: round(median(each), 1) for size, each in of.items()} for step, of in taken.items()},
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "consolidate.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    text = _markdown(report)
    (RESULTS / "consolidate.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def measure(folder: Path, sessions: int) -> tuple[dict[str, float], dict[str, int]]:
    """Return the seconds of each step of a revision in which every session changed, and the sizes of its input."""
    home = a_home(folder)
    repository = a_repository(home)
    clock = Clock()
    first = [selected(number, LINES) for number in range(sessions)]
    _publish_first(home, repository, first, sessions)
    changed = [selected(number, LINES, edition=1) for number in range(sessions)]
    with clock.step("stage a copy"):
        staged = staging.stage(home, repository, "token", now=0.0, redactor=Redactor())
    with clock.step("read the folder"):
        before = Folder.read(staged.base)
    with clock.step("materialise the evidence"):
        materialise(staged.work, changed)
    with clock.step("diff"):
        diff = workspace_diff(repository, staged.accepted, staged.work)
        write_private(staged.work / DIFF_FILE, diff.text.encode())
    with clock.step("find a person's lines"):
        protected = read_protection(repository, staged)
    old, new = handbook(sessions, BULLETS), handbook(sessions, BULLETS, reworded=True)
    write_private(staged.work / "MEMORY.md", new.encode())
    with clock.step("clean and mend"):
        mending.clean_strays(staged.work, before)
        mending.rewrite_provenance(staged.work)
        keep_lines(protected, Folder.read(staged.work), may_move=True)
    after = Folder.read(staged.work)
    with clock.step("parse the handbook"):
        parse_handbook(after.text("MEMORY.md"))
    with clock.step("accept: all checks"):
        complaints = _judge(before, after)
        acceptance.vanished_claims(before=before, after=after, removed_threads=())
    assert complaints == (), complaints[:3]
    broken = Folder({**after.files, "MEMORY.md": new.replace("- fact", "* fact")})
    with clock.step("accept: every bullet is wrong"):
        assert _judge(before, broken)
    with clock.step("claims of the handbook"):
        found = claims_of_folder(after)
    _claims_in_the_ledger(clock, claims_of_folder(before), found)
    (staged.work / DIFF_FILE).unlink()
    with clock.step("write git objects"):
        commit = publish.prepare_commit(repository, staged, "Bench\n", now=0.0, persons={})
    with clock.step("put in place"):
        publish.put_in_place(home, repository, commit, staged.parent)
    sizes = {
        "sessions": sessions,
        "diff_bytes": byte_length(diff.text),
        "handbook_bytes": byte_length(old),
        "claims": len(found),
    }
    return clock.taken, sizes


class Clock:
    """Seconds by step, in their order."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        begun = perf_counter()
        yield
        self.taken[name] = perf_counter() - begun


def _publish_first(home: Home, repository: Any, first: list[Any], sessions: int) -> None:
    staged = staging.stage(home, repository, "first", now=0.0, redactor=Redactor())
    materialise(staged.work, first)
    write_private(staged.work / "MEMORY.md", handbook(sessions, BULLETS).encode())
    write_private(staged.work / "memory_summary.md", summary(sessions).encode())
    mending.rewrite_provenance(staged.work)
    commit = publish.prepare_commit(repository, staged, "First\n", now=0.0, persons={})
    publish.put_in_place(home, repository, commit, staged.parent)
    staging.discard(staged)


def _judge(before: Folder, after: Folder) -> tuple[str, ...]:
    return acceptance.judge(
        before=before,
        after=after,
        removed_threads=(),
        max_summary_bytes=summary_budget(2500),
        redactor=Redactor(),
    ).complaints


def _claims_in_the_ledger(clock: Clock, old: list[claims.NewClaim], new: list[claims.NewClaim]) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
        conn.executescript(queries.read("schema.sql"))
        with clock.step("claims into the ledger: all new"):
            claims.replace_claims(conn, old, now=0.0)
        with clock.step("claims into the ledger: none changed"):
            claims.replace_claims(conn, old, now=1.0)
        with clock.step("claims into the ledger: all reworded"):
            claims.replace_claims(conn, new, now=2.0)
        assert conn.execute("SELECT count(*) FROM claims").fetchone() == (len(new),)


def _machine() -> dict[str, object]:
    return {
        "kind": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
    }


def _markdown(report: dict[str, Any]) -> str:
    full, half = report["sizes"]["full"], report["sizes"]["half"]
    lines = [
        "# A consolidation without its model, measured",
        "",
        f"{report['date']}; {_words(report['machine'])}; medians of {report['rounds']} rounds",
        "",
        f"A revision in which every session changed. Full: {_words(full)}. Half: {_words(half)}.",
        "",
        "| step | half (ms) | full (ms) | ratio |",
        "|---|---:|---:|---:|",
    ]
    for step, of in report["steps_ms"].items():
        lines.append(f"| {step} | {of['half']} | {of['full']} | {of['full'] / max(of['half'], 0.1):.1f} |")
    total = {size: sum(of[size] for of in report["steps_ms"].values()) for size in ("half", "full")}
    lines.append(f"| all together | {total['half']:.0f} | {total['full']:.0f} | {total['full'] / total['half']:.1f} |")
    return "\n".join(lines) + "\n"


def _words(facts: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())


if __name__ == "__main__":
    sys.exit(main())
