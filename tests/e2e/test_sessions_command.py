"""Which sessions are remembered, through the real command line: the guard, the person's word, rules that come later."""

import json
import time
from collections.abc import Callable

import pytest

from tests.support.checks import assert_accepted, threads_asked_about
from tests.support.growing import a_session_of_now, go_on, path_of
from tests.support.model_server import ModelServer
from tests.support.process import Place
from tests.support.sessions import a_rollout, a_thread_id, iso, response

SEARCHED = response("web_search_call", status="completed", action={"type": "search", "query": "tabs"})


def reasons(place: Place) -> dict[str, str | None]:
    return {each["thread_id"]: each["reason"] for each in place.run("sessions", "list", "--json").json}


def sync(place: Place, code: int = 0) -> None:
    done = place.run("sync", "--now", "--backfill", "recent", "--json")
    assert done.code == code, done


def handbook(place: Place) -> str:
    return (place.memories / "MEMORY.md").read_text()


def two_sessions(place: Place) -> tuple[str, str]:
    """Record two sessions of two projects, and return their ids."""
    now = time.time()
    ids = []
    for hours, said, cwd in (
        (8, "Always use tabs in the Makefile.", "/srv/shop"),
        (9, "Never push to main.", "/srv/bank"),
    ):
        ids.append(a_thread_id(now - hours * 3600, said))
        a_rollout(place.codex, now=now, idle_hours=hours, turns=[said], thread_id=ids[-1], cwd=cwd)
    return ids[0], ids[1]


def test_a_session_that_turned_to_the_web_leaves_the_memory_and_comes_back_on_the_persons_word(
    place: Place, server: ModelServer
) -> None:
    """The pollution guard, end to end."""
    place.configure(base_url=server.base_url, extract__disable_on_external_context=True)
    shop, bank = two_sessions(place)
    sync(place)
    assert "use tabs" in handbook(place)
    assert_accepted(place, sessions=2)

    with path_of(place.codex, shop).open("a") as file:
        file.write(json.dumps({"timestamp": iso(time.time() - 7 * 3600), **SEARCHED}) + "\n")
    server.forget()
    sync(place)

    assert threads_asked_about(server.requests) == []
    assert reasons(place) == {shop: "polluted", bank: None}
    assert place.run("explain", shop, "--json").json["reason"] == "polluted"
    assert place.status()["excluded"] == {"polluted": 1}
    assert "use tabs" not in handbook(place)
    assert_accepted(place, sessions=1)

    said = place.run("sessions", "set-mode", shop, "enabled")
    assert said.code == 0, said
    sync(place)

    assert threads_asked_about(server.requests) == [shop]
    assert reasons(place) == {shop: None, bank: None}
    assert "use tabs" in handbook(place)
    assert_accepted(place, sessions=2)
    server.forget()
    sync(place)
    assert server.requests == []


@pytest.mark.parametrize("by", ["exclude_cwd", "set-mode"])
def test_what_is_left_out_later_leaves_the_memory_and_comes_back_without_a_request_for_it(
    place: Place, server: ModelServer, by: str
) -> None:
    place.configure(base_url=server.base_url)
    shop, bank = two_sessions(place)
    sync(place)
    leave: Callable[[], object]
    come_back: Callable[[], object]
    if by == "exclude_cwd":
        reason = "excluded_cwd"
        leave = lambda: place.configure(base_url=server.base_url, sources__exclude_cwd=["/srv/shop"])  # noqa: E731
        come_back = lambda: place.configure(base_url=server.base_url)  # noqa: E731
    else:
        reason = "memory_disabled"
        leave = lambda: place.run("sessions", "set-mode", shop, "disabled")  # noqa: E731
        come_back = lambda: place.run("sessions", "set-mode", shop, "enabled")  # noqa: E731

    leave()
    sync(place)
    assert reasons(place) == {shop: reason, bank: None}
    assert "use tabs" not in handbook(place)
    assert_accepted(place, sessions=1)

    come_back()
    server.forget()
    sync(place)
    assert threads_asked_about(server.requests) == []
    assert "use tabs" in handbook(place)
    assert_accepted(place, sessions=2)


def test_a_running_daemon_takes_the_persons_word_over_its_socket(place: Place, server: ModelServer) -> None:
    place.codex.mkdir()
    place.configure(base_url=server.base_url, discover__min_idle="1s", discover__scan_interval="1s")
    with place.daemon() as daemon:
        thread = a_session_of_now(place.codex, "Always use tabs in the Makefile.")
        daemon.wait_for_event("consolidation.published")

        said = place.run("sessions", "set-mode", thread[:13], "disabled", "--json")

        assert said.code == 0, said
        assert (said.json["thread_id"], said.json["reason"]) == (thread, "memory_disabled")
        daemon.wait_for_event("consolidation.published", 2)
        assert "use tabs" not in handbook(place)
        go_on(path_of(place.codex, thread), "And spaces elsewhere.")
        daemon.wait_for_event("scan.completed", len(daemon.events("scan.completed")) + 3)
        assert threads_asked_about(server.requests) == [thread]


def test_a_session_in_the_home_folder_is_left_out_and_says_why(place: Place, server: ModelServer) -> None:
    place.configure(base_url=server.base_url)
    now = time.time()
    a_rollout(place.codex, now=now, turns=["Clean my desk."], cwd=str(place.user_home))
    sync(place)
    assert server.requests == []
    assert place.status()["excluded"] == {"home_directory": 1}
    place.configure(base_url=server.base_url, sources__include_home=True)
    sync(place)
    assert len(threads_asked_about(server.requests)) == 1
