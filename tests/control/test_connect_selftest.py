"""`doctor` starts each connected agent's hook as the agent would, and says what comes, why, and how fast."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from memoryd.recall.runner import install_runner
from tests.control.conftest import Shell


@pytest.fixture
def connected(shell: Shell, bare_environment: Path) -> Shell:
    (bare_environment / ".claude").mkdir()
    assert shell("connect", "claude").code == 0
    return shell


def remembered(shell: Shell) -> None:
    shell.record()
    assert shell("sync", "--now", "--backfill", "all").code == 0


def found(shell: Shell, agent: str = "claude") -> Any:
    said = {each["id"]: each for each in shell("doctor", "--offline", "--json").json}
    return said[f"agent_{agent}"]


def test_it_says_how_much_a_session_is_given_why_and_how_long_the_hook_takes(connected: Shell) -> None:
    remembered(connected)
    size = connected("recall", "--json").json["bytes"]
    said = found(connected)
    assert said["severity"] in ("ok", "warning"), "a busy machine may be slow"
    assert f"is given {size:,} bytes (no known project: " in said["evidence"]
    assert re.search(r"the hook takes \d+ ms \(median of 5\)", said["evidence"])


def test_it_says_why_nothing_is_given(connected: Shell) -> None:
    assert "is given nothing (there is no memory yet" in found(connected)["evidence"]
    connected.configure('\n[recall]\nscope = "off"\n')
    assert 'is given nothing (recall.scope = "off")' in found(connected)["evidence"]


def test_an_agent_by_a_file_is_told_by_the_file(shell: Shell, bare_environment: Path) -> None:
    (bare_environment / ".config" / "opencode").mkdir(parents=True)
    shell("connect", "opencode")
    remembered(shell)
    size = (shell.home.recall / "everywhere.md").stat().st_size
    assert f"each session is given {size:,} bytes" in found(shell, "opencode")["evidence"]
    (shell.home.recall / "everywhere.md").unlink()
    assert found(shell, "opencode")["severity"] == "warning"


def test_each_break_of_the_way_is_an_error_with_its_remedy(connected: Shell, bare_environment: Path) -> None:
    remembered(connected)
    settings = bare_environment / ".claude" / "settings.json"
    runner = connected.home.bin / "hook"
    text = settings.read_text()

    def error() -> str:
        said = found(connected)
        assert said["severity"] == "error"
        assert said["remedy"]
        return str(said["evidence"])

    settings.write_text("{}")
    assert "our entry is no longer in" in error()
    settings.write_text("{")
    assert "a name in quotation marks is missing" in error()
    settings.write_text(text)
    runner.chmod(0o600)
    assert "is not executable" in error()
    runner.unlink()
    assert "cannot read" in error()
    install_runner(connected.home, ["/nowhere/python"])
    assert "its interpreter is gone: /nowhere/python" in error()
    runner.write_text("#!/bin/sh\necho no json\n")
    assert "prints what no agent takes" in error()
    runner.write_text("#!/bin/sh\nexit 0\n")
    assert "gives nothing, where there is something to give" in error()
    assert connected("connect", "claude").code == 0
    assert found(connected)["severity"] in ("ok", "warning"), "connecting again mends the runner"
    (connected.home.path / "connect" / "claude.json").write_text(json.dumps({}))
    assert "claude.json" in error()


def test_without_a_connected_agent_it_says_how_to_connect_one(shell: Shell) -> None:
    said = {each["id"]: each for each in shell("doctor", "--offline", "--json").json}
    assert said["agents"]["severity"] == "info"
    assert "memoryd connect" in said["agents"]["evidence"]
