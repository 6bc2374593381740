from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from memoryd.clock import SystemClock
from memoryd.ledger import jobs, sessions
from memoryd.ledger.sessions import SessionRow, Sighting, UserMode
from memoryd.sources.codex import CodexReader
from tests.control.conftest import THREAD, Shell
from tests.ledger.factories import OTHER, a_sighting, claim

SECRET = "sk-proj-" + "a1B2" * 12


def test_an_eligible_session_is_explained_before_any_sync_and_nothing_is_written(shell: Shell) -> None:
    """I7."""
    path = shell.record("Use tabs; <private>hush</private>", f"my key is {SECRET}")
    before = sorted(shell.home.path.rglob("*"))
    said = shell("explain", str(path), "--json")
    assert said.code == 0
    told = said.json
    assert (told["thread_id"], told["eligible"], told["reason"]) == (THREAD, True, None)
    assert told["evidence"]["human_messages"] == 2
    assert sum(told["evidence"]["redactions"].values()) == 1
    assert (told["job"], told["remembered"]) == (None, False)
    assert sorted(shell.home.path.rglob("*")) == before


def test_a_session_is_found_by_its_thread_or_the_beginning_of_one(shell: Shell) -> None:
    path = shell.record()
    for wanted in (THREAD, THREAD[:13], str(path)):
        assert shell("explain", wanted, "--json").json["path"] == str(path)
    shell("sync", "--now")
    assert shell("explain", THREAD[:9], "--json").json["path"] == str(path)


def test_the_input_is_shown_as_it_would_be_sent(shell: Shell) -> None:
    shell.record(f"Use tabs, my key is {SECRET}")
    shown = shell("explain", THREAD, "--show-input").out
    assert "Use tabs" in shown
    assert SECRET not in shown


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        ({"source": "exec"}, "noninteractive"),
        ({"memory_mode": "disabled"}, "memory_disabled"),
        ({"idle_hours": 1}, "too_fresh"),
        ({"idle_hours": 24 * 11}, "too_old"),
    ],
)
def test_the_exact_rule_that_leaves_a_session_out_is_named(
    shell: Shell, session: dict[str, object], reason: str
) -> None:
    path = shell.record("Use tabs", **session)  # type: ignore[arg-type]  # by name
    told = shell("explain", str(path), "--json").json
    assert (told["eligible"], told["reason"]) == (False, reason)
    assert told["rule"]
    assert (told["eligible_at"] is not None) == (reason == "too_fresh")
    lines = shell("explain", str(path)).out
    assert f"not extracted: {reason}" in lines
    assert ("eligible from" in lines) == (reason == "too_fresh")


def test_history_waits_for_consent_where_a_model_would_be_asked(shell: Shell) -> None:
    shell.configure(
        '[providers.here]\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n[extract]\nmodel = "m"\n'
    )
    shell.record()
    assert shell("explain", THREAD, "--json").json["reason"] == "consent"


def test_what_came_of_a_session_is_told(shell: Shell) -> None:
    path = shell.record("Use tabs", "Always use tabs in the Makefile.")
    with path.open("a") as file:
        file.write("{broken\n")
    shell("sync", "--now")
    told = shell("explain", THREAD).out
    assert "verdict   not extracted: covered" in told
    assert "job       done" in told
    assert "there is one" in told
    assert "skipped   1 unreadable lines" in told
    assert "(branch main)" in told


def test_what_the_person_decided_comes_first(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    shell.write(sessions.set_user_mode, THREAD, UserMode.DISABLED)
    assert shell("explain", THREAD, "--json").json["reason"] == "memory_disabled"
    shell.write(sessions.set_excluded, THREAD, sessions.FORGOTTEN)
    assert shell("explain", THREAD, "--json").json["reason"] == "forgotten"
    shell.write(jobs.retry, kind="memory_stage1", job_key="x", now=0, max_attempts=1)


def test_what_is_no_session_is_one_line(shell: Shell, tmp_path: Path) -> None:
    odd = tmp_path / "odd.jsonl"
    odd.write_text("{broken\n")
    for wanted in ("ffffffff", str(odd)):
        said = shell("explain", wanted)
        assert (said.code, said.out, said.err.count("\n")) == (2, "", 1), said
    shell.home.config_file.write_text("")
    assert "none is configured" in shell("explain", "ffffffff").err


def test_what_keeps_an_eligible_session_s_job_is_told(shell: Shell) -> None:
    path = shell.record()
    now = SystemClock().now()
    shell("sync", "--now")
    with path.open("a") as file:
        file.write(path.read_text().splitlines()[-1].replace("Done.", "More.") + "\n")
    tail = CodexReader().tail(CodexReader().locate(path))
    pair = {"updated_at": tail.last_record_at, "record_bytes": tail.record_bytes}
    shell.write(jobs.enqueue_stage1, thread_id=THREAD, **pair, now=now, max_attempts=1)
    assert shell("explain", THREAD, "--json").json["eligible"] is True
    for ending, reason in (("defer", "budget"), ("run", "running"), ("fail", "out_of_attempts")):
        if ending == "defer":
            lease = shell.write(claim, now=now + 2, max_attempts=1)
            shell.write(jobs.defer, lease, now=now, until=now + 9999, reason="budget", error="cap")
        elif ending == "run":
            shell.write(jobs.retry, kind="memory_stage1", job_key=THREAD, now=now, max_attempts=1)
            lease = shell.write(claim, now=now + 2, max_attempts=1)
        else:
            shell.write(jobs.fail, lease, now=now, retry_at=now, error="odd", error_class="MalformedReply")
        told = shell("explain", THREAD, "--json").json
        assert (told["eligible"], told["reason"]) == (False, reason)
        assert told["rule"]


def test_the_other_files_of_a_session_and_its_relatives_are_told(shell: Shell) -> None:
    """One UUID in two agents is one session."""
    path = shell.record()
    shell("sync", "--now")
    row = shell.write(sessions.get_exact, THREAD)
    assert row is not None
    older = {"path": "/gone/older.jsonl", "thread_id": OTHER, "parent_id": None, "started_at": 5}
    shell.write(sessions.upsert, a_sighting(**(vars_of(row) | older | {"lineage": "row-1"})), 0)
    shell.write(sessions.upsert, a_sighting(**(vars_of(row) | {"lineage": "row-1"})), 0)
    twin = {"agent": "claude", "path": "/claude/twin.jsonl", "updated_at": 1}
    shell.write(sessions.upsert, a_sighting(**(vars_of(row) | twin)), 0)

    told = shell("explain", str(path))
    assert "also at   /claude/twin.jsonl (claude): one id is one session, read from the file above" in told.out
    assert f"shares    what {OTHER} holds too: this session's now: its file is gone" in told.out
    shell.write(sessions.set_user_mode, OTHER, UserMode.DISABLED)
    assert "holds too: nobody's, up to" in shell("explain", str(path)).out


def vars_of(row: SessionRow) -> dict[str, Any]:
    return {field.name: getattr(row, field.name) for field in fields(Sighting) if hasattr(row, field.name)}


def test_a_session_without_a_persons_word_says_so(shell: Shell) -> None:
    path = shell.record("<environment_context>\n  <cwd>/home/dev/shop</cwd>\n</environment_context>")
    shell("sync", "--now")
    told = shell("explain", str(path), "--json").json
    assert told["reason"] == "no_human_message"
    assert shell("status", "--json").json["excluded"] == {"no_human_message": 1}
