"""The key stands in no error, log, address or ledger, however the server answers: sentinels through every failure."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.credentials import resolve_api_key
from memoryd.errors import MemorydError
from memoryd.llm.client import Wiring
from memoryd.llm.gate import GateMemory
from memoryd.llm.providers import open_client
from memoryd.redact import Redactor
from tests.llm.asking import PURPOSE, SCHEMA, Book, a_provider, a_question
from tests.support.clock import FakeClock
from tests.support.log_lines import LogLines
from tests.support.model_replies import GARBAGE, Drop, Huge, Raw, Reply, Scripted, Status, redirect
from tests.support.model_server import ModelServer

KEY = "plainwordsofnoknownform-0123456789"
"""No pattern of a secret knows it: only that it is the key."""
ECHO = f"the key {KEY} was sent as Bearer {KEY}"

FAILURES: dict[str, Scripted] = {
    "400": Status(400, ECHO),
    "400 structure": Status(400, f"json_schema: {ECHO}", param="text.format"),
    "401": Status(401, ECHO, code="invalid_api_key"),
    "403": Status(403, ECHO),
    "404": Status(404, f"model not found {ECHO}", code="model_not_found"),
    "413": Status(413, ECHO),
    "429": Status(429, ECHO, headers={"Retry-After": KEY}),
    "500": Status(500, ECHO),
    "529": Status(529, ECHO),
    "code": Status(400, "no", code=KEY, param=KEY),
    "redirect": redirect(f"https://elsewhere.example/{KEY}?key={KEY}"),
    "text": Raw(401, ECHO.encode(), {"Content-Type": "text/plain"}),
    "html": Raw(502, f"<h1>{ECHO}</h1>".encode(), {"Content-Type": f"text/html; {KEY}"}),
    "type": Raw(200, ECHO.encode(), {"Content-Type": KEY}),
    "error in a 200": Raw(200, json.dumps({"error": {"message": ECHO, "code": KEY}}).encode()),
    "limits": Status(
        429, "no", headers={"x-codex-rate-limit-reached-type": KEY, "x-codex-primary-used-percent": "100"}
    ),
    "name of a limit": Status(
        429, "no", headers={f"x-ratelimit-limit-{KEY}": "9", f"x-ratelimit-remaining-{KEY}": "0"}
    ),
    "quota sentence": Reply(text=f"You have hit your usage limit. {KEY}"),
    "garbage": GARBAGE,
    "drop": Drop(),
    "drop at once": Drop(before_headers=True),
    "huge": Huge(40_000_000),
}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.mark.parametrize("kind", ["openai", "openai-chat", "anthropic"])
@pytest.mark.parametrize("failure", list(FAILURES))
async def test_the_key_is_in_no_error_log_address_or_row(
    clock: FakeClock, server: ModelServer, kind: str, failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    """I6."""
    caplog.set_level(logging.DEBUG)
    log, book, kept = LogLines(), Book(), list[str]()
    server.reply_with(lambda _asked: FAILURES[failure])

    async def load(_provider: str) -> str | None:
        return None

    async def store(_provider: str, text: str) -> None:
        kept.append(text)

    async def told(_provider: str) -> None:
        return None

    base_url = server.base_url.removesuffix("/v1") if kind == "anthropic" else server.base_url
    client = open_client(
        "main",
        a_provider(base_url, kind, timeout="30s"),
        api_key=lambda: KEY,
        wiring=Wiring(clock, Redactor(), book.reserve, book.settle, gates=GateMemory(load, store, told)),
    )
    assert client is not None
    said = []
    async with client:
        for _ in range(2):
            try:
                await client.ask(a_question(schema=SCHEMA), PURPOSE)
            except MemorydError as error:
                said += [str(error), repr(error), error.message, error.remedy]
    assert said
    told_to_anybody = "\n".join([*said, *kept, log.text, caplog.text, repr(book.plans), repr(book.settled)])
    assert KEY not in told_to_anybody
    assert not any(KEY in str(request.path) for request in server.requests)
    assert server.requests


async def test_a_key_in_a_file_is_shown_by_no_error_of_the_file(tmp_path: Path, clock: FakeClock) -> None:

    for name, content, mode in (("open", KEY, 0o644), ("two", f"{KEY} {KEY}", 0o600), ("odd", f"{KEY}\x01", 0o600)):
        file = tmp_path / name
        file.write_text(content)
        file.chmod(mode)
        with pytest.raises(MemorydError) as refused:
            resolve_api_key(a_provider(api_key_file=str(file)), {})
        assert KEY not in str(refused.value)
