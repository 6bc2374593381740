import io
import os
import stat
import sys
import time
from pathlib import Path

import pytest

from memoryd import config
from tests.control.conftest import Shell
from tests.support.codex_memories import a_codex_memory
from tests.support.copilot_sessions import a_copilot_session
from tests.support.models_list import ModelsList, models


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def fresh(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A home without settings, beside an agent with one session."""
    shell.home.config_file.unlink()
    shell.home.path.rmdir()
    monkeypatch.setenv("CODEX_HOME", str(shell.codex))
    return shell


def settings(shell: Shell) -> config.Settings:
    return config.load(shell.home.path, environ=config.environ())


def test_without_a_terminal_the_offline_writer_is_proposed_and_nothing_is_asked(fresh: Shell) -> None:
    fresh.record()
    said = fresh("init")
    assert said.code == 0, said
    assert "found codex: 1 session file in" in said.out
    assert "Nothing leaves this machine" in said.out
    made = settings(fresh)
    assert made.sources.agents == ("codex",)
    assert made.provider_for("extract").name == "offline"
    assert made.limits.backfill == "ask"
    assert stat.S_IMODE(fresh.home.config_file.stat().st_mode) == 0o600


def test_an_existing_file_is_never_overwritten(shell: Shell) -> None:
    before = shell.home.config_file.read_bytes()
    said = shell("init", "--yes")
    assert said.code == 2
    assert "exists already" in said.err
    assert shell.home.config_file.read_bytes() == before


def test_a_provider_is_written_as_it_was_said(fresh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--yes", "--provider", "openai-chat", "--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    assert fresh("init", *words, "--api-key-env", "MY_KEY", "--backfill", "recent").code == 0
    made = settings(fresh).provider_for("consolidate")
    assert (made.name, made.model, made.provider.base_url) == ("openai-chat", "m", "http://127.0.0.1:9/v1")
    assert made.provider.api_key_env == "MY_KEY"
    assert settings(fresh).limits.backfill == "recent"


def test_a_key_file_is_named_by_its_whole_path(fresh: Shell) -> None:
    key = fresh.folder / "key"
    key.write_text("k")
    key.chmod(0o600)
    said = fresh("init", "--yes", "--provider", "openai", "--model", "m", "--api-key-file", str(key))
    assert said.code == 0, said
    assert settings(fresh).provider_for("extract").provider.api_key_file == key
    assert "wait for your consent" in said.out


def test_a_model_is_never_guessed(fresh: Shell) -> None:
    said = fresh("init", "--yes", "--provider", "openai")
    assert said.code == 2
    assert "--model" in said.err
    assert not fresh.home.config_file.exists()


def test_settings_that_would_be_wrong_are_not_left_behind(fresh: Shell) -> None:
    said = fresh("init", "--yes", "--provider", "openai-chat", "--model", "m", "--base-url", "no address")
    assert said.code == 2
    assert not fresh.home.config_file.exists()


def test_no_agent_is_no_obstacle(fresh: Shell) -> None:
    said = fresh("init", "--yes")
    assert said.code == 0
    assert "found no agent" in said.err
    assert settings(fresh).sources.agents == ("codex",)


def test_on_a_terminal_each_choice_is_asked_and_history_too(fresh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Terminal("nonsense\nopenai\n\nmodel-1\n\nperhaps\nrecent\n")
    monkeypatch.setattr(sys, "stdin", answers)
    said = fresh("init")
    assert said.code == 0, said
    made = settings(fresh)
    assert made.provider_for("extract").model == "model-1"
    assert made.limits.backfill == "recent"
    assert answers.read() == ""


def test_the_end_of_the_input_takes_what_is_proposed(fresh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    assert fresh("init").code == 0
    assert settings(fresh).provider_for("extract").name == "offline"


def test_yes_asks_nothing_and_consents_to_nothing(fresh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Terminal("all\n")
    monkeypatch.setattr(sys, "stdin", answers)
    assert fresh("init", "--yes", "--provider", "openai", "--model", "m").code == 0
    assert settings(fresh).limits.backfill == "ask"
    assert answers.read() == "all\n"


def test_anthropic_is_written_with_its_address_and_its_variable(fresh: Shell) -> None:
    said = fresh("init", "--yes", "--provider", "anthropic", "--model", "m")
    assert said.code == 0, said
    made = settings(fresh).provider_for("extract").provider
    assert (made.kind, made.base_url, made.api_key_env) == (
        "anthropic",
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
    )


def a_program(fresh: Shell, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    folder = fresh.folder / "bin"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_the_program_that_is_here_answers_as_it_is_set(fresh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    a_program(fresh, monkeypatch, "claude")
    said = fresh("init", "--yes", "--provider", "command")
    assert said.code == 0, said
    made = settings(fresh).provider_for("consolidate")
    assert (made.provider.command, made.model) == (("claude", "-p"), "default")


def test_any_other_command_is_taken_with_its_arguments(fresh: Shell) -> None:
    said = fresh("init", "--yes", "--provider", "command", "--command", "my-tool 'two words' {model}", "--model", "m")
    assert said.code == 0, said
    made = settings(fresh).provider_for("extract")
    assert (made.provider.command, made.model) == (("my-tool", "two words", "{model}"), "m")


@pytest.mark.parametrize(
    ("here", "words"), [((), "none of claude, codex, gemini, opencode is on PATH"), (("codex", "claude"), "--command")]
)
def test_no_program_is_guessed(
    fresh: Shell, monkeypatch: pytest.MonkeyPatch, here: tuple[str, ...], words: str
) -> None:
    a_program(fresh, monkeypatch, *here)
    said = fresh("init", "--yes", "--provider", "command")
    assert said.code == 2
    assert words in said.err
    assert not fresh.home.config_file.exists()


def test_on_a_terminal_the_program_that_is_found_is_proposed(fresh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    a_program(fresh, monkeypatch, "codex")
    monkeypatch.setattr(sys, "stdin", Terminal("command\n\n\n\n"))
    said = fresh("init")
    assert said.code == 0, said
    assert "command: codex found" in said.out
    assert settings(fresh).provider_for("extract").provider.command == ("codex", "exec")


@pytest.mark.parametrize(
    "words",
    [
        ("--model", "m"),
        ("--base-url", "http://127.0.0.1:9/v1"),
        ("--provider", "offline", "--api-key-env", "MY_KEY"),
        ("--provider", "openai", "--model", "m", "--command", "claude"),
        ("--provider", "command", "--command", "claude", "--api-key-file", "key"),
        ("--provider", "command", "--command", "my-tool 'open"),
    ],
)
def test_an_option_that_says_nothing_is_refused(fresh: Shell, words: tuple[str, ...]) -> None:
    said = fresh("init", "--yes", *words)
    assert said.code == 2
    assert "memoryd: " in said.err
    assert not fresh.home.config_file.exists()


def test_every_agent_is_found_by_its_usual_home_or_where_its_variable_moved_it(
    fresh: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    fresh.record()
    a_copilot_session(fresh.folder / "moved", now=now)
    a_copilot_session(fresh.folder / "moved", now=now, turns=["another one"])
    monkeypatch.setenv("COPILOT_HOME", str(fresh.folder / "moved"))
    monkeypatch.setenv("HOME", str(fresh.folder))
    (fresh.folder / ".gemini" / "antigravity").mkdir(parents=True)
    said = fresh("init", "--yes")
    assert said.code == 0, said
    assert "found codex: 1 session file in" in said.out
    assert f"found copilot: 2 session files in {fresh.folder / 'moved'}" in said.out
    assert settings(fresh).sources.agents == ("codex", "copilot")


def test_the_file_holds_every_key_with_its_reason_and_keeps_the_defaults(fresh: Shell) -> None:
    assert fresh("init", "--yes", "--provider", "anthropic", "--model", "m").code == 0
    text = fresh.home.config_file.read_text()
    assert "# A session must rest this long first" in text
    assert '#min_idle = "6h"' in text
    assert 'agents = ["codex"]' in text
    made, untouched = settings(fresh), config.load(fresh.folder / "other", environ=config.environ())
    assert (made.discover, made.recall, made.ledger) == (untouched.discover, untouched.recall, untouched.ledger)
    assert "[providers.ollama]" not in text


def test_prices_make_the_estimate_one_of_money_and_are_written(fresh: Shell) -> None:
    fresh.record()
    words = ("init", "--yes", "--provider", "openai", "--model", "m")
    assert "cost not known: no prices are set" in fresh(*words).out
    fresh.home.config_file.unlink()
    said = fresh(*words, "--price-input", "1.25", "--price-output", "10")
    assert "USD" in said.out
    prices = settings(fresh).provider_for("extract").provider.prices
    assert (prices.input, prices.output) == (1.25, 10.0)


def test_what_leaves_is_said_before_anything_is_agreed_to(fresh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("openai\n\nm\n\nno\n"))
    said = fresh("init")
    assert said.out.index("Idle sessions are sent to https://api.openai.com/v1") < said.out.index("recorded before now")
    assert "--show-input" in said.out


def test_json_has_everything_that_was_found_and_asks_nothing(fresh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh.record()
    monkeypatch.setattr(sys, "stdin", Terminal("openai\n"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-that-is-none")
    said = fresh("init", "--json", "--provider", "openai", "--model", "m")
    assert said.code == 0, said
    assert said.json["wrote"] == str(fresh.home.config_file)
    assert [(agent["name"], agent["sessions"]) for agent in said.json["agents"]] == [("codex", 1)]
    assert said.json["providers"]["keys"] == ["ANTHROPIC_API_KEY"]
    assert said.json["chosen"] == {"provider": "openai", "model": "m", "backfill": "ask"}
    assert said.json["history"]["recent"]["cost"] is None
    assert "a-key-that-is-none" not in said.out


def test_a_server_on_this_machine_is_proposed_with_its_models(fresh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelsList(models("llama3.2:3b", "qwen3:8b")) as server:
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{server.port}")
        monkeypatch.setattr(sys, "stdin", Terminal("\n\nqwen3:8b\n\n"))
        said = fresh("init")
        assert said.code == 0, said
        assert f"found Ollama at http://127.0.0.1:{server.port}/v1, with 2 models" in said.out
        assert "Nothing leaves this machine" in said.out
        made = settings(fresh).provider_for("extract")
        assert (made.model, made.provider.base_url) == ("qwen3:8b", f"http://127.0.0.1:{server.port}/v1")
        assert made.provider.api_key_env is None

        fresh.home.config_file.unlink()
        monkeypatch.setattr(sys, "stdin", Terminal(""))
        said = fresh("init", "--yes", "--provider", "openai-chat", "--model", "llama3.2:3b")
        assert said.code == 0, said
        assert settings(fresh).provider_for("extract").provider.base_url == f"http://127.0.0.1:{server.port}/v1"


def test_import_and_connection_follow_where_they_are_asked_for(fresh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    a_codex_memory(fresh.codex)
    (fresh.codex / "sessions").mkdir(exist_ok=True)
    said = fresh("init", "--yes", "--import", "codex", "--connect", "codex", "--json")
    assert said.code == 0, said
    assert [agent["has_memory"] for agent in said.json["agents"]] == [True]
    assert [(step["command"], step["exit_code"]) for step in said.json["steps"]] == [
        ("memoryd import codex", 0),
        ("memoryd connect codex", 0),
    ]
    assert (fresh.codex / "hooks.json").exists()
    assert (fresh.home.memories / "MEMORY.md").exists()


def a_service_manager(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put programs first on the PATH that answer as the user's service manager does."""
    for name in ("systemctl", "launchctl"):
        program = folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="systemd is of Linux")
def test_a_service_is_offered_only_where_something_would_start_it(
    fresh: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a_service_manager(tmp_path, monkeypatch, "echo 'Failed to connect to bus: No medium found' >&2; exit 1")
    fresh.record()
    monkeypatch.setattr(sys, "stdin", Terminal("offline\nno\nyes\n"))
    said = fresh("init")
    assert said.code == 0, said
    assert "No service can be installed: " in said.out
    assert "Install memoryd as a service" not in said.out


def test_an_answer_may_be_cut_short_and_what_has_no_default_is_asked_again(
    fresh: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh.record()
    monkeypatch.setattr(sys, "stdin", Terminal("o\nan\n\n\nmodel-1\n-\nn\ny\n"))
    said = fresh("init")
    assert said.code == 0, said
    assert "please write one of: openai, openai-chat, anthropic, command, offline" in said.out
    assert said.out.count("Model: ") == 2
    assert settings(fresh).provider_for("extract").provider.kind == "anthropic"
    assert (fresh.codex / "hooks.json").exists()


def test_on_a_terminal_each_step_needs_its_yes(fresh: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    a_service_manager(tmp_path, monkeypatch, "exit 0")
    a_codex_memory(fresh.codex)
    fresh.record()
    monkeypatch.setattr(sys, "stdin", Terminal("offline\nyes\n\nno\n"))
    said = fresh("init")
    assert said.code == 0, said
    assert "Import what codex has learned by itself" in said.out
    assert "Connect codex" in said.out
    assert "Install memoryd as a service" in said.out
    assert (fresh.home.memories / "MEMORY.md").exists()
    assert not (fresh.codex / "hooks.json").exists()


def test_a_step_that_fails_is_told_and_the_settings_stay(fresh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh.record()
    said = fresh("init", "--yes", "--import", "codex", "--connect", "codex")
    assert said.code == 1
    assert "there is no memory of Codex" in said.err
    assert fresh.home.config_file.exists()
    assert (fresh.codex / "hooks.json").exists()
