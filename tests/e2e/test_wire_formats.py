"""The whole program in the format that no other end-to-end test speaks, and with what its servers refuse by name."""

import time
from collections.abc import Iterator

import pytest

from tests.support.checks import assert_accepted
from tests.support.model_asked import Recorded
from tests.support.model_replies import Scripted, Status
from tests.support.model_server import ModelServer
from tests.support.process import Place
from tests.support.sessions import a_rollout

KEY = "key-of-the-messages-server"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(api_key=KEY) as server:
        yield server


def picky(asked: Recorded) -> Scripted | None:
    """An older model: neither effort nor a schema, and short answers only."""
    if "effort" in asked.body.get("output_config", {}):
        return Status(400, "This model does not support the effort parameter.")
    if "output_config" in asked.body:
        return Status(400, "output_config.format: Extra inputs are not permitted")
    if asked.body["max_tokens"] > 8_192:
        words = f"max_tokens: {asked.body['max_tokens']} > 8192, which is the maximum allowed number of output tokens"
        return Status(400, words)
    return None


def test_messages_are_spoken_in_streams_and_what_is_refused_is_not_asked_for_again(
    place: Place, server: ModelServer
) -> None:
    """I4, I9: every request is in the ledger, those that were refused too; a second process refuses nothing anew."""
    server.reply_with(picky)
    place.configure(
        base_url=server.base_url,
        kind="anthropic",
        key=KEY,
        limits__backfill="recent",
        extract__concurrency=1,
        providers__scripted__stream=True,
    )
    a_rollout(place.codex, now=time.time(), idle_hours=7, turns=["Never call the first thing a widget again."])
    assert place.run("sync").code == 0
    assert_accepted(place, sessions=1)
    assert {asked.wants_stream for asked in server.requests} == {True}
    assert place.requests_made() == len(server.requests)

    server.forget()
    a_rollout(place.codex, now=time.time(), idle_hours=8, turns=["Never call the second thing a gadget again."])
    assert place.run("sync").code == 0
    assert_accepted(place, sessions=2)
    assert [picky(asked) for asked in server.requests] == [None] * len(server.requests)
