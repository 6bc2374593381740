"""The loop: one agent's session teaches, another agent is given it, cites it, and that is counted once."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memoryd.clock import SystemClock
from memoryd.control.main import main
from tests.support.claude_sessions import a_claude_session
from tests.support.sessions import Turn, a_rollout

TAUGHT = "0194f5a6-89ab-4cde-8123-456789abcdef"
CITING = "01a226ab-5fe7-707c-80dd-7a6d93907104"
PREFERENCE = "Always indent the Makefile with tabs."
CITATION = (
    "<oai-mem-citation>\n<citation_entries>\nMEMORY.md:1-9|note=[tabs]\n</citation_entries>\n"
    f"<rollout_ids>\n{TAUGHT}\n</rollout_ids>\n</oai-mem-citation>"
)


class Place:
    """A home with two agents, and commands run on it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self.claude, self.codex = folder / "home", folder / "claude", folder / "codex"
        self._capsys = capsys
        self.home.mkdir(mode=0o700)
        (self.home / "config.toml").write_text(
            f'[sources]\nagents = ["claude", "codex"]\n'
            f'roots = {{ claude = ["{self.claude}"], codex = ["{self.codex}"] }}\n'
            '[consolidate]\ndebounce = "0s"\nmin_interval = "0s"\n'
        )
        for folder in (self.claude, self.codex):
            folder.mkdir()

    def __call__(self, *words: str) -> str:
        self._capsys.readouterr()
        assert main([words[0], "--home", str(self.home), *words[1:]]) == 0
        return self._capsys.readouterr().out

    def start(self, agent: str, cwd: str, session: str) -> str:
        """Start a session of an agent whose hook is connected; return what it is given."""
        request = {"session_id": session, "cwd": cwd, "hook_event_name": "SessionStart", "source": "startup"}
        done = subprocess.run(
            [self.home / "bin" / "hook", agent, "SessionStart"],
            input=json.dumps(request).encode(), capture_output=True, check=True, env={},
        )  # fmt: skip
        if not done.stdout:
            return ""
        return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"])

    def used(self) -> dict[str, Any]:
        rows = json.loads(self("memories", "--json"))["memories"]
        return {row["thread_id"]: row["usage_count"] for row in rows}


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(tmp_path, capsys)


def resume(file: Path, into: Path, number: int) -> None:
    """Let the session go on: other turns are appended to its file."""
    more = a_rollout(
        into, now=SystemClock().now(), idle_hours=6.5, turns=(f"And now part {number}.",), thread_id=CITING
    )
    lines = [line for line in more.read_text().splitlines(keepends=True) if '"session_meta"' not in line]
    with file.open("a") as stream:
        stream.writelines(lines)


def test_what_one_agent_learned_another_is_given_and_its_citation_counts_once(place: Place, tmp_path: Path) -> None:
    now = SystemClock().now()
    a_claude_session(place.claude, now=now, turns=((PREFERENCE, "Done."),) * 2, session_id=TAUGHT, idle_hours=9)
    place("sync", "--now")

    given = place.start("codex", "/home/dev/shop", CITING)
    assert PREFERENCE in given
    assert TAUGHT in (place.home / "memories" / "MEMORY.md").read_text()
    assert PREFERENCE not in place.start("codex", "/home/dev/other", CITING).split("## What's in Memory")[1]

    answer = Turn(f"{given}\nAdd a target to the build file.", f"Added, with tabs.\n\n{CITATION}")
    file = a_rollout(place.codex, now=now, idle_hours=7, turns=(answer, "Thanks, that is right."), thread_id=CITING)
    place("sync", "--now")
    assert place.used()[TAUGHT] == 1

    for number in (1, 2):
        resume(file, tmp_path / f"resumed-{number}", number)
        place("sync", "--now")
    copy = place.codex / "archived_sessions" / file.name
    copy.parent.mkdir()
    copy.write_bytes(file.read_bytes())
    place("sync", "--now")
    assert place.used()[TAUGHT] == 1

    evidence = place("explain", CITING, "--show-input")
    assert "Add a target to the build file." in evidence
    assert "And now part 2." in evidence
    assert PREFERENCE not in evidence
    assert "memoryd_memory" not in evidence
    assert "oai-mem-citation" not in evidence
    place("sessions", "set-mode", CITING, "no-recall")
    assert place.start("codex", "/home/dev/shop", CITING) == ""
    assert place.start("codex", "/home/dev/shop", TAUGHT) != ""
