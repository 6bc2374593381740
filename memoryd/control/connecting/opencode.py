"""OpenCode: a file named in `instructions` of opencode.json or opencode.jsonc; no process runs."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from memoryd.control.connecting import target
from memoryd.control.connecting.edits import JsonEntry
from memoryd.control.connecting.jsonc import Dialect
from memoryd.control.connecting.target import INSTRUCTIONS, Way
from memoryd.workspace.layout import Home

TITLE: Final = "OpenCode"
VIAS: Final[tuple[str, ...]] = (INSTRUCTIONS,)
PROGRAM: Final = "opencode"
DIALECT: Final = Dialect(comments=True, trailing_commas=True)


def folder(environ: Mapping[str, str]) -> Path:
    """Return opencode in XDG_CONFIG_HOME, else in ~/.config."""
    return target.settings_folder(environ, "XDG_CONFIG_HOME", ".config/opencode", below="opencode")


def ways(via: str, folder: Path, home: Home) -> tuple[Way, ...]:
    """Return the entry, first in the file that OpenCode reads last of those that are there."""
    path = str(target.summary_file(home))
    shape = re.compile(r"/.*/recall/everywhere\.md", re.DOTALL)
    edit = JsonEntry(("instructions",), path, path, shape, DIALECT)
    return tuple(Way(via, file, edit) for file in _files(folder))


def servers(folder: Path, home: Home) -> tuple[Way, ...]:
    """Return the entry among the servers, in the same file."""
    value = {"type": "local", "command": [str(target.command_of(home)), "mcp"], "enabled": True}
    return tuple(target.server_member(file, home, "mcp", value, DIALECT) for file in _files(folder))


def advice(via: str, folder: Path) -> list[str]:  # noqa: ARG001 (every way is the same)
    """Say what a file cannot do that a hook could."""
    return [target.EVERYWHERE_ONLY]


def _files(folder: Path) -> tuple[Path, Path]:
    commented, plain = folder / "opencode.jsonc", folder / "opencode.json"
    return (commented, plain) if commented.exists() or commented.is_symlink() else (plain, commented)
