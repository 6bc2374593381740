"""What the tests of the memory folder are set up with."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from memoryd.ledger.outputs import SelectedOutput
from memoryd.workspace.folder import Folder
from memoryd.workspace.git import Repository
from memoryd.workspace.layout import MEMORY_FILE, SUMMARY_FILE, Home, prepare

NOW = 1_764_409_095.0
A = "0194f5a6-89ab-7cde-8123-456789abcdef"
B = "01a226ab-5fe7-707c-80dd-7a6d93907104"


def a_home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    prepare(home)
    return home


def a_repository(home: Home) -> Repository:
    return Repository(home.git_dir, home.memories, environ={"PATH": os.environ["PATH"]})


def an_output(thread_id: str = A, **changes: object) -> SelectedOutput:
    facts: dict[str, object] = {
        "thread_id": thread_id,
        "updated_at": 1_764_409_095,
        "raw_memory": "---\ndescription: d\n---\n### Task 1: t",
        "rollout_summary": "# It worked\n\nRollout context: none",
        "rollout_slug": "it_worked",
        "generated_at": 1_764_409_100,
        "usage_count": 0,
        "last_usage": None,
        "selected_for_phase2": False,
        "selected_for_phase2_source_updated_at": None,
        "agent": "codex",
        "cwd": "/home/dev/shop",
        "git_branch": "main",
        "rollout_path": "/home/dev/.codex/sessions/rollout-a.jsonl",
        "stem": f"2025-11-29T09-38-15-{thread_id[-4:]}",
        "started_at": 1_764_400_000,
    } | changes
    return SelectedOutput(**facts)  # type: ignore[arg-type]  # a table of columns, as the ledger has it


def a_summary_file(thread_id: str = A, cwd: str = "/home/dev/shop", body: str = "# It worked") -> str:
    return (
        f"thread_id: {thread_id}\nagent: codex\nupdated_at: 2025-11-29T09:38:15+00:00\n"
        f"rollout_path: /s/{thread_id}.jsonl\ncwd: {cwd}\n\n{body}\n"
    )


MEMORY = """\
# Task Group: shop
scope: the shop's backend; not its mobile app
applies_to: cwd=/home/dev/shop; reuse_rule=same repository

## Task 1: speed up the checkout, done

### rollout_summary_files

- rollout_summaries/a.md (cwd=/home/dev/shop, rollout_path=/s/a.jsonl, updated_at=u, thread_id=t, fast)

### keywords

- checkout, postgres, EXPLAIN ANALYZE

## Task 2: move to pytest, done

### rollout_summary_files

- rollout_summaries/b.md

### keywords

- pytest

## User preferences

- use tabs, never spaces [Task 1][Task 2] [stated]

## Reusable knowledge

- `make check` runs all tests [Task 2] [verified]
- port 5433 is the test database [Task 1] [verified]
- deploys happen on Fridays [ad-hoc note]
"""

SUMMARY = """\
v1

## User Profile

Works on a shop.

## User preferences

- tabs

## General Tips

- run `make check`

## What's in Memory

### /home/dev/shop

#### 2025-11-29

- shop: checkout, postgres
  - desc: the backend
  - learnings: an index helped

### Older Memory Topics
"""


def files(**changes: str | None) -> dict[str, str]:
    """Return a good folder's files; a change of None removes one. Names: `/` is written `__`, `.md` is left out."""
    found = {
        MEMORY_FILE: MEMORY,
        SUMMARY_FILE: SUMMARY,
        "rollout_summaries/a.md": a_summary_file(A),
        "rollout_summaries/b.md": a_summary_file(B, body="# Tests run"),
    }
    for name, text in changes.items():
        path = f"{name.replace('__', '/')}.md"
        if text is None:
            found.pop(path, None)
        else:
            found[path] = text
    return found


def a_folder(**changes: str | None) -> Folder:
    return Folder(files(**changes))


def write_files(root: Path, contents: Mapping[str, str]) -> None:
    for path, text in contents.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8", newline="")


def read_files(root: Path) -> dict[str, str]:
    return dict(Folder.read(root).files)


def git(folder: Path, *arguments: str) -> str:
    """Run the person's own git in a folder."""
    identity = ["-c", "user.name=p", "-c", "user.email=p@localhost.invalid", "-c", "safe.directory=*"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, check=True, text=True)
    return done.stdout
