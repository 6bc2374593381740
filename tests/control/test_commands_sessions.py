import re

import pytest

from memoryd.daemon.control_socket import Request, Tell
from memoryd.ledger import discovery, sessions
from memoryd.ledger.policy import ConsolidateTiming
from memoryd.ledger.sessions import UserMode
from tests.control.conftest import THREAD, Shell
from tests.ledger.factories import OTHER


def test_sessions_are_listed_with_what_keeps_them_out(shell: Shell) -> None:
    shell.record()
    shell.record("Scripted.", thread_id=OTHER, source="exec")
    shell("sync", "--now")

    by_id = {session["thread_id"]: session for session in shell("sessions", "--json").json}
    assert (by_id[THREAD]["reason"], by_id[THREAD]["extracted"]) == (None, True)
    assert (by_id[OTHER]["reason"], by_id[OTHER]["extracted"]) == ("noninteractive", False)
    lines = shell("sessions", "list").out
    assert "left out: noninteractive" in lines
    assert "extracted" in lines


def test_those_that_one_reason_leaves_out_are_listed_alone(shell: Shell) -> None:
    shell.record()
    shell.record("Scripted.", thread_id=OTHER, source="exec")
    shell("sync", "--now")

    listed = shell("sessions", "list", "--excluded", "noninteractive", "--json").json
    assert [session["thread_id"] for session in listed] == [OTHER]
    assert "no session is left out as subagent" in shell("sessions", "--excluded", "subagent").out
    said = shell("sessions", "--excluded", "nonsense")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "home_directory" in said.err
    assert "too_old" not in said.err


@pytest.mark.parametrize(
    ("said", "shown"),
    [("9999-12-31T23:59:59-12:00", "9999-12-30"), ("0001-01-01T00:00:00+14:00", "1000-01-0"), ("1969-01-01", "196")],
)
def test_a_session_of_no_time_that_a_calendar_has_is_listed_and_explained(shell: Shell, said: str, shown: str) -> None:
    path = shell.record()
    path.write_text(re.sub(r'"timestamp": ?"[^"]+"', f'"timestamp":"{said}"', path.read_text()))
    assert shell("sync", "--now").code == 0
    for words in (["sessions"], ["explain", THREAD], ["explain", THREAD, "--show-input"], ["status"], ["jobs"]):
        told = shell(*words)
        assert (told.code, told.err) == (0, ""), words
    assert shown in shell("explain", THREAD).out
    assert shell("explain", THREAD, "--json").json["reason"] == ("covered" if said > "2" else "too_old")


@pytest.mark.parametrize("reason", ["too_fresh", "too_old", "consent", "unreadable"])
def test_a_reason_that_no_session_is_kept_under_says_where_to_look(shell: Shell, reason: str) -> None:
    shell("sync")
    said = shell("sessions", "--excluded", reason)
    assert (said.code, said.out) == (2, "")
    assert "`memoryd status` counts them" in said.err


def test_a_list_of_sessions_takes_no_session(shell: Shell) -> None:
    shell("sync")
    said = shell("sessions", "list", THREAD)
    assert (said.code, said.out) == (2, "")
    assert f"memoryd explain {THREAD}" in said.err


def test_without_sessions_the_list_says_what_to_do(shell: Shell) -> None:
    assert shell("sessions").code == 1
    shell("sync")
    assert "run `memoryd sync`" in shell("sessions").out


@pytest.mark.parametrize("words", [[], [THREAD], ["ffffffff", "enabled"], [THREAD, "sideways"]])
def test_a_mode_needs_a_known_session_and_a_known_mode(shell: Shell, words: list[str]) -> None:
    shell.record()
    shell("sync")
    assert shell("sessions", "set-mode", *words).code == 2


def test_a_choice_is_kept_and_its_effect_is_said(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")

    assert "leaves the memory" in shell("sessions", "set-mode", THREAD[:9], "disabled").out
    session = shell("sessions", "set-mode", THREAD, "enabled", "--json").json
    assert (session["mode"], session["your_mode"], session["reason"]) == ("enabled", "enabled", None)
    assert "as the agent says" in shell("sessions", "set-mode", THREAD, "no-recall").out
    assert "yours: no-recall" in shell("sessions").out


def test_what_no_choice_can_bring_in_says_so(shell: Shell) -> None:
    shell.record(cwd=str(shell.home.memories))
    shell("sync")
    assert "stays left out: a run inside MEMORYD_HOME" in shell("sessions", "set-mode", THREAD, "enabled").out


def test_a_daemon_that_holds_the_lock_is_asked(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    asked: list[Request] = []

    async def answer(request: Request, _tell: Tell) -> dict[str, object]:
        asked.append(request)
        return {"thread_id": THREAD}

    with shell.held(answer=answer):
        said = shell("sessions", "set-mode", THREAD[:9], "disabled")
    assert said.code == 0, said
    assert asked == [{"do": "set-mode", "thread": THREAD[:9], "mode": "disabled"}]


def test_a_command_that_holds_the_lock_cannot_be_asked(shell: Shell) -> None:
    shell.record()
    shell("sync")
    with shell.held(role="sync"):
        assert shell("sessions", "set-mode", THREAD, "disabled").code == 1


def test_a_polluted_session_is_brought_back_by_the_person(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    shell.write(discovery.leave_out, THREAD, "polluted", None, now=0, timing=ConsolidateTiming(0, 0), max_attempts=3)
    assert [each["reason"] for each in shell("sessions", "--json").json] == ["polluted"]

    shell("sessions", "set-mode", THREAD, UserMode.ENABLED.value)

    row = shell.write(sessions.get_exact, THREAD)
    assert row is not None
    assert (row.excluded, row.polluted_at, row.remembers) == (None, None, True)
