import io
import sys

import pytest

from memoryd.control.commands.sync import summary_lines
from memoryd.daemon.control_socket import Request, Tell
from tests.control.conftest import THREAD, Shell

STAGE1, GLOBAL = "memory_stage1", "memory_consolidate_global"
RESULT: dict[str, object] = {"seen": 1, "jobs": {STAGE1: {"remembered": 1}}, "exit_code": 0, "agents": ["codex"]}


def test_a_sync_remembers_and_consolidates_and_the_next_has_nothing_to_do(shell: Shell) -> None:
    shell.record()
    said = shell("sync", "--now", "--json")
    assert said.code == 0, said
    assert said.json["jobs"] == {STAGE1: {"remembered": 1}, GLOBAL: {"published": 1}}
    assert "pass.progressed" in said.err
    assert (shell.home.memories / "MEMORY.md").exists()

    again = shell("sync", "--now", "--json")
    assert (again.code, again.json["jobs"], again.json["opened"]) == (0, {}, 0)
    assert "nothing new for the memory folder\n" in shell("sync", "--now").out


def test_a_sync_tells_a_person_what_it_did_and_left(shell: Shell) -> None:
    shell.record()
    shell.record("Do it", thread_id=None, source="exec")
    shell.record("Do more", thread_id=None, idle_hours=1)
    told = shell("sync").out
    assert "read 3 sessions: 1 remembered" in told
    assert "left out: 1 noninteractive" in told
    assert "not yet: 1 too_fresh" in told
    assert "consolidated, accepted and committed" in told


def test_a_missing_folder_is_said(shell: Shell) -> None:
    assert str(shell.codex) in shell("sync").out


def test_an_unchanged_folder_is_said() -> None:
    lines = summary_lines({**RESULT, "jobs": {GLOBAL: {"unchanged": 1}}})
    assert any("stands as it was" in line for line in lines)


def test_one_cause_is_one_line_however_many_sessions_meet_it() -> None:
    failures = [
        {"kind": STAGE1, "key": f"thread-{number}", "reason": "key_refused", "message": "401"} for number in range(5)
    ]
    lines = summary_lines({**RESULT, "failures": failures, "undone": {"key_refused": 5}, "excluded": None})
    (line,) = [line for line in lines if "401" in line]
    assert "thread-0, thread-1, thread-2 and 2 more" in line
    assert any(line.startswith("waits: 5 key_refused") for line in lines)


def test_an_unknown_thread_is_a_wrong_argument(shell: Shell) -> None:
    shell.record()
    said = shell("sync", "--thread", "ffff")
    assert said.code == 2
    assert "ffff" in said.err


def test_a_running_daemon_is_asked(shell: Shell) -> None:
    asked: list[Request] = []

    async def answer(request: Request, tell: Tell) -> dict[str, object]:
        asked.append(request)
        tell({"stage": "extract", "done": 1, "total": 1, "note": "remembered"})
        return {**RESULT, "exit_code": 3}

    with shell.held("daemon", answer):
        said = shell("sync", "--now", "--thread", THREAD, "--backfill", "all")
    assert said.code == 3
    assert "1 remembered" in said.out
    assert "asking it" in said.err
    assert asked == [{"do": "sync", "now": True, "thread": THREAD, "backfill": "all"}]


def test_a_daemon_that_has_the_key_is_asked_from_a_shell_without_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(_request: Request, _tell: Tell) -> dict[str, object]:
        return RESULT

    for stage in ("EXTRACT", "CONSOLIDATE"):
        monkeypatch.setenv(f"MEMORYD_{stage}__MODEL", "m")
    address = 'base_url = "http://127.0.0.1:9/v1"'
    shell.configure(f'[providers.main]\nkind = "openai"\n{address}\napi_key_env = "A_KEY_OF_THE_SERVICE"\n')
    with shell.held("daemon", answer):
        assert shell("sync", "--now").code == 0
    said = shell("sync", "--now")
    assert said.code == 2
    assert "A_KEY_OF_THE_SERVICE" in said.err


@pytest.mark.parametrize("role", ["daemon", "demo"])
def test_a_holder_that_does_not_answer_is_one_line(shell: Shell, role: str) -> None:
    with shell.held(role):
        said = shell("sync")
    assert (said.code, said.out) == (1, "")
    assert said.err.splitlines()[-1].startswith("memoryd: ")


def test_another_command_that_holds_the_lock_is_named_instead_of_asked(shell: Shell) -> None:
    with shell.held("demo"):
        said = shell("sync")
    assert said.code == 1
    assert "(demo)" in said.err
    assert "asking it" not in said.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "asked_about"), [("y\n", "recent"), ("perhaps\nall\n", "all"), ("\n", None), ("", None)]
)
def test_on_a_terminal_a_person_is_asked_about_history_once(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, answer: str, asked_about: str | None
) -> None:
    """Consent comes from a person, never from an empty answer."""
    requests: list[Request] = []

    async def daemon(request: Request, _tell: Tell) -> dict[str, object]:
        requests.append(request)
        return {**RESULT, "waiting": {} if request["backfill"] else {"consent": 3}}

    terminal = Terminal()
    with shell.held("daemon", daemon), monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", Terminal(answer))
        patch.setattr(sys, "stdout", terminal)
        shell("sync")
    assert "3 sessions from before memoryd's first start" in terminal.getvalue()
    assert [request["backfill"] for request in requests] == ([None, asked_about] if asked_about else [None])


def test_what_waits_died_and_is_not_configured_is_told() -> None:
    lines = summary_lines({**RESULT, "agents": [], "consolidates_at": 1_700_000_000.0, "dead": 2})
    assert any(line.startswith("the consolidation waits until 2023-11-1") for line in lines)
    assert any("out of attempts: 2 jobs" in line for line in lines)
    assert any("no agent is configured" in line for line in lines)
