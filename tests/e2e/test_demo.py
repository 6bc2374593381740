"""`memoryd demo`: the whole pipeline without a key or a network, and without a trace."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd import config
from memoryd.clock import SystemClock
from memoryd.control.commands.demo import demo_settings, remember
from memoryd.daemon.progress import silent
from memoryd.workspace.folder import Folder
from memoryd.workspace.handbook import Bullet, TaskGroup, parse_handbook
from memoryd.workspace.headers import parse_header
from tests.support.checks import eligible
from tests.support.model_server import ModelServer
from tests.support.process import GLOBAL_KIND, STAGE1_KIND, Place
from tests.support.random_sessions import Planted, random_sessions
from tests.support.sessions import install_recorded

FRAME = frozenset(
    re.findall(
        r"\S+",
        "the user said asked corrected when the agent had said the agent's last answer worked failed with exit code "
        "after changing the same command changed files",
    )
)
"""What the offline writer may say in words of its own; whatever else stands in a bullet is a quote."""


@pytest.fixture
def watched(place: Place) -> Place:
    """A place whose HOME and temporary folder can be compared afterwards."""
    (place.folder / "tmp").mkdir()
    place.extra["TMPDIR"] = str(place.folder / "tmp")
    (place.user_home / ".bashrc").write_text("mine")
    return place


def listing(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything below a folder: mode, time and content."""
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(root.rglob("*"))
    }


def sealed(place: Place, *words: str, wrapper: tuple[str, ...] = ()) -> list[str]:
    return [*wrapper, sys.executable, "-W", "error", "-m", "tests.support.sealed", *words]


def without_network() -> tuple[str, ...]:
    """Words that run a command where there is no network at all, () where this machine cannot."""
    words = ("unshare", "-n")
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return ()
    return () if subprocess.run([*words, "true"], capture_output=True, check=False).returncode else words


def test_the_demo_tells_its_story_and_leaves_nothing(watched: Place) -> None:
    """I7: no line of HOME changes, and the throw-away home goes away."""
    before = listing(watched.user_home)

    done = watched.execute(sealed(watched, "demo", wrapper=without_network()))

    assert done.code == 0, done
    assert re.search(r"read \d+ sessions: \d+ remembered, \d+ with nothing to remember", done.stdout)
    assert re.search(r"left out: \d+ subagent \(", done.stdout)
    assert "## What's in Memory" in done.stdout
    assert "No model wrote" in done.stdout
    assert listing(watched.user_home) == before
    assert list((watched.folder / "tmp").iterdir()) == []


def test_the_demo_as_json_counts_what_it_read_left_out_and_remembered(watched: Place) -> None:
    done = watched.execute(sealed(watched, "demo", "--json"))

    assert done.code == 0, done
    told = done.json
    stage1 = told["jobs"][STAGE1_KIND]
    assert told["seen"] >= 12
    assert stage1["remembered"] >= 8
    assert stage1["nothing_to_remember"] >= 1
    assert told["seen"] == sum(stage1.values()) + sum(told["excluded"].values()) + sum(told["waiting"].values())
    assert told["jobs"][GLOBAL_KIND] == {"published": 1}
    assert told["summary"].startswith("v1\n")
    assert not Path(told["home"]).exists()


def test_a_kept_demo_lies_where_it_says(watched: Place) -> None:
    done = watched.execute(sealed(watched, "demo", "--keep", "--home", str(watched.home)))

    assert done.code == 0, done
    paths = [word for word in done.stdout.split() if word.startswith(str(watched.home))]
    assert paths
    assert all(Path(path.rstrip(":")).exists() for path in paths)
    assert parse_handbook((watched.memories / "MEMORY.md").read_text()).problems == ()
    assert list((watched.folder / "tmp").iterdir()) == []


def test_the_demo_on_ones_own_sessions_touches_none_of_them_and_connects_nowhere(
    watched: Place, server: ModelServer
) -> None:
    """I7: byte-identical sources, no new file beside them; a configured provider has no say."""
    recorded = install_recorded(watched.user_home / ".codex", now=time.time(), idle_hours=30)
    watched.extra["MEMORYD_EXTRACT__MODEL"] = "scripted-1"
    before = listing(watched.user_home)

    done = watched.execute(sealed(watched, "demo", "--mine", "--json", wrapper=without_network()))

    assert done.code == 0, done
    assert listing(watched.user_home) == before
    assert list((watched.folder / "tmp").iterdir()) == []
    assert sum(done.json["jobs"][STAGE1_KIND].values()) == len(eligible(recorded))
    assert done.json["jobs"][STAGE1_KIND]["remembered"] >= 1


def test_a_demo_without_own_sessions_says_so(watched: Place) -> None:
    done = watched.execute(sealed(watched, "demo", "--mine"))

    assert done.code == 0, done
    assert "no sessions" in done.stdout
    assert not (watched.user_home / ".codex").exists()


@pytest.mark.parametrize("number", range(3))
async def test_of_sessions_drawn_at_random_only_what_was_said_is_remembered(tmp_path: Path, number: int) -> None:
    """The demo's own code path: preferences and cures are remembered, small talk is not, nothing is made up."""
    now = time.time()
    planted = random_sessions(tmp_path / ".codex", now=now, rng=random.Random(random.getrandbits(32)))
    environ = {"HOME": str(tmp_path), "PATH": config.environ()["PATH"]}
    settings = demo_settings(tmp_path / "home", environ, mine=True, now=now)

    result = await remember(settings, environ, SystemClock(), silent)

    remembered = [each for each in planted if each.remembered]
    folder = Folder.read(tmp_path / "home" / "memories")
    assert result["exit_code"] == 0
    assert {
        parse_header(text).thread_id for path, text in folder.files.items() if path.startswith("rollout_summaries/")
    } == {each.thread_id for each in remembered}
    handbook = folder.text("MEMORY.md")
    for each in planted:
        assert all(text in handbook for text in each.must_remember), each
        assert not any(text in content for text in each.must_not_remember for content in folder.files.values()), each
    for group in parse_handbook(handbook).groups:
        for bullets in group.sections.values():
            for bullet in bullets:
                assert_quoted(bullet, evidence_of(group, bullet, planted, folder))


def evidence_of(group: TaskGroup, bullet: Bullet, planted: list[Planted], folder: Folder) -> str:
    """All that was said and done in the sessions which a bullet cites."""
    files = [file.path for task in group.tasks if task.number in bullet.task_refs for file in task.summary_files]
    threads = {parse_header(folder.text(path)).thread_id for path in files}
    assert threads
    paths = [each.path for each in planted if each.thread_id in threads]
    return "\n".join(
        text for path in paths for line in path.read_text().splitlines() for text in texts(json.loads(line))
    )


def texts(value: Any) -> Iterator[str]:
    """Every string in a JSON value, also inside arguments that are JSON themselves."""
    if isinstance(value, str):
        yield value
        if value.startswith("{"):
            yield from texts(json.loads(value))
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts(inner)


def assert_quoted(bullet: Bullet, evidence: str) -> None:
    """Each quote stands word for word in the evidence, and between the quotes only framing words stand."""
    quotes = re.findall(r'"([^"]+)"|`([^`]+)`', bullet.text)
    assert quotes, bullet
    assert all((said or done) in evidence for said, done in quotes), bullet
    rest = re.sub(r'"[^"]+"|`[^`]+`', " ", bullet.text)
    assert set(re.findall(r"[^\W\d][\w']*", rest)) <= FRAME, bullet
