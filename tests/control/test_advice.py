"""What memoryd says to do works: the very words of a message are followed, and what was wrong is right."""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from memoryd.control.main import COMMANDS
from memoryd.control.manual import PAGES
from memoryd.ledger import meta
from memoryd.workspace.notes import request_to_forget
from tests.control.conftest import THREAD, WORDS, Said, Shell
from tests.control.test_nothing_is_done import dead_job
from tests.ledger.factories import OTHER, enqueue
from tests.test_messages import said_by_code

NOTHING: tuple[str, ...] = ()


@dataclass(frozen=True)
class Advice:
    """A state of things, a command that meets it, what its message advises, and how it is then.

    `advised` picks the command out of the message, to which `more` is added; after it was followed `command` says no
    more what is to be `gone`.
    """

    command: tuple[str, ...]
    advised: str
    broken: Callable[[Shell], object] = lambda shell: None
    more: tuple[str, ...] = NOTHING
    gone: str = ""


def remembered(shell: Shell) -> None:
    shell.record()
    assert shell("sync", "--now").code == 0


def folder_gone(shell: Shell) -> None:
    remembered(shell)
    for path in sorted(shell.home.memories.rglob("*"), reverse=True):
        if ".git" not in path.parts:
            path.rmdir() if path.is_dir() else path.unlink()


def no_hook_program(shell: Shell) -> None:
    remembered(shell)
    (shell.home.bin / "hook.py").unlink()


def history_waits(shell: Shell) -> None:
    shell.record()
    settings = shell.home.config_file.read_text().replace("[consolidate]", '[consolidate]\nmodel = "m"')
    provider = '[extract]\nmodel = "m"\n[providers.here]\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
    shell.home.config_file.write_text(settings + provider)
    shell("sync")


def excluded(shell: Shell) -> None:
    shell.record(source="exec")
    shell("sync")


def not_set_up(shell: Shell) -> None:
    (shell.codex / "sessions").mkdir(parents=True)
    shell.home.config_file.unlink()


FOLLOWED = {
    "a dead job is tried again": Advice(
        ("status",), f"`(memoryd jobs retry {THREAD})`", dead_job, gone="out of attempts"
    ),
    "a dead job has a history": Advice(("explain", THREAD), f"`(memoryd jobs show {THREAD})`", dead_job),
    "there is no ledger yet": Advice(("jobs",), "`(memoryd [^`]+)`", lambda s: s.record()),
    "nothing is remembered yet": Advice(
        ("recall",), "`(memoryd sync --now)`", lambda s: s.record(), gone="there is no memory yet"
    ),
    "nothing is set up": Advice(
        ("status",),
        "run `(memoryd init)`",
        not_set_up,
        more=("--yes", "--provider", "offline"),
        gone="config.toml -> ",
    ),
    "a deleted folder comes back": Advice(("status",), "`(memoryd sync)` does it now", folder_gone, gone="was deleted"),
    "a part of the read path is missing": Advice(
        ("doctor", "--offline"),
        "`(memoryd doctor --fix)`",
        no_hook_program,
        more=("--offline",),
        gone="of another version",
    ),
    "a session was left out": Advice(
        ("explain", THREAD), "`(memoryd sessions set-mode [^`]+)`", excluded, gone="noninteractive"
    ),
    "a fresh session is taken at once": Advice(
        ("explain", THREAD), "`(memoryd sync --now)`", lambda s: s.record(idle_hours=1), gone="it is due then"
    ),
    "history is agreed to": Advice(
        ("explain", THREAD), "`(memoryd sync --backfill recent)`", history_waits, gone="before you agree"
    ),
    "the consolidation need not wait": Advice(
        ("explain", THREAD),
        "`(memoryd sync --now)`",
        lambda s: (
            s.home.config_file.write_text(s.home.config_file.read_text().replace('"0s"', '"1h"')),
            s.record(),
            s("sync"),
        ),
        gone="not yet in the memory folder",
    ),
    "an unknown command names the nearest": Advice(("jbos",), "did you mean `(memoryd [^`]+)`", remembered),
    "a list takes no key": Advice(("jobs", "list", THREAD), "`(memoryd jobs show [^`]+)`", remembered),
    "a key is missing": Advice(("jobs", "show"), "`(memoryd jobs)`", remembered),
    "a thread is unknown": Advice(("sessions", "set-mode", "ffff", "enabled"), "`(memoryd sessions)`", remembered),
    "a reset needs a yes": Advice(("reset",), "`(memoryd reset --yes)`", remembered),
}


def follow(shell: Shell, said: Said, advice: Advice) -> Said:
    """Run the command that a message names, exactly as it stands there."""
    found = re.search(advice.advised, said.out + said.err)
    assert found, (advice.advised, said)
    return shell(*shlex.split(found[1])[1:], *advice.more)


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_a_message_says_to_do_can_be_done_and_helps(shell: Shell, name: str) -> None:
    advice = FOLLOWED[name]
    advice.broken(shell)
    before = shell(*advice.command)
    assert advice.gone in before.out + before.err
    done = follow(shell, before, advice)
    assert done.code in {0, 1, 3}, done
    assert "usage:" not in done.err
    if advice.gone:
        after = shell(*advice.command)
        assert advice.gone not in after.out + after.err


@pytest.mark.parametrize(("wrong", "right"), [("modle", "model"), ("efort", "effort")])
def test_the_setting_that_is_proposed_is_right(shell: Shell, wrong: str, right: str) -> None:
    shell.configure(f"[extract]\n{wrong} = 'low'\n")
    said = shell("config", "check")
    assert said.code == 2
    (proposed,) = re.findall(rf"extract\.{right}\b", said.err)[:1]
    shell.configure(f"[extract]\n{proposed.partition('.')[2]} = 'low'\n")
    assert shell("config", "check").code == 0


def test_the_chmod_that_is_proposed_makes_a_key_private(shell: Shell) -> None:
    key = shell.folder / "key file"
    key.write_text("sk-1")
    key.chmod(0o644)
    settings = shell.home.config_file.read_text().replace("[consolidate]", '[consolidate]\nmodel = "m"')
    provider = f'[extract]\nmodel = "m"\n[providers.p]\nkind = "openai"\napi_key_file = "{key}"\n'
    shell.home.config_file.write_text(settings + provider + 'base_url = "http://127.0.0.1:9/v1"\n')
    said = shell("config", "check")
    found = re.search(r"chmod (\d+) (.+)\)$", said.err.strip())
    assert found
    Path(shlex.split(found[2])[0]).chmod(int(found[1], 8))
    assert shell("config", "check").code == 0


def test_a_home_of_a_demo_that_is_not_empty_is_left_and_a_new_one_is_taken(shell: Shell) -> None:
    said = shell("demo")
    assert (said.code, "name a folder that is new or empty" in said.err) == (2, True)
    shell.home.config_file.unlink()
    assert shell("demo", "--json").code == 0


def test_a_record_that_cannot_be_read_is_removed_and_the_agent_connected_anew(shell: Shell) -> None:
    record = shell.home.path / "connect" / "claude.json"
    record.parent.mkdir()
    record.write_text("{")
    said = shell("doctor", "--offline", "--json")
    (found,) = (each for each in said.json if each["id"] == "agent_claude")
    assert found["remedy"].startswith("remove it; `memoryd disconnect`")
    record.unlink()
    assert "agent_claude" not in {each["id"] for each in json.loads(shell("doctor", "--offline", "--json").out)}


def test_what_a_note_may_ask_for_is_said_by_an_example_that_is_taken(shell: Shell) -> None:
    remembered(shell)
    assert shell("forget", "--text", " ").code == 2
    assert request_to_forget("WORDS")
    assert shell("forget", "--text", WORDS[0]).code == 0


def test_a_newer_ledger_is_named_with_the_backup_beside_it(shell: Shell) -> None:
    remembered(shell)
    shell.write(meta.put, "colour", "green")
    backup = next((shell.home.path / "backups").glob("ledger-*.sqlite3"))
    shell.write(lambda conn: conn.execute("PRAGMA user_version = 999"))
    said = shell("jobs")
    assert (said.code, "put back the backup" in said.err) == (2, True)
    backup.replace(shell.home.ledger_file)
    assert shell("jobs").code == 0


def test_what_another_command_holds_can_be_had_when_it_has_ended(shell: Shell) -> None:
    shell.write(enqueue, OTHER)
    with shell.held("sync"):
        said = shell("sync")
        assert (said.code, "wait for it, or stop it, then try again" in said.err) == (1, True)
    assert shell("sync").code == 0


OF_AGENTS = {"AGENTS.md", "agents.md", "CLAUDE.md", "SKILL.md", "settings.json", "config.json"}
"""Files that agents have, not memoryd."""
EXAMPLES = {"rollout.jsonl", "file.md", "X.md"}
FILE = re.compile(r"(?<![\w*<>])[\w./~-]*\w\.(?:md|toml|json|jsonl|sqlite3|plist|service|lock|sock|log|db)\b")


def test_files_that_messages_name_are_made(shell: Shell) -> None:
    remembered(shell)
    assert shell("export", str(shell.folder / "copy")).code == 0
    made = {path.name for folder in (shell.home.path, shell.folder / "copy") for path in folder.rglob("*")}
    made |= {path.name for path in Path(__file__).parents[2].iterdir()}
    prose = [told.text for told in said_by_code() if " " in told.text.strip()]
    named = {Path(name).name for text in prose for name in FILE.findall(text)}
    assert {"MEMORY.md", "config.toml", "claims.jsonl"} <= named
    assert named - made - OF_AGENTS - EXAMPLES == set()


SETS_OUT = {
    "service": ("status",),
    "connect": ("codex",),
    "disconnect": ("codex",),
    "import": ("codex",),
    "why": ("x",),
}
ARGUMENTS = {
    **SETS_OUT,
    "note": ("Use tabs.",),
    "search": ("tabs",),
    "read": ("MEMORY.md",),
    "export": ("copy of it",),
    "completion": ("bash",),
    "hook": ("claude", "SessionStart"),
    "forget": (THREAD,),
    "init": ("--yes", "--provider", "offline"),
}
WAITS_FOR_MORE = frozenset({"run", "mcp", "demo", "service"})
"""What goes on until it is ended, or looks at the whole machine."""


LAST = ("init", "note", "undo", "forget", "reset")
"""What changes the home comes last, so that one home will do."""


@pytest.mark.parametrize("state", ["new", "used", "misconfigured"])
def test_the_exit_code_of_a_command_is_one_that_its_help_names(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.chdir(shell.folder)
    if state == "used":
        remembered(shell)
    elif state == "misconfigured":
        shell.configure("[extract]\nmodle = 'x'\n")
    else:
        shell.home.config_file.unlink()
    wrong = []
    for name in (*sorted(COMMANDS.keys() - WAITS_FOR_MORE - set(LAST)), *LAST):
        said = shell(name, *ARGUMENTS.get(name, ()))
        if said.code not in PAGES[name].exits or "a fault in memoryd itself" in said.err:
            wrong.append((name, said))
    assert wrong == []
