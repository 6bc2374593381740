"""From an HTTP reply to a JSON object or an error."""

import pytest

from memoryd.errors import MalformedReply, Overloaded, RateLimited
from memoryd.llm.endpoint import Endpoint
from memoryd.llm.http import HttpReply
from memoryd.llm.http_reply import body_of
from memoryd.llm.openai_chat import OpenAIChat
from memoryd.llm.question import JsonObject


def read(text: str, status: int = 200, content_type: str = "text/html; charset=utf-8") -> JsonObject:
    reply = HttpReply(status, {"content-type": content_type}, text)
    return body_of(Endpoint("main", "http://127.0.0.1:9/v1"), reply, assemble=OpenAIChat().assemble, now=0.0, show=str)


def test_a_json_object_is_read_whatever_its_content_type() -> None:
    assert read('{"a": [1]}') == {"a": [1]}


@pytest.mark.parametrize("text", ["", "<html>", "[1]", '"text"', "null", '{"a": ', "[" * 100_000, "1" * 5_000])
def test_what_is_no_json_object_is_malformed(text: str) -> None:
    with pytest.raises(MalformedReply, match=r"main answered 200 with what is no JSON object \(text/html\)") as caught:
        read(text)
    assert "base_url" in caught.value.remedy


def test_half_a_surrogate_pair_becomes_a_question_mark_and_a_whole_one_its_character() -> None:
    assert read(r'{"a": "\ud800 \uD83D\uDE00"}') == {"a": "? 😀"}


def test_a_usage_limit_sentence_without_json_is_a_rate_limit() -> None:
    with pytest.raises(RateLimited):
        read("You've hit your usage limit.")


def test_an_error_inside_a_200_is_raised() -> None:
    with pytest.raises(Overloaded):
        read('{"error": {"code": 502, "message": "upstream"}}')


def test_any_other_status_is_raised_as_what_it_means() -> None:
    with pytest.raises(Overloaded):
        read("", 503)
