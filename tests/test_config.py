"""Settings: where they come from, what is refused, and that no secret is ever repeated."""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd import config
from memoryd.config import (
    Discover,
    LedgerSettings,
    Provider,
    ProviderKind,
    Seconds,
    Settings,
    duration_text,
    read_duration,
)
from memoryd.control.example_config import PRESETS, example_toml
from memoryd.errors import ConfigError
from memoryd.values import AGENTS

SECRET = "sk-proj-AbCdEf0123456789AbCdEf0123456789"
REPOSITORY = Path(__file__).parents[1]


def read(tmp_path: Path, toml: str = "", flags: Mapping[str, object] | None = None, **environ: str) -> Settings:
    """Load settings from a home with this config.toml (none when empty), these variables and these flags."""
    home = tmp_path / "memory home"
    home.mkdir(exist_ok=True)
    if toml:
        (home / "config.toml").write_text(toml)
    return config.load(home, environ={"HOME": str(tmp_path), **environ}, overrides=flags)


def refusal(tmp_path: Path, toml: str = "", flags: Mapping[str, object] | None = None, **environ: str) -> str:
    """Return what a person reads when these settings are refused, and check that no secret is in it."""
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, toml, flags, **environ)
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def test_without_file_and_variables_the_defaults_of_the_design_hold(tmp_path: Path) -> None:
    settings = read(tmp_path)
    assert settings.public() == {
        "home": str(tmp_path / "memory home"),
        "sources": {
            "agents": [],
            "roots": {},
            "exclude_cwd": [],
            "include_noninteractive": False,
            "include_home": False,
            "exclude_originators": ["*github-action*"],
        },
        "discover": {"min_idle": "6h", "max_age": "10d", "scan_interval": "1m", "full_scan_interval": "30m"},
        "providers": {},
        "extract": {
            "provider": None,
            "model": None,
            "effort": "low",
            "concurrency": 2,
            "max_input_tokens": None,
            "max_requests": 8,
            "max_duration": "20m",
            "max_tokens": 1_000_000,
            "disable_on_external_context": False,
        },
        "consolidate": {
            "provider": None,
            "model": None,
            "effort": "medium",
            "max_raw_memories": 256,
            "max_unused": "30d",
            "debounce": "2m",
            "min_interval": "30m",
            "max_requests": 60,
            "max_duration": "20m",
            "max_tokens": 2_000_000,
            "extension_retention": "7d",
            "history_max_age": "365d",
            "history_max_size": 268_435_456,
            "review": "auto",
        },
        "ledger": {"lease": "3m", "max_attempts": 3, "retry_base": "1m", "retry_cap": "6h"},
        "limits": {
            "min_remaining_percent": 25.0,
            "requests_per_day": 500,
            "tokens_per_day": 5_000_000,
            "cost_per_day": 0.0,
            "backfill": "ask",
        },
        "recall": {"max_tokens": 2500, "scope": "project", "exclude_cwd": []},
        "privacy": {"patterns": [], "private_tags": ["private"]},
        "log": {"format": "auto", "level": "info"},
    }


def test_flags_win_over_variables_and_variables_over_the_file(tmp_path: Path) -> None:
    toml = '[extract]\nmodel = "from-file"\neffort = "high"\nconcurrency = 7\n[discover]\nmin_idle = "1h"\n'
    settings = read(
        tmp_path,
        toml,
        {"extract.model": "from-flag", "discover": {"scan_interval": "5s"}, "extract.concurrency": None},
        MEMORYD_EXTRACT__MODEL="from-variable",
        MEMORYD_EXTRACT__EFFORT="medium",
    )
    assert (settings.extract.model, settings.extract.effort, settings.extract.concurrency) == ("from-flag", "medium", 7)
    assert (settings.discover.min_idle, settings.discover.scan_interval) == (3600.0, 5.0)


def test_settings_say_where_each_value_came_from(tmp_path: Path) -> None:
    toml = '[extract]\nmodel = "m"\n[providers.local]\nkind = "openai-chat"\nbase_url = "http://localhost:1/v1"\n'
    settings = read(
        tmp_path,
        toml,
        {"extract.effort": "high"},
        MEMORYD_LOG__LEVEL="debug",
        MEMORYD_LIMITS='{"cost_per_day": 2}',
        MEMORYD_PROVIDERS__LOCAL__TIMEOUT="5m",
    )
    file = str(tmp_path / "memory home" / "config.toml")
    set_somewhere = {key: place for key, place in settings.origins.items() if place != "default"}
    assert set_somewhere == {
        "extract.model": file,
        "extract.effort": "command line",
        "log.level": "MEMORYD_LOG__LEVEL",
        "limits.cost_per_day": "MEMORYD_LIMITS",
        "providers.local.kind": file,
        "providers.local.base_url": file,
        "providers.local.timeout": "MEMORYD_PROVIDERS__LOCAL__TIMEOUT",
    }


def test_a_pattern_that_python_warns_about_is_taken_silently(tmp_path: Path) -> None:
    assert read(tmp_path, 'privacy.patterns = ["[[]x"]').privacy.patterns == ("[[]x",)


def test_every_key_can_be_set_by_a_variable(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        MEMORYD_SOURCES__AGENTS='["codex", "claude"]',
        MEMORYD_SOURCES__ROOTS__CODEX="~/one,/two",
        MEMORYD_SOURCES__EXCLUDE_CWD="~/secret/**, /tmp/*",
        MEMORYD_SOURCES__INCLUDE_NONINTERACTIVE="true",
        MEMORYD_PROVIDERS__BIG__KIND="openai",
        MEMORYD_PROVIDERS__BIG__PRICES__OUTPUT="12.5",
        MEMORYD_EXTRACT__MAX_INPUT_TOKENS="1000",
        MEMORYD_CONSOLIDATE__REVIEW="manual",
        MEMORYD_LEDGER__LEASE="2s",
        MEMORYD_RECALL__SCOPE="off",
        MEMORYD_EXTRACT__EFFORT="",
    )
    assert settings.sources.agents == ("codex", "claude")
    assert settings.sources.roots == {"codex": (tmp_path / "one", Path("/two"))}
    assert settings.sources.exclude_cwd == (f"{tmp_path}/secret/**", "/tmp/*")
    assert settings.sources.include_noninteractive
    assert settings.providers["big"].prices.output == 12.5
    assert settings.extract.max_input_tokens == 1000
    assert settings.consolidate.review == "manual"
    assert settings.ledger.lease == 2.0
    assert settings.recall.scope == "off"
    assert settings.extract.effort == "low", "an empty variable counts as not set"


def test_the_environment_of_the_process_is_not_read_behind_the_callers_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_EXTRACT__MODEL", "leaked")
    assert read(tmp_path).extract.model is None
    assert Settings(home=tmp_path).extract.model is None
    assert config.environ()["MEMORYD_EXTRACT__MODEL"] == "leaked"


def test_a_missing_default_file_is_fine_and_a_missing_named_file_is_an_error(tmp_path: Path) -> None:
    assert config.load(tmp_path / "nowhere", environ={}).log.level == "info"
    with pytest.raises(ConfigError, match=r"there is no settings file .*other\.toml"):
        config.load(tmp_path, environ={}, file=tmp_path / "other.toml")


def _a_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (_a_pipe, "no regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "no regular file"),
        (lambda path: path.symlink_to(path), "symbolic links"),
        (Path.mkdir, "Is a directory"),
        (lambda path: path.write_bytes(b"#" * (1024 * 1024 + 1)), "File too large"),
        (lambda path: path.write_bytes(b"a = " + b"[" * 5000), "brackets in brackets"),
    ],
)
def test_what_is_no_settings_file_is_said_and_neither_waited_for_nor_read_without_end(
    tmp_path: Path, make: Callable[[Path], object], told: str
) -> None:
    make(tmp_path / "config.toml")
    with pytest.raises(ConfigError, match=told):
        config.load(tmp_path, environ={})


def test_a_named_file_is_read_in_place_of_the_homes(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('log.level = "error"')
    (tmp_path / "other.toml").write_bytes(b'\xef\xbb\xbflog.level = "debug"\r\n')
    assert config.load(tmp_path, environ={}, file=tmp_path / "other.toml").log.level == "debug"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'[extract]\nmodel = "m"\neffort = \n', r"config\.toml is not valid TOML: .*line 3"),
        (b'[extract]\nmodel = "m', r"config\.toml is not valid TOML: .*line 2"),
        (b'[extract]\nmodel = "\xff"\n', r"config\.toml is not valid TOML: .*line 2"),
        (b'home = "/elsewhere"\n', r"config\.toml: home cannot be set .*--home or MEMORYD_HOME"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "config.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=told):
        config.load(tmp_path, environ={})


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigError, match=r"cannot read settings from .*config\.toml: Is a directory"):
        config.load(tmp_path, environ={})


@pytest.mark.parametrize(
    ("toml", "unknown", "near"),
    [
        ('[extract]\nmodle = "m"', "extract.modle", "extract.model"),
        ('[extrakt]\nmodel = "m"', "extrakt", "extract"),
        ('model = "m"', "model", "extract.model or consolidate.model"),
        ('[discover]\nlease = "3m"', "discover.lease", "ledger.lease"),
        ('[providers.a]\nkind = "openai"\nbaseurl = "x"', "providers.a.baseurl", "providers.a.base_url"),
        (
            '[providers.a]\nkind = "openai"\n[providers.a.prices]\ninptu = 1',
            "providers.a.prices.inptu",
            "providers.a.prices.input",
        ),
        ("[log]\nzzz = 1", "log.zzz", ""),
    ],
)
def test_an_unknown_key_is_refused_with_its_file_and_the_nearest_known_one(
    tmp_path: Path, toml: str, unknown: str, near: str
) -> None:
    told = refusal(tmp_path, toml)
    assert f"config.toml: unknown key {unknown}; the nearest known one is {near}" in told


def test_an_unknown_flag_is_refused_as_one_of_the_command_line(tmp_path: Path) -> None:
    assert "command line: unknown key extract.modell; the nearest known one is extract.model" in refusal(
        tmp_path, flags={"extract.modell": "m"}
    )


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("MEMORYD_EXTRACT__MODLE", "MEMORYD_EXTRACT__MODEL"),
        ("MEMORYD_EXTRACT_MODEL", "MEMORYD_EXTRACT__MODEL"),
        ("MEMORYD_HOEM", "MEMORYD_HOME"),
        ("MEMORYD_PROVIDERS__LOCAL__BASEURL", "MEMORYD_PROVIDERS__LOCAL__BASE_URL"),
        ("MEMORYD_EXTRACT__MODEL__NAME", "MEMORYD_EXTRACT__MODEL"),
        ("memoryd_log__levle", "MEMORYD_LOG__LEVEL"),
    ],
)
def test_an_unknown_variable_is_refused_with_the_nearest_known_one(tmp_path: Path, variable: str, near: str) -> None:
    told = refusal(tmp_path, "", None, **{variable: SECRET})
    assert told.startswith(f"unknown environment variable {variable.upper()}; the nearest known one is {near} (")


def test_an_unknown_key_inside_a_variable_is_refused_with_its_name(tmp_path: Path) -> None:
    told = refusal(tmp_path, MEMORYD_EXTRACT='{"modle": "m"}')
    assert told.startswith("MEMORYD_EXTRACT: unknown key extract.modle; the nearest known one is extract.model")


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("discover.min_idle = 6", "discover.min_idle must be a number and its unit (ms, s, m, h, d, w) in quotes"),
        ('discover.min_idle = "6"', "discover.min_idle must be a number and its unit"),
        ('discover.min_idle = "6 parsecs"', "discover.min_idle must be a number and its unit"),
        ('discover.min_idle = "-6h"', "discover.min_idle must be a number and its unit"),
        ('discover.max_age = "9999999w"', "discover.max_age must be at least 0s and at most 3650d"),
        ('discover.scan_interval = "999ms"', "discover.scan_interval must be at least 1s"),
        ('ledger.lease = "1s"', "ledger.lease must be at least 2s"),
        ('discover = {min_idle = "1d", max_age = "1h"}', "discover max_age must be longer than min_idle"),
        ('ledger = {retry_base = "2h", retry_cap = "1h"}', "ledger retry_cap must not be shorter than retry_base"),
        ("limits.min_remaining_percent = 101", "limits.min_remaining_percent must be less than or equal to 100"),
        ("limits.min_remaining_percent = -1", "limits.min_remaining_percent must be greater than or equal to 0"),
        ("limits.cost_per_day = -0.1", "limits.cost_per_day must be greater than or equal to 0"),
        ("limits.cost_per_day = inf", "limits.cost_per_day must be a finite number"),
        ("limits.requests_per_day = 0", "limits.requests_per_day must be greater than or equal to 1"),
        ("limits.requests_per_day = true", "limits.requests_per_day must be a number"),
        ('limits.requests_per_day = "many"', "limits.requests_per_day must be a valid integer"),
        ('limits.backfill = "some"', "limits.backfill must be 'ask', 'recent' or 'all'"),
        ('log.level = "loud"', "log.level must be 'debug', 'info', 'warning' or 'error'"),
        ('extract.effort = "very high"', 'extract.effort must be one lower-case word such as "low", or empty'),
        ('extract.model = " "', "extract.model must not be empty"),
        ('providers.a = "openai"', "providers.a must be a table"),
        ('extract = "all"', "extract must be a table"),
        ('sources.agents = "codex"', "sources.agents must be a list"),
        ('sources.agents = ["codx"]', "sources.agents is no agent that memoryd knows; the nearest known one is codex"),
        ('sources.roots.codx = ["/x"]', "sources.roots.codx is no agent that memoryd knows"),
        ('sources.roots.codex = ["relative"]', "sources.roots.codex must be an absolute path, or begin with ~/"),
        ('sources.exclude_cwd = [""]', "sources.exclude_cwd must not be empty"),
        ('privacy.patterns = ["("]', "privacy.patterns is no regular expression, look at its character 1"),
        ('privacy.patterns = ["x{99999999999}"]', "privacy.patterns is no regular expression that can be used"),
        ('privacy.patterns = ["x*"]', "privacy.patterns matches the empty text"),
        ('privacy.patterns = ["(x+)+y"]', "privacy.patterns could take for ever on some texts"),
        ('privacy.private_tags = ["<private>"]', "privacy.private_tags must be the name of a tag, without < and >"),
        ('providers.Local.kind = "offline"', "providers.Local must be a name of lower-case letters"),
        ("providers.a = {}", "providers.a.kind is missing"),
        ('providers.a.kind = "azure"', "providers.a.kind must be 'openai', 'openai-chat', 'anthropic', 'command' or"),
        ('providers.a.kind = "openai-chat"', "providers.a kind openai-chat needs a base_url"),
        ('providers.a.kind = "command"', "providers.a needs command"),
        ('providers.a = {kind = "offline", command = ["x"]}', "providers.a needs command"),
        (
            'providers.a = {kind = "openai", base_url = "ftp://x"}',
            "providers.a.base_url must be an http:// or https://",
        ),
        ('providers.a = {kind = "openai", base_url = "http://[x"}', "providers.a.base_url must be an http:// or"),
        ('providers.a = {kind = "openai", base_url = "http://h:0/v1"}', "providers.a.base_url must be an http:// or"),
        ('providers.a = {kind = "openai", base_url = "http://h/v 1"}', "providers.a.base_url must be an http:// or"),
        ('providers.a = {kind = "openai", prices = {input = -1}}', "providers.a.prices.input must be greater than or"),
        ('providers.a = {kind = "openai", timeout = "0s"}', "providers.a.timeout must be at least 1s"),
    ],
)
def test_a_wrong_value_is_refused_with_file_key_and_what_is_allowed(tmp_path: Path, toml: str, told: str) -> None:
    assert f"config.toml: {told}" in refusal(tmp_path, toml)


def test_a_wrong_value_of_a_variable_names_the_variable(tmp_path: Path) -> None:
    assert refusal(tmp_path, MEMORYD_SOURCES__AGENTS="codx").startswith("MEMORYD_SOURCES__AGENTS: sources.agents is no")
    assert refusal(tmp_path, MEMORYD_EXTRACT="{broken").startswith("MEMORYD_EXTRACT: extract must be a table")
    assert refusal(tmp_path, MEMORYD_DISCOVER__MIN_IDLE="99d").startswith(
        "MEMORYD_DISCOVER__MIN_IDLE: discover max_age"
    )


def test_several_mistakes_are_told_in_one_line(tmp_path: Path) -> None:
    toml = "[log]\na = 1\nb = 1\nc = 1\nd = 1\ne = 1\nf = 1\ng = 1"
    assert "unknown key log.a; " in refusal(tmp_path, toml)
    assert "; and 2 more" in refusal(tmp_path, toml)


@pytest.mark.parametrize(
    "toml",
    [
        f'providers.a = {{kind = "openai", api_key_env = "{SECRET}"}}',
        f'providers.a = {{kind = "openai", api_key = "{SECRET}"}}',
        f'providers.a = {{kind = "openai", api_key_file = "{SECRET}"}}',
        f'providers.a = {{kind = "openai", base_url = "https://u:{SECRET}@api.example/v1"}}',
        f'providers.a = {{kind = "openai", base_url = "https://api.example/v1?key={SECRET}"}}',
        f'providers.a.kind = "{SECRET}"',
        f'limits.requests_per_day = "{SECRET}"',
        f'privacy.patterns = ["({SECRET}"]',
        f'[extract]\nmodel = "{SECRET}" oops',
    ],
)
def test_a_secret_in_the_wrong_place_is_refused_and_not_repeated(tmp_path: Path, toml: str) -> None:
    refusal(tmp_path, toml)  # which looks for the secret in the message


def test_a_secret_in_a_variable_is_not_repeated(tmp_path: Path) -> None:
    refusal(tmp_path, MEMORYD_PROVIDERS__A__API_KEY=SECRET)
    refusal(tmp_path, MEMORYD_PROVIDERS__A__KIND="openai", MEMORYD_PROVIDERS__A__API_KEY_ENV=SECRET)
    refusal(tmp_path, MEMORYD_PROVIDERS=f'{{"a": {{"kind": "{SECRET}"}}}}')


def test_what_is_shown_to_people_masks_what_looks_like_a_secret(tmp_path: Path) -> None:
    toml = f'providers.a = {{kind = "command", command = ["agent", "--key={SECRET}"]}}'
    assert SECRET not in str(read(tmp_path, toml).public())


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    settings = read(tmp_path)
    with pytest.raises(ValueError, match="frozen"):
        settings.log = settings.log.model_copy()
    with pytest.raises(ValueError, match="frozen"):
        settings.discover.min_idle = 0.0


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("6h", 21_600),
        ("10d", 864_000),
        ("90s", 90),
        ("2m", 120),
        ("1.5h", 5_400),
        ("500ms", 0.5),
        ("1w", 604_800),
        (" 3 s ", 3),
        ("0s", 0),
    ],
)
def test_a_duration_is_a_number_and_a_unit(written: str, seconds: float) -> None:
    assert float(read_duration(written)) == seconds


@given(st.integers(min_value=0, max_value=3650 * 86_400))
def test_a_duration_is_written_as_it_can_be_read(seconds: int) -> None:
    assert read_duration(duration_text(seconds)) == float(seconds)


def test_a_section_can_be_built_from_lengths_of_time(tmp_path: Path) -> None:
    assert Discover(min_idle=Seconds(0)).min_idle == 0
    assert LedgerSettings(lease=Seconds(2)).model_dump(mode="json")["lease"] == "2s"
    assert duration_text(0.25) == "250ms"


def test_the_only_provider_is_asked_when_a_stage_names_none(tmp_path: Path) -> None:
    settings = read(tmp_path, 'providers.a.kind = "openai"\nextract.model = "small"\nconsolidate.model = "big"')
    named = settings.provider_for("consolidate")
    assert (named.name, named.model, named.effort, named.provider.kind) == ("a", "big", "medium", ProviderKind.OPENAI)
    assert settings.provider_for("extract").model == "small"


def test_without_a_provider_memoryd_writes_offline(tmp_path: Path) -> None:
    named = read(tmp_path, 'extract.effort = ""').provider_for("extract")
    assert (named.name, named.provider.kind, named.model, named.effort) == ("offline", "offline", "", None)


def test_offline_is_a_known_provider_beside_others(tmp_path: Path) -> None:
    settings = read(tmp_path, 'providers.a.kind = "openai"\nextract.provider = "offline"')
    assert settings.provider_for("extract").provider.kind is ProviderKind.OFFLINE


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        (
            'extract.provider = "locla"\nproviders.local.kind = "offline"',
            "extract.provider names locla, which is not configured; the nearest known one is local",
        ),
        (
            'providers.a.kind = "offline"\nproviders.b.kind = "offline"',
            "extract.provider is not set, and there are several: a, b",
        ),
        ('providers.a.kind = "openai"', "extract.model is not set, and provider a needs one"),
    ],
)
def test_a_stage_that_does_not_know_whom_to_ask_names_the_key(tmp_path: Path, toml: str, told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        read(tmp_path, toml).provider_for("extract")


def test_a_kind_brings_its_own_address_and_key_but_never_its_key_to_another_address() -> None:
    assert Provider(kind=ProviderKind.OPENAI).base_url == "https://api.openai.com/v1"
    assert Provider(kind=ProviderKind.ANTHROPIC).api_key_env == "ANTHROPIC_API_KEY"
    elsewhere = Provider(kind=ProviderKind.OPENAI, base_url="http://localhost:1/v1/")
    assert (elsewhere.base_url, elsewhere.api_key_env) == ("http://localhost:1/v1", None)


def test_the_home_is_the_variables_else_below_the_users_home(tmp_path: Path) -> None:
    assert config.default_home({"HOME": "/home/ada"}) == Path("/home/ada/.memoryd")
    assert config.default_home({"HOME": "/home/ada", "MEMORYD_HOME": "~/m"}) == Path("/home/ada/m")
    assert config.default_home({"HOME": "/home/ada", "MEMORYD_HOME": "/m"}) == Path("/m")
    assert config.load(None, environ={"HOME": str(tmp_path), "MEMORYD_HOME": "~"}).home == tmp_path
    assert config.user_home({}).is_absolute()


@pytest.mark.parametrize(
    ("agent", "variables", "expected"),
    [
        ("codex", {}, ["/home/ada/.codex"]),
        ("codex", {"CODEX_HOME": "/c"}, ["/c"]),
        ("codex", {"CODEX_HOME": ""}, ["/home/ada/.codex"]),
        ("claude", {"CLAUDE_CONFIG_DIR": "~/cc"}, ["/home/ada/cc"]),
        ("opencode", {}, ["/home/ada/.local/share/opencode"]),
        ("opencode", {"XDG_DATA_HOME": "/d"}, ["/d/opencode"]),
        ("gemini", {}, ["/home/ada/.gemini"]),
        ("gemini", {"GEMINI_CLI_HOME": "/g"}, ["/g/.gemini"]),
        ("qwen", {}, ["/home/ada/.qwen"]),
        ("qwen", {"QWEN_HOME": "/q"}, ["/q"]),
        ("qwen", {"QWEN_HOME": "/q", "QWEN_RUNTIME_DIR": "~/r"}, ["/home/ada/r"]),
        ("copilot", {}, ["/home/ada/.copilot"]),
        ("copilot", {"COPILOT_HOME": "/p"}, ["/p"]),
        ("generic", {}, []),
    ],
)
def test_an_agents_home_is_its_variables_else_its_usual_one(
    tmp_path: Path, agent: str, variables: dict[str, str], expected: list[str]
) -> None:
    homes = config.agent_home(agent, read(tmp_path), {"HOME": "/home/ada", **variables})
    assert [str(home) for home in homes] == expected


def test_roots_replace_an_agents_home(tmp_path: Path) -> None:
    settings = read(tmp_path, 'sources.roots.codex = ["~/a", "/b"]')
    assert config.agent_home("codex", settings, {"CODEX_HOME": "/c"}) == [tmp_path / "a", Path("/b")]


def test_every_known_agent_has_a_home_or_is_the_generic_one() -> None:
    assert {*config.AGENT_HOMES, "generic"} == set(AGENTS)


def test_systemd_is_asked_only_where_it_started_us() -> None:
    assert config.notify_socket({}) is None
    assert config.notify_socket({"NOTIFY_SOCKET": "@s"}) == "@s"
    assert config.watchdog_seconds({"WATCHDOG_USEC": "60000000"}, pid=7) == 60.0
    assert config.watchdog_seconds({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "8"}, pid=7) is None
    assert config.watchdog_seconds({"WATCHDOG_USEC": "0"}, pid=7) is None
    assert config.watchdog_seconds({}, pid=7) is None


def test_the_committed_example_is_the_generated_one() -> None:
    assert (REPOSITORY / "config.example.toml").read_text() == example_toml(), "write example_toml() into it again"


def test_the_example_changes_nothing_as_it_is(tmp_path: Path) -> None:
    assert read(tmp_path, example_toml()).public() == read(tmp_path / ".").public()
    assert tomllib.loads(example_toml())["extract"] == {}


def test_the_example_with_every_key_uncommented_loads_and_names_every_key(tmp_path: Path) -> None:
    uncommented = re.sub(r"(?m)^#(?=\S)", "", example_toml())
    table = tomllib.loads(uncommented)
    settings = read(tmp_path, uncommented)
    written = {f"{section}.{key}" for section, keys in table.items() if section != "providers" for key in keys}
    known = {key for key in settings.origins if not key.startswith("providers.")}
    assert written == known
    assert set(settings.providers) == set(PRESETS)
    for key in Provider.model_fields:
        assert f"# {key}: " in example_toml()


def test_the_examples_values_are_the_defaults(tmp_path: Path) -> None:
    without_presets = re.sub(r"(?ms)^#\[providers.*?(?=^# Stage 1)", "", example_toml())
    uncommented = re.sub(r"(?m)^#(?!provider |model |max_input_tokens )(?=\S)", "", without_presets)
    assert read(tmp_path, uncommented).public() == config.load(tmp_path / "memory home", environ={}, file=None).public()
