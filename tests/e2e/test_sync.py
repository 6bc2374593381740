"""`memoryd sync` over recorded sessions, with a scripted model over real HTTP."""

import time
from collections import Counter

import pytest

from tests.support.checks import assert_accepted, eligible, threads_asked_about
from tests.support.model_asked import CONSOLIDATION, STAGE1
from tests.support.model_server import ModelServer
from tests.support.process import GLOBAL_KIND, STAGE1_KIND, Place
from tests.support.sessions import Command, Turn, a_rollout, install_recorded


@pytest.mark.parametrize("kind", ["openai", "openai-chat"])
def test_recorded_sessions_become_one_accepted_commit_and_a_second_sync_asks_nothing(
    place: Place, server: ModelServer, kind: str
) -> None:
    """I4, I9: one request per eligible session, one consolidation, and then the fixed point."""
    recorded = install_recorded(place.codex, now=time.time(), idle_hours=7)
    place.configure(base_url=server.base_url, kind=kind)

    done = place.run("sync", "--now", "--backfill", "recent", "--json")

    assert done.code == 0, done
    wanted = eligible(recorded)
    assert len(wanted) >= 30
    asked = threads_asked_about(server.requests)
    assert Counter(asked) == Counter(wanted)
    for request in server.of_kind(STAGE1):
        assert not request.body.get("tools")
        assert "rollout_summary" in str(request.body.get("text") or request.body.get("response_format"))
    runs = place.query("SELECT count(*) FROM attempts WHERE kind = ?", GLOBAL_KIND)
    assert runs == [(1,)]
    assert len(server.of_kind(CONSOLIDATION)) >= 3
    assert all(each.path.endswith("/responses") == (kind == "openai") for each in server.requests)
    remembered = done.json["jobs"][STAGE1_KIND]["remembered"]
    assert done.json["jobs"][GLOBAL_KIND] == {"published": 1}
    commit = assert_accepted(place, sessions=remembered)
    assert place.requests_made() == len(server.requests)

    server.forget()
    again = place.run("sync", "--now", "--backfill", "recent", "--json")

    assert again.code == 0, again
    assert server.requests == []
    assert again.json["opened"] == 0
    assert place.git("rev-parse", "HEAD") == commit


def test_what_explain_shows_is_what_is_sent_word_for_word(place: Place, server: ModelServer) -> None:
    path = a_rollout(
        place.codex,
        now=time.time(),
        turns=[Turn("Use tabs, <private>hush</private>, export A_TOKEN=x1y2z3w4.", commands=[Command("make", "ok")])],
    )
    place.configure(base_url=server.base_url, limits__backfill="recent")
    shown = place.run("explain", str(path), "--show-input")
    assert (shown.code, shown.stderr) == (0, "")
    assert place.run("sync", "--now").code == 0
    (asked,) = server.of_kind(STAGE1)
    assert shown.stdout.strip() == f"{asked.instructions}\n\n{asked.opening}".strip()
    assert asked.opening.count("REDACTED_SECRET") == 1


def test_without_consent_history_waits_and_nothing_is_sent(place: Place, server: ModelServer) -> None:
    recorded = install_recorded(place.codex, now=time.time(), idle_hours=7)
    place.configure(base_url=server.base_url)

    done = place.run("sync", "--now", "--json")

    assert done.code == 3, done
    assert done.json["waiting"] == {"consent": len(eligible(recorded))}
    assert server.requests == []
    plain = place.run("sync")
    assert plain.code == 3
    assert "consent" in plain.stdout


def test_yes_to_init_is_no_consent(place: Place, server: ModelServer) -> None:
    place.extra["CODEX_HOME"] = str(place.codex)
    recorded = install_recorded(place.codex, now=time.time(), idle_hours=7, names=["interactive-0.171.0"])

    made = place.run("init", "--yes", "--provider", "openai", "--base-url", server.base_url, "--model", "scripted-1")

    assert made.code == 0, made
    assert f"{len(recorded)} session files" in made.stdout
    done = place.run("sync", "--now", "--json")
    assert done.code == 3, done
    assert done.json["waiting"] == {"consent": len(recorded)}
    assert server.requests == []


def test_consent_given_once_on_the_command_line_holds_for_that_pass(place: Place, server: ModelServer) -> None:
    recorded = install_recorded(place.codex, now=time.time(), idle_hours=7, names=["interactive-0.171.0"])
    place.configure(base_url=server.base_url)
    assert place.run("sync", "--now").code == 3

    done = place.run("sync", "--now", "--backfill", "all", "--json")

    assert done.code == 0, done
    assert Counter(threads_asked_about(server.requests)) == Counter(eligible(recorded))


def test_one_thread_can_be_asked_for(place: Place, server: ModelServer) -> None:
    recorded = install_recorded(place.codex, now=time.time(), idle_hours=7, names=["interactive-0.171.0"])
    place.configure(base_url=server.base_url)
    wanted = min(eligible(recorded))

    done = place.run("sync", "--now", "--thread", wanted, "--backfill", "recent", "--json")

    assert done.code == 0, done
    assert threads_asked_about(server.requests) == [wanted]


def test_explain_tells_the_rule_before_any_sync_and_leaves_nothing(place: Place) -> None:
    """I7: explaining reads; it makes no ledger and no folder."""
    install_recorded(place.codex, now=time.time(), idle_hours=7, names=["exec-0.171.0"])
    place.configure()
    before = sorted(place.home.rglob("*"))

    (path,) = place.codex.rglob("rollout-*")
    told = place.run("explain", str(path), "--json")

    assert told.code == 0, told
    assert told.json["reason"] == "noninteractive"
    assert sorted(place.home.rglob("*")) == before
