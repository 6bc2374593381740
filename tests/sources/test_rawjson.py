"""Raw values are read when they are of the wanted type, and say nothing otherwise; no bytes make an accessor raise."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from memoryd.sources.rawjson import (
    CUT_MARK,
    MAX_REPAIR_BYTES,
    MAX_TEXT_BYTES,
    as_fields,
    as_int,
    as_list,
    as_number,
    as_text,
    compact,
    is_true,
    repair,
)


def raw(text: str) -> Raw:
    return Raw(text.encode())


def test_members_and_values_stay_raw() -> None:
    fields = as_fields(b'{"a": [1, "x"], "b": null}')
    assert bytes(fields["b"]) == b"null"
    assert [bytes(value) for value in as_list(fields["a"])] == [b"1", b'"x"']


@pytest.mark.parametrize("value", ["null", "1", "[", "", '"x"', "[" * 5000])
def test_what_is_no_object_has_no_members_and_what_is_no_array_no_values(value: str) -> None:
    assert as_fields(raw(value)) == {}
    assert as_list(raw(value)) == []
    assert as_fields(None) == {}
    assert as_list(None) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"é\\n"', "é\n"),
        ('"a\\ud800b"', "a?b"),
        ('"a\x01b"', "a\x01b"),
        ('"\\q"', None),
        ("12", None),
        ("null", None),
        ("", None),
    ],
)
def test_a_text_is_read_even_when_its_characters_are_broken(value: str, expected: str | None) -> None:
    assert as_text(raw(value)) == expected


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert as_text(Raw(b'"caf\xe9"')) == "caf\ufffd"


def test_a_huge_text_is_cut_at_a_white_space() -> None:
    words = "word " * (MAX_TEXT_BYTES // 4)
    text = as_text(raw(json.dumps(words)))
    assert text is not None
    assert text.endswith("word" + CUT_MARK)
    assert len(text) <= MAX_TEXT_BYTES + len(CUT_MARK)


@pytest.mark.parametrize("character", ["x", "é", "\U0001f600", "\\u00e9", "\\ud83d\\ude00", "\\\\", '\\"'])
def test_a_huge_text_without_white_space_is_cut_between_characters(character: str) -> None:
    text = as_text(Raw(b'"' + character.encode() * MAX_TEXT_BYTES + b'"'))
    assert text is not None
    assert set(text.removesuffix(CUT_MARK)) == {json.loads(f'"{character}"')}


def test_a_huge_text_whose_beginning_is_broken_says_only_that_it_was_cut() -> None:
    assert as_text(Raw(b'"\\q' + b"x" * MAX_TEXT_BYTES + b'"')) == CUT_MARK.strip()


def test_numbers_are_finite_and_integers_fit_into_63_bits() -> None:
    assert [as_int(raw(text)) for text in ("5", "-5", "9223372036854775808", "1.5", '"5"', "")] == [
        5, -5, None, None, None, None,
    ]  # fmt: skip
    assert [as_number(raw(text)) for text in ("5", "1.5", "1e999", '"5"', "")] == [5.0, 1.5, None, None, None]
    assert [is_true(value) for value in (raw("true"), raw("false"), raw("1"), None)] == [True, False, False, False]


def test_compact_takes_the_white_space_out_and_bounds_the_length() -> None:
    assert compact(raw('{"a": [1, 2]}')) == '{"a":[1,2]}'
    assert compact(None) == ""
    assert len(compact(raw("[" + "1, " * MAX_TEXT_BYTES + "1]"))) == MAX_TEXT_BYTES + len(CUT_MARK)


def test_repair_makes_strict_json_or_gives_up() -> None:
    assert repair(b'{"a": NaN, "b": -Infinity, "c": "\\udc00"}') == b'{"a": null, "b": null, "c": "?"}'
    assert repair(b"{torn") is None
    assert repair(b"[" * 100_000) is None
    assert repair(b" " * (MAX_REPAIR_BYTES + 1)) is None


@given(st.binary(max_size=60) | st.binary(max_size=40).map(lambda data: b'"' + data + b'"'))
def test_no_bytes_make_an_accessor_raise(data: bytes) -> None:
    value = Raw(data)
    for accessor in (as_fields, as_list, as_text, as_int, as_number, is_true, compact):
        accessor(value)
    text = as_text(value)
    assert text is None or text.encode("utf-8") is not None
