"""Writes config.example.toml, and what `init` writes, from the sections of the settings: they cannot drift apart."""

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from memoryd.config import Provider, Seconds, Settings
from memoryd.llm.command.programs import completed, program_of


def _program(*command: str) -> dict[str, object]:
    """Return the preset of an agent's own program, with all options that keep it from recording what it does."""
    return {"kind": "command", "command": list(completed(command, program_of(command).always)), "timeout": "10m"}


PRESETS: dict[str, dict[str, object]] = {
    "openai": {"kind": "openai", "base_url": "https://api.openai.com/v1", "api_key_env": "OPENAI_API_KEY"},
    "ollama": {"kind": "openai-chat", "base_url": "http://127.0.0.1:11434/v1", "timeout": "10m"},
    "lmstudio": {"kind": "openai-chat", "base_url": "http://127.0.0.1:1234/v1", "timeout": "10m"},
    "vllm": {"kind": "openai-chat", "base_url": "http://127.0.0.1:8000/v1", "timeout": "10m"},
    "llamacpp": {"kind": "openai-chat", "base_url": "http://127.0.0.1:8080/v1", "timeout": "10m"},
    "openrouter": {
        "kind": "openai-chat",
        "base_url": "https://openrouter.ai/api/v1",
        "api_key_env": "OPENROUTER_API_KEY",
    },
    "litellm": {"kind": "openai-chat", "base_url": "http://127.0.0.1:4000/v1", "api_key_env": "LITELLM_API_KEY"},
    "azure": {
        "kind": "openai",
        "base_url": "https://YOUR-RESOURCE.openai.azure.com/openai/v1",
        "api_key_env": "AZURE_OPENAI_API_KEY",
    },
    "anthropic": {
        "kind": "anthropic",
        "base_url": "https://api.anthropic.com",
        "api_key_env": "ANTHROPIC_API_KEY",
    },
    "codex-cli": _program("codex", "exec"),
    "claude-cli": _program("claude", "-p"),
    "gemini-cli": _program("gemini"),
    "opencode-cli": _program("opencode", "run"),
    "offline": {"kind": "offline"},
}
HEAD = """\
# Settings of memoryd: every key, what it means, and its default. Copy what you change to ~/.memoryd/config.toml.
# Each key is also an environment variable: `model` of [extract] is MEMORYD_EXTRACT__MODEL; lists are JSON, or parted
# by commas. Flags win over variables, variables over the file. Durations: "500ms", "90s", "2m", "6h", "10d", "1w".
"""


WRITTEN_HEAD: Final = """\
# Settings of memoryd, written by `memoryd init`. Lines that begin with `#` and no blank are defaults: remove the `#` to
# change one. Each key is also an environment variable: `model` of [extract] is MEMORYD_EXTRACT__MODEL. Durations are
# "90s", "2m", "6h", "10d". `memoryd config check` tests this file; a running memoryd takes it in at `kill -HUP`.
"""

Chosen: TypeAlias = Mapping[str, Mapping[str, object]]
"""Keys that were chosen, by section; a provider's section is `providers.NAME`."""


def example_toml() -> str:
    """Return the file: every key with its reason and its default, commented out by `#` alone (prose by `# `)."""
    return _render(HEAD, {})


def written_toml(chosen: Chosen) -> str:
    """Return a file with what was chosen, and every other key with its reason and its default, commented out."""
    return _render(WRITTEN_HEAD, chosen)


def _render(head: str, chosen: Chosen) -> str:
    lines = head.splitlines()
    for section, found in Settings.model_fields.items():
        if section == "providers":
            lines += _providers(chosen)
        elif isinstance(found.annotation, type) and issubclass(found.annotation, BaseModel):
            lines += ["", f"# {found.annotation.__doc__}", f"[{section}]"]
            given = chosen.get(section, {})
            for key, about in found.annotation.model_fields.items():
                row = f"{key} = {toml_value(given[key])}" if key in given else f"#{key} = {_toml(about)}"
                lines += [*_prose(about.description or ""), row]
    return "\n".join(lines) + "\n"


def _providers(chosen: Chosen) -> Iterator[str]:
    yield from (
        "",
        "# Where models answer: [providers.NAME], as many as you like. Without one, memoryd writes offline.",
    )
    for key, about in Provider.model_fields.items():
        yield from _prose(f"{key}: {about.description}")
    named = {section: keys for section, keys in chosen.items() if section.startswith("providers.")}
    for section, keys in named.items():
        yield from ("", f"[{section}]", *(f"{key} = {toml_value(value)}" for key, value in keys.items()))
    for name, preset in () if named else PRESETS.items():
        yield from ("", f"#[providers.{name}]")
        yield from (f"#{key} = {json.dumps(value)}" for key, value in preset.items())


def toml_value(value: object) -> str:
    """Render a value as TOML: a text, a number, a list, or a table on one line."""
    if isinstance(value, Mapping) and value:
        return "{ " + ", ".join(f"{key} = {toml_value(each)}" for key, each in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def _prose(text: str) -> list[str]:
    return textwrap.wrap(text, width=110, initial_indent="# ", subsequent_indent="# ")


def _toml(about: FieldInfo) -> str:
    value = about.examples[0] if about.examples else about.default
    if isinstance(value, Seconds):
        return json.dumps(value.text)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000:
        return f"{value:_}"
    return json.dumps(value)
