"""GitHub Copilot CLI: a file of hooks of our own, beside those of others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from memoryd.control.connecting import target
from memoryd.control.connecting.edits import JsonEntry
from memoryd.control.connecting.target import HOOK, Way
from memoryd.workspace.layout import Home

TITLE: Final = "GitHub Copilot CLI"
VIAS: Final[tuple[str, ...]] = (HOOK,)
PROGRAM: Final = "copilot"


def folder(environ: Mapping[str, str]) -> Path:
    """Return COPILOT_HOME, else ~/.copilot."""
    return target.settings_folder(environ, "COPILOT_HOME", ".copilot")


def ways(via: str, folder: Path, home: Home) -> tuple[Way, ...]:  # noqa: ARG001 (it has one way only)
    """Return the hook in hooks/memoryd.json."""
    command = target.hook_command(home, "copilot", "sessionStart")
    value = {"type": "command", "bash": command, "timeoutSec": target.TIMEOUT_SECONDS}
    shape = target.hook_shape("copilot")
    edit = JsonEntry(("hooks", "sessionStart"), value, command, shape, root={"version": 1})
    return (Way(HOOK, folder / "hooks" / "memoryd.json", edit, command),)


def servers(folder: Path, home: Home) -> tuple[Way, ...]:
    """Return the entry in mcp-config.json, with all of its tools."""
    value = {"type": "local", "command": str(target.command_of(home)), "args": ["mcp"], "tools": ["*"]}
    return (target.server_member(folder / "mcp-config.json", home, "mcpServers", value),)


def advice(via: str, folder: Path) -> list[str]:  # noqa: ARG001 (it has one way only)
    """Say where hooks are off."""
    off = target.setting(folder / "config.json", "disableAllHooks", dialect=target.COMMENTS) is True
    return ["disableAllHooks is true in config.json: no hook runs until you remove that"] if off else []
