"""How a message falls into sentences that can be quoted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.pipeline.offline_text import as_code, clip, is_quotable, is_small_talk, one_line, sentences


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Fix it. Then test it!  Why?", ["Fix it.", "Then test it!", "Why?"]),
        ("Use a, e.g. the one in b. Not c.", ["Use a, e.g. the one in b.", "Not c."]),
        ("No. Use pnpm.", ["No. Use pnpm."]),
        ("No! Stop. Use pnpm.", ["No! Stop. Use pnpm."]),
        ('He said "yes." Then left.', ['He said "yes."', "Then left."]),
        ("- one thing\n* another\n2) third", ["one thing", "another", "third"]),
        ("short line\nanother line", ["short line", "another line"]),
        ("a line that was wrapped by an editor because it had grown too long\nto fit", None),
        ("see:\n```\nAlways run this.\n```\nthanks", ["see:", "thanks"]),
        ("an open fence\n```\nAlways run this.", ["an open fence"]),
        ("> Always quoted.\nMine.", ["Mine."]),
        ("    Always indented.\n\tAlways tabbed.\nMine.", ["Mine."]),
        ("2026-01-02T03:04:05 Always logged\nTraceback (most recent call last)\n$ always typed\nMine.", ["Mine."]),
        ("use **bold** words", ["use bold words"]),
        ("keep src/**/*.ts and **kwargs", ["keep src/**/*.ts and **kwargs"]),
        ("これは。あれは。", ["これは。", "あれは。"]),
        ("a bell \a rings. But not here.", ["But not here."]),
        ("x" * 401, []),
        ("", []),
    ],
)
def test_a_message_falls_into_sentences(message: str, expected: list[str] | None) -> None:
    assert sentences(message) == (expected if expected is not None else [one_line(message)])


def test_of_a_pasted_document_only_the_beginning_is_read() -> None:
    assert len(sentences("One more line.\n" * 5_000)) == 400


@given(st.text(alphabet=st.sampled_from("abc .!?\n\t-*>`\"'éß。…"), max_size=200) | st.text(max_size=200))
def test_every_sentence_is_a_piece_of_its_message(message: str) -> None:
    plain = one_line(message.replace("*", ""))
    for sentence in sentences(message):
        assert is_quotable(sentence)
        for word in sentence.replace("*", "").split():
            assert word in plain


@given(st.text(alphabet="ab c", max_size=60), st.integers(1, 40))
def test_a_cut_keeps_a_beginning_within_the_limit(text: str, limit: int) -> None:
    line = one_line(text)
    cut = clip(line, limit)

    assert line.startswith(cut)
    assert len(cut) <= limit
    assert cut or not line


@pytest.mark.parametrize(
    "text", ["Hello there!", "Thanks a lot, that's all for today", "ok great", "Guten Morgen", "", "👍"]
)
def test_greetings_thanks_and_nods_are_small_talk(text: str) -> None:
    assert is_small_talk(text)


@pytest.mark.parametrize("text", ["Hi, please fix x", "Thanks, now the tests", "okapi", "no tests yet"])
def test_a_greeting_with_a_wish_is_no_small_talk(text: str) -> None:
    assert not is_small_talk(text)


@pytest.mark.parametrize("text", ["", "  ", "a\0b", "a\x1b[0m", "\ud800", "so **loud** here"])
def test_what_a_memory_file_cannot_hold_is_not_quotable(text: str) -> None:
    assert not is_quotable(text)


def test_code_with_backticks_gets_two_of_them() -> None:
    assert (as_code("ls"), as_code("echo `id`")) == ("`ls`", "`` echo `id` ``")
