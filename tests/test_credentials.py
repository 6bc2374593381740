"""A provider's key: where it is found, what is refused, and that it is never repeated."""

import os
from pathlib import Path

import pytest

from memoryd.config import Provider, ProviderKind
from memoryd.credentials import key_stamp, resolve_api_key
from memoryd.errors import ConfigError

SECRET = "sk-proj-AbCdEf0123456789AbCdEf0123456789"


def a_keyed_provider(file: Path) -> Provider:
    return Provider(kind=ProviderKind.OPENAI, api_key_file=file)


def test_a_key_is_read_from_a_private_file_and_stripped(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"  {SECRET}\n")
    file.chmod(0o600)
    assert resolve_api_key(a_keyed_provider(file), {"OPENAI_API_KEY": "other"}) == SECRET


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_file_that_others_can_read_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "the key"
    file.write_text(SECRET)
    file.chmod(mode)
    with pytest.raises(ConfigError, match=r"chmod 600 '.*/the key'") as caught:
        resolve_api_key(a_keyed_provider(file), {})
    assert SECRET not in str(caught.value)


def test_a_key_file_must_be_a_regular_file_that_exists(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match="is not a regular file"):
        resolve_api_key(a_keyed_provider(tmp_path / "pipe"), {})
    with pytest.raises(ConfigError, match=r"cannot read the key file .*missing: No such file"):
        resolve_api_key(a_keyed_provider(tmp_path / "missing"), {})


@pytest.mark.parametrize("content", ["", "  \n", f"{SECRET}\n{SECRET}", "schlüssel", "a\x00b"])
def test_a_key_that_is_no_single_word_is_refused_without_repeating_it(tmp_path: Path, content: str) -> None:
    file = tmp_path / "key"
    file.write_text(content)
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="does not hold one key") as caught:
        resolve_api_key(a_keyed_provider(file), {})
    assert SECRET not in str(caught.value)


def test_a_key_is_read_from_its_variable_which_is_named_when_it_is_missing() -> None:
    provider = Provider(kind=ProviderKind.OPENAI)
    assert resolve_api_key(provider, {"OPENAI_API_KEY": f"{SECRET} "}) == SECRET
    with pytest.raises(ConfigError, match="OPENAI_API_KEY, which should hold the provider's key, is not set"):
        resolve_api_key(provider, {"OPENAI_API_KEY": ""})


def test_a_provider_that_names_no_key_needs_none() -> None:
    local = Provider(kind=ProviderKind.OPENAI_CHAT, base_url="http://localhost:1/v1")
    assert resolve_api_key(local, {}) is None


def test_a_credential_of_the_service_is_taken_before_the_variable_of_its_name(tmp_path: Path) -> None:
    provider = Provider(kind=ProviderKind.OPENAI, api_key_env="OPENAI_API_KEY")
    environ = {"OPENAI_API_KEY": "sk-of-the-variable", "CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert resolve_api_key(provider, environ) == "sk-of-the-variable"
    credential = tmp_path / "OPENAI_API_KEY"
    credential.write_text("sk-of-the-service\n")
    credential.chmod(0o440)  # as the service manager leaves it, with an access list beside
    assert resolve_api_key(provider, environ) == "sk-of-the-service"
    credential.write_text("")
    with pytest.raises(ConfigError, match="the credential OPENAI_API_KEY of the service does not hold one key"):
        resolve_api_key(provider, environ)


def test_the_stamp_of_a_key_changes_with_its_file_and_shows_nothing_of_it(tmp_path: Path) -> None:
    file = tmp_path / "key"
    provider = Provider(kind=ProviderKind.OPENAI, api_key_file=file)
    stamps = [key_stamp(Provider(kind=ProviderKind.OPENAI)), key_stamp(provider)]
    for text, mode in (("sk-one-0123456789", 0o600), ("sk-two-01234567890", 0o600), ("sk-two-01234567890", 0o644)):
        file.write_text(text)
        file.chmod(mode)
        stamps.append(key_stamp(provider))
    assert len(set(stamps)) == 5
    assert key_stamp(provider) == stamps[-1]
    assert not any("sk-" in stamp for stamp in stamps)
