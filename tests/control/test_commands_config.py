import tomllib

from tests.control.conftest import Shell


def test_a_right_file_is_called_right(shell: Shell) -> None:
    assert shell("config", "check").code == 0
    assert shell("config", "check", "--json").json == {
        "ok": True,
        "file": str(shell.home.config_file),
        "exists": True,
    }
    shell.home.config_file.unlink()
    assert "defaults hold" in shell("config", "check").out


def test_a_provider_without_a_model_is_named(shell: Shell) -> None:
    shell.configure('[providers.here]\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n')
    said = shell("config", "check")
    assert said.code == 2
    assert "extract.model" in said.err


def test_every_key_is_shown_with_where_it_comes_from(shell: Shell) -> None:
    lines = shell("config", "show").out.splitlines()
    assert f"# {shell.home.config_file}" in lines[0]
    assert any(line.startswith('consolidate.debounce = "0s"') and "config.toml" in line for line in lines)
    assert any(line.startswith("ledger.lease = ") and line.endswith("# default") for line in lines)
    assert shell("config", "--json").json["discover"]["min_idle"] == "6h"


def test_what_is_shown_is_toml_and_says_where_the_home_comes_from(shell: Shell) -> None:
    said = shell("config", "show").out
    shown = tomllib.loads(said)
    assert shown["home"] == str(shell.home.path)
    assert shown["sources"]["agents"] == ["codex"]
    assert shown["extract"]["effort"] == "low"
    assert f'home = "{shell.home.path}"  # command line\n' in said
    assert "# extract.model is not set  # default\n" in said


def test_a_secret_in_the_wrong_place_is_not_shown(shell: Shell) -> None:
    """I6."""
    secret = "sk-proj-" + "a1B2" * 12
    shell.configure(f'[privacy]\npatterns = ["{secret}"]\n')
    assert secret not in shell("config", "show").out
    assert secret not in shell("config", "--json").out
