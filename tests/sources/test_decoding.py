"""What is saved of damaged lines, and what is not made up."""

import json

import msgspec
import pytest

from memoryd.sources.decoding import Decoded, decode_line
from memoryd.sources.jsonl import Line


class Row(msgspec.Struct):
    type: str = ""
    text: str = ""


_rows = msgspec.json.Decoder(Row)


def decoded(data: bytes | None, *, ended: bool = True) -> Decoded[Row]:
    return decode_line(Line(0, data, ended), _rows, lambda row: bool(row.type))


def row(text: str) -> bytes:
    return json.dumps({"type": "user", "text": text}).encode()


def test_a_whole_line_is_decoded_as_it_stands() -> None:
    assert decoded(row("a")) == Decoded(Row("user", "a"), row("a"), is_damaged=False)


@pytest.mark.parametrize("data", [b"", b"  \r", None])
def test_a_line_without_content_has_no_value(data: bytes | None) -> None:
    assert decoded(data).value is None
    assert decoded(data).is_damaged is (data is None)


def test_what_only_a_lenient_decoder_reads_is_read_and_not_damaged() -> None:
    found = decoded(b'{"type": "user", "text": "half \\ud83d"}')
    assert (found.value, found.is_damaged) == (Row("user", "half ?"), False)


def test_a_byte_order_mark_a_carriage_return_and_nul_filler_are_skipped() -> None:
    for data in (b"\xef\xbb\xbf" + row("a"), row("a") + b"\r", b"\x00" * 4096 + row("a")):
        assert decoded(data).value == Row("user", "a")


def test_a_line_of_nul_bytes_is_damage() -> None:
    assert decoded(b"\x00" * 512) == Decoded(None, b"", is_damaged=True)


@pytest.mark.parametrize("keep", range(1, len(row("first words"))))
def test_the_second_of_two_fused_records_is_recovered_wherever_the_first_was_torn(keep: int) -> None:
    found = decoded(row("first words")[:keep] + row("second words"))
    assert (found.value, found.is_damaged) == (Row("user", "second words"), True)


def test_an_object_that_merely_ends_a_torn_record_is_no_record() -> None:
    assert decoded(b'user", "content": {"text": "a"}').value is None
    assert decoded(b'"x", "content": [{"text": "a"}').value is None


def test_a_torn_last_line_is_not_searched_for_a_record() -> None:
    assert decoded(row("a")[:5] + row("b"), ended=False).value is None
