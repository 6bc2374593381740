import json
import re
import shutil
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from memoryd.clock import SystemClock
from memoryd.control.wording import DROPPED
from memoryd.errors import SourceError
from memoryd.ledger import facts, forgetting, jobs, meta, sessions
from memoryd.ledger.sessions import SessionRow, Sighting, UserMode
from memoryd.pipeline.sanitise import Reason
from memoryd.sources.codex import CodexReader
from memoryd.sources.readers import READERS
from tests.control.conftest import THREAD, Shell
from tests.ledger.factories import OTHER, a_sighting, claim
from tests.support.sessions import Command, Turn

SECRET = "sk-proj-" + "a1B2" * 12
FIXTURES = Path(__file__).parents[1] / "fixtures"


def plainly(shell: Shell, *words: str) -> str:
    """What `explain` prints, with the places and times of this very run replaced."""
    said = shell("explain", *words)
    assert (said.code, said.err) == (0, "")
    text = said.out.replace(str(shell.folder), "~")
    text = re.sub(r"rollout-[-T0-9]{19}-", "rollout-", re.sub(r"/\d{4}/\d\d/\d\d/", "/DAY/", text))
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text)
    return re.sub(r"TIME \((?:now|in [^)]+|[^)]+ ago)\)", "TIME", text)


def recordings(shell: Shell, agent: str, recording: str) -> Path:
    """Let memoryd read a recording of an agent instead of Codex sessions; return the agent's home."""
    home = shell.folder / agent
    shutil.copytree(FIXTURES / agent / recording, home)
    home = next((home / name for name in (".claude", ".gemini", ".qwen", ".copilot") if (home / name).exists()), home)
    age_days = (SystemClock().now() - 1_795_970_000) / 86_400
    shell.home.config_file.write_text(
        f'[sources]\nagents = ["{agent}"]\nroots = {{ {agent} = ["{home}"] }}\n'
        f'[discover]\nmin_idle = "0s"\nmax_age = "{int(age_days) + 2}d"\n'
        f'[consolidate]\nmax_unused = "{int(age_days) + 2}d"\n'
    )
    return home


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


def test_the_budget_is_told_by_tier(shell: Shell) -> None:
    """What is cut first is the least telling: the words of the person stay."""
    shell.configure("[extract]\nmax_input_tokens = 400\n")
    command = Command("make", "line of a log\n" * 50)
    path = shell.record(*(Turn(f"Use tabs, {number}.", f"Answer {number}.", [command]) for number in range(3)))
    told = shell("explain", str(path), "--json").json["evidence"]
    assert told["tiers"]["human user"] == {"kept": 3, "cut": 0}
    assert told["tiers"]["assistant final"] == {"kept": 3, "cut": 0}
    assert told["tiers"]["tool"]["cut"] > 0
    assert told["bytes"] <= told["budget_bytes"]
    tool = told["tiers"]["tool"]
    lines = plainly(shell, str(path))
    assert f" bytes of at most {told['budget_bytes']:,}\n       3       human user\n" in lines
    assert f"       {tool['kept']}       tool, {tool['cut']} cut for want of room\n" in lines


def test_what_the_ledger_knows_of_a_model_and_of_a_reset_holds_for_what_is_shown(shell: Shell) -> None:
    """Otherwise another request would be shown than the one that is sent."""
    path = shell.record()
    shell("sync", "--now")
    shell.write(facts.put_bytes_per_token, "offline", "", 2.0, now=0)
    evidence = shell("explain", str(path), "--json").json["evidence"]
    assert evidence["budget_bytes"] == 2 * evidence["budget_tokens"]
    assert evidence["human_messages"] == 2
    shell.write(meta.put, forgetting.RESET_AT, str(int(SystemClock().now())))
    evidence = shell("explain", str(path), "--json").json["evidence"]
    assert (evidence["human_messages"], evidence["dropped"]) == (0, {"copied": 4})
    told = plainly(shell, str(path))
    assert " nothing is taken of what was recorded up to TIME: you reset the memory then" in told
    assert "       4       rows from before you reset the memory" in told
    later = shell.record(thread_id=OTHER, idle_hours=-1)
    assert shell("explain", str(later), "--json").json["evidence"]["human_messages"] == 2


def test_history_waits_for_consent_where_a_model_would_be_asked(shell: Shell) -> None:
    shell.configure(
        '[providers.here]\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n[extract]\nmodel = "m"\n'
    )
    shell.record()
    assert shell("explain", THREAD, "--json").json["reason"] == "consent"


def test_what_the_person_decided_comes_first(shell: Shell) -> None:
    shell.record()
    shell("sync", "--now")
    shell.write(sessions.set_user_mode, THREAD, UserMode.DISABLED)
    assert shell("explain", THREAD, "--json").json["reason"] == "memory_disabled"
    shell.write(sessions.set_excluded, THREAD, sessions.FORGOTTEN)
    assert shell("explain", THREAD, "--json").json["reason"] == "forgotten"
    shell.write(jobs.retry, kind="memory_stage1", job_key="x", now=0, max_attempts=1)


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


def vars_of(row: SessionRow) -> dict[str, Any]:
    return {field.name: getattr(row, field.name) for field in fields(Sighting) if hasattr(row, field.name)}


def test_a_session_without_a_persons_word_says_so(shell: Shell) -> None:
    path = shell.record("<environment_context>\n  <cwd>/home/dev/shop</cwd>\n</environment_context>")
    shell("sync", "--now")
    told = shell("explain", str(path), "--json").json
    assert told["reason"] == "no_human_message"
    assert shell("status", "--json").json["excluded"] == {"no_human_message": 1}


def test_a_session_is_told_to_somebody_who_has_never_seen_the_code(shell: Shell) -> None:
    shell.record("Use tabs; <private>hush</private>", f"my key is {SECRET}")
    assert (
        plainly(shell, THREAD)
        == f"""\
codex session {THREAD}
  file         ~/codex/sessions/DAY/rollout-{THREAD}.jsonl
  project      /home/dev/shop (branch main)
  driven by    a person
  recorded     TIME to TIME, 7 h ago; 1,419 bytes
  verdict      to be remembered: it is extracted by the next pass
  next         it is due, but no memoryd runs (not_running)
  to do        `memoryd run` starts it; `memoryd sync` makes one pass without it
What a model would get to read: 4 items, 282 bytes of at most 450,000
       2       human user
       2       assistant final
What is left out:
       1       passages in <private>
Secrets that are replaced before anything is sent or stored:
       1       openai
What came of it:
  job          none yet
  memory       none
"""
    )


def test_what_came_of_a_session_is_told(shell: Shell) -> None:
    path = shell.record("Use tabs", "Always use tabs in the Makefile.")
    with path.open("a") as file:
        file.write("{broken\n")
    shell("sync", "--now")
    assert (
        plainly(shell, THREAD)
        == f"""\
codex session {THREAD}
  file         ~/codex/sessions/DAY/rollout-{THREAD}.jsonl
  project      /home/dev/shop (branch main)
  driven by    a person
  recorded     TIME to TIME, 7 h ago; 1,368 bytes
  verdict      extracted (covered): nothing was recorded since it was extracted
  next         it is read again when something is recorded in it: no new input, since TIME
  to do        nothing
What a model would get to read: 4 items, 278 bytes of at most 450,000
       2       human user
       2       assistant final
What is left out:
       1       unreadable lines
What came of it:
  job          done
  attempt      TIME, done
  spent        0 requests, 0 tokens
  memory       written TIME, in the memory folder since TIME
"""
    )
    told = shell("explain", THREAD, "--json").json
    assert told["memory"]["summary_file"].startswith("rollout_summaries/")
    assert told["spent"] == {"requests": 0, "tokens_in": 0, "tokens_out": 0, "tokens_cached": 0, "cost": 0}


@pytest.mark.parametrize(
    ("session", "verdict"),
    [
        ({"source": "exec"}, "noninteractive"),
        ({"memory_mode": "disabled"}, "memory_disabled"),
        ({"idle_hours": 1}, "too_fresh"),
        ({"idle_hours": 24 * 11}, "too_old"),
    ],
)
def test_the_exact_rule_that_leaves_a_session_out_is_named(shell: Shell, session: dict[str, Any], verdict: str) -> None:
    path = shell.record("Use tabs", **session)
    told = shell("explain", str(path), "--json").json
    assert (told["eligible"], told["reason"]) == (False, verdict)
    assert (told["eligible_at"] is not None) == (verdict == "too_fresh")
    lines = plainly(shell, str(path))
    assert f"  verdict      not extracted ({verdict}): {told['rule']}\n" in lines
    assert ("it is due then, if nothing is added to it, until TIME" in lines) == (verdict == "too_fresh")
    assert "       1       human user\n" in lines


def test_a_folder_that_is_left_out_is_left_out_by_each_of_its_names(shell: Shell) -> None:
    (shell.folder / "real").mkdir()
    (shell.folder / "link").symlink_to(shell.folder / "real")
    left_out = f'exclude_cwd = ["{shell.folder}/link/*"]\n[consolidate]'
    shell.home.config_file.write_text(shell.home.config_file.read_text().replace("[consolidate]", left_out))
    path = shell.record(cwd=str(shell.folder / "real" / "shop"))
    told = shell("explain", str(path), "--json").json
    assert (told["eligible"], told["reason"]) == (False, "excluded_cwd")
    shell("sync", "--now")
    assert shell("status", "--json").json["excluded"] == {"excluded_cwd": 1}


def test_the_keys_of_the_json_stay(shell: Shell, tmp_path: Path) -> None:
    path = shell.record()
    told = shell("explain", THREAD, "--json").json
    assert list(told) == [
        "thread_id", "agent", "path", "kind", "cwd", "git_branch", "parent_id", "copies", "relatives", "memory_mode",
        "chosen_mode", "started_at", "last_record_at", "record_bytes", "reset_at", "problem", "eligible", "reason",
        "rule", "eligible_at", "evidence", "input", "job", "attempts", "spent", "remembered", "memory", "next",
    ]  # fmt: skip
    shell("sync", "--now")
    assert list(shell("explain", THREAD, "--json").json) == list(told)
    path.write_bytes(b"\0" * 100)
    broken = shell("explain", THREAD, "--json").json
    assert list(broken) == list(told)
    assert (broken["reason"], broken["evidence"], broken["input"]) == ("unreadable", None, None)
    assert broken["memory"] is not None


def test_a_file_that_cannot_be_read_is_explained_and_not_an_error(shell: Shell, tmp_path: Path) -> None:
    path = shell.record()
    path.write_text("{broken\n")
    place = f"~/codex/sessions/DAY/rollout-{THREAD}.jsonl"
    problem = f"cannot tell which session {place} is: none of its first 64 lines is a session_meta"
    assert (
        plainly(shell, str(path))
        == f"""\
a file that is no session
  file         ~/codex/sessions/DAY/rollout-{THREAD}.jsonl
  verdict      not extracted (unreadable): the file cannot be read as a session
  problem      {problem}
  next         it is looked at again when its file has changed
  to do        nothing, unless the file is damaged
What came of it:
  job          none yet
  memory       none
"""
    )
    odd = tmp_path / "odd.jsonl"
    odd.write_text("{broken\n")
    assert "verdict      not extracted (unreadable)" in plainly(shell, str(odd))
    refused = shell("explain", str(odd), "--show-input")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)


def test_records_of_types_that_nobody_knows_are_named(shell: Shell) -> None:
    path = shell.record(extra=[{"type": name, "payload": {}} for name in ("hologram", SECRET)])
    told = plainly(shell, str(path))
    assert "       1       records of the unknown type hologram\n" in told
    assert "       1       records of the unknown type [REDACTED_SECRET:openai]\n" in told


def test_without_a_session_the_newest_are_listed_before_any_sync(shell: Shell) -> None:
    shell.home.config_file.rename(shell.folder / "config.toml")
    assert "`memoryd init`" in shell("explain").out
    (shell.folder / "config.toml").rename(shell.home.config_file)
    assert "there is no session in the folders of codex yet" in shell("explain").out
    shell.record(idle_hours=9)
    shell.record(thread_id=OTHER)
    shell.record(thread_id="01a226ab-6a00-7000-8000-000000000001").write_text("{broken\n")
    said = shell("explain")
    assert said.code == 0
    assert [line.split()[0] for line in said.out.splitlines()[1:]].count(THREAD) == 1
    assert {each["thread_id"] for each in shell("explain", "--json").json} == {THREAD, OTHER, None}
    first = said.out.splitlines()[1].split()[0]
    assert shell("explain", first if "/" not in first else OTHER).code == 0
    assert not shell.home.ledger_file.exists()


def test_what_is_nowhere_is_one_line(shell: Shell) -> None:
    said = shell("explain", "ffffffff")
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    shell.home.config_file.write_text("")
    assert "none is configured" in shell("explain", "ffffffff").err


def test_a_beginning_that_fits_several_sessions_names_them(shell: Shell) -> None:
    for thread_id in (THREAD, OTHER):
        shell.record(thread_id=thread_id)
    said = shell("explain", THREAD[:2])
    assert said.code == 2
    assert THREAD in said.err
    assert OTHER in said.err


def test_twins_copies_and_the_same_id_of_another_agent_are_named(shell: Shell) -> None:
    """One UUID in two agents is one session."""
    path = shell.record()
    twin = shell.record(compressed=True)
    archived = shell.record(archived=True)
    claude = shell.folder / "claude" / "projects" / "-home-dev-shop" / f"{THREAD}.jsonl"
    claude.parent.mkdir(parents=True)
    row = {"type": "user", "uuid": "u1", "sessionId": THREAD, "cwd": "/x", "timestamp": "2026-11-29T10:00:00Z"}
    claude.write_text(json.dumps(row | {"message": {"role": "user", "content": "Use tabs"}}) + "\n")
    shell.home.config_file.write_text(
        f'[sources]\nagents = ["codex", "claude"]\n'
        f'roots = {{ codex = ["{shell.codex}"], claude = ["{shell.folder / "claude"}"] }}\n'
    )
    before = shell("explain", str(path), "--json").json["copies"]
    assert {(copy["path"], copy["agent"]) for copy in before} == {
        (str(twin), "codex"),
        (str(archived), "codex"),
        (str(claude), "claude"),
    }
    told = plainly(shell, str(path))
    assert f"  same session ~/codex/sessions/DAY/rollout-{THREAD}.jsonl.zst: compressed copy, not read again\n" in told
    assert f"  same session ~/codex/archived_sessions/rollout-{THREAD}.jsonl: archived copy, not read again\n" in told
    assert "claude has the same id; one id is one session, read from the file above\n" in told


def test_relatives_that_the_ledger_knows_are_told_with_whose_the_rows_are(shell: Shell) -> None:
    path = shell.record()
    shell("sync", "--now")
    row = shell.write(sessions.get_exact, THREAD)
    assert row is not None
    older = {"path": "/gone/older.jsonl", "thread_id": OTHER, "parent_id": None, "started_at": 5}
    shell.write(sessions.upsert, a_sighting(**(vars_of(row) | older | {"lineage": "row-1"})), 0)
    shell.write(sessions.upsert, a_sighting(**(vars_of(row) | {"lineage": "row-1"})), 0)
    told = plainly(shell, str(path))
    gone = "which is older and whose file is gone: they are taken from here"
    assert f"  shares       rows with {OTHER}, {gone}\n" in told
    shell.write(sessions.set_user_mode, OTHER, UserMode.DISABLED)
    left_out = "which was left out and is gone: nothing is taken of what was said up to TIME"
    assert f"  shares       rows with {OTHER}, {left_out}\n" in plainly(shell, str(path))


CLAUDE_FORK, CLAUDE_OLDER = "c66d04d7-4e4a-4d96-af8b-616e9addb1d0", "b5c19b29-9cfe-4997-bb0c-8cefb2bff10c"


def test_a_fork_is_compared_with_its_neighbours_before_any_sync(shell: Shell) -> None:
    recordings(shell, "claude", "2.0.76")
    told = plainly(shell, CLAUDE_FORK[:8])
    assert f"  comes from   session {CLAUDE_OLDER}\n" in told
    assert f"  shares       rows with {CLAUDE_OLDER}, which is older: they are taken from there\n" in told
    assert "       1       human user\n" in told
    assert "      23       rows that an older session holds too, whose they are\n" in told
    older = plainly(shell, CLAUDE_OLDER)
    assert f"  shares       rows with {CLAUDE_FORK}, which is younger: they are taken from here\n" in older
    assert "       3       human user\n" in older


@pytest.mark.parametrize("name", ["ses_dd7b5c627ffe0khbVl6WS3x44c", "opencode:ses_dd7b5c62"])
def test_a_session_in_a_store_is_found_by_its_own_id(shell: Shell, name: str) -> None:
    recordings(shell, "opencode", "1.0.185")
    told = shell("explain", name, "--json").json
    assert (told["thread_id"], told["eligible"]) == ("opencode:ses_dd7b5c627ffe0khbVl6WS3x44c", True)


def test_a_session_in_a_database_is_found_by_its_path(shell: Shell) -> None:
    home = recordings(shell, "opencode", "1.2.27")
    store = next(home.rglob("opencode.db"))
    told = plainly(shell, f"{store}#ses_dd7b7a4a9fferqobNQtJfgrhXn")
    assert told.startswith("opencode session opencode:ses_dd7b7a4a9fferqobNQtJfgrhXn\n")
    assert "; 60 rows\n" in told
    older = "which is older and left out: they are taken from neither"
    assert f"  shares       rows with opencode:ses_dd7b868ccffetrbqss98DqnPix, {older}\n" in told


@pytest.mark.parametrize(
    ("agent", "recording", "thread"),
    [
        ("gemini", "0.61.0", "1f8f1ecd-3e8c-4988-94e7-a0436899db7a"),
        ("gemini", "0.36.0", "2d247c28"),
        ("qwen", "0.24.4", "23d11345"),
        ("copilot", "1.0.102", "167864a3-8f78"),
    ],
)
def test_every_agent_s_sessions_are_explained(shell: Shell, agent: str, recording: str, thread: str) -> None:
    recordings(shell, agent, recording)
    told = plainly(shell, thread)
    assert told.startswith(f"{agent} session {thread}")
    assert "  verdict      to be remembered: it is extracted by the next pass\n" in told


def test_a_path_is_explained_without_any_configuration(shell: Shell) -> None:
    shell.home.config_file.write_text("")
    (path,) = (FIXTURES / "qwen").rglob("chats/*.jsonl")
    assert shell("explain", str(path), "--json").json["agent"] == "qwen"


def test_whatever_a_reader_leaves_out_has_a_meaning() -> None:
    seen: set[str] = {reason.value for reason in Reason}
    for agent, reader in READERS.items():
        below = FIXTURES / agent
        for home in (below, *(path for path in below.rglob("*") if path.is_dir())):
            for file in reader.find([home]):
                with suppress(SourceError), reader.read(file) as reading:
                    list(reading)
                    seen.update(reading.dropped)
    assert seen - set(DROPPED) == set()
