"""`history`, `undo` and `review` as a person types them, with and without a daemon, killed and not (I1, I3)."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.control.changes_told import coloured
from memoryd.daemon.control_socket import Request, Tell
from tests.control.conftest import THREAD, Shell
from tests.ledger.factories import OTHER

TABS, FRIDAYS = "Always use tabs in the Makefile.", "Never deploy the shop on Fridays."


@pytest.fixture
def remembering(shell: Shell) -> Shell:
    """A home with two consolidations."""
    shell.record(TABS)
    assert shell("sync", "--now").code == 0
    shell.record(FRIDAYS, thread_id=OTHER, cwd="/home/dev/infra")
    assert shell("sync", "--now").code == 0
    return shell


def review_by_hand(shell: Shell) -> None:
    text = shell.home.config_file.read_text()
    shell.home.config_file.write_text(text.replace("[consolidate]\n", '[consolidate]\nreview = "manual"\n'))


def handbook(shell: Shell) -> str:
    return (shell.home.memories / "MEMORY.md").read_text()


def git(shell: Shell, *words: str) -> str:
    command = ["git", f"--git-dir={shell.home.git_dir}", f"--work-tree={shell.home.memories}", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_without_a_history_it_says_what_to_do(shell: Shell) -> None:
    said = shell("history")
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert "memoryd sync" in said.err
    assert shell("undo").out.startswith("there is nothing to undo")
    assert shell("undo", "--json").json == {"commit": None, "changes": [], "held": []}
    shell("sync")
    assert "run `memoryd sync`" in shell("history").out


def test_a_broken_history_says_what_to_do_and_stays_as_it_is(remembering: Shell) -> None:
    head = remembering.home.git_dir / "HEAD"
    head.write_text("nonsense")
    said = remembering("history")
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert "memoryd sync" in said.err
    assert head.read_text() == "nonsense"


def test_changes_are_listed_newest_first_with_who_what_and_cost(remembering: Shell) -> None:
    file = remembering.home.memories / "MEMORY.md"
    file.write_text("> Mine.\n" + file.read_text())
    remembering("undo")

    rows = remembering("history", "--json").json
    assert [row["who"] for row in rows] == ["undo", "person", "consolidation", "consolidation"]
    assert [row["number"] for row in rows] == [1, 2, 3, 4]
    assert rows[2]["sessions"] == {"total": 2, "added": 1, "changed": 0, "removed": 0}
    assert (rows[2]["model"], rows[2]["provider"], rows[2]["tokens"]) == ("none", "offline", 0)
    assert rows[1]["lines_added"] == 1
    lines = remembering("history", "3").out.splitlines()
    assert len(lines) == 3
    assert "sessions +1 ~0 -0, no model, Consolidate 2 sessions" in lines[2]
    for wrong in (["0"], ["sideways"], ["show"], ["show", "ffffffff"], ["show", "9"], ["show", "1", "2"]):
        assert remembering("history", *wrong).code == 2


def test_one_change_is_shown_with_its_trailers_and_its_diff(remembering: Shell) -> None:
    shown = remembering("history", "show", "1", "--json").json
    assert shown["trailers"]["Change"] == "consolidation"
    assert shown["trailers"]["Sessions-Added"] == OTHER
    assert "+++ b/MEMORY.md" in shown["diff"]
    assert "rollout_summaries" not in {line.split("/")[1] for line in shown["diff"].splitlines() if line[:3] == "+++"}
    by_id = remembering("history", "show", shown["commit"][:8]).out
    assert "Sessions-Added: " in by_id
    assert "Fridays" in by_id
    assert "\x1b" not in by_id
    trailers = git(remembering, "log", "-1", "--format=%(trailers:key=Tokens,valueonly)")
    assert trailers.strip() == "0"


def test_a_diff_has_colours_on_a_terminal() -> None:
    assert coloured("+new\n-old\n same") == "\x1b[32m+new\x1b[0m\n\x1b[31m-old\x1b[0m\n same"
    assert coloured("+++ b/MEMORY.md").startswith("\x1b[1m")


def test_control_characters_in_a_memory_do_not_reach_the_terminal(remembering: Shell) -> None:
    (remembering.home.memories / "MEMORY.md").write_text("> \x1b[31mred\x1b]0;title\x07\n")
    git(remembering, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qam", "Mine \x1b[31m")
    assert "\x1b" not in remembering("history", "show", "1").out
    assert "\x1b" not in remembering("history").out


def test_an_undo_and_the_undo_of_it(remembering: Shell) -> None:
    before = handbook(remembering)
    said = remembering("undo")
    assert said.code == 0, said
    assert "1 change undone" in said.out
    assert f"1 session stays out until changed: {OTHER}" in said.out
    assert "Fridays" not in handbook(remembering)
    assert "kept out of the memory folder until the session grows: undone" in remembering("explain", OTHER).out
    told = remembering("why", "deploy", "Fridays").out
    assert "kept out of the memory until the session grows: undone" in told
    (finding,) = (item for item in remembering("status", "--json").json["health"] if item["id"] == "held_back")
    assert finding["severity"] == "info"

    result = remembering("undo", "--json").json
    assert (result["held"], result["changes"][0]["change"]) == ([], "undo")
    assert handbook(remembering) == before
    for wrong in ("0", "-1", "many", "99"):
        assert remembering("undo", wrong).code == 2


def test_a_daemon_that_holds_the_lock_is_asked(remembering: Shell) -> None:
    asked: list[Request] = []

    async def answer(request: Request, _tell: Tell) -> dict[str, object]:
        asked.append(request)
        return {"wrong": "cannot", "remedy": "do not"}

    with remembering.held(answer=answer):
        assert remembering("undo", "2").code == 2
        assert remembering("review", "accept", "1", "--commit", "abcd").code == 2
        assert remembering("history").code == 0
        assert remembering("review").code == 0
    assert asked == [
        {"do": "undo", "count": 2},
        {"do": "review", "action": "accept", "number": 1, "shown": "abcd"},
    ]
    with remembering.held(role="sync"):
        assert remembering("undo").code == 1


def test_a_proposal_is_listed_shown_and_accepted(shell: Shell) -> None:
    review_by_hand(shell)
    assert shell("review").code == 1
    shell.record(TABS)
    assert "waits for your word" in shell("sync", "--now").out
    assert not (shell.home.memories / "MEMORY.md").exists()
    status = shell("status", "--json")
    (finding,) = status.json["health"]
    assert "`memoryd review show 1`" in finding["remedy"]
    assert status.code == 0
    assert "waits for your word" in shell("review").out

    shown = shell("review", "show", "--json").json
    assert (shown["number"], shown["state"], shown["sessions"]["added"]) == (1, "waiting", 1)
    assert "tabs" in shown["diff"]
    assert f"review accept 1 --commit {shown['commit'][:10]}" in shell("review", "show", "1").out
    assert shell("review", "accept").code == 2
    assert shell("review", "accept", "1", "--commit", "ffff").code == 2
    assert shell("review", "show", "2").code == 2
    said = shell("review", "accept", "1", "--commit", shown["commit"][:10])
    assert said.out == "proposal 1 is accepted and in place\n"
    assert "tabs" in handbook(shell)
    assert shell("review", "accept", "1").code == 2
    assert shell("review", "show").code == 2
    assert [row["state"] for row in shell("review", "--json").json] == ["accepted"]
    assert shell("history", "--json").json[0]["commit"] == shown["commit"]


def test_a_proposal_is_rejected(shell: Shell) -> None:
    review_by_hand(shell)
    shell.record(TABS)
    shell("sync", "--now")
    said = shell("review", "reject", "1")
    assert said.out == f"proposal 1 is rejected\n1 session stays out until changed: {THREAD}\n"
    assert "memory folder stands" in shell("sync", "--now").out or shell("review", "show").code == 2
    assert not (shell.home.memories / "MEMORY.md").exists()
    assert "is not kept any more" in shell("review", "show", "1").err or shell("review", "show", "1").code == 0


def killed(shell: Shell, point: str, request: dict[str, object]) -> None:
    words = [sys.executable, "-m", "tests.support.killed_change", str(shell.home.path), point, json.dumps(request)]
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "HOME": str(shell.folder)}
    done = subprocess.run(words, capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_an_undo_that_is_killed_anywhere_happens_whole_or_not_at_all(remembering: Shell) -> None:
    """I1, I3: before the decision nothing has happened, after it the next start brings it to its end."""
    kept = remembering.folder / "kept"
    shutil.copytree(remembering.home.path, kept)
    second = handbook(remembering)
    for point in ("undo_written", "undo_decided", "before_rename:MEMORY.md", "before_refs"):
        shutil.rmtree(remembering.home.path)
        shutil.copytree(kept, remembering.home.path)
        killed(remembering, point, {"do": "undo", "count": 1})
        assert handbook(remembering).startswith("> No model wrote")
        assert remembering("sync").code == 0
        assert ("Fridays" in handbook(remembering)) == (point == "undo_written")
        assert git(remembering, "status", "--porcelain") == ""
    assert remembering("undo").code == 0
    assert handbook(remembering) == second


def test_an_acceptance_that_is_killed_anywhere_happens_whole_or_not_at_all(shell: Shell) -> None:
    """I1, I3."""
    review_by_hand(shell)
    shell.record(TABS)
    shell("sync", "--now")
    kept = shell.folder / "kept"
    shutil.copytree(shell.home.path, kept)
    for point in ("acceptance_decided", "before_rename:memory_summary.md", "before_refs"):
        shutil.rmtree(shell.home.path)
        shutil.copytree(kept, shell.home.path)
        killed(shell, point, {"do": "review", "action": "accept", "number": 1})
        assert shell("sync").code == 0
        assert "tabs" in handbook(shell)
        assert git(shell, "status", "--porcelain") == ""
        assert git(shell, "for-each-ref", "refs/memoryd/proposals") == ""
