"""A scripted model server: real HTTP on loopback, Responses, chat completions and Messages, streamed where asked for.

Every request is recorded.

    with ModelServer() as server:
        configure(base_url=server.base_url)
        server.then(Status(429, headers={"Retry-After": "1"}))   # for the next request
        server.reply_with(lambda asked: None)                    # from now on; None means: as a good model would
        server.wait_for(3)
        assert [each.kind for each in server.requests] == ["stage1", "stage1", "consolidation"]

It can also stand alone, for a person to try things with: `python -m tests.support.model_server --port 8080`.
"""

import argparse
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, TypeAlias

from tests.support.model_asked import Recorded
from tests.support.model_manners import good_model
from tests.support.model_replies import Drop, HalfStream, Hang, Huge, Raw, Reply, Scripted, Slow, Status, body_of
from tests.support.model_streams import stream_of
from tests.support.waiting import wait_on

Script: TypeAlias = Callable[[Recorded], Scripted | None]

SECRET_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "cookie"})
ENDPOINTS = ("/responses", "/chat/completions", "/messages")
CLOSE_SECONDS = 10.0
CHUNK = b" " * 65_536


class ModelServer:
    """Listens while used as a context. `api_key`: refuse requests without exactly this key."""

    def __init__(self, *, port: int = 0, api_key: str | None = None) -> None:
        self._http = _Server(("127.0.0.1", port), self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), name="model-server", daemon=True)
        self._api_key = api_key
        self._script: Script = _as_good_model
        self._next: deque[Scripted | Script] = deque()
        self._changed = threading.Condition()
        self._requests: list[Recorded] = []
        self.closing = threading.Event()
        self.errors: list[BaseException] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if kind is None and self.errors:
            raise AssertionError("a script of the model server failed") from self.errors[0]

    def close(self) -> None:
        """Stop listening, end every connection, also those that hang, and wait for their threads."""
        self.closing.set()
        self._http.shutdown()
        self._thread.join(CLOSE_SECONDS)
        self._http.end_connections()
        self._http.server_close()

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def base_url(self) -> str:
        """The address that a provider is configured with, /v1 included."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> list[Recorded]:
        """Every request to a model so far, in the order of arrival."""
        with self._changed:
            return list(self._requests)

    def of_kind(self, kind: str) -> list[Recorded]:
        """Return the requests of one kind."""
        return [each for each in self.requests if each.kind == kind]

    def forget(self) -> None:
        """Forget the requests so far; numbers go on."""
        with self._changed:
            self._requests.clear()

    def wait_for(self, count: int, timeout: float = 30.0, *, kind: str | None = None) -> list[Recorded]:
        """Wait until so many requests (of a kind) have arrived, and return them; AssertionError after `timeout`."""

        def arrived() -> list[Recorded]:
            return [each for each in self._requests if kind in (None, each.kind)]

        with self._changed:
            assert wait_on(self._changed, lambda: len(arrived()) >= count, timeout), (
                f"{len(arrived())} of {count} requests arrived within {timeout} s"
            )
            return arrived()

    def reply_with(self, script: Script | Scripted) -> None:
        """Answer by a function of the request from now on, or always the same; a function's None means the default."""
        self._script = script if callable(script) else lambda _asked: script

    def then(self, *answers: Scripted | Script) -> None:
        """Answer the next requests so, one each, before the script has its say again."""
        with self._changed:
            self._next.extend(answers)

    def recorded(self, method: str, path: str, headers: dict[str, str], body: dict[str, Any]) -> Recorded:
        """Keep a request, without the values of its credentials."""
        shown = {key: "***" if key.lower() in SECRET_HEADERS else value for key, value in headers.items()}
        with self._changed:
            self._http.counted += 1
            asked = Recorded(self._http.counted, method, path, shown, body)
            self._requests.append(asked)
            self._changed.notify_all()
        return asked

    def answer(self, asked: Recorded, authorization: str) -> Scripted:
        """Decide what a request is answered with."""
        if self._api_key is not None and authorization != f"Bearer {self._api_key}":
            return Status(401, "Incorrect API key provided", "invalid_api_key")
        with self._changed:
            scripted = self._next.popleft() if self._next else self._script
        try:
            answer = scripted(asked) if callable(scripted) else scripted
        except Exception as error:
            self.errors.append(error)
            return Status(500, f"the script failed: {error!r}")
        return good_model(asked) if answer is None else answer


def _as_good_model(_asked: Recorded) -> None:
    return None


class _Server(ThreadingHTTPServer):
    """Threads per connection; it knows its open connections, so that closing ends the ones that hang."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], owner: ModelServer) -> None:
        super().__init__(address, _Handler)
        self.owner = owner
        self.counted = 0
        self._idle = threading.Condition()
        self._open: set[socket.socket] = set()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with self._idle:
            self._open.add(request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._idle:
                self._open.discard(request)
                self._idle.notify_all()

    def end_connections(self) -> None:
        with self._idle:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            wait_on(self._idle, lambda: not self._open, CLOSE_SECONDS)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no failure of the server."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.path.split("?")[0].endswith(ENDPOINTS):
            self._json(404, Status(404, f"Unknown path {self.path}").body, {})
            return
        try:
            body = json.loads(raw)
        except ValueError:
            self._json(400, Status(400, "The body is no JSON").body, {})
            return
        owner = self.server.owner
        asked = owner.recorded("POST", self.path, dict(self.headers), body)
        key = self.headers.get("x-api-key") if asked.is_messages else None
        self._send(asked, owner.answer(asked, f"Bearer {key}" if key else self.headers.get("Authorization", "")))

    def do_GET(self) -> None:
        known = self.path.endswith("/models")
        self._json(200 if known else 404, {"object": "list", "data": []} if known else Status(404).body, {})

    def _send(self, asked: Recorded, answer: Scripted) -> None:
        match answer:
            case Reply() if _is_streamed(asked, answer):
                self._stream(stream_of(asked, answer), answer.headers)
            case Reply():
                self._json(200, body_of(asked, answer), answer.headers, answer.content_type)
            case Status(status=status, headers=headers):
                self._json(status, answer.body_for(asked), headers)
            case HalfStream(reply, then):
                events = stream_of(asked, reply)
                self._stream([*events[: len(events) // 2], then.encode()], reply.headers)
            case Raw(status, body, headers):
                self._start(status, headers, len(body))
                self.wfile.write(body)
            case Hang():
                self.server.owner.closing.wait()
                self.close_connection = True
            case Drop(reply, before_headers) if not before_headers and _is_streamed(asked, reply):
                events = stream_of(asked, reply)
                self._stream(events[: len(events) // 2], reply.headers, whole=False)
                self.close_connection = True
            case Drop(reply, before_headers):
                self._drop(b"" if before_headers else _encoded(body_of(asked, reply)))
            case Slow(reply, pause_seconds=pause_seconds) if _is_streamed(asked, reply):
                self._stream(stream_of(asked, reply), reply.headers, pause_seconds=pause_seconds)
            case Slow():
                self._trickle(asked, answer)
            case Huge(size_bytes):
                self._flood(size_bytes)

    def _json(self, status: int, body: object, headers: Any, content_type: str = "application/json") -> None:
        data = _encoded(body)
        self._start(status, {"Content-Type": content_type, **headers}, len(data))
        self.wfile.write(data)

    def _stream(self, events: list[bytes], headers: Any, *, whole: bool = True, pause_seconds: float = 0.0) -> None:
        """Send events as chunks; without the last, empty one when not `whole`."""
        self.send_response(200)
        for key, value in {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        for event in filter(None, events):
            if pause_seconds:
                time.sleep(pause_seconds)
            if self.server.owner.closing.is_set():
                self.close_connection = True
                return
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()
        if whole:
            self.wfile.write(b"0\r\n\r\n")

    def _start(self, status: int, headers: Any, length: int) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(length), **headers}.items():
            self.send_header(key, value)
        self.end_headers()

    def _drop(self, data: bytes) -> None:
        self.close_connection = True
        if data:
            self._start(200, {"Content-Type": "application/json"}, len(data))
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()

    def _trickle(self, asked: Recorded, slow: Slow) -> None:
        data = _encoded(body_of(asked, slow.reply))
        self._start(200, {"Content-Type": "application/json"}, len(data))
        for start in range(0, len(data), slow.chunk_bytes):
            time.sleep(slow.pause_seconds)  # a timed wait of an Event never ends under libfaketime
            if self.server.owner.closing.is_set():
                self.close_connection = True
                return
            self.wfile.write(data[start : start + slow.chunk_bytes])
            self.wfile.flush()

    def _flood(self, size_bytes: int) -> None:
        self._start(200, {"Content-Type": "application/json"}, size_bytes)
        self.wfile.write(b"{}")
        left = size_bytes - 2
        while left > 0:
            self.wfile.write(CHUNK[:left])
            left -= len(CHUNK)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        """Say nothing: requests are recorded."""


def _is_streamed(asked: Recorded, reply: Reply) -> bool:
    return asked.wants_stream if reply.streamed is None else reply.streamed


def _encoded(body: object) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted model server on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--api-key")
    arguments = parser.parse_args()
    with ModelServer(port=arguments.port, api_key=arguments.api_key) as server:
        print(server.base_url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
