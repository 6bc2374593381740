"""Gemini CLI: a hook in settings.json. Its imports reach no file of ours, so there is no other way."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from memoryd.control.connecting import target
from memoryd.control.connecting.target import HOOK, Way
from memoryd.workspace.layout import Home

TITLE: Final = "Gemini CLI"
VIAS: Final[tuple[str, ...]] = (HOOK,)
PROGRAM: Final = "gemini"
DIALECT: Final = target.COMMENTS


def folder(environ: Mapping[str, str]) -> Path:
    """Return .gemini in GEMINI_CLI_HOME, else in the user's home."""
    return target.settings_folder(environ, "GEMINI_CLI_HOME", ".gemini", below=".gemini")


def ways(via: str, folder: Path, home: Home) -> tuple[Way, ...]:  # noqa: ARG001 (it has one way only)
    """Return the hook, for every source of a session's start."""
    milliseconds = target.TIMEOUT_SECONDS * 1000
    file = folder / "settings.json"
    return (target.grouped_hook(file, home, "gemini", timeout=milliseconds, sources=None, dialect=DIALECT),)


def servers(folder: Path, home: Home) -> tuple[Way, ...]:
    """Return the entry among the servers, in the same file."""
    value = {"command": str(target.command_of(home)), "args": ["mcp"]}
    return (target.server_member(folder / "settings.json", home, "mcpServers", value, DIALECT),)


def advice(via: str, folder: Path) -> list[str]:  # noqa: ARG001 (it has one way only)
    """Say where hooks are off."""
    off = target.setting(folder / "settings.json", "hooksConfig", "enabled", dialect=DIALECT) is False
    return ["hooksConfig.enabled is false in settings.json: no hook runs until you remove that"] if off else []
