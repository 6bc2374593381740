"""I12: after `forget --purge` and `reset` not a byte of what was forgotten is left under MEMORYD_HOME."""

import signal
import sqlite3
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.laden import files, git_objects, ledger_as_text
from tests.support.checks import threads_asked_about
from tests.support.growing import a_session_of_now, go_on, path_of
from tests.support.model_server import ModelServer
from tests.support.process import Place
from tests.support.sessions import Command, Turn, a_rollout, a_thread_id

SENTINEL = "zanzibar"
SHOP = "/srv/shop"
SAID = f"Always use {SENTINEL} tabs in the Makefile of the shop."

BRANCH = {"rows", "ledger.sqlite3"}
"""Where a session's branch stands, after a reset: what is known of a session is kept."""


def found(place: Place, word: str = SENTINEL) -> set[str]:
    """Every place under MEMORYD_HOME that holds the word, in any letter case."""
    wanted = word.lower().encode()
    content = {str(path.relative_to(place.home)): path.read_bytes() for path in files(place.home)}
    content |= {"names": "\n".join(str(path) for path in place.home.rglob("*")).encode()}
    content |= {"rows": ledger_as_text(place), "objects": git_objects(place)}
    content["history"] = place.git("log", "-p", "--all", "--reflog", "--format=%B%an%d").encode()
    return {where for where, data in content.items() if wanted in data.lower()}


def two_sessions(place: Place, *, shared: bool = False) -> tuple[str, str]:
    """Record a session with the sentinel in all that it says, and one of the same project without; return their ids."""
    now = time.time()
    turn = Turn(SAID, answer=f"I use {SENTINEL} tabs.", commands=[Command("make check", f"ok {SENTINEL}")])
    other = "Never push to main of the shop without asking."
    ids = []
    for hours, turns, branch in ((8, [turn], f"feature/{SENTINEL}"), (9, [SAID if shared else other, other], "main")):
        ids.append(a_thread_id(now - hours * 3600, str(turns)))
        a_rollout(place.codex, now=now, idle_hours=hours, turns=turns, thread_id=ids[-1], cwd=SHOP, branch=branch)
    return ids[0], ids[1]


def sync(place: Place) -> None:
    done = place.run("sync", "--now", "--backfill", "recent", "--json")
    assert done.code == 0, done


def memory(place: Place) -> str:
    return (place.memories / "MEMORY.md").read_text() + (place.memories / "memory_summary.md").read_text()


def make_copies(place: Place, thread: str) -> None:
    """Leave the text wherever it can be left: a person's branch, stash, edit; a damaged ledger; copies; an old run."""
    identity = ("-c", "user.name=p", "-c", "user.email=p@localhost.invalid")
    place.git("branch", "old")
    handbook = place.memories / "MEMORY.md"
    before = handbook.read_text()
    handbook.write_text(before + f"\n<!-- {SENTINEL} -->\n")
    place.git(*identity, "stash")
    place.git("gc", "-q", "--prune=now")
    (place.memories / "MEMORY.md~").write_text(before)
    (place.home / "damaged-20260101T000000Z").mkdir()
    (place.home / "damaged-20260101T000000Z" / "ledger.sqlite3").write_text(SENTINEL)
    (place.home / "ledger.sqlite3.v4-20260101T000000Z.backup").write_text(SENTINEL)
    (place.home / "staging" / "old").mkdir()
    (place.home / "staging" / "old" / "MEMORY.md").write_text(SENTINEL)
    (place.memories / ".git.broken-1").mkdir()
    (place.memories / ".git.broken-1" / "HEAD").write_text(SENTINEL)
    with sqlite3.connect(place.home / "ledger.sqlite3") as connection:
        connection.execute("UPDATE attempts SET error = ? WHERE job_key = ?", (f"refused: {SENTINEL}", thread))
        connection.execute("UPDATE attempts SET error = ? WHERE job_key = 'global'", (f"rejected: {SENTINEL}",))
    connection.close()


@pytest.mark.parametrize("provider", ["offline", "scripted"])
def test_a_purge_leaves_no_byte_and_what_others_support_stands_i12(
    place: Place, server: ModelServer, provider: str
) -> None:
    place.configure(base_url=server.base_url if provider == "scripted" else None)
    shop, _other = two_sessions(place)
    sync(place)
    make_copies(place, shop)
    assert {"memories/MEMORY.md", "memories/raw_memories.md", "rows", "objects", "history"} <= found(place)
    server.forget()

    done = place.run("forget", shop[:23], "--purge", "--json")

    assert done.code == 0, done
    assert done.json["threads"] == [shop]
    assert found(place) == set()
    assert server.requests == []
    assert "push to main" in memory(place)
    assert SENTINEL not in done.stdout + done.stderr
    assert place.query("SELECT excluded, cwd FROM sessions WHERE thread_id = ?", shop) == [("forgotten", None)]
    sync(place)
    sync(place)
    assert found(place) == set()
    assert threads_asked_about(server.requests) == []
    assert "push to main" in memory(place)
    asked = len(server.requests)
    sync(place)
    assert len(server.requests) == asked


@pytest.mark.parametrize("provider", ["offline", "scripted"])
def test_a_reset_leaves_no_byte_and_learns_only_from_what_comes_after_it_i12(
    place: Place, server: ModelServer, provider: str
) -> None:
    place.configure(base_url=server.base_url if provider == "scripted" else None)
    shop, other = two_sessions(place)
    sync(place)
    make_copies(place, shop)
    assert place.run("reset").code == 2
    assert found(place) != set()
    server.forget()
    assert place.run("sessions", "set-mode", other, "disabled").code == 0

    done = place.run("reset", "--yes")

    assert done.code == 0, done
    assert found(place) == BRANCH
    assert "push to main" not in memory(place)
    assert place.query("SELECT count(*), max(user_mode) FROM sessions") == [(2, "disabled")]
    sync(place)
    assert server.requests == []
    assert place.query("SELECT count(*) FROM stage1_outputs") == [(0,)]


def test_with_the_daemon_running_a_purge_is_asked_of_it(place: Place, server: ModelServer) -> None:
    place.codex.mkdir()
    place.configure(base_url=server.base_url, discover__min_idle="1s", discover__scan_interval="1s")
    with place.daemon() as daemon:
        thread = a_session_of_now(place.codex, SAID)
        daemon.wait_for_event("consolidation.published")
        assert "memories/MEMORY.md" in found(place)
        done = place.run("forget", thread, "--purge", "--json")
        assert done.code == 0, done
        assert found(place) == set()
        go_on(path_of(place.codex, thread), f"And {SENTINEL} again.")
        daemon.wait_for_event("scan.completed", len(daemon.events("scan.completed")) + 3)
        assert found(place) == set()
        assert threads_asked_about(server.requests) == [thread]
        assert SENTINEL not in daemon.output


@pytest.mark.parametrize(
    ("deed", "point"),
    [
        ("purge", "forgetting_begun"),
        ("purge", "before_rename:MEMORY.md"),
        ("purge", "old_history_aside"),
        ("reset", "folder_wiped"),
    ],
)
def test_killed_at_any_point_a_forgetting_is_finished_by_the_next_start_i12(
    place: Place, deed: str, point: str
) -> None:
    place.configure()
    shop, _other = two_sessions(place)
    sync(place)
    words = [sys.executable, "-m", "tests.support.killed_forget", str(place.home), point]
    killed = place.execute([*words, shop] if deed == "purge" else words)
    assert killed.code == -signal.SIGKILL, killed
    assert place.query("SELECT count(*) FROM meta WHERE key = 'forgetting'") == [(1,)]

    sync(place)

    left = {where for where in found(place) if not where.startswith("backups/")}  # the pass has made a new one
    assert left == (set() if deed == "purge" else BRANCH)
    assert ("push to main" in memory(place)) is (deed == "purge")


def test_after_a_reset_only_what_is_said_from_then_on_is_sent_and_relearning_starts_over(
    place: Place, server: ModelServer
) -> None:
    place.configure(base_url=server.base_url, discover__min_idle="1s")
    thread = a_session_of_now(place.codex, SAID)
    sync(place)
    assert place.run("reset", "--yes", "--json").json == {"reset": True, "relearn": False}
    server.forget()
    time.sleep(1.1)  # times are whole seconds: what was said in the second of the reset is before it
    go_on(path_of(place.codex, thread), "Never push to main of the shop.")
    sync(place)
    assert threads_asked_about(server.requests) == [thread]
    assert SENTINEL not in str([asked.body for asked in server.requests])
    assert "push to main" in memory(place)
    server.forget()

    assert place.run("reset", "--yes", "--relearn").code == 0
    sync(place)

    assert threads_asked_about(server.requests) == [thread]
    assert SENTINEL in memory(place)


def test_a_note_is_taken_in_and_a_request_to_forget_is_done_by_a_running_daemon(place: Place) -> None:
    place.codex.mkdir()
    place.configure(discover__min_idle="1s", discover__scan_interval="1s")
    with place.daemon() as daemon:
        a_session_of_now(place.codex, SAID)
        daemon.wait_for_event("consolidation.published")
        note = place.run("note", "Deploy", "with", "make", "release", "--json")
        assert note.code == 0, note
        assert Path(note.json["path"]).read_text() == "---\nby: person\n---\nDeploy with make release\n"
        daemon.wait_for_event("consolidation.published", 2)
        assert "Deploy with make release [ad-hoc note]" in memory(place)

        asked = place.run("forget", "--text", SAID)

        assert asked.code == 0, asked
        daemon.wait_for_event("consolidation.published", 3)
        assert SAID.rstrip(".") not in memory(place)
        assert "Deploy with make release [ad-hoc note]" in memory(place)


def test_wrong_uses_change_nothing(place: Place) -> None:
    place.configure()
    two_sessions(place)
    sync(place)
    before = place.artefacts()
    by_text = (["forget", "--text", "!"], ["forget", "--text", "y", "--purge"], ["forget", "x", "--text", "y"])
    for words in (["forget"], ["forget", "nobody"], *by_text, ["reset"], ["note", " "]):
        done = place.run(*words)
        assert done.code == 2, (words, done)
        assert done.complaint
    assert place.artefacts() == before
