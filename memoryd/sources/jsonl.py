"""Lines of a session file as bytes: streamed, capped, from the front or from the back, plain or zstd-compressed.

Foreign errors (OSError, zstd) are translated here, and nowhere else in this room.
"""

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import zstandard

from memoryd.errors import SessionUnreadable, SessionVanished

CHUNK_BYTES = 256 * 1024  # how much is read at a time where all of a session is
BLOCK_BYTES = 64 * 1024  # how much where its beginning or its end may do
MAX_LINE_BYTES = 64 * 1024 * 1024  # real lines reach 40 MB (base64 images, compaction histories)
MAX_WINDOW_BYTES = 2**27  # what zstd --long needs; a frame that asks for more is refused instead of allocated
COMPRESSED_SUFFIX = ".zst"


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line without its newline; `data` is None when it was over the cap, `ended` is False for a torn last one."""

    index: int
    data: bytes | None
    ended: bool


class SessionBytes:
    """An open session file: read only, a regular file, never beyond the size that it had when it was opened."""

    def __init__(self, path: Path) -> None:
        with _translated(path, "open"):
            # without O_NONBLOCK a FIFO that has the right name would wait for a writer for ever
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            os.close(descriptor)
            raise SessionUnreadable(f"cannot read {path}: it is not a regular file")
        self.path = path
        self.size = facts.st_size
        self.mtime_ns = facts.st_mtime_ns
        self.is_compressed = path.name.endswith(COMPRESSED_SUFFIX)
        self.bytes_read = 0
        self._file = io.FileIO(descriptor, closefd=True)

    def content(self, step: int = BLOCK_BYTES) -> io.BufferedReader:
        """Open the decompressed content at its beginning, to be read `step` bytes at a time, as one pass after another.

        `bytes_read` counts what the pass has read. What it reads raises this room's errors.
        """
        self.bytes_read = 0
        with _translated(self.path, "read"):
            self._file.seek(0)
        return io.BufferedReader(_Content(self, self._file), step)

    def chunks(self) -> Iterator[bytes]:
        """Yield the decompressed content from its beginning; whoever wants no more has that in the first block."""
        content, step = self.content(), BLOCK_BYTES
        while chunk := content.read1(step):
            yield chunk
            step = CHUNK_BYTES

    def lines(self, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
        """Yield every line from the first to the last, one in memory at a time."""
        content, index = self.content(), 0
        while piece := content.readline(max_line_bytes + 1):  # with its newline
            yield whole_line(content, index, piece, max_line_bytes)
            index += 1

    def beginnings(self, size: int) -> Iterator[bytes]:
        """Yield how each line begins: at most `size` bytes of it, without its newline. No whole line is built."""
        held = b""  # of a line that goes on in the next chunk
        for chunk in self.chunks():
            end = chunk.find(b"\n")
            if len(held) < size:
                held += chunk[: size if end < 0 else min(end, size)]
            if end < 0:
                continue
            yield held[:size]
            start = end + 1
            while (end := chunk.find(b"\n", start)) >= 0:
                yield chunk[start : end if end - start < size else start + size]
                start = end + 1
            held = chunk[start : start + size]
        if held:
            yield held[:size]

    def lines_backwards(self, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
        """Yield the lines of a plain file from the last to the first; their indexes count down from -1."""
        held = _Pieces(max_line_bytes)
        position, index, ended = self.size, -1, False
        while position > 0:
            step = min(BLOCK_BYTES, position)
            position -= step
            *before, last = self._block(position, step).split(b"\n")
            held.add(last)
            while before:
                if held.size or ended:
                    yield Line(index, held.take(), ended)
                    index -= 1
                ended = True
                held.add(before.pop())
        if held.size:
            yield Line(index, held.take(), ended)

    def contains(self, literal: bytes) -> bool:
        """Say whether the content holds these bytes, without splitting or decoding it."""
        length, end = len(literal), b""
        for chunk in self.chunks():
            if literal in chunk or literal in end + chunk[:length]:
                return True
            end = (end + chunk)[-length:] if len(chunk) < length else chunk[-length:]
        return False

    def close(self) -> None:
        """Close the file; closing twice is allowed."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _block(self, position: int, size: int) -> bytes:
        with _translated(self.path, "read"):
            return os.pread(self._file.fileno(), size, position)


def whole_line(content: io.BufferedReader, index: int, piece: bytes, max_line_bytes: int = MAX_LINE_BYTES) -> Line:
    """Return the line that begins with a piece which was just read; of one over the cap no more is kept."""
    pieces, size = [piece], len(piece)
    while not piece.endswith(b"\n") and (piece := content.readline(CHUNK_BYTES)):
        size += len(piece)
        if size <= max_line_bytes + 1:
            pieces.append(piece)
    ended = piece.endswith(b"\n")
    is_over = size - ended > max_line_bytes
    return Line(index, None if is_over else b"".join(pieces).removesuffix(b"\n"), ended)


class _Content(io.RawIOBase):
    """A session's decompressed content, no more of it than there was when it was opened."""

    def __init__(self, source: SessionBytes, file: io.FileIO) -> None:
        self._source = source
        self._left = source.size
        self._file = file
        self._unpacked = _decompressed(file) if source.is_compressed else None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # typeshed: any buffer
        with _translated(self._source.path, "read"):
            if self._unpacked is not None:
                read = self._unpacked.readinto(buffer)
            else:
                read = self._file.readinto(memoryview(buffer)[: self._left]) or 0
                self._left -= read
        self._source.bytes_read += read
        return read


def _decompressed(file: io.FileIO) -> zstandard.ZstdDecompressionReader:
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    return decompressor.stream_reader(file, read_across_frames=True, closefd=False)


class _Pieces:
    """The pieces of one line as they arrive, its end first; lets go of them once they pass the cap."""

    def __init__(self, max_bytes: int) -> None:
        self.size = 0
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._max_bytes:
            self._pieces.clear()
        elif piece:
            self._pieces.append(piece)

    def take(self) -> bytes | None:
        pieces, size = self._pieces, self.size
        self._pieces, self.size = [], 0
        if size > self._max_bytes:
            return None
        return pieces[0] if len(pieces) == 1 else b"".join(reversed(pieces))


@contextmanager
def _translated(path: Path, verb: str) -> Iterator[None]:
    """Turn what the system or zstd raises into this room's errors."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SessionVanished(f"cannot {verb} {path}: it is no longer there") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise SessionUnreadable(
            f"cannot {verb} {path}: {reason}", remedy="check its permissions and the disk it is on"
        ) from error
    except zstandard.ZstdError as error:
        raise SessionUnreadable(f"cannot {verb} {path}: damaged zstd data ({error})") from error
