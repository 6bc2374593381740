"""Codex: a hook in hooks.json (in config.toml where the user keeps hooks there), or a block in AGENTS.md."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from memoryd.control.connecting import target
from memoryd.control.connecting.edits import Block, Unusable
from memoryd.control.connecting.files import look, refused
from memoryd.control.connecting.target import HOOK, INSTRUCTIONS, MCP, Way
from memoryd.workspace.layout import Home

TITLE: Final = "Codex"
VIAS: Final[tuple[str, ...]] = (HOOK, INSTRUCTIONS)
PROGRAM: Final = "codex"
TOML_BEGIN: Final = "# memoryd: begin; `memoryd disconnect codex` removes this block"
TOML_END: Final = "# memoryd: end"
SERVER_BEGIN: Final = "# memoryd mcp: begin; `memoryd disconnect codex` removes this block"
SERVER_END: Final = "# memoryd mcp: end"


def folder(environ: Mapping[str, str]) -> Path:
    """Return CODEX_HOME, else ~/.codex."""
    return target.settings_folder(environ, "CODEX_HOME", ".codex")


def ways(via: str, folder: Path, home: Home) -> tuple[Way, ...]:
    """Return the hook, or the block. Codex warns where one folder holds hooks in both of its files."""
    if via == INSTRUCTIONS:
        override = folder / "AGENTS.override.md"  # stands in place of AGENTS.md where it is
        usual = target.markdown_block(folder / "AGENTS.md", INSTRUCTIONS, target.pointer(home))
        instead = target.markdown_block(override, INSTRUCTIONS, target.pointer(home))
        return (instead, usual) if look(override).text.strip() else (usual, instead)
    own, settings = folder / "hooks.json", folder / "config.toml"
    usual = target.grouped_hook(own, home, "codex", timeout=target.TIMEOUT_SECONDS, sources=target.SOURCES)
    instead = _toml_hook(settings, home)
    return (instead, usual) if not own.exists() and _events(_settings(settings)) else (usual, instead)


def servers(folder: Path, home: Home) -> tuple[Way, ...]:
    """Return the table of our server in config.toml."""
    command = f"command = {json.dumps(str(target.command_of(home)), ensure_ascii=False)}"
    lines = (f"[mcp_servers.{target.SERVER}]", command, 'args = ["mcp"]')
    return (Way(MCP, folder / "config.toml", Block(SERVER_BEGIN, SERVER_END, lines, command, _check_servers)),)


def advice(via: str, folder: Path) -> list[str]:
    """Say that a new hook has to be trusted, where hooks are off, and that Codex's own memory is on."""
    features = _settings(folder / "config.toml").get("features", {})
    features = features if isinstance(features, dict) else {}
    said = []
    if via == HOOK:
        said.append("start codex and trust the new hook once with /hooks: before that it does not run")
        if False in (features.get("hooks"), features.get("codex_hooks")):
            said.append("[features] hooks is false in config.toml: no hook runs until you remove that")
    if features.get("memories") is True:
        said.append(
            "Codex's own memory is on ([features] memories in config.toml): sessions get both memories, so that much is"
            " told twice; turn one of them off. memoryd neither reads nor writes Codex's"
        )
    return said


def _toml_hook(settings: Path, home: Home) -> Way:
    command = target.hook_command(home, "codex", "SessionStart")
    line = f"command = {json.dumps(command, ensure_ascii=False)}"
    lines = (
        "[[hooks.SessionStart]]",
        f'matcher = "{target.SOURCES}"',
        "[[hooks.SessionStart.hooks]]",
        'type = "command"',
        line,
        f"timeout = {target.TIMEOUT_SECONDS}",
    )
    return Way(HOOK, settings, Block(TOML_BEGIN, TOML_END, lines, line, _check_toml), command)


def _check_toml(text: str) -> None:
    try:
        tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise Unusable(f"it is not valid TOML, or its hooks leave no place for one more: {error}") from None


def _check_servers(text: str) -> None:
    try:
        tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise Unusable(f"it is not valid TOML, or has a server named {target.SERVER} already: {error}") from None


def _settings(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(look(file).text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise refused(file, f"it is not valid TOML: {error}") from None


def _events(settings: Mapping[str, Any]) -> list[str]:
    """Return the events that hooks are written for; `state` is where Codex keeps which are trusted."""
    hooks = settings.get("hooks")
    return [name for name in hooks if name != "state"] if isinstance(hooks, dict) else []
