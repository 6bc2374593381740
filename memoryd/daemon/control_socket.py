"""memoryd.sock: how a command asks the daemon that holds the lock. One JSON object a line, one request a connection.

The daemon answers `{"step": {...}}` lines while it works and one `{"result": {...}}` or `{"error": "..."}` line at the
end. Only processes of the same user are answered.
"""

import asyncio
import json
import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from memoryd import logs
from memoryd.errors import MemorydError, StorageError

log = logs.get()

Request: TypeAlias = Mapping[str, object]
Tell: TypeAlias = Callable[[dict[str, object]], None]
Answer: TypeAlias = Callable[[Request, Tell], Awaitable[dict[str, object]]]

LINE_LIMIT = 1 << 20
LONGEST_PATH_BYTES = 103
"""sun_path holds 104 bytes on macOS and 108 on Linux, the closing NUL included."""


@asynccontextmanager
async def serve(path: Path, answer: Answer) -> AsyncIterator[None]:
    """Answer requests at `path` (mode 0600) while it lasts; the caller holds the lock, so a file there is old."""
    answering: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_serve_one(reader, writer, answer), name="request")
        answering.add(task)
        task.add_done_callback(answering.discard)

    with _reachable(path) as address:
        _remove(address)
        old_mask = os.umask(0o177)
        try:
            server = await asyncio.start_unix_server(begin, path=address, limit=LINE_LIMIT)
        except OSError as error:
            raise StorageError(
                f"cannot make the control socket {path}: {error.strerror}",
                remedy="check the folder and its permissions",
            ) from error
        finally:
            os.umask(old_mask)
        ours = _look(path)
        try:
            yield
        finally:
            server.close()
            _remove_ours(path, ours)
            await _end(answering)


async def ask(path: Path, request: Request, on_step: Callable[[dict[str, object]], None]) -> dict[str, object]:
    """Send one request and return its result. Raises StorageError when no daemon answers there, or it says an error."""
    with _reachable(path) as address:
        try:
            reader, writer = await asyncio.open_unix_connection(path=address, limit=LINE_LIMIT)
        except OSError as error:
            raise StorageError(
                f"the daemon does not answer at {path}: {error.strerror}", remedy="look at its log, or restart it"
            ) from error
    try:
        writer.write(json.dumps(request).encode() + b"\n")
        await writer.drain()
        while line := await reader.readline():
            message = _message(line)
            if "step" in message:
                on_step(message["step"])
            elif "error" in message:
                raise StorageError(str(message["error"]))
            else:
                return dict(message["result"])
    finally:
        writer.close()
    raise StorageError(
        "the daemon ended before it answered", remedy="its log says why; `memoryd status` says whether it runs"
    )


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise StorageError("what answers at the control socket is no memoryd of this version", remedy="restart it")
    return message


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _look(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _remove_ours(path: Path, ours: tuple[int, int] | None) -> None:
    """Leave the socket of a daemon that has taken over since where it is."""
    if _look(path) == ours:
        _remove(path)


async def _end(answering: set[asyncio.Task[None]]) -> None:
    """Cancel what is still being answered and wait for it: it may hold leases, which it then gives back."""
    left = list(answering)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


async def _serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer) -> None:
    def send(message: dict[str, object]) -> None:
        writer.write(json.dumps(message).encode() + b"\n")

    try:
        if not _same_user(writer.get_extra_info("socket")):
            return
        line = await reader.readline()
        request = json.loads(line) if line else {}
        if not isinstance(request, dict):
            raise ValueError("not an object")
        result = await answer(request, lambda step: send({"step": step}))
        send({"result": result} if "error" not in result else result)
        await writer.drain()
    except MemorydError as error:
        send({"error": str(error)})
    except (ValueError, KeyError) as error:
        log.warning("request.refused", error=f"{type(error).__name__}: {error}")
        send({"error": "this memoryd does not understand the request"})
    except OSError as error:
        log.warning("request.refused", error=f"{type(error).__name__}: {error}")
    finally:
        writer.close()


def _same_user(connection: socket.socket) -> bool:
    """The folder is 0700 and the socket 0600; where the kernel tells, the peer's uid is checked as well."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _pid, uid, _gid = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    )
    return bool(uid == os.getuid())


@contextmanager
def _reachable(path: Path) -> Iterator[Path]:
    """Give a name for the socket that the kernel accepts: a deep MEMORYD_HOME is reached through an open folder."""
    if len(os.fsencode(path)) <= LONGEST_PATH_BYTES:
        yield path
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        address = Path(f"/proc/self/fd/{folder}")
        if not address.exists():
            raise StorageError(
                f"the path of the control socket is too long for this system: {path}",
                remedy="choose a shorter MEMORYD_HOME",
            )
        yield address / path.name
    finally:
        os.close(folder)
