"""Wrong settings, unusable files, a broken ledger: one clear line, the right exit code, nothing lost, no loop."""

import os
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from tests.support.checks import assert_accepted
from tests.support.model_replies import Hang
from tests.support.model_server import ModelServer
from tests.support.process import STAGE1_KIND, Place
from tests.support.sessions import a_rollout

WRONG_USE = 2
WRONG_SETTINGS_OF_RUN = 78

WRONG_SETTINGS = {
    "syntax": ("[extract\nmodel = 1", "line 1"),
    "unknown key": ('[extract]\nmodle = "x"', "extract.model"),
    "unknown section": ("[extrakt]\n", "extract"),
    "wrong type": ("[extract]\nconcurrency = 0", "extract.concurrency"),
    "bad duration": ('[discover]\nmin_idle = "soon"', "discover.min_idle"),
    "provider that is not configured": ('[extract]\nprovider = "nobody"', "nobody"),
    "model missing": ('[providers.a]\nkind = "openai"', "extract.model"),
    "key that is nowhere": (
        '[providers.a]\nkind = "anthropic"\n[extract]\nmodel="m"\n[consolidate]\nmodel="m"',
        "ANTHROPIC_API_KEY",
    ),
}

OF_THE_DAEMON = ("syntax", "bad duration", "model missing")
"""Cases that are tried on `run`, the others on `sync`: they share all but the exit code."""


@pytest.mark.parametrize("case", WRONG_SETTINGS)
def test_wrong_settings_are_one_line_and_exit_2_or_78(place: Place, case: str) -> None:
    text, named = WRONG_SETTINGS[case]
    place.write_config(text)

    command, code = ("run", WRONG_SETTINGS_OF_RUN) if case in OF_THE_DAEMON else ("sync", WRONG_USE)
    done = place.run(command)

    assert done.code == code, done
    assert named in done.complaint
    assert done.complaint.endswith(")"), "a remedy stands in parentheses"
    assert not (place.home / "ledger.sqlite3").exists()


def test_an_unknown_variable_names_the_nearest_known_one(place: Place) -> None:
    place.configure()
    place.extra["MEMORYD_EXTRACT__MODLE"] = "x"

    done = place.run("sync")

    assert done.code == WRONG_USE
    assert "MEMORYD_EXTRACT__MODEL" in done.complaint
    assert place.run("run").code == WRONG_SETTINGS_OF_RUN


def test_wrong_use_is_exit_2(place: Place) -> None:
    place.configure()
    assert place.run("sync").code == 0

    for words in (["snyc"], ["jobs", "show", "nobody"], ["explain", "nowhere"], ["jobs", "show"], ["sync", "--never"]):
        done = place.run(words[0], *words[1:])
        assert done.code == WRONG_USE, done
        assert done.stderr.strip()


def test_a_missing_sessions_folder_is_a_warning(place: Place) -> None:
    place.configure()

    done = place.run("sync")

    assert done.code == 0, done
    assert str(place.codex) in done.stdout
    assert [event["event"] for event in done.events if event["level"] == "warning"] == ["root.missing"]


def test_files_that_are_no_sessions_are_counted_once_and_nothing_else_suffers(place: Place) -> None:
    """The good session is remembered, the rest is named; a second pass opens nothing again."""
    place.configure()
    good = a_rollout(place.codex, now=time.time(), turns=["From now on write every test name as a sentence."])
    bad = spoil(good.parent, place)

    done = place.run("sync", "--json")

    assert done.code == 0, done
    assert done.json["jobs"][STAGE1_KIND] == {"remembered": 1}
    assert done.json["excluded"] == {"unreadable": done.json["unreadable"]}
    assert done.json["unreadable"] >= 2
    said = {event["path"] for event in done.events if event["event"] == "session.unreadable"}
    assert said <= {str(path) for path in bad}
    again = place.run("sync", "--json")
    assert (again.code, again.json["opened"]) == (0, 0)
    assert_accepted(place, sessions=1)


def spoil(folder: Path, place: Place) -> list[Path]:
    """Put what is no session beside one, under names of sessions."""

    def named(number: int) -> Path:
        return folder / f"rollout-2026-01-01T00-00-00-0194f5a6-89ab-7cde-8123-45678900000{number}.jsonl"

    named(1).mkdir()
    os.mkfifo(named(2))
    named(3).write_bytes(os.urandom(5000))
    named(4).write_bytes(b"")
    named(5).write_bytes(b"{" * 1000 + b"\n")
    named(6).symlink_to(place.folder / "nowhere")
    named(7).with_suffix(".jsonl.zst").write_bytes(b"not zstd at all")
    return [path for path in folder.iterdir() if "0194f5a6" in path.name]


def test_a_session_that_loses_its_end_while_it_is_written_is_not_lost(place: Place) -> None:
    """A torn last line is not yet a record; the session is read again when it is whole."""
    place.configure()
    path = a_rollout(place.codex, now=time.time(), turns=["Always squash before merging.", "Never use tabs in YAML."])
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    assert place.run("sync").code == 0

    path.write_bytes(whole)
    done = place.run("sync", "--json")

    assert done.code == 0, done
    assert "Never use tabs in YAML" in (place.memories / "MEMORY.md").read_text()


def bound_by_permissions() -> tuple[str, ...]:
    """Words that run a command without root's power to read everything; none are needed for anybody else."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root may read everything, and there is no setpriv to give that up")
    powers = "-dac_override,-dac_read_search"
    return ("setpriv", f"--bounding-set={powers}", f"--inh-caps={powers}")


def test_a_file_without_permission_is_named_and_the_others_are_read(place: Place) -> None:
    place.configure()
    path = a_rollout(place.codex, now=time.time(), idle_hours=8)
    a_rollout(place.codex, now=time.time(), turns=["From now on write every test name as a sentence."])
    path.chmod(0)

    done = place.run("sync", "--json", wrapper=bound_by_permissions())

    assert (done.code, done.json["unreadable"]) == (0, 1), done
    assert done.json["jobs"][STAGE1_KIND] == {"remembered": 1}
    assert [event["path"] for event in done.events if event["event"] == "session.unreadable"] == [str(path)]


def test_a_ledger_of_a_newer_version_is_left_alone(place: Place) -> None:
    place.configure()
    assert place.run("sync").code == 0
    with sqlite3.connect(place.home / "ledger.sqlite3") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = (place.home / "ledger.sqlite3").read_bytes()

    for command, code in (("sync", WRONG_USE), ("status", WRONG_USE), ("run", WRONG_SETTINGS_OF_RUN)):
        done = place.run(command)
        assert done.code == code, done
        assert "newer" in done.complaint
    assert (place.home / "ledger.sqlite3").read_bytes() == before


def test_a_ledger_of_garbage_is_named_and_kept_whole(place: Place) -> None:
    """More of this: tests/faults/test_damage.py."""
    place.configure()
    garbage = os.urandom(20_000)
    (place.home / "ledger.sqlite3").write_bytes(garbage)

    status = place.run("status")
    assert status.code == 1, status
    assert "ledger.sqlite3 is damaged" in status.stdout
    assert (place.home / "ledger.sqlite3").read_bytes() == garbage

    assert place.run("sync").code == 0
    (folder,) = place.home.glob("damaged-*")
    assert (folder / "ledger.sqlite3").read_bytes() == garbage


@pytest.mark.parametrize("command", ["sync", "run", "status", "demo"])
def test_a_home_that_is_a_file_is_named(place: Place, command: str) -> None:
    place.home.write_text("mine")

    done = place.run(command)

    assert done.code in {1, 2, 78}, done
    assert str(place.home) in done.complaint
    assert place.home.read_text() == "mine"


@pytest.mark.parametrize("command", ["sync", "run", "init"])
def test_a_home_that_cannot_be_made_is_named(place: Place, command: str) -> None:
    words = [*place.words(command), "--home", "/proc/memoryd"]

    done = place.execute([*words, "--yes"] if command == "init" else words)

    assert done.code == 1, done
    assert "/proc/memoryd" in done.complaint


def test_interrupting_sync_gives_the_job_back(place: Place, server: ModelServer) -> None:
    """^C: one line, exit 130, the attempt unspent; the next pass does the work."""
    place.configure(base_url=server.base_url, limits__backfill="recent")
    a_rollout(place.codex, now=time.time(), turns=["Never push to main on your own."])
    server.reply_with(Hang())
    with place.start(*place.words("sync")) as running:
        server.wait_for(1)
        running.send(signal.SIGINT)
        assert running.wait() == 130
        assert "Traceback" not in running.output
        assert "memoryd: interrupted" in running.output
    assert place.query("SELECT status, retry_remaining, wait_reason FROM jobs") == [("pending", 3, None)]

    server.reply_with(lambda _asked: None)
    assert place.run("sync").code == 0
    assert_accepted(place, sessions=1)
