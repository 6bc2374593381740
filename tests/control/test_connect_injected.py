"""What the agents' real programs asked of the hook, and what they made of its answer, holds for ours.

tests/fixtures/connected was recorded with the real programs: `python -m tests.real.connecting`.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memoryd.control.connecting.target import hook_command
from memoryd.recall.runner import install_runner
from memoryd.workspace.layout import Home

RECORDED = sorted((Path(__file__).parent.parent / "fixtures" / "connected").glob("*.json"))
MARKER = "<memoryd_memory>"
INDEX = {"scope": "all", "without_recall": [], "excluded": [], "directories": {}, "repositories": {}}


def recorded(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_the_model_was_told_the_memory_once_and_whole(file: Path) -> None:
    said = recorded(file)
    told = "".join(part["text"] for part in said["told"])
    assert told.count(MARKER) == 1
    if said["hook"]["answered"]:
        given = json.loads(said["hook"]["answered"])["hookSpecificOutput"]["additionalContext"]
        assert given.strip() in told
    assert told.split(MARKER)[1].count("</memoryd_memory>") == 1


@pytest.mark.parametrize(
    "file", [each for each in RECORDED if recorded(each)["hook"]["asked"]], ids=lambda file: file.stem
)
def test_our_hook_answers_what_the_program_asked_as_it_was_recorded(file: Path, tmp_path: Path) -> None:
    said = recorded(file)
    agent = file.stem.partition("-")[0]
    given = json.loads(said["hook"]["answered"])["hookSpecificOutput"]["additionalContext"]
    home = Home(tmp_path / "a home")
    home.recall.mkdir(parents=True)
    install_runner(home)
    (home.recall / "index.json").write_text(json.dumps(INDEX))
    (home.recall / "everywhere.md").write_text(given, encoding="utf-8")
    done = subprocess.run(
        ["sh", "-c", hook_command(home, agent, "SessionStart")],
        input=said["hook"]["asked"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == json.loads(said["hook"]["answered"])
    as_subagent = json.loads(said["hook"]["asked"]) | {"agent_id": "a1"}
    silent = subprocess.run(
        ["sh", "-c", hook_command(home, agent, "SessionStart")],
        input=json.dumps(as_subagent),
        capture_output=True,
        text=True,
        check=True,
    )
    assert silent.stdout == ""
