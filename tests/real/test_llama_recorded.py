"""What a real llama-server was asked and answered (tests/fixtures/llama), held to today's codecs without the server."""

import json
from typing import Any

import pytest

from memoryd.config import ProviderKind
from memoryd.llm.http import HttpReply
from memoryd.llm.manner import encoded, first_manner
from memoryd.llm.providers import CODECS
from tests.real.llama import FIXTURES, KINDS, QUESTIONS, shape, understood

RECORDED = [
    pytest.param(kind, entry, id=f"{kind.value}-{entry['question']}-{'stream' if entry['stream'] else 'whole'}")
    for kind in KINDS
    for entry in json.loads((FIXTURES / f"{kind.value}.json").read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("kind", "entry"), RECORDED)
def test_a_recorded_reply_is_understood_as_it_was(kind: ProviderKind, entry: dict[str, Any]) -> None:
    assert understood(kind, HttpReply(**entry["reply"])) == entry["understood"]


@pytest.mark.parametrize(("kind", "entry"), RECORDED)
def test_a_request_still_has_the_keys_that_the_server_took(kind: ProviderKind, entry: dict[str, Any]) -> None:
    codec = CODECS[kind]
    body = encoded(codec, QUESTIONS[entry["question"]], first_manner(codec), stream=entry["stream"])
    assert shape(body) == entry["request"]


def test_streamed_or_not_a_reply_says_the_same() -> None:
    """The server was asked for its likeliest words; only what its cache held differs."""
    said: dict[tuple[str, str], list[object]] = {}
    for parameter in RECORDED:
        kind, entry = parameter.values
        assert isinstance(kind, ProviderKind)
        assert isinstance(entry, dict)
        answer = {key: value for key, value in entry["understood"].items() if key != "usage"}
        said.setdefault((kind, entry["question"]), []).append(answer)
    assert len(said) == len(KINDS) * len(QUESTIONS)
    assert [whole == streamed for whole, streamed in said.values()] == [True] * len(said)
