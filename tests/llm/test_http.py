"""The HTTP shell against a real server on loopback, and every failure of a transfer."""

import asyncio
import gzip
import logging
import socket
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from memoryd.errors import MalformedReply, Unreachable
from memoryd.llm.codec import bearer
from memoryd.llm.endpoint import Endpoint
from memoryd.llm.http import MAX_ERROR_BODY_BYTES, HttpReply, HttpShell, is_loopback, was_sent
from tests.support.model_replies import GARBAGE, Drop, Hang, Huge, Raw, Reply, Slow, redirect
from tests.support.model_server import ModelServer

PAYLOAD = b'{"model": "m", "input": "hello there"}'
KEY = "sk-local-abcdef"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(api_key=KEY) as server:
        yield server


async def post(
    base_url: str, *, timeout: float = 30.0, max_body_bytes: int = 1_000_000, key: str | None = KEY,
    transport: httpx.AsyncBaseTransport | None = None, stream: bool = False,
) -> HttpReply:  # fmt: skip
    async with HttpShell(
        timeout_seconds=timeout, base_url=base_url, max_body_bytes=max_body_bytes, transport=transport
    ) as shell:
        return await shell.post(
            Endpoint("main", base_url), "/responses", PAYLOAD, headers=bearer(key), show=str, stream=stream
        )


async def test_a_reply_comes_back_whole(server: ModelServer) -> None:
    reply = await post(server.base_url)
    (asked,) = server.requests
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert asked.body == {"model": "m", "input": "hello there"}
    assert {key.lower(): value for key, value in asked.headers.items()}["authorization"] == "***"


async def test_without_a_key_no_credential_is_sent(server: ModelServer) -> None:
    assert (await post(server.base_url, key=None)).status == 401
    assert "Authorization" not in server.requests[0].headers


async def test_a_redirect_is_not_followed(server: ModelServer) -> None:
    server.then(redirect(server.base_url + "/responses"))
    reply = await post(server.base_url)
    assert (reply.status, len(server.requests)) == (307, 1)


async def test_a_slow_body_within_the_time_is_read(server: ModelServer) -> None:
    server.then(Slow(Reply(text="x"), chunk_bytes=400, pause_seconds=0.001))
    assert '"x"' in (await post(server.base_url)).text


async def test_garbage_is_handed_on_as_it_is(server: ModelServer) -> None:
    server.then(GARBAGE)
    assert (await post(server.base_url)).text == "\x00\x01{not json"


@pytest.mark.parametrize("fault", [Hang(), Slow(Reply(text="x" * 10_000), chunk_bytes=1, pause_seconds=0.02)])
async def test_no_answer_in_time_is_unreachable_even_when_it_trickles(server: ModelServer, fault: Hang | Slow) -> None:
    server.then(fault)
    with pytest.raises(Unreachable, match=r"did not answer within 0\.8 seconds") as caught:
        await post(server.base_url, timeout=0.8)
    assert was_sent(caught.value)


def trickling(text: str, pause_seconds: float) -> Slow:
    return Slow(Reply(text, streamed=True), pause_seconds=pause_seconds)


async def test_a_stream_may_take_longer_than_the_time_as_long_as_it_goes_on(server: ModelServer) -> None:
    server.then(trickling("x" * 7, 0.15))
    reply = await post(server.base_url, timeout=0.5, stream=True)
    assert '"type": "response.completed"' in reply.text
    assert server.requests[0].headers["Accept"] == "text/event-stream"


@pytest.mark.parametrize("fault", [trickling("x", 0.5), Hang()])
async def test_a_stream_that_pauses_for_longer_than_the_time_is_unreachable(
    server: ModelServer, fault: Slow | Hang
) -> None:
    server.then(fault)
    with pytest.raises(Unreachable, match=r"did not answer within 0\.2 seconds"):
        await post(server.base_url, timeout=0.2, stream=True)


async def test_a_stream_that_never_ends_is_ended_at_ten_times_the_time(server: ModelServer) -> None:
    """Comments keep a connection alive for ever."""

    async def for_ever() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.005)
            yield b": alive\n\n"

    endless = httpx.MockTransport(lambda _request: httpx.Response(200, content=for_ever()))
    with pytest.raises(Unreachable, match="did not answer within"):
        await post("http://127.0.0.1:9/v1", timeout=0.02, stream=True, transport=endless)


@pytest.mark.parametrize("fault", [Drop(), Drop(before_headers=True)])
async def test_a_broken_transfer_is_unreachable_and_may_have_been_charged(server: ModelServer, fault: Drop) -> None:
    server.then(fault)
    with pytest.raises(Unreachable, match="cannot be reached") as caught:
        await post(server.base_url)
    assert was_sent(caught.value)


async def test_a_refused_connection_is_unreachable_and_was_never_sent() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(Unreachable, match=r"main at http://127.* cannot be reached") as caught:
            await post(f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
    assert not was_sent(caught.value)
    assert "[providers.main]" in caught.value.remedy


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("no such host"),
        httpx.ConnectTimeout("slow"),
        httpx.PoolTimeout("busy"),
        httpx.ProxyError("no"),
    ],
)
async def test_what_never_left_is_known_to_be_unsent(failure: httpx.TransportError) -> None:
    def respond(_request: httpx.Request) -> httpx.Response:
        raise failure

    with pytest.raises(Unreachable) as caught:
        await post("http://127.0.0.1:9/v1", transport=httpx.MockTransport(respond))
    assert not was_sent(caught.value)


@pytest.mark.parametrize(
    "failure", [httpx.ReadError(""), httpx.RemoteProtocolError("bad"), OSError("io"), httpx.DecodingError("gzip")]
)
async def test_every_other_failure_of_a_transfer_is_unreachable(failure: Exception) -> None:
    def respond(_request: httpx.Request) -> httpx.Response:
        raise failure

    with pytest.raises(Unreachable, match="cannot be reached: "):
        await post("http://127.0.0.1:9/v1", transport=httpx.MockTransport(respond))


async def test_a_huge_body_is_malformed_and_not_read_to_its_end(server: ModelServer) -> None:
    server.then(Huge(50_000_000))
    with pytest.raises(MalformedReply, match="more than 1000000 bytes"):
        await post(server.base_url)


async def test_a_huge_error_page_is_only_cut(server: ModelServer) -> None:
    server.then(Raw(503, b"x" * (MAX_ERROR_BODY_BYTES + 10)))
    reply = await post(server.base_url)
    assert (reply.status, len(reply.text)) == (503, MAX_ERROR_BODY_BYTES)


async def test_addresses_are_not_logged(server: ModelServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    await post(server.base_url)
    assert server.base_url not in caplog.text


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:80/v1", True), ("http://[::1]/v1", True), ("http://localhost:11434/v1", True),
        ("http://box.localhost/v1", True), ("https://api.example.com/v1", False), ("http://10.0.0.1", False),
    ],
)  # fmt: skip
def test_a_server_on_this_machine_is_known_as_such(url: str, local: bool) -> None:
    assert is_loopback(url) is local


def packed(times: int) -> bytes:
    """Pack 64 MB of zeros, and what comes of it again."""
    packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    body = b"".join(packer.compress(bytes(2**20)) for _ in range(64)) + packer.flush()
    for _ in range(times - 1):
        body = gzip.compress(body)
    return body


async def test_a_reply_is_unpacked_as_far_as_the_cap_and_no_further(server: ModelServer) -> None:
    """64 KB of it would be 64 MB, whatever the cap."""
    server.then(Raw(200, packed(1), {"Content-Encoding": "gzip"}))
    tracemalloc.start()
    try:
        with pytest.raises(MalformedReply, match="more than 1000000 bytes"):
            await post(server.base_url)
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("coding", ["gzip, gzip", "zstd", "br"])
async def test_a_coding_that_was_not_asked_for_is_not_undone(server: ModelServer, coding: str) -> None:
    server.then(Raw(200, packed(2), {"Content-Encoding": coding}))
    assert (await post(server.base_url)).text.startswith("\x1f")
    assert server.requests[0].headers["Accept-Encoding"] == "gzip"


async def test_a_packed_reply_is_read(server: ModelServer) -> None:
    server.then(Raw(200, gzip.compress(b'{"id": "r"}'), {"Content-Encoding": "gzip"}))
    assert (await post(server.base_url)).text == '{"id": "r"}'


async def test_a_reply_that_only_says_that_it_is_packed_is_unreachable(server: ModelServer) -> None:
    server.then(Raw(200, b'{"id": "r"}', {"Content-Encoding": "gzip"}))
    with pytest.raises(Unreachable, match="cannot be reached"):
        await post(server.base_url)
