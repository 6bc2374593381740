"""The one place that speaks HTTP: one request, one reply with a bounded body, every failure of a transfer translated.

What a reply means is decided elsewhere (http_reply.py, classify.py). Redirects are not followed.
"""

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from types import TracebackType
from typing import Final, Self, TypeAlias

import httpx

from memoryd.errors import MalformedReply, Unreachable
from memoryd.llm.endpoint import Endpoint
from memoryd.llm.visible import Show

MAX_BODY_BYTES = 32 * 1024 * 1024
MAX_ERROR_BODY_BYTES = 256 * 1024
MAX_CONNECT_SECONDS = 15.0
STREAM_TIMEOUTS = 10
"""A stream may take so many time-outs as a whole: one that trickles for ever, or only says that it lives, ends too."""
USER_AGENT = "memoryd"
CODING: Final = "gzip"
"""The one coding that is asked for and undone: any other body is taken as it came, and so is no JSON."""

NEVER_SENT = (
    *(httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol),
    FileNotFoundError,  # a program that is not there (command/shell.py)
)


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What came back, whatever its status; `text` is the decoded body."""

    status: int
    headers: Mapping[str, str]
    text: str


class HttpShell:
    """One connection pool to one provider. Close it, or use it as an async context manager."""

    def __init__(
        self,
        *,
        timeout_seconds: float,
        base_url: str,
        max_body_bytes: int = MAX_BODY_BYTES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        for name in ("httpx", "httpcore"):  # both log whole addresses at INFO
            logging.getLogger(name).setLevel(logging.WARNING)
        self._timeout_seconds = timeout_seconds
        self._max_body_bytes = max_body_bytes
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(timeout_seconds, connect=min(timeout_seconds, MAX_CONNECT_SECONDS)),
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": CODING},
            follow_redirects=False,
            trust_env=not is_loopback(base_url),  # a proxy cannot reach a server on this machine
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def post(
        self,
        endpoint: Endpoint,
        path: str,
        payload: bytes,
        *,
        headers: Mapping[str, str],
        show: Show,
        stream: bool = False,
    ) -> HttpReply:
        """Send JSON and return the whole reply, also of a stream.

        Raises Unreachable when there is no connection, no answer in time or a broken transfer, and MalformedReply when
        the body is larger than the cap. The time limit holds for the whole exchange, so that a body that trickles for
        ever ends too; with `stream` it holds between two pieces, and the whole may take STREAM_TIMEOUTS of it.
        """
        url = endpoint.base_url.rstrip("/") + path
        kind = "text/event-stream" if stream else "application/json"
        sent = {"Content-Type": "application/json", "Accept": kind, **headers}
        whole = self._timeout_seconds * (STREAM_TIMEOUTS if stream else 1)
        async with (
            self._translated(endpoint, show),
            asyncio.timeout(whole),
            self._client.stream("POST", url, content=payload, headers=sent) as response,
        ):
            body = await self._body(response, endpoint)
        return HttpReply(response.status_code, dict(response.headers), body.decode("utf-8", "replace"))

    async def get(self, endpoint: Endpoint, path: str, *, show: Show) -> HttpReply:
        """Ask for something that is there; the same limits and errors as those of `post`."""
        async with (
            self._translated(endpoint, show),
            asyncio.timeout(self._timeout_seconds),
            self._client.stream("GET", endpoint.base_url.rstrip("/") + path) as response,
        ):
            body = await self._body(response, endpoint)
        return HttpReply(response.status_code, dict(response.headers), body.decode("utf-8", "replace"))

    async def _body(self, response: httpx.Response, endpoint: Endpoint) -> bytes:
        """Read up to the cap, compressed or not. An error's body is only cut: its status says enough."""
        failed = response.status_code >= 300
        limit = MAX_ERROR_BODY_BYTES if failed else self._max_body_bytes
        body = bytearray()
        unpack = _unpacking(response.headers.get("content-encoding", ""))
        async for chunk in response.aiter_raw():
            body += unpack(chunk, limit + 1 - len(body))
            if len(body) > limit:
                if failed:
                    return bytes(body[:limit])
                raise MalformedReply(
                    f"{endpoint.provider} sent a reply of more than {limit} bytes", status=response.status_code
                )
        return bytes(body)

    @asynccontextmanager
    async def _translated(self, endpoint: Endpoint, show: Show) -> AsyncIterator[None]:
        where = f"{endpoint.provider} at {endpoint.base_url}"
        remedy = f"check the network, and base_url in {endpoint.section}; it is asked again later by itself"
        try:
            yield
        except (TimeoutError, httpx.TimeoutException) as error:
            slow = f"{where} did not answer within {self._timeout_seconds:g} seconds"
            raise Unreachable(slow, remedy=f"raise timeout in {endpoint.section} if the model is slow") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, zlib.error) as error:
            why = show(str(error)) or type(error).__name__
            raise Unreachable(f"{where} cannot be reached: {why}", remedy=remedy) from error


_Unpack: TypeAlias = Callable[[bytes, int], bytes]


def _unpacking(coding: str) -> _Unpack:
    """Return what undoes a coding piece by piece, never to more bytes than are wanted.

    httpx would unpack each piece whole: 64 KB are 64 MB then, and more than there is memory when packed twice.
    """
    if coding.strip().lower() != CODING:
        return lambda piece, _most: piece
    return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress


def was_sent(error: BaseException) -> bool:
    """Say whether a failed request may have reached the server."""
    return not isinstance(error.__cause__, NEVER_SENT)


def is_loopback(url: str) -> bool:
    """Say whether an address is on this machine."""
    host = httpx.URL(url).host
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
