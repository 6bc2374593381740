from typing import Any

import pytest

from memoryd.daemon.control_socket import Request, Tell
from memoryd.ledger import jobs
from tests.control.conftest import THREAD, Shell
from tests.ledger.factories import NOW, OTHER, claim, enqueue

SIBLING = f"{THREAD[:-1]}0"


def a_dead_job(shell: Shell, thread: str = THREAD) -> None:
    shell.write(enqueue, thread, max_attempts=1)
    lease = shell.write(claim, only=thread, max_attempts=1)
    shell.write(jobs.fail, lease, now=NOW + 2, retry_at=NOW, error="the reply is no JSON", error_class="MalformedReply")


def test_without_a_ledger_there_is_one_line(shell: Shell) -> None:
    said = shell("jobs")
    assert (said.code, said.err.count("\n")) == (1, 1)


def test_an_empty_list_says_so(shell: Shell) -> None:
    shell("sync")
    assert "no jobs yet" in shell("jobs").out
    assert shell("jobs", "--json").json == []


def test_a_job_is_found_by_the_bare_id_of_its_session(shell: Shell) -> None:
    a_dead_job(shell, "generic:editor-7")
    a_dead_job(shell, "generic:editor-70")
    for key in ("generic:editor-7", "editor-7"):
        assert "generic:editor-7 " in shell("jobs", "show", key).out
    assert shell("jobs", "show", "editor").code == 2
    assert shell("jobs", "show", "ditor-7").code == 2


def test_what_is_tried_again_is_told_as_json(shell: Shell) -> None:
    a_dead_job(shell)
    assert [row["job_key"] for row in shell("jobs", "retry", "--all", "--json").json["revived"]] == [THREAD]


def test_a_list_takes_no_key(shell: Shell) -> None:
    said = shell("jobs", "list", "editor-7")
    assert (said.code, said.out) == (2, "")
    assert "memoryd jobs show editor-7" in said.err


def test_jobs_are_listed_as_what_they_are(shell: Shell) -> None:
    a_dead_job(shell)
    shell.write(enqueue, OTHER)
    lease = shell.write(claim)
    assert "running" in shell("jobs", "list").out
    shell.write(jobs.defer, lease, now=NOW, until=NOW + 60, reason="budget", error="cap")
    waiting = shell("jobs").out
    assert f"memory_stage1 {OTHER}  waits until" in waiting
    assert "budget" in waiting
    assert "out of attempts: the reply is no JSON" in waiting
    assert shell("jobs", "--status", "error").out.count("\n") == 1
    rows = shell("jobs", "--json").json
    assert {row["job_key"] for row in rows} == {THREAD, OTHER}
    assert all("ownership_token" not in row for row in rows)
    shell.write(jobs.retry, kind="memory_stage1", job_key=OTHER, now=NOW, max_attempts=3)
    assert "is next" in shell("jobs", "--status", "pending").out


def test_one_job_is_shown_with_the_history_of_its_runs(shell: Shell) -> None:
    a_dead_job(shell)
    told = shell("jobs", "show", THREAD[:9]).out
    assert "last error    the reply is no JSON" in told
    assert "state         out of attempts" in told
    assert f"then `memoryd jobs retry {THREAD}`" in told
    assert "runs so far: 1" in told
    assert "failed after 2.0 s; 0 requests, 0 tokens\n      MalformedReply: the reply is no JSON" in told
    shown: Any = shell("jobs", "show", THREAD, "--json").json
    assert shown["job"]["status"] == "error"
    assert shown["attempts"][0]["outcome"] == "failed"


def test_a_run_that_goes_on_and_a_success_are_shown(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    assert "done     memory_consolidate_global global  at" in shell("jobs").out
    assert "done after" in shell("jobs", "show", "global").out
    shell.write(enqueue, OTHER)
    shell.write(claim)
    assert "still running; 0 requests, 0 tokens" in shell("jobs", "show", OTHER).out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("show",), "needs a job's key"),
        (("retry",), "needs a job's key"),
        (("show", "ffff"), "there is no job"),
        (("show", THREAD[:-1]), "2 jobs begin with"),
    ],
)
def test_a_key_that_names_no_one_job_is_a_wrong_argument(shell: Shell, words: tuple[str, ...], complaint: str) -> None:
    shell.write(enqueue, THREAD)
    shell.write(enqueue, SIBLING)
    said = shell("jobs", *words)
    assert said.code == 2
    assert complaint in said.err


def test_a_dead_job_is_tried_again(shell: Shell) -> None:
    a_dead_job(shell)
    said = shell("jobs", "retry", THREAD)
    assert said.code == 0
    assert "will be tried again" in said.out
    (row,) = shell("jobs", "--json").json
    assert (row["status"], row["retry_remaining"]) == ("pending", 3)


def test_all_dead_jobs_are_tried_again_at_one_word(shell: Shell) -> None:
    assert shell("sync").code == 0
    assert "no job is out of attempts" in shell("jobs", "retry", "--all").out
    for thread in (THREAD, OTHER):
        a_dead_job(shell, thread)
    said = shell("jobs", "retry", "--all")
    assert (said.code, "2 jobs will be tried again" in said.out) == (0, True)
    assert {row["status"] for row in shell("jobs", "--json").json} == {"pending"}


def test_a_finished_job_is_not_tried_again(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    said = shell("jobs", "retry", f"memory_stage1/{THREAD}")
    assert (said.code, "nothing to try again" in said.out) == (1, True)
    again = shell("jobs", "retry", f"memory_stage1/{THREAD}", "--json")
    assert (again.code, again.json) == (1, {"revived": []})


def test_a_running_daemon_is_asked_to_try_again(shell: Shell) -> None:
    asked: list[Request] = []

    async def answer(request: Request, _tell: Tell) -> dict[str, object]:
        asked.append(request)
        return {"revived": True}

    a_dead_job(shell)
    with shell.held("daemon", answer):
        assert shell("jobs", "retry", THREAD).code == 0
    assert asked == [{"do": "retry", "kind": "memory_stage1", "key": THREAD}]


def test_another_command_that_holds_the_lock_is_named_instead_of_asked(shell: Shell) -> None:
    a_dead_job(shell)
    with shell.held("sync"):
        said = shell("jobs", "retry", THREAD)
    assert said.code == 1
    assert "(sync)" in said.err
