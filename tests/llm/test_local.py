"""Servers on this machine: one short look, and nobody elsewhere is asked."""

import pytest

from memoryd.llm.local import LM_STUDIO_URL, OLLAMA, LocalServer, find_local_servers
from tests.support.models_list import ModelsList, models

REAL = '{"object": "list", "data": [{"id": "llama3.2:3b", "object": "model"}, {"id": "qwen3:8b", "object": "model"}]}'


async def found_at(host: str) -> list[LocalServer]:
    return [each for each in await find_local_servers({"OLLAMA_HOST": host}) if each.base_url != LM_STUDIO_URL]


async def test_a_server_tells_its_models() -> None:
    with ModelsList(REAL) as server:
        found = await found_at(f"127.0.0.1:{server.port}")
        assert found == [LocalServer(OLLAMA, f"http://127.0.0.1:{server.port}/v1", ("llama3.2:3b", "qwen3:8b"))]
        assert server.paths == ["/v1/models"]


@pytest.mark.parametrize("spelling", ["http://0.0.0.0:{}", "0.0.0.0:{}", "http://localhost:{}/", ":{}"])
async def test_what_it_listens_on_is_asked_at_loopback(spelling: str) -> None:
    with ModelsList(models("m")) as server:
        (found,) = await found_at(spelling.format(server.port))
        assert found.models == ("m",)


@pytest.mark.parametrize("host", ["example.com", "10.0.0.1:11434", "http://[::2]:9", "http://[", "h:notaport"])
async def test_no_other_machine_is_asked(host: str) -> None:
    assert await found_at(host) == []


@pytest.mark.parametrize("body", ["", "no json", "[]", '{"data": [1]}', '{"data": 3}', "[" * 100_000, "x" * 2_000_000])
async def test_what_is_no_list_of_models_is_no_server(body: str) -> None:
    with ModelsList(body) as server:
        assert await found_at(f"127.0.0.1:{server.port}") == []


async def test_a_name_that_would_steer_a_terminal_is_none() -> None:
    with ModelsList(models("good", "bad\x1b[2J", "")) as server:
        (found,) = await found_at(f"127.0.0.1:{server.port}")
        assert found.models == ("good",)


async def test_a_refusal_is_no_server() -> None:
    with ModelsList(models("m"), status=403) as server:
        assert await found_at(f"127.0.0.1:{server.port}") == []
