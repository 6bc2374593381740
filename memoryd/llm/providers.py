"""From a provider's settings to a client: one table from its kind to the codec that speaks its format."""

from collections.abc import Callable

import httpx

from memoryd.config import Provider, ProviderKind
from memoryd.errors import ConfigError
from memoryd.llm.anthropic import Anthropic
from memoryd.llm.client import ModelClient, Wiring
from memoryd.llm.codec import Codec
from memoryd.llm.endpoint import Endpoint
from memoryd.llm.http import HttpShell
from memoryd.llm.openai_chat import OpenAIChat
from memoryd.llm.openai_responses import OpenAIResponses

CODECS: dict[ProviderKind, Codec] = {
    ProviderKind.OPENAI: OpenAIResponses(),
    ProviderKind.OPENAI_CHAT: OpenAIChat(),
    ProviderKind.ANTHROPIC: Anthropic(),
}


def open_client(
    name: str,
    provider: Provider,
    *,
    api_key: Callable[[], str | None],
    wiring: Wiring,
    stamp: Callable[[], str] = str,
    transport: httpx.AsyncBaseTransport | None = None,
) -> ModelClient | None:
    """Return a client for the provider `name`, None for `offline`, which asks nobody.

    `api_key` is called before each request, and so is `stamp`, which tells when the key's file changed. Raises
    ConfigError for a kind without a codec and for an unusable address.
    """
    if provider.kind is ProviderKind.OFFLINE:
        return None
    codec = codec_for(name, provider)
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


def codec_for(name: str, provider: Provider) -> Codec:
    """Return the codec of a provider's kind. Raises ConfigError for a kind that this version does not speak."""
    codec = CODECS.get(provider.kind)
    if codec is None:
        known = ", ".join(sorted((*CODECS, ProviderKind.OFFLINE)))
        raise ConfigError(
            f"providers.{name}: this version of memoryd cannot use a provider of kind {provider.kind} yet",
            remedy=f"use one of {known}",
        )
    return codec


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
