"""Which answers of a model are stage-1 replies, and what they say."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.errors import MalformedReply
from memoryd.pipeline.reply import MAX_TEXT_BYTES, NOTHING, STAGE1_SCHEMA, Stage1Reply, parse_reply

REPLY = Stage1Reply(raw_memory="---\n### Task 1", rollout_summary="# It worked", rollout_slug="it-worked")


EMPTY = '{"rollout_summary": "", "rollout_slug": "", "raw_memory": ""}'


def a_body(**changes: Any) -> str:
    fields = {"rollout_summary": "# It worked", "rollout_slug": "it-worked", "raw_memory": "---\n### Task 1", **changes}
    return json.dumps({name: value for name, value in fields.items() if value is not ...})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(a_body(), id="bare"),
        pytest.param("\ufeff  " + a_body() + "\n", id="byte order mark and blanks"),
        pytest.param(f"```json\n{a_body()}\n```", id="fenced"),
        pytest.param(f"Here it is:\n\n```\n{a_body()}\n```\nDone.", id="fenced in prose"),
        pytest.param(f"Sure! {a_body()} Anything else?", id="in prose"),
        pytest.param(f"A set {{a, b}} and {{}} first. {a_body()}", id="in prose with other braces"),
        pytest.param(f"<think>maybe {{}} or\n{a_body(raw_memory='no')}</think>\n{a_body()}", id="thoughts before it"),
        pytest.param(f"<THINKING>hm</THINKING>```json\n{a_body()}```", id="thoughts and a fence"),
        pytest.param(f"maybe {a_body(raw_memory='no')}\n</think>\n{a_body()}", id="thoughts that only end"),
        pytest.param(json.dumps(a_body()), id="in a string"),
        pytest.param(json.dumps(f"```json\n{a_body()}\n```"), id="fenced in a string"),
        pytest.param(a_body(confidence=0.9, notes=["x"]), id="extra keys"),
        pytest.param(a_body().replace("\\n", "\n"), id="line breaks in strings"),
        pytest.param("```json\n" + a_body().replace("\\n", "\n") + "\n```", id="line breaks in strings in a fence"),
        pytest.param(a_body(raw_memory="\n---\n### Task 1 \n"), id="blanks around a text"),
    ],
)
def test_a_reply_is_found_in_whatever_a_model_wraps_around_it(text: str) -> None:
    assert parse_reply(text) == REPLY


@pytest.mark.parametrize("slug", [None, "", "  ", ...])
def test_a_slug_that_is_null_blank_or_missing_is_none(slug: object) -> None:
    assert parse_reply(a_body(rollout_slug=slug)).rollout_slug is None


@pytest.mark.parametrize(("summary", "raw", "slug"), [("", "", ""), (" \n", "\t", None), ("", "", "a-slug")])
def test_two_blank_texts_mean_nothing_to_remember(summary: str, raw: str, slug: str | None) -> None:
    reply = parse_reply(a_body(rollout_summary=summary, raw_memory=raw, rollout_slug=slug))

    assert reply == NOTHING
    assert reply.is_empty


@pytest.mark.parametrize("text", [f"```json\n{EMPTY}\n```", f"<think>small talk</think> {EMPTY}", json.dumps(EMPTY)])
def test_nothing_to_remember_may_be_wrapped_but_not_said_among_other_words(text: str) -> None:
    assert parse_reply(text) == NOTHING


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is blank"),
        (" \n ", "it is blank"),
        ("I could not find anything worth keeping.", "no JSON object"),
        ("null", "no JSON object"),
        ("[]", "no JSON object"),
        ("{}", "`rollout_summary` is missing"),
        (a_body(raw_memory=...), "`raw_memory` is missing"),
        (a_body(rollout_summary=...), "`rollout_summary` is missing"),
        (a_body(raw_memory=None), "`raw_memory` is null instead of a string"),
        (a_body(raw_memory={"a": 1}), "`raw_memory` is an object instead of a string"),
        (a_body(raw_memory=["a"]), "`raw_memory` is a list instead of a string"),
        (a_body(rollout_summary=7), "`rollout_summary` is a number instead of a string"),
        (a_body(rollout_slug=True), "`rollout_slug` is a boolean instead of a string or null"),
        (a_body(raw_memory="", rollout_summary="", reason="too short"), "blank texts among other words or keys"),
        (a_body(raw_memory="", rollout_summary="", rollout_slug=...), "blank texts among other words or keys"),
        (EMPTY.replace("{", '{"raw_memory": "# Much", ', 1), "blank texts among other words or keys"),
        (json.dumps(EMPTY.replace("{", '{"raw_memory": "# Much", ', 1)), "no JSON object"),
        (f"If nothing matters I would send {EMPTY}, but here much does.", "blank texts among other words"),
        (f"```\n{EMPTY}\n```\n```\n{a_body(raw_memory='other')}\n```", "2 replies instead of one"),
        (f"```\n{{}}\n```\n{EMPTY}", "blank texts among other words"),
        (a_body(rollout_summary="x" * (MAX_TEXT_BYTES + 1)), "`rollout_summary` is larger than 256 KiB"),
        (a_body(raw_memory=""), "`raw_memory` is blank while the other text is not"),
        (a_body(rollout_summary=" "), "`rollout_summary` is blank while the other text is not"),
        (a_body(raw_memory="x" * (MAX_TEXT_BYTES + 1)), "larger than 256 KiB"),
        (f"First {a_body()} and then {a_body(raw_memory='other')}", "2 replies instead of one"),
        (a_body()[:-1], "no JSON object"),
        (a_body()[:-1] + ",}", "no JSON object"),
        (a_body().replace('"', "'"), "no JSON object"),
        (EMPTY.replace('""', '"\n"', 1), "blank texts among other words"),
        ("[" * 100_000, "no JSON object"),
        ('{"a":' * 100_000, "no JSON object"),
        ("{" * 5_000 + a_body(), "no JSON object"),
        ('{"rollout_summary": ' + "9" * 5_000 + "}", "no JSON object"),
    ],
)
def test_what_is_not_the_schema_is_malformed_and_says_why(text: str, why: str) -> None:
    with pytest.raises(MalformedReply) as caught:
        parse_reply(text)

    assert why in caught.value.message
    assert caught.value.remedy


def test_a_lone_surrogate_becomes_something_that_a_file_can_hold() -> None:
    reply = parse_reply('{"rollout_summary": "a \\ud800 b", "rollout_slug": null, "raw_memory": "c"}')

    assert reply.rollout_summary == "a ? b"


def test_a_raw_memory_of_exactly_the_bound_is_kept() -> None:
    assert len(parse_reply(a_body(raw_memory="x" * MAX_TEXT_BYTES)).raw_memory) == MAX_TEXT_BYTES


def test_the_schema_is_strict() -> None:
    properties = STAGE1_SCHEMA["properties"]

    assert isinstance(properties, dict)
    assert STAGE1_SCHEMA["required"] == list(properties) == ["rollout_summary", "rollout_slug", "raw_memory"]
    assert STAGE1_SCHEMA["additionalProperties"] is False


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=True) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["raw_memory", "rollout_summary", "rollout_slug", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(st.text() | JSON_VALUES.map(json.dumps) | JSON_VALUES.map(lambda value: f"```json\n{json.dumps(value)}\n``` {{"))
def test_any_text_is_a_reply_or_malformed_and_nothing_else(text: str) -> None:
    try:
        reply = parse_reply(text)
    except MalformedReply:
        return
    assert reply.is_empty == (not reply.raw_memory.strip())
    assert reply.is_empty == (not reply.rollout_summary.strip())


@given(
    st.text(min_size=1).filter(lambda text: bool(text.strip())),
    st.text(min_size=1).filter(lambda text: bool(text.strip())),
    st.text() | st.none(),
)
def test_what_a_model_writes_by_the_schema_comes_back_whole(summary: str, raw: str, slug: str | None) -> None:
    reply = parse_reply(json.dumps({"rollout_summary": summary, "rollout_slug": slug, "raw_memory": raw}))

    storable = [text.encode("utf-8", "replace").decode().strip() for text in (summary, raw)]
    assert [reply.rollout_summary, reply.raw_memory] == storable
