"""I12: after `forget --purge` and `reset` not a byte of what was forgotten is left under MEMORYD_HOME."""

import sqlite3
import time

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
    assert found(place) == {"rows", "ledger.sqlite3"}  # the branch of the session, which is kept
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
