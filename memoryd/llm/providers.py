"""From a provider's settings to a client: one table from its kind to the codec that speaks its format."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from memoryd.config import Provider, ProviderKind
from memoryd.errors import ConfigError
from memoryd.llm.anthropic import Anthropic
from memoryd.llm.client import ModelClient, Wiring
from memoryd.llm.codec import Codec
from memoryd.llm.command.codec import CommandCodec
from memoryd.llm.command.confinement import Confiner
from memoryd.llm.command.programs import program_of
from memoryd.llm.command.shell import CommandShell, Place
from memoryd.llm.endpoint import Endpoint
from memoryd.llm.http import HttpShell
from memoryd.llm.openai_chat import OpenAIChat
from memoryd.llm.openai_responses import OpenAIResponses
from memoryd.llm.shell import Shell

CODECS: dict[ProviderKind, Codec] = {
    ProviderKind.OPENAI: OpenAIResponses(),
    ProviderKind.OPENAI_CHAT: OpenAIChat(),
    ProviderKind.ANTHROPIC: Anthropic(),
}


@dataclass(frozen=True, slots=True)
class Programs:
    """What providers of kind `command` need: where their programs run, and what confines them."""

    place: Place
    confiner: Confiner


def open_client(
    name: str,
    provider: Provider,
    *,
    api_key: Callable[[], str | None],
    wiring: Wiring,
    stamp: Callable[[], str] = str,
    transport: httpx.AsyncBaseTransport | None = None,
    programs: Programs | None = None,
) -> ModelClient | None:
    """Return a client for the provider `name`, None for `offline`, which asks nobody.

    `api_key` is called before each request, and so is `stamp`, which tells when the key's file changed. Raises
    ConfigError for an unusable address.
    """
    if provider.kind is ProviderKind.OFFLINE:
        return None
    codec = codec_for(provider)
    shell: Shell
    if provider.kind is ProviderKind.COMMAND:
        assert programs is not None, "the composer says where programs run"
        endpoint = Endpoint(name, shlex.join(provider.command[:1]), key_source(provider))
        shell = CommandShell(
            provider.command,
            timeout_seconds=provider.timeout,
            place=programs.place,
            confiner=programs.confiner,
            clock=wiring.clock,
            key_variable=provider.api_key_env or "",
        )
    else:
        endpoint = Endpoint(name, _address(name, provider), key_source(provider))
        shell = HttpShell(timeout_seconds=provider.timeout, base_url=endpoint.base_url, transport=transport)
    return ModelClient(
        endpoint,
        provider,
        api_key=api_key,
        codec=codec,
        shell=shell,
        wiring=wiring,
        stamp=lambda: f"{endpoint.base_url} {endpoint.key_source} {stamp()}",
    )


def codec_for(provider: Provider) -> Codec:
    """Return the codec of a provider's kind, which is not `offline`."""
    if provider.kind is ProviderKind.COMMAND:
        return CommandCodec(takes_schema=program_of(provider.command).schema is not None)
    return CODECS[provider.kind]


def key_source(provider: Provider) -> str:
    """Say where a provider's key comes from, never the key; empty when none is configured."""
    if provider.api_key_file is not None:
        return f"the file {provider.api_key_file}"
    return f"the environment variable {provider.api_key_env}" if provider.api_key_env else ""


def _address(name: str, provider: Provider) -> str:
    address = provider.base_url or ""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in {"http", "https"} or not url.host or url.userinfo:
        raise ConfigError(
            f"providers.{name}.base_url is no usable address",
            remedy="write it like https://api.example.com/v1, without user name, password or key",
        )
    address = address.rstrip("/")
    # The path of this format names its version; an address with one is a common slip, and means the same.
    return address.removesuffix("/v1") if provider.kind is ProviderKind.ANTHROPIC else address
