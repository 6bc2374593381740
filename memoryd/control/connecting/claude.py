"""Claude Code: a hook in settings.json, or an import in CLAUDE.md."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from memoryd.control.connecting import target
from memoryd.control.connecting.target import HOOK, IMPORT, Way
from memoryd.workspace.layout import Home

TITLE: Final = "Claude Code"
VIAS: Final[tuple[str, ...]] = (HOOK, IMPORT)
PROGRAM: Final = "claude"
SERVERS: Final = ".claude.json"


def folder(environ: Mapping[str, str]) -> Path:
    """Return CLAUDE_CONFIG_DIR, else ~/.claude."""
    return target.settings_folder(environ, "CLAUDE_CONFIG_DIR", ".claude")


def ways(via: str, folder: Path, home: Home) -> tuple[Way, ...]:
    """Return the hook, or the line that imports the summary."""
    if via == HOOK:
        file = folder / "settings.json"
        return (target.grouped_hook(file, home, "claude", timeout=target.TIMEOUT_SECONDS, sources=target.SOURCES),)
    path = str(target.summary_file(home)).replace(" ", "\\ ")  # an import ends at the first space that is not escaped
    return (target.markdown_block(folder / "CLAUDE.md", IMPORT, f"@{path}"),)


def servers(folder: Path, home: Home) -> tuple[Way, ...]:
    """Return the user's servers: beside ~/.claude, and in a folder that CLAUDE_CONFIG_DIR names."""
    value = {"type": "stdio", "command": str(target.command_of(home)), "args": ["mcp"], "env": {}}
    beside, inside = folder.parent / SERVERS, folder / SERVERS
    is_inside = inside.exists() or folder.name != ".claude"
    files = (inside, beside) if is_inside else (beside, inside)
    return tuple(target.server_member(file, home, "mcpServers", value) for file in files)


def advice(via: str, folder: Path) -> list[str]:
    """Say where hooks are off, and what an import cannot do."""
    if via == IMPORT:
        return [target.EVERYWHERE_ONLY]
    off = target.setting(folder / "settings.json", "disableAllHooks") is True
    return ["disableAllHooks is true in settings.json: no hook runs until you remove that"] if off else []
