"""Qwen Code: a hook in settings.json, shaped as Claude Code's, with its time in milliseconds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from memoryd.control.connecting import target
from memoryd.control.connecting.target import HOOK, Way
from memoryd.workspace.layout import Home

TITLE: Final = "Qwen Code"
VIAS: Final[tuple[str, ...]] = (HOOK,)
PROGRAM: Final = "qwen"
DIALECT: Final = target.COMMENTS


def folder(environ: Mapping[str, str]) -> Path:
    """Return QWEN_HOME, else ~/.qwen."""
    return target.settings_folder(environ, "QWEN_HOME", ".qwen")


def ways(via: str, folder: Path, home: Home) -> tuple[Way, ...]:  # noqa: ARG001 (it has one way only)
    """Return the hook."""
    milliseconds = target.TIMEOUT_SECONDS * 1000
    file = folder / "settings.json"
    return (target.grouped_hook(file, home, "qwen", timeout=milliseconds, sources=target.SOURCES, dialect=DIALECT),)


def servers(folder: Path, home: Home) -> tuple[Way, ...]:
    """Return the entry among the servers, in the same file."""
    value = {"command": str(target.command_of(home)), "args": ["mcp"]}
    return (target.server_member(folder / "settings.json", home, "mcpServers", value, DIALECT),)


def advice(via: str, folder: Path) -> list[str]:  # noqa: ARG001 (it has one way only)
    """Say where hooks are off."""
    off = target.setting(folder / "settings.json", "disableAllHooks", dialect=DIALECT) is True
    return ["disableAllHooks is true in settings.json: no hook runs until you remove that"] if off else []
