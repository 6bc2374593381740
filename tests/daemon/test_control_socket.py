import asyncio
import stat
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from memoryd.daemon.control_socket import Request, Tell, ask, serve
from memoryd.errors import LedgerBusy, StorageError
from tests.support.log_lines import LogLines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memoryd.sock"


async def echo(request: Request, tell: Tell) -> dict[str, object]:
    tell({"stage": "discover", "done": 1})
    tell({"stage": "extract", "done": 2})
    return {"asked": dict(request)}


def ignore(_step: dict[str, object]) -> None:
    pass


async def send(path: Path, *lines: bytes) -> bytes:
    """Speak to the socket as something that is no memoryd."""
    reader, writer = await asyncio.open_unix_connection(path=path)
    writer.write(b"".join(lines))
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


async def test_a_request_is_answered_with_its_steps_on_the_way(path: Path) -> None:
    steps: list[dict[str, object]] = []
    async with serve(path, echo):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        result = await ask(path, {"do": "sync", "now": True}, steps.append)

    assert result == {"asked": {"do": "sync", "now": True}}
    assert steps == [{"stage": "discover", "done": 1}, {"stage": "extract", "done": 2}]
    assert not path.exists()


async def test_requests_are_answered_side_by_side(path: Path) -> None:
    both = asyncio.Barrier(2)

    async def meet(request: Request, _tell: Tell) -> dict[str, object]:
        await both.wait()
        return dict(request)

    async with serve(path, meet):
        found = await asyncio.gather(*(ask(path, {"number": number}, ignore) for number in range(2)))
    assert found == [{"number": 0}, {"number": 1}]


async def test_what_the_daemon_cannot_do_reaches_the_command_as_one_sentence(path: Path) -> None:
    async def refuse(request: Request, _tell: Tell) -> dict[str, object]:
        if request["do"] == "raise":
            raise LedgerBusy("the ledger is busy", remedy="wait")
        return {"error": "this memoryd does not know the request"}

    async with serve(path, refuse):
        with pytest.raises(StorageError, match=r"^the ledger is busy \(wait\)$"):
            await ask(path, {"do": "raise"}, ignore)
        with pytest.raises(StorageError, match="does not know"):
            await ask(path, {"do": "dance"}, ignore)


@pytest.mark.parametrize("line", [b"GET / HTTP/1.1\r\n\r\n", b"[1, 2]\n", b"\xff\xfe\n"])
async def test_rubbish_is_refused_and_the_daemon_goes_on(path: Path, line: bytes) -> None:
    log = LogLines()
    async with serve(path, echo):
        assert b"does not understand" in await send(path, line)
        assert await ask(path, {"do": "sync"}, ignore) == {"asked": {"do": "sync"}}
    assert len(log.events("request.refused")) == 1


async def test_a_line_without_an_end_is_refused(path: Path) -> None:
    log = LogLines()
    async with serve(path, echo):
        with suppress(ConnectionResetError):
            await send(path, b"x" * (2 << 20))
        assert await ask(path, {"do": "sync"}, ignore) == {"asked": {"do": "sync"}}
    assert len(log.events("request.refused")) == 1


async def test_an_answer_that_meets_a_wrong_word_is_refused_with_a_sentence(path: Path) -> None:
    async def needs_a_key(request: Request, _tell: Tell) -> dict[str, object]:
        return {"key": request["key"]}

    async with serve(path, needs_a_key):
        with pytest.raises(StorageError, match="does not understand"):
            await ask(path, {"do": "retry"}, ignore)


async def test_a_caller_that_goes_away_ends_nothing(path: Path) -> None:
    log = LogLines()
    gone = asyncio.Event()
    answered = asyncio.Event()

    async def slow(_request: Request, tell: Tell) -> dict[str, object]:
        await gone.wait()
        for _ in range(100):
            tell({"note": "x" * 10_000})
            await asyncio.sleep(0)
        answered.set()
        return {}

    async with serve(path, slow):
        _reader, writer = await asyncio.open_unix_connection(path=path)
        writer.write(b"{}\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        gone.set()
        await asyncio.wait_for(answered.wait(), 20)
        await asyncio.sleep(0)
    assert not [line for line in log.events() if line["level"] == "error"]


async def test_an_empty_call_is_an_empty_request(path: Path) -> None:
    async with serve(path, echo):
        assert b'"asked": {}' in await send(path)


async def test_stopping_ends_what_is_still_being_answered(path: Path) -> None:
    """A pass in flight gives its leases back before the stores close."""
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def hang(_request: Request, _tell: Tell) -> dict[str, object]:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return {}

    async with serve(path, hang):
        asking = asyncio.create_task(ask(path, {}, ignore))
        await began.wait()
    assert cancelled.is_set()
    with pytest.raises(StorageError, match="ended before it answered"):
        await asking


async def test_nobody_at_the_socket_is_a_clear_error(path: Path) -> None:
    with pytest.raises(StorageError, match="does not answer") as caught:
        await ask(path, {"do": "sync"}, ignore)
    assert "restart" in caught.value.remedy


@pytest.mark.parametrize("said", [b"hello\n", b"[]\n"])
async def test_something_else_at_the_socket_is_a_clear_error(path: Path, said: bytes) -> None:
    async def other(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    server = await asyncio.start_unix_server(other, path=path)
    try:
        with pytest.raises(StorageError, match="no memoryd"):
            await ask(path, {}, ignore)
    finally:
        server.close()


async def test_an_old_socket_file_is_replaced(path: Path) -> None:
    path.write_text("left by a killed daemon")
    async with serve(path, echo):
        assert stat.S_ISSOCK(path.stat().st_mode)


async def test_the_socket_of_a_daemon_that_took_over_stays_where_it_is(path: Path) -> None:
    async with AsyncExitStack() as first, AsyncExitStack() as second:
        await first.enter_async_context(serve(path, echo))
        await second.enter_async_context(serve(path, echo))
        await first.aclose()

        assert await ask(path, {"do": "sync"}, ignore) == {"asked": {"do": "sync"}}
    assert not path.exists()


async def test_a_socket_that_somebody_removed_is_not_missed(path: Path) -> None:
    async with serve(path, echo):
        path.unlink()
    assert not path.exists()


async def test_a_home_deeper_than_the_kernel_s_limit_is_served_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 20) / ("deeper" * 20)
    folder.mkdir(parents=True)
    path = folder / "memoryd.sock"
    async with serve(path, echo):
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert await ask(path, {"do": "x"}, ignore) == {"asked": {"do": "x"}}
    assert not path.exists()
    with pytest.raises(StorageError, match="does not answer"):
        await ask(path, {"do": "x"}, ignore)
