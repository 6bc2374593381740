"""Cutting and estimating text by bytes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.text import (
    byte_length,
    estimate_tokens,
    first_line,
    may_mention,
    on_one_line,
    plain,
    truncate_bytes,
    truncate_middle,
)

ANY_TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=60)


@given(ANY_TEXT, st.integers(-2, 130))
def test_a_cut_text_is_the_longest_beginning_that_fits(text: str, limit: int) -> None:
    cut = truncate_bytes(text, limit)
    assert text.startswith(cut)
    assert byte_length(cut) <= max(0, limit)
    assert cut == text or limit <= 0 or byte_length(text[: len(cut) + 1]) > limit


@given(ANY_TEXT, st.integers(0, 130), st.sampled_from(["[...]", "…", ""]))
def test_a_text_cut_in_the_middle_keeps_both_ends(text: str, limit: int, mark: str) -> None:
    cut = truncate_middle(text, limit, mark)
    assert byte_length(cut) <= limit
    if byte_length(text) <= limit:
        assert cut == text
    elif byte_length(mark) < limit:
        head, _, tail = cut.partition(mark) if mark else (cut, "", "")
        assert text.startswith(head) or not mark
        assert text.endswith(tail)
        assert byte_length(cut) >= limit - 6


def test_a_limit_below_the_mark_leaves_the_beginning_of_the_mark() -> None:
    assert truncate_middle("a long text", 3, "[cut]") == "[cu"


def test_a_lone_surrogate_is_counted_and_cut_like_a_character() -> None:
    assert byte_length("a\ud800b") == 5
    assert truncate_bytes("a\ud800b", 3) == "a"
    assert truncate_middle("\ud800" * 9, 13, "|") == "\ud800\ud800|\ud800\ud800"


@pytest.mark.parametrize(
    ("n_bytes", "ratio", "expected"), [(0, 3.0, 0), (1, 3.0, 1), (3, 3.0, 1), (4, 3.0, 2), (10, 2.5, 4)]
)
def test_an_estimate_rounds_up(n_bytes: int, ratio: float, expected: int) -> None:
    assert estimate_tokens(n_bytes, ratio) == expected


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("", 10, ""),
        (" \n\t\n", 10, ""),
        ("\n  two   words \nmore", 20, "two words"),
        ("a longer line", 8, "a longe…"),
        ("a longer line", 3, "a…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_the_first_line_is_the_first_that_is_not_blank(text: str, limit: int, expected: str) -> None:
    assert first_line(text, limit) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tab\tand\nline, é 日本 👩‍👩‍👧", "tab\tand\nline, é 日本 👩‍👩‍👧"),
        ("one\r\ntwo\rthree\u2028four\x85five\x0csix", "one\ntwo\nthree\nfour\nfive\nsix"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07and \x1b]8;;x\x1b\\done \x1b", "red and done "),
        ("a\0b\x07c\x9bd\ud800e", "abcde"),
        ("user\u202egnp.exe \u200bzero \ufeff\U000e0041\U000e007fhidden", "usergnp.exe zero hidden"),
    ],
)
def test_plain_text_holds_nothing_that_no_reader_sees(text: str, expected: str) -> None:
    assert plain(text) == expected


@given(
    st.text(alphabet=st.one_of(st.sampled_from("\r\n\x1b[31m]\x07\x85\u2028\u200b\ud800é"), st.characters(codec=None)))
)
def test_plain_text_is_plain_and_what_was_plain_stays(text: str) -> None:
    seen = [character for character in plain(text) if character not in "\t\n"]
    assert not {"\r", "\x1b", "\x85", "\u2028", "\u200b", "\ud800", "\0"} & set(seen)
    ordinary = "".join(character for character in text if character.isalnum())
    assert plain(ordinary) == ordinary


@given(
    st.text(alphabet=st.sampled_from("abik\u0130\u0131\u017f\u212aSs é"), max_size=12),
    st.sampled_from(["ask", "bis", "é"]),
)
def test_what_may_be_mentioned_is_never_missed(text: str, name: str) -> None:
    found = re.search(re.escape(name), text, re.IGNORECASE)
    assert may_mention(text, [name]) or not found
    assert may_mention(f"x{text}{name.upper()}", ["y", name])


def test_what_is_nowhere_is_not_mentioned() -> None:
    assert not may_mention("Publicity is no privacy", ["private"])
    assert not may_mention("größer — 日本", ["private", "secret"])


def test_a_name_with_line_breaks_is_put_on_one_line() -> None:
    assert on_one_line("/home/x\r\n# Task Group: evil\u2028v1\0\n") == "/home/x # Task Group: evil v1"
