"""What history would take is said before anybody consents, and bounds what is sent afterwards."""

import io
import sys

import pytest

from memoryd import config
from memoryd.config import Prices, Provider, ProviderKind
from memoryd.control.history import bound, sentence
from tests.control.conftest import Shell

OPENAI = """
model = "m"

[extract]
model = "m"

[providers.main]
kind = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
"""


def a_provider(**fields: object) -> Provider:
    return Provider(kind=ProviderKind.OFFLINE, **fields)  # type: ignore[arg-type]  # keys of [providers.NAME]


def test_a_session_takes_its_size_up_to_the_budget_and_the_longest_answer(shell: Shell) -> None:
    settings = config.load(shell.home.path, environ={"HOME": str(shell.folder)})
    nothing = bound(settings, a_provider(), a_provider(), [], 3.0)
    assert (nothing.sessions, nothing.tokens, nothing.consolidations, nothing.cost) == (0, 0, 0, None)
    small = bound(settings, a_provider(), a_provider(), [3_000], 3.0)
    large = bound(settings, a_provider(), a_provider(), [900_000_000], 3.0)
    assert large.tokens - small.tokens == 149_000
    assert small.tokens >= 1_000 + 16_384
    assert (small.consolidations, small.consolidation_tokens) == (1, settings.consolidate.max_tokens)


def test_the_cost_is_said_only_when_prices_are_set(shell: Shell) -> None:
    settings = config.load(shell.home.path, environ={"HOME": str(shell.folder)})
    priced = a_provider(prices=Prices(input=1.0, output=2.0))
    found = bound(settings, priced, priced, [3_000_000], 3.0)
    assert found.cost == pytest.approx((found.tokens - 16_384 + 2 * 16_384 + 2 * found.consolidation_tokens) / 1e6)
    assert "at most 4." in sentence(found)
    assert "no prices are set" in sentence(bound(settings, priced, a_provider(), [1], 3.0))


def test_a_sync_without_a_terminal_says_what_history_would_take_and_sends_none(shell: Shell) -> None:
    shell.configure(OPENAI)
    for number in range(3):
        shell.record(f"Session {number}", idle_hours=30 + 24 * number, thread_id=None)
    shell.record("An old one", idle_hours=24 * 15, thread_id=None)
    said = shell("sync")
    assert said.code == 3
    assert "3 sessions from before memoryd's first start" in said.out
    assert "recent: 3 sessions, newest first: at most " in said.out
    assert "all: 4 sessions" in said.out
    assert "cost not known: no prices are set" in said.out
    assert "memoryd sync --backfill recent" in said.out
    assert shell("usage", "--json").json["total"]["requests"] == 0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_init_says_what_lies_there_before_it_asks(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(shell.codex))
    shell.home.config_file.unlink()
    shell.record("One", idle_hours=30, thread_id=None)
    shell.record("Two", idle_hours=24 * 15, thread_id=None)
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    said = shell("init", "--yes", "--provider", "openai", "--model", "m")
    assert said.code == 0, said
    assert "history, recent: 1 session, newest first: at most " in said.out
    assert "history, all: 2 sessions" in said.out
    assert "500 requests and 5,000,000 tokens a day" in said.out
    assert 'backfill = "ask"' in shell.home.config_file.read_text()
