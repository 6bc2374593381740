"""Reads the settings: the only reader of memoryd's TOML and of the environment.

Flags win over variables (`MEMORYD_EXTRACT__MODEL`), those over config.toml, that over the defaults of sections.py. What
is wrong or unknown becomes a ConfigError that says where it stands, which key it is, what is allowed, never the value.
"""

import difflib
import errno
import os
import pwd
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args, get_origin

from pydantic import BaseModel, PrivateAttr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from memoryd.errors import ConfigError
from memoryd.origins import PREFIX, Reading, decoded, nested, variable_of
from memoryd.redact import Redactor
from memoryd.sections import (
    Consolidate,
    Discover,
    Extract,
    LedgerSettings,
    Limits,
    Log,
    Prices,
    Privacy,
    Provider,
    ProviderKind,
    Recall,
    Sources,
)
from memoryd.values import USER_HOME, Folder, ProviderName, Seconds, duration_text, nearest, read_duration

__all__ = ["AGENT_HOMES", "OFFLINE", "STAGES", "NamedProvider", "Settings", "Stage", "load"]
__all__ += [
    "agent_home",
    "default_home",
    "environ",
    "notify_socket",
    "started_by_launchd",
    "user_home",
    "watchdog_seconds",
]
__all__ += ["Consolidate", "Discover", "Extract", "LedgerSettings", "Limits", "Log", "Prices", "Privacy", "Provider"]
__all__ += ["ProviderKind", "Recall", "Seconds", "Sources", "duration_text", "read_duration"]

HOME_VARIABLE = "MEMORYD_HOME"
MAX_FILE_BYTES: Final = 1024 * 1024
"""A hundred times what every key with its comment takes."""
LAUNCHD_LABEL = "dev.memoryd"
OFFLINE = "offline"
Stage: TypeAlias = Literal["extract", "consolidate"]
"""What asks a model, by the section of its settings."""
STAGES: Final[tuple[Stage, ...]] = ("extract", "consolidate")
AGENT_HOMES = {  # agent: (variables that move its sessions, the first wins; folder below that; usual one below HOME)
    "codex": (("CODEX_HOME",), "", ".codex"),
    "claude": (("CLAUDE_CONFIG_DIR",), "", ".claude"),
    "opencode": (("XDG_DATA_HOME",), "opencode", ".local/share/opencode"),
    "gemini": (("GEMINI_CLI_HOME",), ".gemini", ".gemini"),
    "qwen": (("QWEN_RUNTIME_DIR", "QWEN_HOME"), "", ".qwen"),
    "copilot": (("COPILOT_HOME",), "", ".copilot"),
}
_ERRORS_SHOWN = 5
_PLAIN = {"model_type": "must be a table", "dict_type": "must be a table", "tuple_type": "must be a list"}


@dataclass(frozen=True, slots=True)
class NamedProvider:
    """Whom a stage asks. `model` is empty for offline; `effort` is None where none is asked for."""

    name: str
    provider: Provider
    model: str
    effort: str | None


class Settings(BaseSettings):
    """All settings of one MEMORYD_HOME; sections and keys are named as in config.toml."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        validate_default=True,
    )

    home: Folder
    sources: Sources = Sources()
    discover: Discover = Discover()
    providers: dict[ProviderName, Provider] = {}
    extract: Extract = Extract()
    consolidate: Consolidate = Consolidate()
    ledger: LedgerSettings = LedgerSettings()
    limits: Limits = Limits()
    recall: Recall = Recall()
    privacy: Privacy = Privacy()
    log: Log = Log()
    _origins: dict[str, str] = PrivateAttr(default_factory=dict)
    _user_home: Path | None = PrivateAttr(default=None)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - it reads the process's own environment
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - there are no .env files
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - nor folders of secrets
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, then environment, then file of the `load` in progress; outside of one, arguments alone."""
        reading = _READING.get()
        if reading is None:
            return (init_settings,)
        table = InitSettingsSource(settings_cls, dict(reading.table))
        return init_settings, _Environment(settings_cls, reading.environ), table

    def model_post_init(self, _context: object, /) -> None:
        """Note where each value came from, and whose settings they are."""
        self._user_home = USER_HOME.get()
        if reading := _READING.get():
            self._origins.update({".".join(key): reading.origin(key) for key in _keys(self.providers)})

    @property
    def origins(self) -> Mapping[str, str]:
        """Where each dotted key's value came from: a file, a variable, "command line" or "default"."""
        return self._origins

    @property
    def user_homes(self) -> tuple[Path, ...]:
        """The home of the user whose settings these are, as it is named and as it lies; none outside of `load`."""
        home = self._user_home
        return () if home is None else (home, home.resolve())

    @property
    def has_prices(self) -> bool:
        """Say whether a provider has prices, so that what requests cost is known."""
        return any(any(provider.prices.model_dump().values()) for provider in self.providers.values())

    def public(self) -> dict[str, object]:
        """Return every key with its value as one would write it, whatever looks like a secret masked."""
        redactor = Redactor()
        return {name: _masked(value, redactor) for name, value in self.model_dump(mode="json").items()}

    def provider_for(self, stage: Stage) -> NamedProvider:
        """Say whom a stage asks: the provider it names, else the only one there is, else offline.

        Raises ConfigError when the name is not configured, the choice is open, or the model is missing.
        """
        chosen: Extract | Consolidate = self.extract if stage == "extract" else self.consolidate
        if chosen.provider is None and len(self.providers) > 1:
            names = ", ".join(self.providers)
            raise ConfigError(
                f"{stage}.provider is not set, and there are several: {names}", remedy=f"set {stage}.provider"
            )
        name = chosen.provider or next(iter(self.providers), OFFLINE)
        provider = self.providers.get(name) or (Provider(kind=ProviderKind.OFFLINE) if name == OFFLINE else None)
        if provider is None:
            known = [*self.providers, OFFLINE]
            raise ConfigError(
                f"{stage}.provider names {name}, which is not configured{nearest(name, known)}",
                remedy=f"add [providers.{name}], or choose one of: {', '.join(known)}",
            )
        if provider.kind is not ProviderKind.OFFLINE and chosen.model is None:
            raise ConfigError(f"{stage}.model is not set, and provider {name} needs one", remedy=f"set {stage}.model")
        return NamedProvider(name, provider, chosen.model or "", chosen.effort or None)


_READING: ContextVar[Reading | None] = ContextVar("_READING", default=None)


class _Environment(EnvSettingsSource):
    """The variables that `load` was given; a list is written as JSON, or parted by commas."""

    def __init__(self, settings_cls: type[BaseSettings], variables: Mapping[str, str]) -> None:
        self._variables = {name.lower(): value for name, value in variables.items()}
        super().__init__(settings_cls)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return self._variables

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: str) -> object:  # noqa: ARG002 - pydantic's
        """Decode a list or table; what is neither is left to validation, whose complaint names the variable."""
        read = decoded(value)
        return read if isinstance(read, dict | list) else [part.strip() for part in value.split(",") if part.strip()]


def load(
    home: Path | None,
    *,
    environ: Mapping[str, str],
    overrides: Mapping[str, object] | None = None,
    file: Path | None = None,
) -> Settings:
    """Read the settings of `home` (None: MEMORYD_HOME, else ~/.memoryd).

    `overrides` are flags: dotted keys ("extract.model") or nested mappings; None: the flag was not given. `file` is one
    that was named and so must exist; without a <home>/config.toml the defaults hold. Raises ConfigError.
    """
    place = (home or default_home(environ)).absolute()
    path = file or place / "config.toml"
    ours = {name.upper(): value for name, value in environ.items() if name.upper().startswith(PREFIX) and value}
    ours.pop(HOME_VARIABLE, None)
    _refuse_unknown_variables(ours)
    reading = Reading(ours, _read_toml(path, must_exist=file is not None), path, nested(overrides or {}))
    reset_home, reset_reading = USER_HOME.set(user_home(environ)), _READING.set(reading)
    try:
        return Settings(**{**reading.overrides, "home": place})
    except ValidationError as error:
        raise _explained(error, reading) from None
    finally:
        USER_HOME.reset(reset_home)
        _READING.reset(reset_reading)


def _read_toml(path: Path, *, must_exist: bool) -> dict[str, Any]:
    try:
        text = _read_file(path).decode("utf-8-sig")
    except FileNotFoundError:
        if must_exist:
            raise ConfigError(f"there is no settings file {path}", remedy="name one that exists") from None
        return {}
    except OSError as error:
        raise ConfigError(
            f"cannot read settings from {path}: {error.strerror}", remedy="make it a readable file"
        ) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path} is not valid TOML: no UTF-8 (at line {line})", remedy="save it as UTF-8") from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = "" if "(at line" in str(error) else f" (line {len(text.splitlines())})"
        raise ConfigError(f"{path} is not valid TOML: {error}{where}", remedy="correct that line") from None
    except RecursionError:
        raise ConfigError(f"{path} is not valid TOML: brackets in brackets without end", remedy="correct it") from None
    if "home" in table:
        raise ConfigError(f"{path}: home cannot be set in a file of that home", remedy=f"use --home or {HOME_VARIABLE}")
    return table


def _read_file(path: Path) -> bytes:
    """Read a file that a person may have put there by mistake: a pipe would be waited for, a device never ends."""
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123 (a descriptor)
        facts = os.fstat(file.fileno())
        if stat.S_ISDIR(facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        if facts.st_size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return file.read(MAX_FILE_BYTES)


def _child(kind: object, key: str) -> object:
    """Return the type of `key` inside a section or a table of things that have names; None: there is no such key."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        found = kind.model_fields.get(key)
        return found.annotation if found else None
    return get_args(kind)[1] if get_origin(kind) is dict else None


def _keys(providers: Sequence[str] | Mapping[str, Provider]) -> Iterator[tuple[str, ...]]:
    """Yield the path of every key there can be, those of a provider once for each of the names."""
    for section, found in Settings.model_fields.items():
        kind = found.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from ((section, key) for key in kind.model_fields)
    yield from (("providers", name, key) for name in providers for key in Provider.model_fields)
    yield from (("providers", name, "prices", key) for name in providers for key in Prices.model_fields)


def _refuse_unknown_variables(variables: Mapping[str, str]) -> None:
    for variable in variables:
        path = variable.removeprefix(PREFIX).lower().split("__")
        kind: object = Settings
        for key in path:
            kind = _child(kind, key)
        if kind is None:
            names = [path[1]] if path[0] == "providers" and len(path) > 1 else ["name"]
            known = [HOME_VARIABLE, *(variable_of(key) for key in _keys(names))]
            raise ConfigError(
                f"unknown environment variable {variable}{nearest(variable, known)}",
                remedy=f"unset or rename {variable}",
            )


def _explained(error: ValidationError, reading: Reading) -> ConfigError:
    problems = [_explain(details, reading) for details in error.errors(include_url=False, include_input=False)]
    more = f"; and {len(problems) - _ERRORS_SHOWN} more" if len(problems) > _ERRORS_SHOWN else ""
    return ConfigError(
        "; ".join(problems[:_ERRORS_SHOWN]) + more, remedy="config.example.toml describes every key and what it takes"
    )


def _explain(details: ErrorDetails, reading: Reading) -> str:
    """Say in one clause what is wrong: `<file, variable or command line>: <dotted key> <complaint>`."""
    path = [str(part) for part in details["loc"] if not isinstance(part, int) and part != "[key]"]
    dotted = ".".join(path)
    if details["type"] == "extra_forbidden":
        return f"{reading.origin(path)}: unknown key {dotted}; the nearest known one is {_nearest_key(path)}"
    if details["type"] == "missing":
        return f"{reading.origin(path[:-1])}: {dotted} is missing"
    complaint = details["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return f"{reading.origin(path)}: {dotted} {_PLAIN.get(details['type'], complaint)}"


def _nearest_key(path: Sequence[str]) -> str:
    """Name the key that was meant: one of the same table, else one of that name elsewhere, else the most similar."""
    known = list(_keys([path[1]] if path[0] == "providers" and len(path) > 1 else ["NAME"]))
    depth = len(path) - 1
    siblings = {key[depth] for key in known if len(key) > depth and list(key[:depth]) == list(path[:depth])}
    if close := difflib.get_close_matches(path[-1], siblings, n=1):
        return ".".join([*path[:-1], close[0]])
    if elsewhere := [".".join(key) for key in known if key[-1] == path[-1]]:
        return " or ".join(elsewhere)
    return difflib.get_close_matches(".".join(path), [".".join(key) for key in known], n=1, cutoff=0.0)[0]


def _masked(value: object, redactor: Redactor) -> object:
    if isinstance(value, dict):
        return {key: _masked(inner, redactor) for key, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner, redactor) for inner in value]
    return redactor.clean(value) if isinstance(value, str) else value


def environ() -> Mapping[str, str]:
    """Return the environment of this process: the one place that knows it."""
    return os.environ


def user_home(environ: Mapping[str, str]) -> Path:
    """Return the user's home: HOME, else what the password database says."""
    return Path(environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)


def default_home(environ: Mapping[str, str]) -> Path:
    """Return MEMORYD_HOME (a leading ~ is the user's home), else ~/.memoryd."""
    return _below_user_home(environ.get(HOME_VARIABLE) or "~/.memoryd", environ)


def agent_home(agent: str, settings: Settings, environ: Mapping[str, str]) -> list[Path]:
    """Return the folders that hold an agent's sessions: `sources.roots`, else where a variable says, else as usual.

    An agent without a usual home (generic) has none but those in `sources.roots`.
    """
    if agent in settings.sources.roots:
        return list(settings.sources.roots[agent])
    if agent not in AGENT_HOMES:
        return []
    variables, below, usual = AGENT_HOMES[agent]
    moved = next((environ[variable] for variable in variables if environ.get(variable)), None)
    return [user_home(environ) / usual if moved is None else _below_user_home(moved, environ) / below]


def _below_user_home(text: str, environ: Mapping[str, str]) -> Path:
    if text == "~" or text.startswith("~/"):
        return user_home(environ) / text[2:]
    return Path(text).absolute()


def notify_socket(environ: Mapping[str, str]) -> str | None:
    """Return systemd's notification socket (a leading @ is an abstract one), None without systemd."""
    return environ.get("NOTIFY_SOCKET") or None


def started_by_launchd(environ: Mapping[str, str]) -> bool:
    """Tell whether macOS started this as the service of that name (launchd gives each job its label)."""
    return environ.get("XPC_SERVICE_NAME", "").startswith(LAUNCHD_LABEL)


def watchdog_seconds(environ: Mapping[str, str], pid: int) -> float | None:
    """Return how often systemd wants to hear from process `pid` at the least, None when it does not ask."""
    if not environ.get("WATCHDOG_USEC", "").isdecimal() or environ.get("WATCHDOG_PID", str(pid)) != str(pid):
        return None
    return int(environ["WATCHDOG_USEC"]) / 1_000_000 or None
