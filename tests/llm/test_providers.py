"""From a provider's settings to a client."""

from pathlib import Path

import pytest

from memoryd.config import Provider, ProviderKind
from memoryd.errors import ConfigError
from memoryd.llm.client import ModelClient, Wiring
from memoryd.llm.providers import key_source, open_client
from memoryd.redact import Redactor
from tests.llm.asking import Book
from tests.support.clock import FakeClock


def opened(provider: Provider) -> ModelClient | None:
    book = Book()
    wiring = Wiring(FakeClock(), Redactor(), book.reserve, book.settle)
    return open_client("mine", provider, api_key=lambda: None, wiring=wiring)


@pytest.mark.parametrize("kind", [ProviderKind.OPENAI, ProviderKind.OPENAI_CHAT, ProviderKind.ANTHROPIC])
async def test_a_provider_of_a_known_kind_gets_a_client(kind: ProviderKind) -> None:
    client = opened(Provider(kind=kind, base_url="http://127.0.0.1:9/v1/"))
    assert client is not None
    await client.aclose()


def test_the_offline_provider_asks_nobody() -> None:
    assert opened(Provider(kind=ProviderKind.OFFLINE)) is None


def test_a_kind_that_is_not_there_yet_says_so() -> None:
    with pytest.raises(ConfigError, match=r"providers\.mine: this version .* kind command yet") as caught:
        opened(Provider(kind=ProviderKind.COMMAND, command=("agent",)))
    assert caught.value.remedy == "use one of anthropic, offline, openai, openai-chat"


@pytest.mark.parametrize("base_url", ["ftp://h/v1", "http://", "h/v1", "http://u:p@h/v1", "http://[::1/v1"])
def test_an_unusable_address_is_a_wrong_setting_and_is_not_repeated(base_url: str) -> None:
    provider = Provider.model_construct(kind=ProviderKind.OPENAI, base_url=base_url)
    with pytest.raises(ConfigError, match=r"providers\.mine\.base_url") as caught:
        opened(provider)
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize(
    ("provider", "source"),
    [
        (Provider(kind=ProviderKind.OPENAI, api_key_env="MY_KEY"), "the environment variable MY_KEY"),
        (Provider(kind=ProviderKind.OPENAI, api_key_file=Path("/keys/mine")), "the file /keys/mine"),
        (Provider(kind=ProviderKind.OPENAI_CHAT, base_url="http://127.0.0.1:9/v1"), ""),
    ],
)
def test_a_key_is_named_by_its_source(provider: Provider, source: str) -> None:
    assert key_source(provider) == source
