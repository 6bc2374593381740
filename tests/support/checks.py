"""What must hold of a house whenever a pass has gone well; shared by the tests of whole processes."""

import json
import re
from pathlib import Path
from typing import Any

import zstandard

from memoryd.workspace.folder import Folder
from memoryd.workspace.handbook import parse_handbook
from memoryd.workspace.headers import parse_header
from memoryd.workspace.summary import parse_summary
from tests.support.model_asked import STAGE1, Recorded
from tests.support.process import Place

FACT = re.compile(r"^thread_id: (.+)$", re.MULTILINE)


def eligible(paths: list[Path]) -> set[str]:
    """The threads among recorded files that a person drove, worked out without memoryd's own reader."""
    found = {}
    for path in paths:
        head = _first_record(path)
        source = head.get("source")
        if source is None or source == "cli":
            found[str(head["id"])] = path
    return set(found)


def _first_record(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        content = zstandard.ZstdDecompressor().stream_reader(file).read() if path.suffix == ".zst" else file.read()
    first: dict[str, Any] = json.loads(content.splitlines()[0])
    payload: dict[str, Any] = first.get("payload", first)
    return payload


def threads_asked_about(requests: list[Recorded]) -> list[str]:
    """The thread of each stage-1 request, from the facts of its prompt."""
    threads = []
    for asked in requests:
        if asked.kind == STAGE1:
            found = FACT.search(asked.opening)
            assert found is not None, asked.opening[:500]
            threads.append(found[1])
    return threads


MOST_SCANS = 60


def settle(place: Place) -> None:
    """Let a daemon, which looks every second, do all that is left to do; what is left after a minute stays for ever."""
    with place.daemon() as daemon:
        for _ in range(MOST_SCANS):
            left = place.query("SELECT kind, job_key, status, wait_reason, last_error FROM jobs WHERE status <> 'done'")
            if not left:
                return
            daemon.wait_for_event("scan.completed", len(daemon.events("scan.completed")) + 1)
    raise AssertionError(f"still not done: {left}")


def assert_accepted(place: Place, *, sessions: int) -> str:
    """An accepted commit, the folder equal to it, all formats right, recall made from it; return the commit."""
    accepted = place.git("rev-parse", "refs/memoryd/accepted")
    assert place.git("rev-parse", "HEAD") == accepted
    assert place.git("fsck", "--full", "--strict", "--no-dangling") == ""
    assert place.git("status", "--porcelain", "--untracked-files=all") == ""
    in_commit = place.git("ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert set(in_commit) == set(place.artefacts())
    for path, content in place.artefacts().items():
        assert place.git("show", f"HEAD:{path}") == content.decode().strip(), path
    assert_formats(place, sessions=sessions)
    index = json.loads((place.home / "recall" / "index.json").read_text())
    assert index["commit"] == accepted
    assert (place.home / "recall" / "everywhere.md").read_text().startswith("<memoryd_memory>")
    assert list((place.home / "staging").iterdir()) == []
    assert place.query("SELECT count(*) FROM publications WHERE state <> 'published'") == [(0,)]
    assert place.query("SELECT count(*) FROM jobs WHERE status <> 'done'") == [(0,)]
    return accepted


def assert_formats(place: Place, *, sessions: int) -> None:
    """The folder holds `sessions` summaries, and each file has the form that readers rely on."""
    folder = Folder.read(place.memories)
    handbook = parse_handbook(folder.text("MEMORY.md"))
    assert handbook.problems == ()
    index = folder.text("memory_summary.md")
    assert index.startswith("v1\n")
    assert parse_summary(index).problems == ()
    summaries = [path for path in folder.files if path.startswith("rollout_summaries/")]
    assert len(summaries) == sessions
    named = {file.path for group in handbook.groups for task in group.tasks for file in task.summary_files}
    assert named <= set(summaries)
    for path in summaries:
        assert parse_header(folder.text(path)).thread_id
    raw = folder.text("raw_memories.md")
    assert raw.startswith("# Raw Memories\n\nMerged stage-1 raw memories (stable ascending thread-id order):\n\n")
    threads = re.findall(r"^## Thread `(.+)`$", raw, re.MULTILINE)
    assert threads == sorted(threads)
    assert len(threads) == sessions
