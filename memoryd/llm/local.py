"""Which model servers answer on this machine, and with which models: one short look at their usual places."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from memoryd.errors import MemorydError
from memoryd.llm.endpoint import Endpoint
from memoryd.llm.http import HttpShell, is_loopback
from memoryd.text import plain

LOOK_SECONDS: Final = 1.0
"""A server on this machine lists its models within milliseconds; whoever waits is a person."""
MAX_LIST_BYTES: Final = 1024 * 1024
MAX_MODELS: Final = 200
OLLAMA, LM_STUDIO = "Ollama", "LM Studio"
OLLAMA_VARIABLE: Final = "OLLAMA_HOST"
OLLAMA_PORT: Final = 11434
LM_STUDIO_URL: Final = "http://127.0.0.1:1234/v1"
_EVERYWHERE: Final = frozenset({"", "0.0.0.0", "[::]", "::"})  # noqa: S104 - what a server listens on, asked at loopback


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that answered, by the base_url of a provider of kind openai-chat; the models are those it names."""

    name: str
    base_url: str
    models: tuple[str, ...]


async def find_local_servers(environ: Mapping[str, str]) -> list[LocalServer]:
    """Look where Ollama (OLLAMA_HOST moves it) and LM Studio listen; what is not on this machine is not asked."""
    places = [(OLLAMA, _ollama_url(environ.get(OLLAMA_VARIABLE, ""))), (LM_STUDIO, LM_STUDIO_URL)]
    asked = [_look(name, url) for name, url in places if url]
    return [found for found in await asyncio.gather(*asked) if found is not None]


async def _look(name: str, base_url: str) -> LocalServer | None:
    try:
        shell = HttpShell(timeout_seconds=LOOK_SECONDS, base_url=base_url, max_body_bytes=MAX_LIST_BYTES)
        async with shell:
            reply = await shell.get(Endpoint(name, base_url), "/models", show=lambda _words: "")
    except MemorydError:
        return None
    models = _models(reply.text) if reply.status == 200 else None
    return None if models is None else LocalServer(name, base_url, models)


def _models(text: str) -> tuple[str, ...] | None:
    """Return the models of a list as OpenAI-compatible servers give it; None for anything else."""
    try:
        listed = json.loads(text)["data"]
        names = [str(each["id"]) for each in listed]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return tuple(name for name in names if name and plain(name) == name)[:MAX_MODELS]


def _ollama_url(host: str) -> str | None:
    """Return where Ollama answers on this machine, from what OLLAMA_HOST says it listens on."""
    try:
        parts = urlsplit(host if "://" in host else f"http://{host}")
        name, port = parts.hostname or "", parts.port or OLLAMA_PORT
    except ValueError:
        return None
    url = f"http://{'127.0.0.1' if name in _EVERYWHERE else f'[{name}]' if ':' in name else name}:{port}/v1"
    return url if is_loopback(url) else None
