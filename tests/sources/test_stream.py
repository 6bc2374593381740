"""Going through a session's lines: the usual ones decoded in one go, all others handed on, each with its index."""

from pathlib import Path

import msgspec
import pytest

from memoryd.sources.jsonl import BLOCK_BYTES, Line, SessionBytes
from memoryd.sources.rawjson import MAX_TEXT_BYTES
from memoryd.sources.stream import walk


class Row(msgspec.Struct):
    n: int


class Seen:
    """Takes rows with an even number and leaves the others for a closer look."""

    def __init__(self) -> None:
        self.usual: list[tuple[int, int]] = []
        self.others: list[tuple[int, bytes | None, bool]] = []

    def take(self, row: Row, index: int) -> bool:
        if row.n % 2:
            return False
        self.usual.append((row.n, index))
        return True

    def other(self, line: Line) -> None:
        self.others.append((line.index, line.data, line.ended))


def walked(path: Path) -> Seen:
    seen = Seen()
    with SessionBytes(path) as source:
        for _ in walk(source, msgspec.json.Decoder(Row), seen.take, seen.other):
            pass
    return seen


@pytest.mark.parametrize("filler", [0, BLOCK_BYTES // 2])
def test_every_line_is_seen_once_and_in_order(tmp_path: Path, filler: int) -> None:
    odd, even = (b'{"n":%d,"filler":"%s"}' % (number, b"x" * filler) for number in (1, 2))
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"\n".join([even, odd, b"", b"no JSON", even, odd, even]))
    seen = walked(path)
    assert seen.usual == [(2, 0), (2, 4), (2, 6)]
    assert seen.others == [(1, odd, True), (2, b"", True), (3, b"no JSON", True), (5, odd, True)]


@pytest.mark.parametrize("size", [MAX_TEXT_BYTES - 2, MAX_TEXT_BYTES - 1, MAX_TEXT_BYTES, 2 * MAX_TEXT_BYTES])
def test_a_very_long_line_is_for_a_closer_look_and_whole(tmp_path: Path, size: int) -> None:
    short = b'{"n":2}'
    long = short.ljust(size)
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"\n".join([short, long, short, long, short]))
    seen = walked(path)
    if size < MAX_TEXT_BYTES - 1:
        assert seen.usual == [(2, index) for index in range(5)]
    else:
        assert seen.usual == [(2, 0), (2, 2), (2, 4)]
        assert seen.others == [(1, long, True), (3, long, True)]
