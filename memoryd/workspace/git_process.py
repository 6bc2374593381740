"""Git as child processes: in groups of their own, bounded in time, and ended together when memoryd has to go.

A hanging git (a network disk that is gone, a wrapper that waits for somebody) must hold nothing up for long.
"""

import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Final

from memoryd.errors import GitError, GitMissing

INSTALL_GIT: Final = "install git, for instance with `apt install git` or `xcode-select --install`"
_CHUNK_BYTES: Final = 1 << 20
_POLITE_SECONDS: Final = 2.0
"""Between SIGTERM, on which git removes its locks, and SIGKILL."""


class Children:
    """The git programs that run for one repository and its views. Thread-safe.

    Raises GitMissing where there is no git, GitError where it cannot start, does not end in time, or is ended.
    """

    def __init__(self) -> None:
        self.version: tuple[int, ...] | None = None
        """Kept by who has asked for it once."""
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def end(self) -> None:
        """End every git that runs, and start none any more."""
        with self._lock:
            self._ended = True
            running = list(self._running)
        for process in running:
            _end_group(process)

    def run(
        self, command: Sequence[str], environ: Mapping[str, str], *, stdin: bytes, seconds: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a git to its end, of which it has `seconds`."""
        with self._started(command, environ, subprocess.PIPE) as process:
            with _within(process, seconds, of=seconds):
                stdout, stderr = process.communicate(stdin)
            self._check(process)
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)

    def read(
        self, command: Sequence[str], environ: Mapping[str, str], *, max_bytes: int, seconds: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Return what a git prints, up to its first `max_bytes` + 1 bytes: then it is ended, which is no failure."""
        deadline = time.monotonic() + seconds
        with tempfile.TemporaryFile() as errors, self._started(command, environ, errors) as process:
            assert process.stdout is not None
            chunks, size = [], 0
            while chunk := _chunk(process.stdout, deadline, max_bytes + 1 - size):
                chunks.append(chunk)
                size += len(chunk)
                if size > max_bytes:
                    return subprocess.CompletedProcess(command, 0, b"".join(chunks), b"")
            with _within(process, deadline - time.monotonic(), of=seconds):
                process.wait()
            self._check(process)
            errors.seek(0)
            return subprocess.CompletedProcess(command, process.returncode, b"".join(chunks), errors.read())

    @contextmanager
    def _started(
        self, command: Sequence[str], environ: Mapping[str, str], stderr: int | IO[bytes]
    ) -> Iterator[subprocess.Popen[bytes]]:
        process = self._start(command, environ, stderr)
        try:
            yield process
        finally:
            if process.poll() is None:
                _signal_group(process, signal.SIGKILL)
                process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            with self._lock:
                self._running.discard(process)

    def _start(
        self, command: Sequence[str], environ: Mapping[str, str], stderr: int | IO[bytes]
    ) -> subprocess.Popen[bytes]:
        with self._lock:  # held until it is among those that `end` ends
            if self._ended:
                raise GitError("git is not run any more: memoryd is stopping", remedy="start memoryd again")
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    cwd="/",
                    env=dict(environ),
                    start_new_session=True,  # ^C on the terminal is ours to handle, not git's to die of
                )
            except (FileNotFoundError, PermissionError) as error:
                raise GitMissing("cannot run git: no git program on PATH", remedy=INSTALL_GIT) from error
            except OSError as error:  # no process, memory or descriptor left for it
                raise GitError(
                    f"cannot run git: {error.strerror or error}", remedy="look for what uses up the machine"
                ) from error
            self._running.add(process)
            return process

    def _check(self, process: subprocess.Popen[bytes]) -> None:
        """Tell a git that was ended from one that refused: what it said of the repository counts for nothing."""
        with self._lock:
            if self._ended:
                raise GitError("git was ended: memoryd is stopping", remedy="start memoryd again")
        if process.returncode < 0:
            raise GitError(
                f"git was ended by signal {-process.returncode}",
                remedy="look for what kills it, such as a lack of memory",
            )


def _chunk(stream: IO[bytes], deadline: float, most: int) -> bytes:
    """Return what there is to read once there is something; nothing at the end, or when time is up."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        if not selector.select(max(deadline - time.monotonic(), 0.0)):
            return b""
    return os.read(stream.fileno(), min(most, _CHUNK_BYTES))


@contextmanager
def _within(process: subprocess.Popen[bytes], left: float, *, of: float) -> Iterator[None]:
    """End a git when the seconds that are left `of` its time are over; whoever waits for it needs no limit."""
    overdue = threading.Event()

    def end() -> None:
        overdue.set()
        _end_group(process)

    timer = threading.Timer(max(left, 0.0), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if overdue.is_set():
        raise GitError(
            f"git was ended: it gave no answer within {of:g} s",
            remedy="look whether the disk of the memory folder answers, and what the git on PATH is",
        )


def _end_group(process: subprocess.Popen[bytes]) -> None:
    _signal_group(process, signal.SIGTERM)
    try:
        process.wait(_POLITE_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    _signal_group(process, signal.SIGKILL)  # also to what it has started itself, and left


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
