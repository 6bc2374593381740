"""`doctor` says what is wrong and what to do, asks each provider once, and shows no key."""

import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.conftest import Shell
from tests.support.model_replies import Status
from tests.support.model_server import ModelServer

KEY = "sk-right-0123456789abcdef"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(api_key=KEY) as server:
        yield server


def asking(shell: Shell, server: ModelServer, *, key: str = KEY, mode: int = 0o600, more: str = "") -> None:
    (shell.codex / "sessions").mkdir(parents=True, exist_ok=True)
    file = shell.folder / "key"
    file.write_text(key)
    file.chmod(mode)
    shell.configure(
        f'model = "m"\n\n[extract]\nmodel = "m"\n\n[providers.main]\nkind = "openai"\n'
        f'base_url = "{server.base_url}"\napi_key_file = "{file}"\n{more}'
    )


def by_id(said: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    return {each["id"]: each for each in said}


def test_a_good_provider_is_asked_once_and_what_it_does_is_said(shell: Shell, server: ModelServer) -> None:
    asking(shell, server, more="prices = {input = 10.0, output = 10.0}\n")
    server.then(Status(400, "json_schema is not supported", param="text.format"))
    said = shell("doctor")
    assert said.code == 0, said
    assert "main, model m: it answers" in said.out
    assert "USD" in said.out
    assert "enforces JSON" in said.out
    assert "0 errors" in said.out
    assert KEY not in said.out + said.err
    assert len(server.requests) == 2, "one refused for its structure, one answered: two stages of one model, one test"
    usage = shell("usage", "--by", "job", "--json").json
    assert [(row["label"], row["requests"]) for row in usage["rows"]] == [("doctor extract", 2)]


def test_offline_sends_nothing(shell: Shell, server: ModelServer) -> None:
    asking(shell, server)
    said = shell("doctor", "--offline", "--json")
    assert said.code == 0
    assert by_id(said.json)["provider_main_m"]["evidence"] == "main, model m: not asked (--offline)"
    assert server.requests == []


@pytest.mark.parametrize(
    ("key", "mode", "finding", "words"),
    [
        ("sk-wrong-0123456789abcdef", 0o600, "provider_main_m", "401"),
        (KEY, 0o644, "key_main", "can be read by others"),
        ("", 0o600, "key_main", "does not hold one key"),
    ],
)
def test_a_key_that_is_wrong_open_or_missing_is_an_error_with_a_remedy(
    shell: Shell, server: ModelServer, key: str, mode: int, finding: str, words: str
) -> None:
    asking(shell, server, key=key, mode=mode)
    said = shell("doctor", "--json")
    assert said.code == 1
    found = by_id(said.json)[finding]
    assert found["severity"] == "error"
    assert words in found["evidence"]
    assert found["remedy"]
    assert not key or key not in said.out + said.err


def test_a_model_that_is_unknown_and_a_server_that_is_not_there_are_errors(shell: Shell, server: ModelServer) -> None:
    asking(shell, server)
    server.then(Status(404, "The model `m` does not exist", code="model_not_found"))
    said = shell("doctor", "--json")
    assert (said.code, "UnknownModel" in by_id(said.json)["provider_main_m"]["evidence"]) == (1, True)
    server.close()
    (shell.home.ledger_file).unlink()
    said = shell("doctor", "--json")
    assert (said.code, "Unreachable" in by_id(said.json)["provider_main_m"]["evidence"]) == (1, True)


def test_a_provider_in_a_pause_is_told_with_its_cause_and_when_it_is_asked_again(
    shell: Shell, server: ModelServer
) -> None:
    asking(shell, server)
    server.then(Status(429, "the week is used up", headers={"Retry-After": "7200"}))
    said = [by_id(shell("doctor", "--json").json)["provider_main_m"]["evidence"] for _ in range(2)]
    assert "main answered 429: the week is used up" in said[0]
    assert "main was not asked: it wants a pause, since main answered 429: the week is used up [RateLimited]" in said[1]
    assert all("; it is asked again at " in each and re.search(r"\(in (2 h|1 h 59 min)", each) for each in said)
    assert len(server.requests) == 1


def test_a_running_daemon_is_asked_to_ask(shell: Shell, server: ModelServer) -> None:
    asking(shell, server)
    requests = []

    async def daemon(request: object, _tell: object) -> dict[str, object]:
        requests.append(request)
        return {"tokens_in": 7, "tokens_out": 3, "structure": "json_schema", "kind": "", "problem": "", "remedy": ""}

    with shell.held("daemon", daemon):
        said = shell("doctor", "--json")
    assert {"do": "probe", "stage": "extract"} in requests
    assert "7 tokens in, 3 out" in by_id(said.json)["provider_main_m"]["evidence"]
    assert server.requests == []


def test_a_key_that_only_the_running_daemon_has_is_no_error(shell: Shell, server: ModelServer) -> None:
    asking(shell, server)
    told = shell.home.config_file.read_text()
    shell.home.config_file.write_text(re.sub("api_key_file = .*", 'api_key_env = "A_KEY_OF_THE_SERVICE"', told))

    async def daemon(_request: object, _tell: object) -> dict[str, object]:
        return {"tokens_in": 7, "tokens_out": 3, "structure": "json_schema", "kind": "", "problem": "", "remedy": ""}

    with shell.held("daemon", daemon):
        found = by_id(shell("doctor", "--json").json)
    assert (found["key_main"]["severity"], found["provider_main_m"]["severity"]) == ("info", "ok")
    assert by_id(shell("doctor", "--offline", "--json").json)["key_main"]["severity"] == "error"


def test_what_status_knows_is_said_with_its_remedy_and_caps_are_judged(shell: Shell, server: ModelServer) -> None:
    asking(shell, server, more="\n[limits]\ntokens_per_day = 1000\ncost_per_day = 1.0\n")
    (shell.codex / "sessions").rmdir()
    said = shell("doctor", "--offline")
    assert said.code == 1
    assert "there is no sessions folder" in said.out
    assert "-> start codex once" in said.out
    assert "a long run is cut off by the day's cap" in said.out
    assert "ERROR   limits.cost_per_day is set, but main has no prices" in said.out
    assert stat.S_IMODE(Path(shell.folder / "key").stat().st_mode) == 0o600


def test_without_a_model_nobody_is_asked(shell: Shell) -> None:
    (shell.codex / "sessions").mkdir(parents=True)
    said = shell("doctor")
    assert said.code == 0
    assert "the offline writer asks nobody" in said.out
