"""Lines come out of a file whole, in bounded memory, from either end, whatever the file holds."""

import os
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.errors import SessionUnreadable, SessionVanished
from memoryd.sources.jsonl import BLOCK_BYTES, CHUNK_BYTES, Line, SessionBytes, whole_line


def a_file(folder: Path, content: bytes, name: str = "session.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def lines_of(path: Path, cap: int = 1 << 30) -> list[bytes | None]:
    with SessionBytes(path) as source:
        return [line.data for line in source.lines(cap)]


def test_lines_are_numbered_and_the_torn_last_one_is_marked(tmp_path: Path) -> None:
    with SessionBytes(a_file(tmp_path, b"one\n\ntwo\nthr")) as source:
        assert [(line.index, line.data, line.ended) for line in source.lines()] == [
            (0, b"one", True),
            (1, b"", True),
            (2, b"two", True),
            (3, b"thr", False),
        ]


@pytest.mark.parametrize("size", [CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES])
def test_a_line_longer_than_a_chunk_comes_out_whole(tmp_path: Path, size: int) -> None:
    long = b"x" * size
    assert lines_of(a_file(tmp_path, b"a\n" + long + b"\nb\n")) == [b"a", long, b"b"]


def test_a_line_over_the_cap_is_skipped_and_the_next_one_is_read(tmp_path: Path) -> None:
    path = a_file(tmp_path, b"a\n" + b"x" * (3 * CHUNK_BYTES) + b"\nb\n" + b"y" * 200)
    assert lines_of(path, cap=100) == [b"a", None, b"b", None]


def test_a_compressed_file_reads_as_the_plain_one(tmp_path: Path) -> None:
    content = b"".join(b"line %d\n" % number for number in range(50_000))
    frames = zstandard.ZstdCompressor().compress(content[:1000]) + zstandard.ZstdCompressor().compress(content[1000:])
    plain, packed = a_file(tmp_path, content), a_file(tmp_path, frames, "session.jsonl.zst")
    assert lines_of(plain) == lines_of(packed)
    with SessionBytes(packed) as source:
        assert source.contains(b"line 49999\n")
        assert not source.contains(b"line 50000")
        assert source.bytes_read == len(content)


def test_a_damaged_compressed_file_is_named(tmp_path: Path) -> None:
    path = a_file(tmp_path, b"this is no zstd frame", "session.jsonl.zst")
    with pytest.raises(SessionUnreadable, match="damaged zstd data"):
        lines_of(path)


def test_a_truncated_compressed_file_gives_what_it_has(tmp_path: Path) -> None:
    packed = zstandard.ZstdCompressor().compress(os.urandom(CHUNK_BYTES * 4))
    path = a_file(tmp_path, packed[: len(packed) // 2], "session.jsonl.zst")
    assert sum(len(line or b"") for line in lines_of(path)) > 0


def test_a_literal_is_found_across_the_border_of_two_chunks(tmp_path: Path) -> None:
    path = a_file(tmp_path, b"x" * (CHUNK_BYTES - 3) + b"literal" + b"y" * 10)
    with SessionBytes(path) as source:
        assert source.contains(b"literal")
        assert not source.contains(b"literally")


def test_what_is_appended_after_opening_is_not_read(tmp_path: Path) -> None:
    path = a_file(tmp_path, b"one\n")
    with SessionBytes(path) as source:
        with path.open("ab") as writer:
            writer.write(b"two\n")
        assert [line.data for line in source.lines()] == [b"one"]
        assert source.bytes_read == source.size == 4


def test_lines_backwards_cross_blocks_and_respect_the_cap(tmp_path: Path) -> None:
    long = b"x" * (2 * BLOCK_BYTES)
    with SessionBytes(a_file(tmp_path, b"a\n" + long + b"\nb\nto")) as source:
        assert [(line.data, line.ended) for line in source.lines_backwards()] == [
            (b"to", False),
            (b"b", True),
            (long, True),
            (b"a", True),
        ]
        assert [line.data for line in source.lines_backwards(100)] == [b"to", b"b", None, b"a"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(st.sampled_from([b"a", b"bb", b"\n", b"\n\n", b"c" * 70_000, b"\r\n"]), max_size=12).map(b"".join))
def test_both_directions_agree_on_the_lines_that_hold_something(tmp_path: Path, content: bytes) -> None:
    with SessionBytes(a_file(tmp_path, content)) as source:
        forwards = [(line.data, line.ended) for line in source.lines() if line.data]
        backwards = [(line.data, line.ended) for line in source.lines_backwards() if line.data]
    assert forwards == backwards[::-1]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.lists(st.sampled_from([b"a", b"bb", b"\n", b"\n\n", b"c" * 70_000, b"d" * CHUNK_BYTES]), max_size=12),
    st.sampled_from([1, 2, 100, 70_001]),
)
def test_beginnings_are_those_of_the_lines(tmp_path: Path, pieces: list[bytes], size: int) -> None:
    with SessionBytes(a_file(tmp_path, b"".join(pieces))) as source:
        assert list(source.beginnings(size)) == [(line.data or b"")[:size] for line in source.lines()]


def test_the_rest_of_a_line_of_which_a_piece_was_read_is_read_up_to_its_end(tmp_path: Path) -> None:
    long = b"x" * (3 * CHUNK_BYTES)
    with SessionBytes(a_file(tmp_path, long + b"\nb\nto")) as source:
        content = source.content()
        assert whole_line(content, 7, content.readline(10)) == Line(7, long, True)
        assert whole_line(content, 8, content.readline(10)) == Line(8, b"b", True)
        assert whole_line(content, 9, content.readline(1)) == Line(9, b"to", False)
        content = source.content()
        assert whole_line(content, 0, content.readline(10), len(long) - 1) == Line(0, None, True)
        assert content.readline() == b"b\n"


def test_a_missing_file_has_vanished(tmp_path: Path) -> None:
    with pytest.raises(SessionVanished, match="no longer there"):
        SessionBytes(tmp_path / "gone.jsonl")


def test_a_fifo_or_a_directory_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    for name in ("pipe.jsonl", "folder.jsonl"):
        with pytest.raises(SessionUnreadable, match="not a regular file"):
            SessionBytes(tmp_path / name)


def test_what_the_system_refuses_is_said_with_its_reason(tmp_path: Path) -> None:
    loop = tmp_path / "loop.jsonl"
    loop.symlink_to(loop)
    with pytest.raises(SessionUnreadable, match=r"cannot open .*loop.jsonl: .* \(check its permissions"):
        SessionBytes(loop)


def test_closing_twice_is_allowed(tmp_path: Path) -> None:
    source = SessionBytes(a_file(tmp_path, b""))
    source.close()
    source.close()
