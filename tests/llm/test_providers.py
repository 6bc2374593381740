"""From a provider's settings to a client."""

from pathlib import Path

import pytest

from memoryd.config import Provider, ProviderKind
from memoryd.errors import ConfigError
from memoryd.llm.client import ModelClient, Wiring
from memoryd.llm.codec import Structure
from memoryd.llm.command.confinement import Confiner, Mechanism, Tools
from memoryd.llm.command.shell import Place
from memoryd.llm.providers import Programs, codec_for, key_source, open_client
from memoryd.redact import Redactor
from tests.llm.asking import Book
from tests.support.clock import FakeClock


def opened(provider: Provider, programs: Programs | None = None) -> ModelClient | None:
    book = Book()
    wiring = Wiring(FakeClock(), Redactor(), book.reserve, book.settle)
    return open_client("mine", provider, api_key=lambda: None, wiring=wiring, programs=programs)


@pytest.mark.parametrize("kind", [ProviderKind.OPENAI, ProviderKind.OPENAI_CHAT, ProviderKind.ANTHROPIC])
async def test_a_provider_of_a_known_kind_gets_a_client(kind: ProviderKind) -> None:
    client = opened(Provider(kind=kind, base_url="http://127.0.0.1:9/v1/"))
    assert client is not None
    await client.aclose()


def test_the_offline_provider_asks_nobody() -> None:
    assert opened(Provider(kind=ProviderKind.OFFLINE)) is None


async def test_a_program_is_a_client_like_any_other(tmp_path: Path) -> None:
    async def note(_mechanism: Mechanism) -> None:
        pass

    programs = Programs(Place(tmp_path, tmp_path, {}), Confiner(Tools(), note=note))
    client = opened(Provider(kind=ProviderKind.COMMAND, command=("agent",)), programs=programs)
    assert client is not None
    await client.aclose()


@pytest.mark.parametrize(("program", "takes_schema"), [("codex", True), ("claude", False), ("mine", False)])
def test_only_a_program_that_takes_a_schema_is_given_one(program: str, *, takes_schema: bool) -> None:
    codec = codec_for(Provider(kind=ProviderKind.COMMAND, command=(program,)))
    assert (Structure.JSON_SCHEMA in codec.ladder) == takes_schema


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
