"""What a client of the MCP server is told of a line that is no message: its id, wherever that stands, or none."""

import json
import os
from pathlib import Path

import pytest

from memoryd.recall.mcp_lines import MAX_LINE_BYTES, Code, Line, has_odd_id, lines_of, mended, refusal

LONG = "x" * MAX_LINE_BYTES


def read(tmp_path: Path, data: bytes) -> list[Line]:
    file = tmp_path / "in"
    file.write_bytes(data)
    descriptor = os.open(file, os.O_RDONLY)
    try:
        return list(lines_of(descriptor))
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("text", "code", "known"),
    [
        ("no json", Code.NO_JSON, None),
        ('{"jsonrpc":"2.0","id":5,"method":"tools/list"', Code.NO_JSON, 5),
        ('{"jsonrpc":"2.0","id":"a\\"b","method":', Code.NO_JSON, 'a"b'),
        ('{"jsonrpc":"2.0","id":6,"params":' + "[" * 20_000 + "]" * 20_000 + "}", Code.NO_JSON, 6),
        ("[]", Code.NO_MESSAGE, None),
        ('[{"jsonrpc":"2.0","id":6,"method":"ping"}]', Code.NO_MESSAGE, None),
        ("null", Code.NO_MESSAGE, None),
        ('{"jsonrpc":"2.0","id":7}', Code.NO_MESSAGE, 7),
        ('{"jsonrpc":"1.0","id":"8","method":"ping"}', Code.NO_MESSAGE, "8"),
        ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', Code.NO_MESSAGE, None),
        ('{"jsonrpc":"2.0","id":true,"method":"ping"}', Code.NO_MESSAGE, None),
    ],
)
def test_a_line_that_is_no_message_is_answered_by_its_id_where_it_can_be_made_out(
    text: str, code: Code, known: str | int | None
) -> None:
    refused = refusal(Line(text))
    assert refused is not None
    assert (refused.code, refused.id) == (code, known)


@pytest.mark.parametrize("text", ["", " \r", '{"jsonrpc":"2.0","id":3,"result":5}', '{"id":4,"error":"?"}'])
def test_a_blank_line_and_an_answer_are_not_answered(text: str) -> None:
    assert refusal(Line(text)) is None


@pytest.mark.parametrize(
    ("front", "end", "known"),
    [
        ('{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"text":"', '"}}', 5),
        ('{"method":"tools/call","params":{"text":"', '"},"jsonrpc":"2.0","id":"six"}', "six"),
        ('{"method":"tools/call","params":{"text":"', '"}, "id": 7, "jsonrpc": "2.0"} \r', 7),
        ('{"method":"tools/call","params":{"id":1,"text":"', '","id":2}}', None),
        ('{"method":"tools/call","params":{"text":"', '"}}', None),
    ],
)
def test_of_a_line_that_is_too_long_the_ends_tell_whose_it_is(
    tmp_path: Path, front: str, end: str, known: str | int | None
) -> None:
    long, short = read(tmp_path, f"{front}{LONG}{end}\nshort\n".encode())
    refused = refusal(long)
    assert refused is not None
    assert (refused.code, refused.id, "4,194,304 bytes" in refused.why) == (Code.NO_MESSAGE, known, True)
    assert short == Line("short")


def test_a_line_as_long_as_one_may_be_is_read_whole_also_without_its_line_feed(tmp_path: Path) -> None:
    (line,) = read(tmp_path, LONG.encode())
    assert (line.text, line.is_cut) == (LONG, False)
    assert [each.is_cut for each in read(tmp_path, f"{LONG}x\n{LONG}xx".encode())] == [True, True]


def test_halves_of_characters_are_mended_and_nothing_else(tmp_path: Path) -> None:
    whole = mended('{"a":"x\\ud83d \\ud83d\\ude00","b":"\\udc00"}')
    assert whole is not None
    assert json.loads(whole) == {"a": "x? 😀", "b": "?"}
    assert mended('{"a":"\\u00e9"}') is None
    assert mended('{"a":"\\ud83d"') is None


def test_an_id_by_which_nobody_can_be_answered_is_told_from_none() -> None:
    assert [has_odd_id(f'{{"id":{each}}}') for each in ("1", '"a"', "null", "1.5", "true", "[]", "{}", "1e999")] == [
        False,
        False,
        False,
        True,
        True,
        True,
        True,
        True,
    ]
