"""Running a program to its end, with bounds: the one place of this package that starts processes.

The program runs below a keeper (keeper.py), which ends it with all its children when this process wants it, or dies.
What it is asked goes in as an unnamed file: nothing has to be fed, so slow reading or none blocks nobody, and neither
`ps` nor a folder shows it.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memoryd.errors import DiskFull
from memoryd.llm.shield import to_its_end

MAX_OUTPUT_BYTES: Final = 16 * 1024 * 1024
"""Of both streams together: an agent that tells every step of half an hour says less; what says more ran wild."""
KEPT_ERROR_BYTES: Final = 16 * 1024
END_SECONDS: Final = 15.0
PACKAGE_ROOT: Final = Path(__file__).parents[3]
KEEPER: Final = (
    "import sys; sys.path.append(sys.argv[1]); from memoryd.llm.command import keeper; keeper.main(int(sys.argv[2]))"
)


@dataclass(frozen=True, slots=True)
class Launch:
    """A program ready to be started: nothing of the environment passes but `environ`.

    In `scratch` the question lies, without a name. `writable` are the only paths that Landlock lets it write, None
    without Landlock; `stop` ends what is not a child.
    """

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    cwd: Path
    scratch: Path
    writable: tuple[Path, ...] | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended. `code` is None when it did not end by itself; `stderr` is only the end of what it said there."""

    code: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    overflowed: bool = False


async def run(launch: Launch, prompt: bytes, *, seconds: float, max_output_bytes: int = MAX_OUTPUT_BYTES) -> Ended:
    """Run a program until it ends, time is up, or it says too much; then nothing of it is left. Raises DiskFull.

    Cancelled, it ends the program first.
    """
    loop = asyncio.get_running_loop()
    output = _Output(loop.create_future(), max_output_bytes)
    with _unnamed_file(prompt, launch.scratch) as file:
        transport, _ = await loop.subprocess_exec(
            lambda: output,
            *(sys.executable, "-I", "-S", "-B", "-c", KEEPER, str(PACKAGE_ROOT), str(file)),
            pass_fds=(file,),
            env={},
            start_new_session=True,
        )
    timed_out = False
    lifeline = transport.get_pipe_transport(0)
    assert isinstance(lifeline, asyncio.WriteTransport)
    try:
        lifeline.write(_spec(launch))
        async with asyncio.timeout(seconds):
            await asyncio.shield(output.over)
    except TimeoutError:
        timed_out = True
    finally:
        await to_its_end(_end(transport, lifeline, output))
    code = None if timed_out or output.overflowed else transport.get_returncode()
    return Ended(code, bytes(output.stdout), bytes(output.stderr), timed_out, output.overflowed)


class _Output(asyncio.SubprocessProtocol):
    """What the program says, as far as it is kept; `over` is done when all is said, or too much."""

    def __init__(self, over: "asyncio.Future[None]", max_bytes: int) -> None:
        self.over = over
        self.closed = over.get_loop().create_future()
        self.overflowed = False
        self.stdout, self.stderr = bytearray(), bytearray()
        self._left = max_bytes

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self.overflowed = True
            self._is_over()
        elif fd == 1:
            self.stdout += data
        else:
            self.stderr += data
            del self.stderr[:-KEPT_ERROR_BYTES]

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._is_over()
        if not self.closed.done():
            self.closed.set_result(None)

    def _is_over(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


async def _end(transport: asyncio.SubprocessTransport, lifeline: asyncio.WriteTransport, output: _Output) -> None:
    """Let the keeper end everything; a keeper that does not is killed, and what it kept is its system's to clear."""
    lifeline.close()
    try:
        async with asyncio.timeout(END_SECONDS):
            await asyncio.shield(output.closed)
    except TimeoutError:
        transport.kill()
    finally:
        transport.close()


def _spec(launch: Launch) -> bytes:
    spec: dict[str, object] = {
        "argv": launch.argv,
        "environ": dict(launch.environ),
        "cwd": str(launch.cwd),
        "stop": launch.stop,
    }
    if launch.writable is not None:
        spec["writable"] = [str(path) for path in launch.writable]
    return json.dumps(spec).encode() + b"\n"


@contextmanager
def _unnamed_file(content: bytes, folder: Path) -> Iterator[int]:
    """Give a descriptor of a file without a name that holds `content`; it is gone with its last descriptor."""
    try:
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed below; only making it is translated
    except OSError as error:
        raise _cannot_hand_over(error) from error
    with file:
        try:
            file.write(content)
            file.flush()
            os.lseek(file.fileno(), 0, os.SEEK_SET)
        except OSError as error:
            raise _cannot_hand_over(error) from error
        yield file.fileno()


def _cannot_hand_over(error: OSError) -> DiskFull:
    return DiskFull(f"cannot hand a question to a program: {error.strerror}", remedy="free some space on this disk")
