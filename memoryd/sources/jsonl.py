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

CHUNK_BYTES = 256 * 1024
BLOCK_BYTES = 64 * 1024  # how much is read from the end at a time
MAX_LINE_BYTES = 64 * 1024 * 1024  # real lines reach 40 MB (base64 images, compaction histories)
MAX_WINDOW_BYTES = 2**27  # what zstd --long needs; a frame that asks for more is refused instead of allocated
COMPRESSED_SUFFIX = ".zst"


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line without its newline; `data` is None when it was over the cap, `ended` is False for a torn last one."""

    index: int
    data: bytes | None
    ended: bool


class Stretch(msgspec.Struct, frozen=True, gc=False):
    """Whole lines of a session in one piece, from `start` on, each with its newline: none is cut out yet.

    One that is torn off at the end (not `ended`) and one that was over the cap (`data` is None) stand alone.
    """

    data: bytes | None
    start: int = 0
    ended: bool = True


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

    def chunks(self) -> Iterator[bytes]:
        """Yield the decompressed content from its beginning; `bytes_read` counts what this pass has yielded."""
        self.bytes_read = 0
        with _translated(self.path, "read"):
            self._file.seek(0)
            source = self._decompressed() if self.is_compressed else self._plain()
            for chunk in source:
                self.bytes_read += len(chunk)
                yield chunk

    def lines(self, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
        """Yield every line from the first to the last, one in memory at a time."""
        index = 0
        for stretch in self.stretches(max_line_bytes):
            data, start = stretch.data, stretch.start
            if data is None or not stretch.ended:
                yield Line(index, data, stretch.ended)
                index += 1
                continue
            while (end := data.find(b"\n", start)) >= 0:
                yield Line(index, data[start:end] if end - start <= max_line_bytes else None, True)
                index, start = index + 1, end + 1

    def stretches(self, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Stretch]:
        """Yield all lines as they lie together in the chunks of the file; one that lies in several comes alone."""
        held = _Pieces(max_line_bytes + 1)  # with its newline
        for chunk in self.chunks():
            start = chunk.find(b"\n") + 1 if held.size else 0
            if start:
                held.add(chunk[:start])
                yield Stretch(held.take())
            if not held.size and (end := chunk.rfind(b"\n") + 1) > start:
                yield Stretch(chunk, start)
                start = end
            held.add(chunk[start:])
        if held.size:
            yield Stretch(held.take(), ended=False)

    def lines_backwards(self, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
        """Yield the lines of a plain file from the last to the first; their indexes count down from -1."""
        held = _Pieces(max_line_bytes, backwards=True)
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

    def _plain(self) -> Iterator[bytes]:
        left, step = self.size, BLOCK_BYTES  # whoever wants the beginning alone has it in the first block
        while left > 0 and (chunk := self._file.read(min(step, left))):
            left, step = left - len(chunk), CHUNK_BYTES
            yield chunk

    def _decompressed(self) -> Iterator[bytes]:
        decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
        with decompressor.stream_reader(self._file, read_across_frames=True, closefd=False) as reader:
            while chunk := reader.read(CHUNK_BYTES):
                yield chunk

    def _block(self, position: int, size: int) -> bytes:
        with _translated(self.path, "read"):
            return os.pread(self._file.fileno(), size, position)


class _Pieces:
    """The pieces of one line as they arrive; lets go of them once they pass the cap."""

    def __init__(self, max_bytes: int, *, backwards: bool = False) -> None:
        self.size = 0
        self._max_bytes = max_bytes
        self._backwards = backwards
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
        return pieces[0] if len(pieces) == 1 else b"".join(reversed(pieces) if self._backwards else pieces)


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
